"""Whose turn it is when idle capacity is shared."""

from __future__ import annotations

from fractions import Fraction

from bough.core.cycle.contest import Contender, Contest, by_weight
from bough.core.quota.tree import QuotaTree
from bough.model.quota import Cohort, FlavorResource, Queue
from tests.cycle_gangs import cohort, queue, quota

GPU = FlavorResource("any", "gpu")


def turns(cohorts: list[Cohort], queues: list[Queue], count: int, **heads: int) -> list[str]:
    """The queues that get the first turns, if each has enough gangs, of one GPU each by default."""
    tree = QuotaTree.of(cohorts, queues)
    left = {each.name: count for each in queues}

    def head(name: str) -> Contender | None:
        if not left[name]:
            return None
        return Contender((0, 0, 0, name), {GPU: heads.get(name, 1)})

    contest = Contest(tree, sorted(left), head, by_weight)
    served: list[str] = []
    while len(served) < count and (name := contest.next()) is not None:
        tree.add_usage(name, {GPU: heads.get(name, 1)})
        left[name] -= 1
        served.append(name)
        contest.settle(name)
    return served


def test_who_is_within_its_quota_goes_before_who_borrows() -> None:
    served = turns([cohort("root", None, 4)], [queue("a", 0, weight=9), queue("b", 2)], 4)

    assert ["b", "b", "a", "a"] == served


def test_within_quota_the_emptiest_goes_first() -> None:
    served = turns([cohort("root", None)], [queue("large", 4), queue("small", 2)], 6)

    assert {"large": 4, "small": 2} == {name: served.count(name) for name in ("large", "small")}
    assert ["large", "small", "large"] == served[:3]


def test_what_is_borrowed_is_shared_by_weight() -> None:
    served = turns(
        [cohort("root", None, 20)], [queue("a", 0, weight=1), queue("b", 0, weight=3)], 20
    )

    assert (5, 15) == (served.count("a"), served.count("b"))


def test_weights_hold_at_every_level() -> None:
    """The north has twice the weight of the south, however many queues are below each."""
    tree = [
        cohort("root", None, 12),
        Cohort("north", "root", quota(0), Fraction(2)),
        Cohort("south", "root", quota(0), Fraction(1)),
    ]
    queues = [queue("n", 0, "north"), *(queue(f"s{at}", 0, "south") for at in range(2))]

    served = turns(tree, queues, 12)

    assert (8, 2, 2) == tuple(served.count(name) for name in ("n", "s0", "s1"))


def test_who_has_no_weight_borrows_last() -> None:
    served = turns([cohort("root", None, 4)], [queue("a", 0, weight=0), queue("b", 0)], 4)

    assert ["b"] * 4 == served


def test_larger_requests_mean_fewer_turns() -> None:
    served = turns([cohort("root", None, 12)], [queue("a", 0), queue("b", 0)], 9, a=2)

    assert 2 * served.count("a") == served.count("b")


def test_who_has_nothing_left_is_passed_over() -> None:
    tree = QuotaTree.of([cohort("root", None, 4)], [queue("a", 0), queue("b", 0)])
    heads = {"a": [1], "b": [1, 1]}

    def head(name: str) -> Contender | None:
        return Contender((0, 0, 0, name), {GPU: 1}) if heads[name] else None

    contest = Contest(tree, ["a", "b"], head, by_weight)
    served: list[str] = []
    while (name := contest.next()) is not None:
        heads[name].pop()
        served.append(name)
        contest.settle(name)

    assert ["a", "b", "b"] == served
