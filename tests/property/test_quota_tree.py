"""Laws of the quota tree, against the design taken literally."""

from __future__ import annotations

from hypothesis import event, given
from hypothesis import strategies as st

from bough.core.quota.change_effects import Debt, effects
from bough.core.quota.taken_share import Share, is_borrowing, share_of
from bough.core.quota.tree import DeleteQueue, QuotaTree
from bough.model.quota import Cohort, FlavorResource, NodeKind, Queue, TreeNode
from tests.oracles.quota import Declarations
from tests.strategies import QUEUES, RESOURCES, admit_what_fits, changes, forests, usages

HISTORIES = st.lists(st.one_of(changes(), usages()), max_size=25)


def state_of(tree: QuotaTree) -> dict[TreeNode, object]:
    """Everything that can be seen of a tree; what is 0 everywhere is as good as absent."""
    return {
        node: (
            tree.parent(node),
            tree.children(node),
            tree.is_implicit(node),
            tree.cycle(node),
            tree.conditions(node),
            [numbers for what in RESOURCES if any(numbers := numbers_of(tree, node, what))],
            None if tree.cycle(node) else share_of(tree, node),
        )
        for node in tree
    }


def numbers_of(tree: QuotaTree, node: TreeNode, what: FlavorResource) -> tuple[int, ...]:
    if tree.cycle(node):
        return (tree.usage(node, what) if node.kind is NodeKind.QUEUE else 0,)
    return (
        tree.subtree_quota(node, what),
        tree.usage(node, what),
        tree.balance(node, what),
        tree.debt(node, what),
        tree.available(node, what),
        tree.potential(node, what),
    )


def replay(history: list[object]) -> tuple[QuotaTree, Declarations]:
    """Live through a history in the engine and on paper."""
    tree, paper = QuotaTree(), Declarations()
    for step in history:
        if isinstance(step, tuple):
            queue, amounts = step
            if queue in paper.queues:
                tree.add_usage(queue, amounts)
                paper.add_usage(queue, amounts)
        else:
            tree.apply(step)
            paper.apply(step)
    return tree, paper


@given(HISTORIES)
def test_a_tree_that_lived_through_any_history_equals_one_built_from_scratch(
    history: list[object],
) -> None:
    tree, paper = replay(history)

    assert state_of(paper.tree()) == state_of(tree)


@given(HISTORIES)
def test_after_any_history_the_balances_are_those_of_the_design(history: list[object]) -> None:
    tree, paper = replay(history)

    assert paper.nodes() == set(tree)
    for node in tree:
        assert paper.is_tangled(node) == bool(tree.cycle(node))
        for what in RESOURCES:
            assert paper.debt(node, what) == tree.debt(node, what)
            if not tree.cycle(node):
                assert paper.balance(node, what) == tree.balance(node, what)
                assert paper.subtree_quota(node, what) == tree.subtree_quota(node, what)


@given(HISTORIES)
def test_every_node_of_a_tangled_tree_has_a_condition_and_no_admission(
    history: list[object],
) -> None:
    tree, paper = replay(history)

    for node in tree:
        (condition,) = tree.conditions(node)
        assert paper.is_tangled(node) == (not condition.status)
        if paper.is_tangled(node):
            event("tangled")
            assert all(name in condition.message for name in tree.cycle(node))
            if node.kind is NodeKind.QUEUE:
                refusal = tree.refusal(node.name, {RESOURCES[0]: 1})
                assert refusal is not None
                assert tree.cycle(node) == refusal.cycle


@given(HISTORIES, changes())
def test_events_name_exactly_the_nodes_whose_tangle_comes_or_goes(
    history: list[object], change: object
) -> None:
    tree, _ = replay(history)
    before = {node: tree.cycle(node) for node in tree}

    events = tree.apply(change)

    changed = {node for node in tree if tree.cycle(node) != before.get(node, ())}
    assert changed == {each.node for each in events}
    for each in events:
        cycle = tree.cycle(each.node) or before[each.node]
        assert all(name in each.message for name in cycle)


@given(forests(), st.lists(usages(), max_size=12))
def test_in_a_legal_state_admission_is_the_designs_rule_checked_over_the_whole_tree(
    forest: tuple[list[Cohort], list[Queue]], requests: list[tuple[str, dict[FlavorResource, int]]]
) -> None:
    cohorts, queues = forest
    tree = QuotaTree.of(cohorts, queues)
    admit_what_fits(tree, requests)
    paper = Declarations()
    paper.cohorts = {cohort.name: cohort for cohort in cohorts}
    paper.queues = {queue.name: queue for queue in queues}
    paper.usage = {
        queue.name: {
            what: tree.usage(TreeNode(NodeKind.QUEUE, queue.name), what) for what in RESOURCES
        }
        for queue in queues
    }

    assert paper.is_legal(RESOURCES)
    for queue in paper.queues:
        for what in RESOURCES:
            for amount in (1, 2, 5, 9):
                admitted = tree.refusal(queue, {what: amount}) is None
                assert paper.admits(queue, what, amount) == admitted


@given(forests(), st.lists(usages(), max_size=12), st.randoms(use_true_random=False))
def test_the_order_of_declarations_and_of_usage_changes_nothing(
    forest: tuple[list[Cohort], list[Queue]],
    requests: list[tuple[str, dict[FlavorResource, int]]],
    random: object,
) -> None:
    cohorts, queues = forest
    taken = [request for request in requests if request[0] in {queue.name for queue in queues}]
    orders = []
    for _ in range(2):
        tree = QuotaTree.of(cohorts, queues)
        for queue, amounts in taken:
            tree.add_usage(queue, amounts)
        orders.append(state_of(tree))
        for each in (cohorts, queues, taken):
            random.shuffle(each)

    assert orders[0] == orders[1]


@given(HISTORIES, st.lists(usages(), min_size=1, max_size=8), st.integers(0, 8))
def test_undo_restores_the_tree_and_an_inner_what_if_keeps_the_outer(
    history: list[object], requests: list[tuple[str, dict[FlavorResource, int]]], split: int
) -> None:
    tree, paper = replay(history)
    requests = [request for request in requests if request[0] in paper.queues]
    states = [state_of(tree)]
    outer = tree.log.mark()
    for queue, amounts in requests[:split]:
        tree.add_usage(queue, amounts)
    states.append(state_of(tree))
    inner = tree.log.mark()
    for queue, amounts in requests[split:]:
        tree.add_usage(queue, amounts)
        tree.remove_usage(queue, amounts)
        tree.add_usage(queue, amounts)

    tree.log.undo(inner)
    assert states[1] == state_of(tree)
    tree.log.undo(outer)
    assert states[0] == state_of(tree)


@given(HISTORIES, changes())
def test_effects_are_those_of_making_the_change_and_leave_the_tree_alone(
    history: list[object], change: object
) -> None:
    tree, paper = replay(history)
    before = state_of(tree)
    keys = [(node, what) for node in paper.nodes() for what in RESOURCES]
    debts = {key: paper.debt(*key) for key in keys}
    tangled = {node for node in paper.nodes() if paper.is_tangled(node)}
    uncounted = paper.usage.get(change.name, {}) if isinstance(change, DeleteQueue) else {}

    found = effects(tree, change)

    assert before == state_of(tree)
    paper.apply(change)
    after = {(node, what): paper.debt(node, what) for node in paper.nodes() for what in RESOURCES}
    changed = [Debt(*key, debts.get(key, 0), after.get(key, 0)) for key in sorted({*debts, *after})]
    assert tuple(debt for debt in changed if debt.after > debt.before) == found.debts
    assert tuple(debt for debt in changed if debt.after < debt.before) == found.relieved
    tangled_after = {node for node in paper.nodes() if paper.is_tangled(node)}
    assert tuple(sorted(tangled_after - tangled)) == found.tangled
    assert uncounted == found.uncounted


@given(forests(), st.lists(usages(), max_size=12))
def test_a_refusal_names_the_deficit_exactly(
    forest: tuple[list[Cohort], list[Queue]], requests: list[tuple[str, dict[FlavorResource, int]]]
) -> None:
    """Without the deficit it is admitted; with one unit less of it, it is not."""
    tree = QuotaTree.of(*forest)
    admit_what_fits(tree, requests)

    for name in QUEUES:
        if TreeNode(NodeKind.QUEUE, name) not in tree:
            continue
        for what in RESOURCES:
            refusal = tree.refusal(name, {what: 50})
            if refusal is None or refusal.node is None:
                continue
            event("refused by a balance")
            smaller = 50 - refusal.deficit
            assert tree.refusal(name, {what: smaller}) is None
            assert tree.refusal(name, {what: smaller + 1}) is not None
            assert refusal.balance - refusal.passed < -(refusal.borrowing_limit or 0)


@given(forests(), st.lists(usages(), max_size=12))
def test_only_what_borrows_has_a_share_and_a_root_has_none(
    forest: tuple[list[Cohort], list[Queue]], requests: list[tuple[str, dict[FlavorResource, int]]]
) -> None:
    tree = QuotaTree.of(*forest)
    admit_what_fits(tree, requests)

    for node in tree:
        share = share_of(tree, node)
        assert is_borrowing(tree, node, tree.flavor_resources(node)) == share.borrowing
        assert share.borrowing or share.unweighted == 0
        if tree.parent(node) is None:
            assert Share(weight=tree.weight(node)) == share
