"""`certificate()`: why a gang is where it is.

Pure: same snapshot and policy, same certificate. Costs one cycle, or as many as it takes until the
gang has its turn. What would help costs more, and is asked for by itself.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

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
from bough.model.plan import Wait
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
    decision = None
    if policy.judging is Judging.TOGETHER:
        decision = Judge(snapshot, policy, workload).decide(snapshot)
        snapshot, memo = decision.snapshot, None
    with _played(snapshot, policy, memo, words) as played:
        return _certificate(played, workload, decision)


def certificates_of_waiting(snapshot: Snapshot, policy: Policy) -> dict[str, Certificate]:
    """Why each gang waits that does, in the order of the plan, for the price of one cycle."""
    with _played(snapshot, policy, None, OBJECT_WORDS) as played:
        plan = played.cycle.outcome.plan(snapshot.version)
        waits = Waits(snapshot, policy, plan)
        skipped = {each.workload for each in (*plan.admits, *plan.nominations)}
        return {
            wait.workload: explain_wait(played, wait, waits)
            for wait in waits.every()
            if wait.workload not in skipped
        }


@contextmanager
def _played(
    snapshot: Snapshot, policy: Policy, memo: Memo | None, words: Words
) -> Generator[Played]:
    """Play a cycle, and undo it after it was looked at, so that a memo can be used again."""
    memo = Memo() if memo is None else memo
    copy = memo.refresh(snapshot, policy)
    mark = copy.mark()
    with memo.dropped_on_error():
        yield Played(run(copy), words)
    copy.undo(mark)


def _certificate(played: Played, name: str, decision: Decision | None) -> Certificate | None:
    cycle = played.cycle
    claim = cycle.copy.claims.get(name)
    if claim is None:
        return None
    snapshot, policy = cycle.copy.snapshot, cycle.copy.policy
    plan = cycle.outcome.plan(snapshot.version)
    waits = Waits(snapshot, policy, plan)
    wait = decision.wait if decision is not None else waits.of(claim.gang)
    wait = wait or _wait_of_absent(claim)
    verdict = verdict_of(plan, name, claim.gang, wait)
    if verdict is Verdict.NOMINATED:
        return _nominated(cycle, claim)
    if verdict is Verdict.STARTS:
        text = "it gets quota now" if claim.counted else "it starts now"
        return begin(claim, verdict, text)
    if verdict is Verdict.RUNS:
        return begin(claim, verdict, _say_runs(played, claim))
    wait = wait or waits.of(claim.gang) or Wait(name, WaitReason.BEHIND)
    return explain_wait(played, wait, waits)


def _wait_of_absent(claim: Claim) -> Wait | None:
    """A gang that waits for its pods before any of them may be planned is in no line."""
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
    if not claim.running:
        return "none of its pods waits or runs"
    if played.cycle.copy.is_evicted(claim):
        return "it runs, and is told to end"
    return "it has what it needs"
