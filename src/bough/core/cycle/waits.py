"""Why each gang waits, read from a plan: a plan names only the first of those that are alike."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bough.core.cycle.claim import shape_of
from bough.core.cycle.forest import missing_flavor
from bough.core.cycle.gates import (
    wait_for_namespace,
    wait_for_stop,
    why_not_in_line,
    why_unchecked,
)
from bough.core.cycle.reasons import wait_behind
from bough.model.admission_rules import QueueingStrategy
from bough.model.gang import Gang, PodState
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.reason import WaitReason
from bough.model.snapshot import Snapshot

_WAITING = (PodState.PENDING, PodState.GATED)


class Waits:
    """The reasons of a plan, by gang."""

    def __init__(self, snapshot: Snapshot, policy: Policy, plan: Plan) -> None:
        self._policy = policy
        self._snapshot = snapshot
        self._own = {wait.workload: wait for wait in plan.waits}
        self._decided = {each.workload for each in (*plan.admits, *plan.nominations)}
        self._decided |= {bind.workload for bind in plan.binds if not bind.growth}
        #: By queue and shape.
        self._alike: dict[tuple[str, bytes], Wait] = {}
        #: Queues in which everything waits for the first.
        strict = QueueingStrategy.STRICT_FIFO
        self._strict = {each.name for each in snapshot.queues if each.rules.queueing is strict}
        #: By queue and rank: what is first in line and must not be passed, or is looked at first.
        self._first: dict[tuple[str, bool], Wait] = {}
        self._looked_at: dict[str, Wait] = {}
        self._queues = {queue.name: queue for queue in snapshot.queues}
        self._flavors = {flavor.name for flavor in snapshot.flavors}
        self._doors = {(each.namespace, each.name): each for each in snapshot.local_queues}
        names = {wait.workload for wait in plan.waits}
        for queue, gangs in snapshot.gangs.items():
            for gang in gangs:
                if gang.name in names:
                    self._read(queue, gang, self._own[gang.name])

    def of(self, gang: Gang) -> Wait | None:
        """Why a gang waits; `None` where it does not."""
        own = self._own.get(gang.name)
        if own is not None or gang.name in self._decided or not is_waiting(gang):
            return own
        barred = why_not_in_line(gang, self._doors, self._snapshot.now_ms) or self._barred(gang)
        if barred is not None:
            return barred
        shape = shape_of(gang, self._policy)
        if _runs(gang) and self._alike_of(gang.queue, shape) is None:
            return None
        return self.of_shape(gang.name, gang.queue, shape)

    def of_shape(self, name: str, queue: str, shape: bytes) -> Wait:
        """Why a gang of a queue and a shape waits, if the plan says nothing of it by itself."""
        alike = self._alike_of(queue, shape)
        if alike is None:
            declared = self._queues.get(queue)
            stopped = None if declared is None else wait_for_stop(name, declared)
            return stopped or wait_behind(name, queue, alike=False)
        return msgspec.structs.replace(alike, workload=name)

    def _alike_of(self, queue: str, shape: bytes) -> Wait | None:
        alike = self._alike.get((queue, shape))
        return None if alike is None or alike.blocks else alike

    @property
    def apart(self) -> set[str]:
        """The gangs of which the plan says something by itself."""
        return self._decided.union(self._own)

    def goes_by_shape(self, gang: Gang) -> bool:
        """Whether `of_shape` is what is said of a gang unless it is `apart`, as long as it is so.

        A caller with very many gangs need not ask about each of them then.
        """
        plain = gang.active and gang.requeue_at_ms is None and not gang.conditions
        barred = gang.checks or self._doors or self._snapshot.namespaces is not None
        return bool(plain and not barred and is_waiting(gang) and not _runs(gang))

    def _barred(self, gang: Gang) -> Wait | None:
        """What bars a gang by itself, whatever bars others of its shape."""
        text = why_unchecked(gang)
        if text is not None:
            return Wait(gang.name, WaitReason.CHECK, text)
        queue = self._queues.get(gang.queue)
        if queue is None:
            return None
        counted = bool(gang.pod_sets) or gang.admission is not None
        stopped = wait_for_stop(
            gang.name, queue, missing_flavor(queue, self._flavors) if counted else None
        )
        if stopped is not None:
            return stopped
        wait = wait_for_namespace(gang, queue, self._snapshot.namespaces)
        # Of one gang by itself: whether its line is held up was said by the plan.
        return None if wait is None else msgspec.structs.replace(wait, parked=False)

    def first_in_line(self, gang: Gang) -> str | None:
        """The gang of the same queue and rank behind which this one waits."""
        wait = self._first.get((gang.queue, gang.preemptible)) or self._looked_at.get(gang.queue)
        return None if wait is None or wait.workload == gang.name else wait.workload

    def every(self) -> Iterator[Wait]:
        """The reason of each gang that waits: those of the plan in its order, then the others."""
        yield from self._own.values()
        for gangs in self._snapshot.gangs.values():
            for gang in gangs:
                wait = None if gang.name in self._own else self.of(gang)
                if wait is not None:
                    yield wait

    def _read(self, queue: str, gang: Gang, wait: Wait) -> None:
        if wait.alike:
            self._alike.setdefault((queue, shape_of(gang, self._policy)), wait)
        if wait.blocks:
            ranks = (False, True) if queue in self._strict else (gang.preemptible,)
            for rank in ranks:
                self._first.setdefault((queue, rank), wait)
        if wait.reason != WaitReason.BEHIND:
            self._looked_at.setdefault(queue, wait)


def _runs(gang: Gang) -> bool:
    return any(pod.state is PodState.RUNNING for pod in gang.pods)


def is_waiting(gang: Gang) -> bool:
    """Whether a gang wants something."""
    if gang.pod_sets or gang.admission is not None:
        return not gang.holds_quota and not gang.has("Finished")
    return not gang.pods or any(pod.state in _WAITING for pod in gang.pods)
