"""Laws of fair sharing: shares are what the definition says, and what shares decide has an end."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.core.quota.taken_share import Shares
from bough.core.quota.tree import QuotaTree
from bough.core.undo import UndoLog
from bough.model.policy import KUEUE_FAIR
from bough.model.quota import Cohort, FlavorResource, NodeKind, Queue, TreeNode
from tests.laws_fair import check_rest
from tests.oracles.quota import Declarations
from tests.strategies import RESOURCES, forests, usages

SEEDS = st.integers(0, 2**32 - 1)
Request = tuple[str, dict[FlavorResource, int]]


def paper_of(forest: tuple[list[Cohort], list[Queue]], used: list[Request]) -> Declarations:
    """The same world on paper."""
    paper = Declarations()
    paper.cohorts = {each.name: each for each in forest[0]}
    paper.queues = {each.name: each for each in forest[1]}
    for queue, amounts in used:
        paper.add_usage(queue, amounts)
    return paper


def share_on_paper(paper: Declarations, empty: QuotaTree, node: TreeNode) -> Fraction | None:
    """What is used beyond the quota, of all that the parent could lend if nothing ran."""
    parent = paper.parent(node)
    if parent is None:
        return Fraction(0)
    borrowed = sum(max(0, -paper.balance(node, what)) for what in RESOURCES)
    known = empty.flavor_resources(empty.path(parent)[-1])
    lendable = sum(empty.potential(parent, what) for what in known)
    if not borrowed or lendable <= 0:
        return Fraction(0)
    weight = empty.weight(node)
    return Fraction(borrowed * 1000, lendable) / weight if weight else None


@given(forests(), st.lists(st.tuples(usages(), st.sampled_from(["add", "remove", "undo"]))))
def test_shares_are_what_the_definition_says_after_any_adding_removing_and_undoing(
    forest: tuple[list[Cohort], list[Queue]], steps: list[tuple[Request, str]]
) -> None:
    log = UndoLog()
    tree = QuotaTree.of(*forest, log)
    empty = QuotaTree.of(*forest)
    shares = Shares(tree)
    queues = {each.name for each in forest[1]}
    used: list[Request] = []
    for request, step in steps:
        queue, amounts = request
        if queue not in queues:
            continue
        if step == "remove" and used:
            tree.remove_usage(*used.pop())
        elif step == "undo":
            mark = log.mark()
            tree.add_usage(queue, amounts)
            for node in tree:
                shares.of(node)
            log.undo(mark)
        else:
            tree.add_usage(queue, amounts)
            used.append(request)
        paper = paper_of(forest, used)
        for node in tree:
            assert share_on_paper(paper, empty, node) == shares.of(node).weighted


@given(forests(), st.lists(usages(), max_size=12))
def test_ranks_put_nodes_beside_each_other_in_the_order_of_their_shares(
    forest: tuple[list[Cohort], list[Queue]], requests: list[Request]
) -> None:
    tree = QuotaTree.of(*forest)
    for queue, amounts in requests:
        if TreeNode(NodeKind.QUEUE, queue) in tree:
            tree.add_usage(queue, amounts)
    shares = Shares(tree)
    for parent in tree:
        for one in tree.children(parent):
            for other in tree.children(parent):
                first, second = shares.of(one), shares.of(other)
                weighted, others = first.weighted, second.weighted
                if weighted is not None and others is not None:
                    assert (weighted < others) == (shares.rank(one) < shares.rank(other))
                elif weighted is None and others is None:
                    less = first.unweighted < second.unweighted
                    assert less == (shares.rank(one) < shares.rank(other))
                else:
                    assert (others is None) == (shares.rank(one) < shares.rank(other))


@given(SEEDS)
def test_once_nothing_else_happens_no_world_evicts_in_circles(seed: int) -> None:
    check_rest(Random(seed))


def test_without_what_makes_it_rest_some_worlds_evict_in_circles() -> None:
    """So that the law above is known to have something to say."""
    plain = msgspec.structs.replace(KUEUE_FAIR, order=KUEUE_FAIR.order[1:], gives_way_once=False)
    circles = 0
    for seed in range(120):
        try:
            check_rest(Random(seed), plain)
        except AssertionError:
            circles += 1
    assert circles
