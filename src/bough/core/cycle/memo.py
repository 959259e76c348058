"""What a cycle may keep for the next one: the built tree, who holds quota, who waits.

A memo makes planning faster and never changes a plan: it is brought in step with the snapshot
before anything is decided, and what is tried on it is undone. It sees by identity what changed, so
it keeps alive what it compares with. Must not know what is decided.
"""

from __future__ import annotations

from collections.abc import Sequence

from bough.core.cycle.forest import Forest
from bough.core.cycle.gangs.memo import GangMemo
from bough.core.cycle.line import Line
from bough.model.policy import KUEUE, Policy
from bough.model.quota import Cohort, Queue
from bough.model.snapshot import Snapshot
from bough.model.workload import Flavor, LocalQueue, Workload


class Memo:
    """Carried from cycle to cycle by whoever calls `plan`; one for each series of snapshots."""

    def __init__(self) -> None:
        #: The same for gangs.
        self.gangs = GangMemo()
        self._policy = KUEUE
        self._cohorts: Sequence[Cohort] | None = None
        self._queues: Sequence[Queue] | None = None
        self._flavors: Sequence[Flavor] | None = None
        self._local_queues: Sequence[LocalQueue] | None = None
        self._admitted: dict[str, Sequence[Workload]] = {}
        self.forest = Forest((), (), KUEUE)
        self.flavors: dict[str, Flavor] = {}
        #: By namespace and name.
        self.local_queues: dict[tuple[str, str], LocalQueue] = {}
        #: By queue.
        self.lines: dict[str, Line] = {}
        #: By workload: the queue in which it waits.
        self.places: dict[str, str] = {}

    def refresh(self, snapshot: Snapshot, policy: Policy) -> None:
        """Bring everything in step with a snapshot."""
        if policy != self._policy:
            self._policy = policy
            self._cohorts = None
        if self._cohorts is not snapshot.cohorts or self._queues is not snapshot.queues:
            self._cohorts, self._queues = snapshot.cohorts, snapshot.queues
            self.forest = Forest(snapshot.cohorts, snapshot.queues, policy)
            self._admitted.clear()
            self.lines.clear()
            self.places.clear()
        if self._flavors is not snapshot.flavors:
            self._flavors = snapshot.flavors
            self.flavors = {flavor.name: flavor for flavor in snapshot.flavors}
        if self._local_queues is not snapshot.local_queues:
            self._local_queues = snapshot.local_queues
            self.local_queues = {
                (each.namespace, each.name): each for each in snapshot.local_queues
            }
        self._refresh_holders(snapshot)
        self._refresh_lines(snapshot)

    def _refresh_holders(self, snapshot: Snapshot) -> None:
        for queue in [name for name in self._admitted if name not in snapshot.admitted]:
            del self._admitted[queue]
            self.forest.hold(queue, ())
        for queue, workloads in snapshot.admitted.items():
            if self._admitted.get(queue) is not workloads:
                self._admitted[queue] = workloads
                self.forest.hold(queue, workloads)

    def _refresh_lines(self, snapshot: Snapshot) -> None:
        for queue in [name for name in self.lines if name not in snapshot.waiting]:
            self.lines.pop(queue).refresh(())
        for queue, workloads in snapshot.waiting.items():
            line = self.lines.get(queue)
            if line is None:
                line = self.lines[queue] = Line(queue, self._policy, self.places)
            line.refresh(workloads)
