"""Certificates are true: everything that waits has one, and what it says would help does."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waits import is_waiting
from bough.core.explain.certificate import certificate
from bough.core.explain.declared_snapshot import Source
from bough.core.explain.evictions import eviction_certificate
from bough.core.explain.judge import Judge
from bough.core.explain.remedies import remedies
from bough.model.certificate import Verdict
from bough.model.plan import EvictionRule
from bough.model.policy import OSMO, Policy
from bough.model.remedy import AddNodes, End, LowerMinimum, Raise, Remedy, RemedyKind, Step
from bough.model.snapshot import Snapshot
from tests.strategies_explain import policies, snapshots
from tests.worlds_cycle import History, fill
from tests.worlds_cycle import policy as kueue_policy

#: Each example is planned over and over.
few = settings(max_examples=settings().max_examples // 4)


@st.composite
def kueue_worlds(draw: st.DrawFn) -> tuple[Snapshot, Policy]:
    """A full tree in the form of Kueue in which some workloads wait."""
    random = draw(st.randoms(use_true_random=False))
    history = History(random, kueue_policy(random))
    fill(history, random.randint(0, 8))
    for _ in range(random.randint(1, 3)):
        history.happen()
    return history.snapshot(), history.policy


def starts(snapshot: Snapshot, policy: Policy, workload: str) -> bool:
    """Whether one plan starts it, or frees room for it."""
    decided = plan(snapshot, policy)
    started = {each.workload for each in decided.binds if not each.growth}
    started |= {each.workload for each in decided.nominations}
    return workload in started - {wait.workload for wait in decided.waits}


@given(st.lists(snapshots(), min_size=2, max_size=4))
def test_a_memo_changes_neither_certificates_nor_plans(history: list[Snapshot]):
    memo = Memo()
    for snapshot in history:
        decided = plan(snapshot, OSMO)
        for wait in decided.waits[:3]:
            fresh = certificate(snapshot, OSMO, wait.workload)
            assert fresh == certificate(snapshot, OSMO, wait.workload, memo)
        assert decided == plan(snapshot, OSMO, memo)


@given(snapshots(), policies())
def test_every_gang_that_waits_has_a_certificate_with_its_reason(
    snapshot: Snapshot, policy: Policy
):
    decided = plan(snapshot, policy)
    for wait in decided.waits:
        found = certificate(snapshot, policy, wait.workload)

        assert found is not None
        assert Verdict.WAITS == found.verdict
        assert wait.reason == found.reason
        assert wait.refusal == found.refusal
        assert found.sentence


@given(snapshots())
def test_the_sentence_names_the_numbers(snapshot: Snapshot):
    for wait in plan(snapshot, OSMO).waits:
        found = certificate(snapshot, OSMO, wait.workload)
        assert found is not None
        numbers = {int(each) for each in re.findall(r"-?\d+", found.sentence)}
        if found.refusal is not None:
            refusal = found.refusal
            assert {refusal.requested, refusal.available} <= numbers
            assert str(refusal.node) in found.sentence
        elif found.shortages:
            last = found.shortages[-1]
            assert {last.needed, last.available, last.missing} <= numbers
        elif found.lacks:
            assert found.lacks[0].subgroup in found.sentence
            assert numbers


@given(snapshots())
def test_what_is_missing_is_held_by_a_gang_or_not_there(snapshot: Snapshot):
    for wait in plan(snapshot, OSMO).waits:
        found = certificate(snapshot, OSMO, wait.workload)
        assert found is not None
        for holder in found.holders:
            assert holder.workload != wait.workload
            assert 0 <= holder.guaranteed <= holder.amount
            assert 0 <= holder.borrowed <= holder.amount - holder.guaranteed
            assert 0 <= holder.evictable <= holder.amount - holder.guaranteed


@few
@given(snapshots(), policies())
def test_a_gang_starts_with_each_remedy_and_not_without_or_with_less(
    snapshot: Snapshot, policy: Policy
):
    for wait in plan(snapshot, policy).waits[:2]:
        assert not starts(snapshot, policy, wait.workload)
        for remedy in remedies(snapshot, policy, wait.workload).found:
            changed = Source(snapshot).apply(wait.workload, remedy.steps)
            assert starts(changed, policy, wait.workload), remedy.sentence

            for less in with_less(remedy) if remedy.exact else ():
                changed = Source(snapshot).apply(wait.workload, less)
                assert not starts(changed, policy, wait.workload), remedy.sentence


def with_less(remedy: Remedy) -> Iterator[tuple[Step, ...]]:
    """The next smaller step for each amount of a remedy."""
    for at, step in enumerate(remedy.steps):
        around = (remedy.steps[:at], remedy.steps[at + 1 :])
        match step:
            case LowerMinimum(after=after):
                less: tuple[Step, ...] = (msgspec.structs.replace(step, after=after + 1),)
            case Raise(by=by):
                less = (msgspec.structs.replace(step, by=by - 1),)
            case AddNodes(count=count):
                less = (msgspec.structs.replace(step, count=count - 1),)
            case End() if len(remedy.steps) > 1:
                less = ()
            case _:
                continue
        yield (*around[0], *less, *around[1])


@few
@given(snapshots(), policies())
def test_remedies_are_ranked_and_the_same_every_time(snapshot: Snapshot, policy: Policy):
    ranks = list(RemedyKind)
    for wait in plan(snapshot, policy).waits[:1]:
        found = remedies(snapshot, policy, wait.workload)

        assert found == remedies(snapshot, policy, wait.workload)
        order = [ranks.index(remedy.kind) for remedy in found.found]
        assert sorted(order) == order


@given(snapshots())
def test_a_bound_on_plans_is_kept_and_told(snapshot: Snapshot):
    for wait in plan(snapshot, OSMO).waits[:2]:
        found = remedies(snapshot, OSMO, wait.workload, most_plans=2)

        assert found.plans <= 1 + 2 * len(RemedyKind)
        for remedy in found.found:
            assert remedy.exact or remedy.kind in found.given_up
            changed = Source(snapshot).apply(wait.workload, remedy.steps)
            assert starts(changed, OSMO, wait.workload)


@given(snapshots(), policies())
def test_every_eviction_has_a_certificate_with_its_inequality(snapshot: Snapshot, policy: Policy):
    decided = plan(snapshot, policy)
    for eviction in decided.evictions:
        found = eviction_certificate(
            snapshot, policy, eviction.workload, decided, eviction=eviction
        )

        assert found is not None
        assert (eviction.rule, eviction.level) == (found.rule, found.level)
        assert eviction.preemptor == found.preemptor
        if eviction.rule is EvictionRule.RECLAIM:
            assert found.excesses
            assert all(each.balance < 0 for each in found.excesses)
        if eviction.rule is EvictionRule.PREEMPT and not eviction.pods:
            assert found.preemptor_priority is not None
            assert found.priority < found.preemptor_priority


@given(kueue_worlds())
def test_every_workload_that_waits_has_a_certificate(world: tuple[Snapshot, Policy]):
    snapshot, policy = world
    for line in snapshot.gangs.values():
        for gang in line:
            found = certificate(snapshot, policy, gang.name)

            assert found is not None
            assert found.sentence
            assert found.verdict is not Verdict.WAITS or found.reason


@given(kueue_worlds())
def test_a_workload_gets_quota_with_each_remedy_and_not_without(world: tuple[Snapshot, Policy]):
    snapshot, policy = world
    keys = [gang.name for line in snapshot.gangs.values() for gang in line if is_waiting(gang)]
    for key in keys[:2]:
        judge = Judge(snapshot, policy, key)
        found = remedies(snapshot, policy, key).found
        assert not found or not judge.starts(snapshot)
        for remedy in found:
            assert judge.starts(Source(snapshot).apply(key, remedy.steps)), remedy.sentence
