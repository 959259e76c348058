"""The tree as a cycle walks it: who borrows below a cohort, how far up a request reaches."""

from __future__ import annotations

import pytest
from bough.core.cycle.heights import reach_of

from bough.core.cycle.forest import Forest
from bough.model.policy import KUEUE
from bough.model.quota import FlavorResource
from tests.cycle_kueue import cohort, queue, running

GPU = FlavorResource("f", "gpu")


def _forest() -> Forest:
    """root(1) over team(0) over a(2, of which it lends none) and b(1); c beside the team."""
    return Forest(
        [cohort("team", "root"), cohort("root", f=1), cohort("empty", "root")],
        [queue("a", "team", f=(2, None, 0)), queue("b", "team", f=1), queue("c", "root", f=0)],
        KUEUE,
    )


@pytest.mark.parametrize(
    ("amount", "expected"),
    [(0, (0, True)), (2, (0, True)), (3, (1, True)), (4, (2, False)), (5, (2, False))],
)
def test_a_request_reaches_the_lowest_subtree_that_could_hold_what_is_passed_on(
    amount: int, expected: tuple[int, bool]
) -> None:
    leaf = _forest().leaves["a"]
    assert expected == tuple(reach_of(leaf, leaf.account(GPU), amount))


def test_what_is_used_already_counts_for_how_far_a_request_reaches() -> None:
    forest = _forest()
    forest.hold("a", [running("r", "a", 2)])
    leaf = forest.leaves["a"]
    assert [(1, True), (2, False)] == [
        tuple(reach_of(leaf, leaf.account(GPU), amount)) for amount in (1, 2)
    ]


def test_what_a_cohort_keeps_for_itself_is_not_asked_of_those_above_it() -> None:
    cohorts = [cohort("team", "unit", f=(3, None, 0)), cohort("unit", "root", f=1), cohort("root")]
    leaf = Forest(cohorts, [queue("q", "team", f=0)], KUEUE).leaves["q"]
    assert (2, True) == tuple(reach_of(leaf, leaf.account(GPU), 4))


def test_a_queue_without_a_cohort_reaches_no_further_than_itself() -> None:
    leaf = Forest([], [queue("q", f=1)], KUEUE).leaves["q"]
    assert (0, False) == tuple(reach_of(leaf, leaf.account(GPU), 9))


def test_a_cohort_is_as_high_as_the_longest_way_down_also_where_nobody_waits() -> None:
    forest = Forest(
        [cohort("deep", "middle"), cohort("middle", "root"), cohort("root")],
        [queue("q", "root", f=1)],
        KUEUE,
    )
    root = forest.leaves["q"].parent
    assert root is not None
    assert 2 == root.height


def _names(forest: Forest, queue_name: str) -> list[str]:
    parent = forest.leaves[queue_name].parent
    assert parent is not None
    leaving, rest = forest.reclaimable(parent, (GPU,))
    return [holder.workload.name for _, holder in (*leaving, *rest)]


def test_who_can_be_reclaimed_from_follows_who_holds_what() -> None:
    forest = _forest()
    assert [] == _names(forest, "a")
    forest.hold("b", [running("one", "b", 1)])
    assert [] == _names(forest, "a")
    forest.hold("b", [running("one", "b", 1), running("two", "b", 1, since_ms=5)])
    assert ["two", "one"] == _names(forest, "a")
    two = forest.leaves["b"].running[0][1]
    mark = forest.tree.mark()
    forest.remove(two)
    assert [] == _names(forest, "a")
    forest.add_usage(forest.leaves["b"], {GPU: 1})
    assert ["two", "one"] == _names(forest, "a")
    forest.tree.undo(mark)


def test_a_cohort_within_its_quota_is_passed_by_with_all_below_it() -> None:
    forest = _forest()
    forest.hold("c", [running("out", "c", 1)])
    forest.hold("b", [running("in", "b", 1)])
    assert ["out"] == _names(forest, "c")
    forest.hold("b", [running("in", "b", 1), running("more", "b", 1)])
    assert ["in", "more", "out"] == sorted(_names(forest, "c"))


def test_who_was_told_to_end_comes_first() -> None:
    forest = _forest()
    forest.hold("c", [running("new", "c", 1, since_ms=9), running("old", "c", 1, evicted=True)])
    assert ["old", "new"] == _names(forest, "c")
