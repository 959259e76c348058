"""A workload that waits, and what is tried on it: every try is a plan, and plans are counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bough.core.cycle.waits import Waits
from bough.core.explain.declared_snapshot import Source
from bough.core.explain.flavor_options import refusal_of
from bough.core.explain.judge import Decision, Judge, find_gang
from bough.core.explain.sentences import say_steps
from bough.model.gang import Gang
from bough.model.plan import Wait
from bough.model.policy import Policy
from bough.model.reason import Refusal, RefusalKind, WaitReason
from bough.model.remedy import Remedy, RemedyKind, Step


class QuotaLack(NamedTuple):
    """The violated inequality that keeps a workload from starting."""

    refusal: Refusal
    #: Whether only what is guaranteed is counted.
    guaranteed: bool


class Patient:
    """A workload that waits, and how many more plans may be made for it."""

    def __init__(
        self,
        source: Source,
        policy: Policy,
        name: str,
        most_plans: int,
        go_on: Callable[[], bool],
    ) -> None:
        self.source = source
        self.snapshot = source.snapshot
        self.policy = policy
        self.name = name
        self.judge = Judge(self.snapshot, policy, name)
        self.gang: Gang | None = find_gang(self.snapshot, name)
        self.queue = "" if self.gang is None else self.gang.queue
        #: Whether it is decided by quota alone.
        self.counted = self.gang is not None and bool(self.gang.pod_sets)
        self._most_plans = most_plans
        self._go_on = go_on
        self._until = 0
        #: Whether the search for the present kind reached its bound.
        self.gave_up = False

    def begin(self) -> None:
        """Begin the search for another kind."""
        self._until = self.judge.plans + self._most_plans
        self.gave_up = False

    def starts(self, steps: Sequence[Step]) -> bool:
        """Whether it starts after some steps; no, once too many plans were made."""
        decision = self.decide(steps)
        return decision is not None and decision.starts

    def decide(self, steps: Sequence[Step]) -> Decision | None:
        """What becomes of it after some steps; `None` once there were too many plans."""
        if self.judge.plans >= self._until or not self._go_on():
            self.gave_up = True
            return None
        return self.judge.decide(self.source.apply(self.name, steps))

    def remedy(
        self, kind: RemedyKind, steps: Iterable[Step], flavors: Iterable[str] = ()
    ) -> Remedy:
        """A remedy that works, marked if the search for it was cut short."""
        told = [(step, tuple(self.source.tell(self.name, step))) for step in steps]
        return Remedy(
            kind,
            say_steps(told, tuple(flavors)),
            tuple(change for _, changes in told for change in changes),
            tuple(step for step, _ in told),
            exact=not self.gave_up,
        )

    def lack(self, decision: Decision) -> QuotaLack | None:
        """The violated inequality that keeps it from starting."""
        if self.counted:
            found = refusal_of(decision.snapshot, self.policy, decision.plan, self.name)
            guaranteed = False
        else:
            wait = self.leading_wait(decision)
            found = None if wait is None else wait.refusal
            guaranteed = wait is not None and wait.reason == WaitReason.QUOTA
        if found is None or found.kind is not RefusalKind.OVER_QUOTA or found.node is None:
            return None
        return QuotaLack(found, guaranteed)

    def leading_wait(self, decision: Decision) -> Wait | None:
        """What it waits for; if it is behind another, what the other waits for."""
        wait, gang = decision.wait, find_gang(decision.snapshot, self.name)
        if wait is None or gang is None or wait.reason != WaitReason.BEHIND:
            return wait
        head = Waits(decision.snapshot, self.policy, decision.plan).first_in_line(gang)
        return next((each for each in decision.plan.waits if each.workload == head), None)


def smallest(lowest: int, highest: int, works: Callable[[int], bool]) -> int:
    """The smallest number that works, found by halving; the highest is known to."""
    while lowest < highest:
        middle = (lowest + highest) // 2
        if works(middle):
            highest = middle
        else:
            lowest = middle + 1
    return highest
