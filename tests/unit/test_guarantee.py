"""Promises of a cohort: what the queue that takes the rest may use, and why not more."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.core.cycle.forest import Forest
from bough.core.cycle.ledgers import Ledgers
from bough.core.explain.sentences import say_refusal
from bough.core.quota.guarantee import GuaranteedTree
from bough.model.certificate import Ledger
from bough.model.policy import OSMO
from bough.model.quota import FlavorResource, NodeKind, Promise, Queue, TreeNode
from bough.model.words import OBJECT_WORDS
from tests.cycle_gangs import cohort, queue

GPU = FlavorResource("any", "gpu")
SHARED = TreeNode(NodeKind.QUEUE, "shared")


def gpus(count: int) -> dict[FlavorResource, int]:
    return {GPU: count}


def promised(name: str, quota: int) -> Queue:
    return msgspec.structs.replace(queue(name, quota, "team"), promise=Promise.KEPT)


def rest(quota: int) -> Queue:
    return msgspec.structs.replace(queue("shared", quota, "team"), promise=Promise.REST)


def team(shared: int = 10, **quotas: int) -> Ledgers:
    """A cohort of 100 with the promises a 30, b 40, c 20 unless others are given."""
    promises = [promised(*each) for each in (quotas or {"a": 30, "b": 40, "c": 20}).items()]
    return Ledgers([cohort("root", None), cohort("team", "root")], [rest(shared), *promises])


def test_what_is_used_above_a_promise_is_taken_from_the_rest() -> None:
    found = team(40, a=30, b=10, c=20)
    found.add("b", gpus(40), guaranteed=True)

    assert found.admits("shared", gpus(10), guaranteed=True)
    assert not found.admits("shared", gpus(11), guaranteed=True)
    assert 10 == found.guaranteed.available(SHARED, GPU)
    assert found.admits("a", gpus(30), guaranteed=True)
    assert found.admits("shared", gpus(40), guaranteed=False)


def test_a_start_within_a_promise_needs_only_its_quota_and_the_sum_of_the_cohort() -> None:
    """Half of the cohort was in use before it promised anything."""
    found = team()
    found.add("shared", gpus(50), guaranteed=True)

    assert found.admits("a", gpus(30), guaranteed=True)
    found.add("a", gpus(30), guaranteed=True)
    assert not found.admits("b", gpus(40), guaranteed=True)
    assert found.admits("b", gpus(20), guaranteed=True)


def test_the_refusal_names_the_cohort_its_balance_and_what_is_kept() -> None:
    found = team(40, a=30, b=10, c=20)
    found.add("b", gpus(40), guaranteed=True)

    refusal = found.refusal("shared", gpus(25), guaranteed=True)

    assert refusal is not None
    assert (TreeNode(NodeKind.COHORT, "team"), 10, 25, 15) == (
        refusal.node,
        refusal.balance,
        refusal.passed,
        refusal.deficit,
    )
    assert 50 == refusal.promised
    assert not refusal.never
    assert (
        "it needs 25 any/gpu and 10 are left of the quota of cohort team besides 50 any/gpu kept "
        "for others"
    ) == say_refusal(refusal, Ledger.GUARANTEED, OBJECT_WORDS)


def test_a_what_if_is_about_promises_too() -> None:
    found = team(40, a=30, b=10, c=20)
    mark = found.log.mark()
    found.add("b", gpus(40), guaranteed=True)
    found.log.undo(mark)

    assert found.admits("shared", gpus(40), guaranteed=True)


def test_the_rest_is_above_its_quota_when_others_use_more_than_their_promise() -> None:
    found = team(40, a=30, b=10, c=20)
    leaf = Forest(found, [rest(40)], OSMO).leaves["shared"]
    found.add("shared", gpus(20), guaranteed=False)
    assert leaf.is_within_nominal((GPU,))

    found.add("b", gpus(40), guaranteed=True)
    assert not leaf.is_within_nominal((GPU,))


def test_queues_that_promise_nothing_are_as_they_were() -> None:
    """One that takes the rest needs a promise beside it, else it has its quota."""
    tree = GuaranteedTree.of([cohort("team", None)], [rest(10), queue("other", 20, "team")])
    tree.add_usage("other", gpus(20))

    assert tree.admits("shared", gpus(10))


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 15)), min_size=1, max_size=4),
    st.integers(0, 9),
    st.integers(0, 15),
    st.integers(1, 12),
)
def test_the_rest_starts_exactly_what_leaves_nothing_promised_twice(
    parts: list[tuple[int, int]], shared: int, used: int, asked: int
) -> None:
    quotas = {f"q{number}": quota for number, (quota, _) in enumerate(parts)}
    found = team(shared, **quotas)
    for number, (_, use) in enumerate(parts):
        found.add(f"q{number}", gpus(use), guaranteed=True)
    found.add("shared", gpus(used), guaranteed=True)

    whole = shared + sum(quotas.values())
    twice = sum(map(max, parts)) + used + asked - whole

    assert (twice <= 0) == found.guaranteed.admits("shared", gpus(asked))
    assert (twice <= 0) == (found.guaranteed.refusal("shared", gpus(asked)) is None)
