"""What is fair now: own quota first, the rest by weight, never more than is there or asked for."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from bough.core.quota.fair_now import Claimant, divide, fair_now, write_part
from bough.core.quota.tree import QuotaTree
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from tests.cycle_kueue import cohort, queue

AMOUNTS = st.integers(0, 12).map(Fraction)
WEIGHTS = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1), Fraction(3)])
CLAIMANTS = st.lists(
    st.builds(Claimant, AMOUNTS, AMOUNTS, WEIGHTS, st.none() | AMOUNTS), max_size=5
)
GPU = FlavorResource("f", "gpu")


def claimant(asked: int, deserved: int, weight: int = 1, **fields: Fraction) -> Claimant:
    return Claimant(Fraction(asked), Fraction(deserved), Fraction(weight), **fields)


def test_what_is_idle_goes_by_weight() -> None:
    assert [3, 9] == divide(Fraction(12), [claimant(20, 0, 1), claimant(20, 0, 3)])


def test_own_quota_comes_first_and_what_one_does_not_ask_for_is_left_to_the_others() -> None:
    several = [claimant(1, 4), claimant(9, 4), claimant(9, 2)]

    assert [1, Fraction(11, 2), Fraction(7, 2)] == divide(Fraction(10), several)


def test_what_has_no_weight_gets_what_all_others_leave() -> None:
    assert [6, 0] == divide(Fraction(6), [claimant(9, 0, 1), claimant(9, 0, 0)])
    assert [2, 4] == divide(Fraction(6), [claimant(2, 0, 1), claimant(9, 0, 0)])


def test_limits_and_what_is_not_lent_are_kept() -> None:
    limited = claimant(9, 2, limit=Fraction(3))
    keeps = claimant(0, 4, kept=Fraction(3))

    assert [3, 6] == divide(Fraction(9), [limited, claimant(9, 0)])
    assert [0, 1] == divide(Fraction(4), [keeps, claimant(9, 0)])


@given(st.integers(0, 40).map(Fraction), CLAIMANTS)
def test_nothing_is_given_that_is_not_there_or_not_asked_for_and_nothing_is_left_over(
    total: Fraction, claimants: list[Claimant]
) -> None:
    wants = [
        each.asked if each.limit is None else min(each.asked, each.limit) for each in claimants
    ]
    owned = [min(want, each.deserved) for want, each in zip(wants, claimants, strict=True)]
    got = divide(total, claimants)

    for part, want, own in zip(got, wants, owned, strict=True):
        assert own <= part <= want
    assert max(min(total, sum(wants)), sum(owned)) == sum(got, Fraction(0))
    heights = {
        (part - own) / each.weight
        for part, want, own, each in zip(got, wants, owned, claimants, strict=True)
        if part < want and each.weight
    }
    # What lacks something has the same beyond its own, for its weight.
    assert len(heights) <= 1


def test_a_tree_is_divided_level_by_level() -> None:
    tree = QuotaTree.of(
        [cohort("root", f=8), cohort("team", "root", weight=3)],
        [queue("a", "team", f=0), queue("b", "team", f=4), queue("c", "root", f=0)],
    )
    tree.add_usage("b", {GPU: 1})
    tree.add_usage("c", {GPU: 2})
    found = fair_now(tree, {"a": {"gpu": 20}, "c": {"gpu": 20}})

    def told(kind: NodeKind, name: str) -> tuple[int, int, int, int | float]:
        (portion,) = found[TreeNode(kind, name)]
        return portion.deserved, portion.used, portion.asked, write_part(portion.fair)

    # Of 12, team asks for 21 and owns 4; beyond that it gets three parts of eight, and c one.
    assert (12, 3, 43, 12) == told(NodeKind.COHORT, "root")
    assert (4, 1, 21, 10) == told(NodeKind.COHORT, "team")
    assert (0, 2, 22, 2) == told(NodeKind.QUEUE, "c")
    assert (4, 1, 1, 1) == told(NodeKind.QUEUE, "b")
    assert (0, 0, 20, 9) == told(NodeKind.QUEUE, "a")


def test_a_part_is_written_whole_where_it_rounds_to_that() -> None:
    parts = [Fraction(6), Fraction(59999, 10000), Fraction(1, 3), None]
    assert ["6", "6", "0.333", "None"] == [str(write_part(each)) for each in parts]
