"""Whether a workload starts in some world: planning is the only judge, and its plans are counted.

Must not know which worlds are worth asking about.
"""

from __future__ import annotations

from typing import NamedTuple

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.explain.turns import Turn, find_turn
from bough.model.certificate import Verdict
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot

#: Cycles that a workload in the form of Kueue is followed for, until it is looked at.
MOST_TURNS = 200


class Decision(NamedTuple):
    """What becomes of a workload."""

    verdict: Verdict
    plan: Plan
    #: What the plan, or the last of several, was made for.
    snapshot: Snapshot
    wait: Wait | None = None

    @property
    def starts(self) -> bool:
        """Whether it starts, now or when those have ended who are told to."""
        return self.verdict in (Verdict.STARTS, Verdict.NOMINATED)


class Judge:
    """Plans for one workload."""

    def __init__(self, snapshot: Snapshot, policy: Policy, workload: str) -> None:
        self._base = snapshot
        self._policy = policy
        self._workload = workload
        self._memo = Memo()
        #: Plans that were made.
        self.plans = 0

    def decide(self, snapshot: Snapshot) -> Decision:
        """What becomes of the workload."""
        if snapshot.gangs:
            return self._decide_gang(snapshot)
        turn = find_turn(snapshot, self._policy, self._workload, MOST_TURNS)
        self.plans += turn.plans
        return Decision(_verdict(turn, self._workload), turn.plan, turn.snapshot, turn.wait)

    def starts(self, snapshot: Snapshot) -> bool:
        """Whether it starts, now or when those have ended who are told to."""
        return self.decide(snapshot).starts

    def _decide_gang(self, snapshot: Snapshot) -> Decision:
        same_frame = snapshot.cohorts is self._base.cohorts and snapshot.queues is self._base.queues
        decided = plan(snapshot, self._policy, self._memo if same_frame else None)
        self.plans += 1
        wait = next((each for each in decided.waits if each.workload == self._workload), None)
        return Decision(gang_verdict(decided, self._workload), decided, snapshot, wait)


def gang_verdict(decided: Plan, name: str) -> Verdict:
    """What a plan makes of a gang."""
    if any(wait.workload == name for wait in decided.waits):
        return Verdict.WAITS
    if any(each.workload == name for each in decided.nominations):
        return Verdict.NOMINATED
    if any(bind.workload == name and not bind.growth for bind in decided.binds):
        return Verdict.STARTS
    return Verdict.RUNS


def _verdict(turn: Turn, key: str) -> Verdict:
    if turn.admits(key):
        return Verdict.STARTS
    return Verdict.NOMINATED if turn.nominates(key) else Verdict.WAITS
