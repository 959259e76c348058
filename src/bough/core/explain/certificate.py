"""`certificate()`: why a gang is where it is.

Pure: same snapshot and policy, same certificate. Costs one cycle, or as many as it takes until the
gang has its turn. What would help costs more, and is asked for by itself.
"""

from __future__ import annotations

from functools import cached_property

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import run
from bough.core.cycle.reasons import pod_shortages
from bough.core.cycle.waits import Waits
from bough.core.explain.judge import Decision, Judge, verdict_of
from bough.core.explain.sentences import name_some
from bough.core.explain.waiting import Played, begin, explain_wait
from bough.model.certificate import Certificate, Verdict
from bough.model.plan import Plan, Wait
from bough.model.policy import Judging, Policy
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot
from bough.model.words import OBJECT_WORDS, Words

replace = msgspec.structs.replace


def certificate(
    snapshot: Snapshot,
    policy: Policy,
    workload: str,
    memo: Memo | None = None,
    words: Words = OBJECT_WORDS,
) -> Certificate | None:
    """Why a gang waits, or that it does not; `None` where there is no such gang.

    A memo makes it faster, as it does a plan, and never changes what is said.
    """
    with ExplainedCycle(snapshot, policy, memo) as cycle:
        return cycle.certificate(workload, words)


class ExplainedCycle:
    """A cycle that was played and is kept: many certificates for the price of one.

    It owns the memo until it is closed.
    """

    def __init__(self, snapshot: Snapshot, policy: Policy, memo: Memo | None = None) -> None:
        self._snapshot = snapshot
        self._policy = policy
        self._memo = Memo() if memo is None else memo
        self._mark: int | None = None

    def __enter__(self) -> ExplainedCycle:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def certificate(self, workload: str, words: Words = OBJECT_WORDS) -> Certificate | None:
        """Why a gang waits, or that it does not; `None` where there is no such gang."""
        if self._policy.judging is Judging.TOGETHER:
            # Each gang is looked at in the cycle that is about it.
            decision = Judge(self._snapshot, self._policy, workload).decide(self._snapshot)
            told = _play(decision.snapshot, self._policy, words)
            return _certificate(told, workload, decision)
        with self._memo.dropped_on_error():
            told = self._told
            return _certificate(replace(told, played=Played(told.played.cycle, words)), workload)

    @property
    def plan(self) -> Plan:
        """What the cycle decided."""
        return self._told.plan

    def close(self) -> None:
        """Undo the cycle, so that the memo can be used again."""
        if self._mark is not None and self._memo.copy is not None:
            self._memo.copy.undo(self._mark)
        self._mark = None

    @cached_property
    def _told(self) -> _Told:
        copy = self._memo.refresh(self._snapshot, self._policy)
        self._mark = copy.mark()
        with self._memo.dropped_on_error():
            return _Told.of(Played(run(copy), OBJECT_WORDS))


class _Told(msgspec.Struct, frozen=True):
    """A cycle that was played, its plan, and the reasons in it."""

    played: Played
    plan: Plan
    waits: Waits

    @classmethod
    def of(cls, played: Played) -> _Told:
        copy = played.cycle.copy
        plan = played.cycle.outcome.plan(copy.snapshot.version)
        return cls(played, plan, Waits(copy.snapshot, copy.policy, plan))


def certificates_of_waiting(snapshot: Snapshot, policy: Policy) -> dict[str, Certificate]:
    """Why each waiting gang waits, in the order of the plan, for the price of one cycle."""
    told = _play(snapshot, policy, OBJECT_WORDS)
    plan, waits = told.plan, told.waits
    skipped = {each.workload for each in (*plan.admits, *plan.nominations)}
    return {
        wait.workload: explain_wait(told.played, wait, waits)
        for wait in waits.every()
        if wait.workload not in skipped
    }


def _play(snapshot: Snapshot, policy: Policy, words: Words) -> _Told:
    """Play a cycle that is thrown away afterwards."""
    return _Told.of(Played(run(Memo().refresh(snapshot, policy)), words))


def _certificate(told: _Told, name: str, decision: Decision | None = None) -> Certificate | None:
    played, plan, waits = told.played, told.plan, told.waits
    cycle = played.cycle
    claim = cycle.copy.claims.get(name)
    if claim is None:
        return None
    wait = decision.wait if decision is not None else waits.of(claim.gang)
    wait = wait or _wait_of_absent(claim)
    verdict = verdict_of(plan, name, claim.gang, wait)
    if verdict is Verdict.NOMINATED:
        return _nominated(cycle, claim)
    if verdict is Verdict.STARTS:
        text = "it gets quota now" if claim.counted else "it starts now"
        return begin(claim, verdict, text)
    if verdict is Verdict.RUNS:
        if not claim.counted and not claim.running:
            return begin(claim, Verdict.ENDED, "none of its pods waits or runs")
        return begin(claim, verdict, _say_runs(played, claim))
    wait = wait or waits.of(claim.gang) or Wait(name, WaitReason.BEHIND)
    return explain_wait(played, wait, waits)


def _wait_of_absent(claim: Claim) -> Wait | None:
    """A gang whose pods do not all exist yet is in no line."""
    if claim.counted or claim.waiting or claim.running or not claim.gang.pods:
        return None
    if claim.tree.succeeded:
        return None
    found = pod_shortages(claim)
    return Wait(claim.name, WaitReason.PODS, shortages=found) if found else None


def _nominated(cycle: Cycle, claim: Claim) -> Certificate:
    waits_for = cycle.outcome.nominations[claim.name].waits_for
    if claim.counted:
        sentence = f"it gets quota as soon as {name_some(waits_for)} gave theirs back"
    elif waits_for:
        sentence = f"it starts as soon as {name_some(waits_for)} made room for it"
    else:
        sentence = "it starts as soon as those have ended that were told to"
    return replace(begin(claim, Verdict.NOMINATED, sentence), waits_for=waits_for)


def _say_runs(played: Played, claim: Claim) -> str:
    if claim.counted:
        return f"it holds quota of {played.words.queue(claim.queue)}"
    if played.cycle.copy.is_evicted(claim):
        return "it runs, and is told to end"
    return "it has what it needs"
