"""`bough quota`: show a quota tree, ask whether a request fits, check what was written.

Amounts are integers in the resource's own unit (CPU in thousandths of a core).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.api.file_answers import CheckAnswer
from bough.api.quota_answers import (
    QuotaCondition,
    QuotaNode,
    QuotaPortion,
    QuotaRow,
    QuotaShare,
    QuotaTreeAnswer,
)
from bough.core.cycle.quota_cost import amount_of
from bough.core.quota.fair_now import fair_now, write_part
from bough.core.quota.taken_share import Shares, write_weight
from bough.core.quota.tree import QuotaTree
from bough.model.gang import PodState
from bough.model.quota import FlavorResource, NodeKind, TreeNode, quotas_of
from bough.tools.file_problems import check_answer, problem_answers
from bough.tools.load_organisation import build_tree, load, load_valid, waiting_in
from bough.tools.load_shares import load_compared, load_fair_queues

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bough.core.explain.node_shares import Standing
    from bough.core.quota.fair_now import Portion
    from bough.core.quota.taken_share import Share
    from bough.model.snapshot import Snapshot
    from bough.tools.load_shares import ComparedShares, FairQueues

#: States in which a pod counts against quota.
HELD = (PodState.RUNNING, PodState.RELEASING)


def show(
    paths: Iterable[str], *, policy: str | None = None, lenient: bool = False
) -> QuotaTreeAnswer:
    """The tree: what each node owns, uses, lends, borrows and can still admit.

    `nodes` is in the order of a drawing: each node before those below it, with its `depth`.

    policy:  a policy file, by which nodes are compared.
    """
    chosen = list(paths)
    if policy is not None:
        return _show_compared(load_compared(chosen, policy, lenient=lenient))
    fair = load_fair_queues(chosen, lenient=lenient)
    organisation, problems = load_valid(chosen, lenient=lenient)
    tree = build_tree(organisation)
    shares, portions = Shares(tree), fair_now(tree, waiting_in(organisation))
    nodes = [
        _node_answer(tree, node, depth, _share(shares.of(node), portions.get(node, [])))
        for node, depth in _drawn(tree)
    ]
    if fair is not None:
        nodes += fair_nodes(fair)
        problems = fair.problems
    return QuotaTreeAnswer(nodes, problem_answers(problems))


def kueue_nodes(snapshot: Snapshot) -> list[QuotaNode]:
    """Cohorts and ClusterQueues with what pods use of them, in the order of a drawing."""
    tree = QuotaTree.of(snapshot.cohorts, snapshot.queues)
    flavors = {node.name: node.flavor for node in snapshot.nodes}
    for queue in snapshot.queues:
        covered = quotas_of(queue.resource_groups)
        usage: dict[FlavorResource, int] = {}
        for gang in snapshot.gangs.get(queue.name, ()):
            for pod in gang.pods:
                flavor = flavors.get(pod.node or "") if pod.state in HELD else None
                for what in covered:
                    if what.flavor == flavor:
                        used = amount_of(pod.requests, what.resource)
                        usage[what] = usage.get(what, 0) + used
        if usage:
            tree.add_usage(queue.name, usage)
    shares = Shares(tree)
    return [
        _node_answer(tree, node, depth, _share(shares.of(node), ())) for node, depth in _drawn(tree)
    ]


def fair_nodes(fair: FairQueues) -> list[QuotaNode]:
    """Queues of KAI, in the order of a drawing."""
    return [
        _node_answer(fair.tree, node, depth, _standing_answer(fair.standings[node]))
        for node, depth in _drawn(fair.tree)
        if node in fair.standings
    ]


def _show_compared(compared: ComparedShares) -> QuotaTreeAnswer:
    nodes = [
        _node_answer(compared.tree, node, depth, _standing_answer(compared.standings.get(node)))
        for node, depth in _drawn(compared.tree)
    ]
    return QuotaTreeAnswer(nodes, problem_answers(compared.problems), compared.compares)


def check(paths: Iterable[str], *, lenient: bool = False) -> CheckAnswer:
    """Everything that is wrong in the files, and how many objects of each kind they have."""
    organisation, problems = load(paths, lenient=lenient)
    objects = {
        "cohorts": len(organisation.cohorts),
        "cluster_queues": len(organisation.queues),
        "resource_flavors": len(organisation.flavors),
        "local_queues": len(organisation.local_queues),
        "workloads": len(organisation.workloads),
    }
    return check_answer(objects, problems)


def _drawn(tree: QuotaTree) -> Iterator[tuple[TreeNode, int]]:
    """Every node with its depth; a cycle from its smallest name down to where it closes."""
    seen: set[TreeNode] = set()
    rings = [TreeNode(NodeKind.COHORT, tree.cycle(node)[0]) for node in tree if tree.cycle(node)]
    waiting = [(node, 0) for node in reversed([*tree.roots(), *dict.fromkeys(rings)])]
    while waiting:
        node, depth = waiting.pop()
        if node not in seen:
            seen.add(node)
            yield node, depth
            waiting.extend((child, depth + 1) for child in reversed(tree.children(node)))


def _node_answer(
    tree: QuotaTree,
    node: TreeNode,
    depth: int,
    share: QuotaShare | None,
) -> QuotaNode:
    parent = tree.parent(node)
    return QuotaNode(
        kind=node.kind.value,
        name=node.name,
        parent=None if parent is None else parent.name,
        depth=depth,
        implicit=tree.is_implicit(node),
        weight=write_weight(tree.weight(node)),
        cycle=list(tree.cycle(node)),
        conditions=[
            QuotaCondition(each.type, each.status, each.reason, each.message)
            for each in tree.conditions(node)
        ],
        resources=[_row(tree, node, what) for what in _listed(tree, node)],
        share=None if tree.cycle(node) else share,
    )


def _share(share: Share, portions: Iterable[Portion]) -> QuotaShare:
    return QuotaShare(share.text, share.resource, _portion_answers(portions))


def _standing_answer(standing: Standing | None) -> QuotaShare | None:
    return None if standing is None else _share(standing.share, standing.portions)


def _portion_answers(portions: Iterable[Portion]) -> list[QuotaPortion]:
    return [
        QuotaPortion(each.resource, each.deserved, each.used, each.asked, write_part(each.fair))
        for each in portions
    ]


def _listed(tree: QuotaTree, node: TreeNode) -> list[FlavorResource]:
    """What a node lists, in its own order, then what else it uses or has below it, by name."""
    declaration = tree.declaration(node)
    groups = () if declaration is None else declaration.resource_groups
    own = [
        FlavorResource(flavor.name, resource)
        for group in groups
        for flavor in group.flavors
        for resource in flavor.resources
    ]
    return list(dict.fromkeys([*own, *tree.flavor_resources(node)]))


def _row(tree: QuotaTree, node: TreeNode, what: FlavorResource) -> QuotaRow:
    quota = tree.quota(node, what)
    balance = tree.balance(node, what)
    lends = max(0, balance)
    if quota is not None and quota.lending_limit is not None:
        lends = min(quota.lending_limit, lends)
    may_admit = not tree.cycle(node) and (quota is not None or node.kind is NodeKind.COHORT)
    return QuotaRow(
        flavor=what.flavor,
        resource=what.resource,
        nominal=None if quota is None else quota.nominal,
        borrowing_limit=None if quota is None else quota.borrowing_limit,
        lending_limit=None if quota is None else quota.lending_limit,
        subtree_quota=tree.subtree_quota(node, what),
        used=tree.usage(node, what),
        balance=balance,
        lends=None if tree.parent(node) is None or tree.cycle(node) else lends,
        borrows=0 if tree.cycle(node) else max(0, -balance),
        available=max(0, tree.available(node, what)) if may_admit else 0,
        debt=tree.debt(node, what),
    )
