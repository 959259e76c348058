"""The tree as a cycle walks it: what borrows below a cohort, how far up a request reaches."""

from __future__ import annotations

import pytest

from bough.core.cycle.forest import Forest, reach_of
from bough.core.cycle.memo import Memo
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.policy import KUEUE
from bough.model.quota import Cohort, FlavorResource, Queue
from bough.model.workload import Workload
from tests.cycle_kueue import cohort, queue, running, snapshot

GPU = FlavorResource("f", "gpu")


def _planted(cohorts: list[Cohort], queues: list[Queue], *holds: Workload) -> Forest:
    return _copy(cohorts, queues, *holds).forest


def _copy(cohorts: list[Cohort], queues: list[Queue], *holds: Workload) -> WorkingCopy:
    return Memo().refresh(snapshot(queues, cohorts, holds=holds), KUEUE)


def _forest(*holds: Workload) -> Forest:
    """root(1) over team(0) over a(2, of which it lends none) and b(1); c beside the team."""
    return _planted(
        [cohort("team", "root"), cohort("root", f=1), cohort("empty", "root")],
        [queue("a", "team", f=(2, None, 0)), queue("b", "team", f=1), queue("c", "root", f=0)],
        *holds,
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
    forest = _forest(running("r", "a", 2))
    leaf = forest.leaves["a"]
    assert [(1, True), (2, False)] == [
        tuple(reach_of(leaf, leaf.account(GPU), amount)) for amount in (1, 2)
    ]


def test_what_a_cohort_keeps_for_itself_is_not_asked_of_those_above_it() -> None:
    cohorts = [cohort("team", "unit", f=(3, None, 0)), cohort("unit", "root", f=1), cohort("root")]
    leaf = _planted(cohorts, [queue("q", "team", f=0)]).leaves["q"]
    assert (2, True) == tuple(reach_of(leaf, leaf.account(GPU), 4))


def test_a_queue_without_a_cohort_reaches_no_further_than_itself() -> None:
    leaf = _planted([], [queue("q", f=1)]).leaves["q"]
    assert (0, False) == tuple(reach_of(leaf, leaf.account(GPU), 9))


def test_a_cohort_is_as_high_as_the_longest_way_down_also_where_nothing_waits() -> None:
    forest = _planted(
        [cohort("deep", "middle"), cohort("middle", "root"), cohort("root")],
        [queue("q", "root", f=1)],
    )
    root = forest.leaves["q"].parent
    assert root is not None
    assert 2 == root.height


def _names(forest: Forest, queue_name: str) -> list[str]:
    parent = forest.leaves[queue_name].parent
    assert parent is not None
    leaving, rest = forest.reclaimable(parent, (GPU,), only_users=True)
    return [claim.name.removeprefix("ns/") for _, claim in (*leaving, *rest)]


def test_what_can_be_reclaimed_follows_what_is_held() -> None:
    assert [] == _names(_forest(), "a")
    assert [] == _names(_forest(running("one", "b", 1)), "a")
    both = (running("one", "b", 1), running("two", "b", 1, since_ms=5))
    assert ["two", "one"] == _names(_forest(*both), "a")


def test_what_can_be_reclaimed_follows_what_a_cycle_does() -> None:
    copy = _copy(
        [cohort("team")],
        [queue("a", "team", f=2), queue("b", "team", f=1)],
        running("one", "b", 1),
        running("two", "b", 1, since_ms=5),
    )
    mark = copy.mark()
    copy.evict_counted(copy.claims["ns/two"])
    copy.forest.changed()
    assert [] == _names(copy.forest, "a")
    copy.undo(mark)
    assert ["two", "one"] == _names(copy.forest, "a")


def test_a_cohort_within_its_quota_is_passed_by_with_all_below_it() -> None:
    out, first = running("out", "c", 1), running("in", "b", 1)
    assert ["out"] == _names(_forest(out, first), "c")
    more = _forest(out, first, running("more", "b", 1))
    assert ["in", "more", "out"] == sorted(_names(more, "c"))


def test_what_was_told_to_end_comes_first() -> None:
    forest = _forest(running("new", "c", 1, since_ms=9), running("old", "c", 1, evicted=True))
    assert ["old", "new"] == _names(forest, "c")
