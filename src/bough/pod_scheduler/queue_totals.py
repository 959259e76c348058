"""What gangs hold and ask for in total, as Queues tell it; summed up only where it changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from bough.core.cycle.memo import difference
from bough.formats.kubernetes.pods import CPU, GPU, MEMORY
from bough.model.fair_queue import FairQueue
from bough.model.gang import Gang, Pod, PodState
from bough.model.snapshot import Snapshot


class Total(NamedTuple):
    """Amounts of all that pods request."""

    gpus: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> Total:
        """What pods ask for in total."""
        gpus = cpu_milli = memory_bytes = 0
        for pod in pods:
            gpus += pod.requests.gpus
            cpu_milli += pod.requests.cpu_milli
            memory_bytes += pod.requests.memory_bytes
        return cls(gpus, cpu_milli, memory_bytes)

    def plus(self, other: Total, sign: int = 1) -> Total:
        """Both together; with a sign of -1, what is left without the other."""
        return Total(
            self.gpus + sign * other.gpus,
            self.cpu_milli + sign * other.cpu_milli,
            self.memory_bytes + sign * other.memory_bytes,
        )

    def written(self) -> dict[str, str]:
        """As quantities."""
        return {GPU: str(self.gpus), CPU: f"{self.cpu_milli}m", MEMORY: str(self.memory_bytes)}


class _Use(NamedTuple):
    """What gangs hold, what of it is guaranteed to them, and what they ask for."""

    held: Total = Total()
    guaranteed: Total = Total()
    waiting: Total = Total()

    @classmethod
    def of(cls, gang: Gang) -> _Use:
        held = Total.of(pod for pod in gang.pods if pod.state is PodState.RUNNING)
        waiting = Total.of(pod for pod in gang.pods if pod.state is PodState.PENDING)
        return cls(held, Total() if gang.preemptible else held, waiting)

    def plus(self, other: _Use, sign: int = 1) -> _Use:
        return _Use(*(own.plus(each, sign) for own, each in zip(self, other, strict=True)))


class QueueTotals:
    """The totals of all Queues, in step with one snapshot after the other."""

    def __init__(self) -> None:
        #: For each queue: its gangs, and what they use themselves.
        self._rows: dict[str, tuple[tuple[Gang, ...], _Use]] = {}

    def statuses(
        self, snapshot: Snapshot, queues: dict[str, FairQueue]
    ) -> dict[str, dict[str, Any]]:
        """For each Queue: what it and all queues below it use and ask for."""
        self._take(snapshot)
        found = dict.fromkeys(queues, _Use())
        for queue, (_, used) in self._rows.items():
            for name in _path(queue, queues):
                found[name] = found[name].plus(used)
        children: dict[str, list[str]] = {}
        for name in sorted(queues):
            children.setdefault(queues[name].parent or "", []).append(name)
        return {
            name: {
                "childQueues": children.get(name, []),
                "allocated": used.held.written(),
                "allocatedNonPreemptible": used.guaranteed.written(),
                "requested": used.held.plus(used.waiting).written(),
            }
            for name, used in found.items()
        }

    def _take(self, snapshot: Snapshot) -> None:
        """Bring the sums into step: only gangs that came, went or changed are looked at."""
        rows: dict[str, tuple[tuple[Gang, ...], _Use]] = {}
        for queue, row in snapshot.gangs.items():
            known, used = self._rows.get(queue, ((), _Use()))
            if known is not row:
                gone, come = difference(known, row)
                for sign, gangs in ((-1, gone), (1, come)):
                    for gang in gangs:
                        used = used.plus(_Use.of(gang), sign)
            rows[queue] = (row, used)
        self._rows = rows


def _path(name: str, queues: dict[str, FairQueue]) -> Iterable[str]:
    """A queue and those above it that exist; in a cycle, each queue once."""
    seen: dict[str, None] = {}
    at: str | None = name
    while at is not None and at in queues and at not in seen:
        seen[at] = None
        at = queues[at].parent
    return seen
