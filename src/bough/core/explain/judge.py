"""Whether a gang starts in some world: planning is the only judge, and its plans are counted."""

from __future__ import annotations

from typing import NamedTuple

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.waits import Waits, is_waiting
from bough.core.explain.kueue_turns import find_turn, starts
from bough.model.certificate import Verdict
from bough.model.gang import Gang
from bough.model.plan import Plan, Wait
from bough.model.policy import Judging, Policy
from bough.model.snapshot import Snapshot

#: For how many cycles a gang is followed until one of them looks at it.
MOST_TURNS = 200


class Decision(NamedTuple):
    """What becomes of a gang."""

    verdict: Verdict
    plan: Plan
    #: What the plan, or the last of several, was made for.
    snapshot: Snapshot
    wait: Wait | None = None

    @property
    def starts(self) -> bool:
        """Whether it starts, now or when those that are told to end have ended."""
        return self.verdict in (Verdict.STARTS, Verdict.NOMINATED)


class Judge:
    """Plans for one gang."""

    def __init__(
        self, snapshot: Snapshot, policy: Policy, workload: str, memo: Memo | None = None
    ) -> None:
        self._base = snapshot
        self._policy = policy
        self._workload = workload
        self._memo = Memo() if memo is None else memo
        #: Plans that were made.
        self.plans = 0

    def decide(self, snapshot: Snapshot) -> Decision:
        """What becomes of the gang."""
        gang = find_gang(snapshot, self._workload)
        if self._policy.judging is Judging.TOGETHER and gang is not None and is_waiting(gang):
            turn = find_turn(snapshot, self._policy, self._workload, MOST_TURNS)
            self.plans += turn.plans
            wait = turn.wait or self._wait_in(turn.snapshot, turn.plan)
            return self._decision(turn.plan, turn.snapshot, gang, wait)
        same_frame = snapshot.cohorts is self._base.cohorts and snapshot.queues is self._base.queues
        decided = plan(snapshot, self._policy, self._memo if same_frame else None)
        self.plans += 1
        return self._decision(decided, snapshot, gang, self._wait_in(snapshot, decided))

    def starts(self, snapshot: Snapshot) -> bool:
        """Whether it starts, now or when those that are told to end have ended."""
        return self.decide(snapshot).starts

    def _wait_in(self, snapshot: Snapshot, decided: Plan) -> Wait | None:
        """Why the gang waits by a plan, which may not mention a gang that is behind another."""
        gang = find_gang(snapshot, self._workload)
        return None if gang is None else Waits(snapshot, self._policy, decided).of(gang)

    def _decision(
        self, decided: Plan, snapshot: Snapshot, gang: Gang | None, wait: Wait | None
    ) -> Decision:
        return Decision(verdict_of(decided, self._workload, gang, wait), decided, snapshot, wait)


def find_gang(snapshot: Snapshot, name: str) -> Gang | None:
    """A gang by its name."""
    for row in snapshot.gangs.values():
        for gang in row:
            if gang.name == name:
                return gang
    return None


def verdict_of(decided: Plan, name: str, gang: Gang | None, wait: Wait | None) -> Verdict:
    """What a plan makes of a gang."""
    if any(each.workload == name for each in decided.nominations):
        return Verdict.NOMINATED
    if starts(decided, name):
        return Verdict.STARTS
    counted = gang is not None and bool(gang.pod_sets)
    if wait is not None or (counted and gang is not None and is_waiting(gang)):
        return Verdict.WAITS
    return Verdict.RUNS
