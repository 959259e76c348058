"""Who waits in which queue between cycles, and who is parked until something in its tree changes.

For whoever calls `plan` again and again: `waiting` and `progress` go into the next snapshot,
`settle` takes the plan in, `wake` says that something ended or was changed. Workloads of one shape
are kept together, so that parking all that are alike is one step. Must not know quota or time.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bough.core.cycle.applicant import counts_of
from bough.core.cycle.standing import priority_of
from bough.core.quota.edges import Edges
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.quota import Cohort, NodeKind, Queue, TreeNode
from bough.model.snapshot import Progress
from bough.model.workload import Workload

#: What makes workloads equal to a cycle.
Shape = bytes


class Lines:
    """The lines of all queues."""

    def __init__(self, policy: Policy, cohorts: Iterable[Cohort], queues: Iterable[Queue]) -> None:
        self._policy = policy
        self._lines: dict[str, _Line] = {}
        #: By workload: its line and shape.
        self._places: dict[str, tuple[_Line, Shape]] = {}
        self._roots: dict[str, _Root] = {}
        self._tried: dict[str, _Tried] = {}
        self._waiting: dict[str, tuple[Workload, ...]] = {}
        #: Lines whose part of `_waiting` is out of date, in the order in which they changed.
        self._stale: dict[str, _Line] = {}
        self._cycle = 0
        self.declare(cohorts, queues)

    @property
    def waiting(self) -> dict[str, tuple[Workload, ...]]:
        """By queue, who is to be looked at; the tuple of a queue in which nothing changed stays."""
        for queue, line in self._stale.items():
            workloads = line.active()
            if workloads:
                self._waiting[queue] = workloads
            else:
                self._waiting.pop(queue, None)
        self._stale.clear()
        return dict(self._waiting)

    @property
    def progress(self) -> dict[str, Progress]:
        """What the plans so far found out about those who still wait."""
        found = {
            line.nominated: Progress(nominated=True)
            for line in self._lines.values()
            if line.nominated is not None
        }
        for key, tried in self._tried.items():
            if self._is_current(key, tried):
                found[key] = Progress(nominated=key in found, tried=tried.positions)
        return found

    def wait_of(self, key: str) -> Wait | None:
        """Why a workload waits, as far as a plan has said so, of itself or of one like it."""
        line, shape = self._places[key]
        own = line.waits.get(key)
        return own if own is not None else line.kinds[shape].parked

    def declare(self, cohorts: Iterable[Cohort], queues: Iterable[Queue]) -> None:
        """Take in new declarations; everyone is looked at again."""
        edges = Edges()
        for cohort in cohorts:
            edges.put(TreeNode(NodeKind.COHORT, cohort.name), _above(cohort.parent))
        declared = list(queues)
        for queue in declared:
            edges.put(TreeNode(NodeKind.QUEUE, queue.name), _above(queue.cohort))
        trees: dict[TreeNode, _Root] = {}
        for queue in declared:
            path = edges.path(TreeNode(NodeKind.QUEUE, queue.name))
            # All that hang on one cycle share its smallest cohort.
            cycle = edges.cycle(path[0])
            top = TreeNode(NodeKind.COHORT, cycle[0]) if cycle else path[-1]
            self._roots[queue.name] = trees.setdefault(top, _Root())
        for line in self._lines.values():
            self._unpark(line)
            root = self._root(line.queue)
            root.releases += 1

    def add(self, queue: str, workload: Workload) -> None:
        """Let a workload wait, or replace it by its newer state."""
        key = workload.key
        if key in self._places:
            self.remove(key)
        line = self._lines.get(queue)
        if line is None:
            line = self._lines[queue] = _Line(queue)
        shape = shape_of(workload, self._policy)
        line.kinds.setdefault(shape, _Kind()).members[key] = workload
        self._places[key] = (line, shape)
        self._stale[queue] = line

    def remove(self, key: str) -> None:
        """Let a workload wait no more."""
        line, shape = self._places.pop(key)
        members = line.kinds[shape].members
        del members[key]
        if not members and line.kinds[shape].parked is None:
            del line.kinds[shape]
        line.waits.pop(key, None)
        line.set_aside.pop(key, None)
        if line.nominated == key:
            line.nominated = None
        self._tried.pop(key, None)
        self._stale[line.queue] = line

    def settle(self, plan: Plan) -> None:
        """Take in what a plan decided about those who waited. Evictions are left to the caller."""
        self._cycle += 1
        for admit in plan.admits:
            if admit.workload in self._places:
                self.remove(admit.workload)
        for wait in plan.waits:
            if wait.workload in self._places:
                self._settle_wait(wait)
        for nomination in plan.nominations:
            if nomination.workload in self._places:
                self._places[nomination.workload][0].nominated = nomination.workload

    def wake(self, queue: str) -> None:
        """Look again at everyone in the queue's tree: something in it ended or was changed."""
        root = self._root(queue)
        root.releases += 1
        for line in list(root.parking.values()):
            self._unpark(line)

    def _settle_wait(self, wait: Wait) -> None:
        key = wait.workload
        line, shape = self._places[key]
        root = self._root(line.queue)
        line.waits[key] = wait
        if wait.tried:
            self._tried[key] = _Tried(wait.tried, self._cycle, root.releases)
        else:
            self._tried.pop(key, None)
        if not wait.parked:
            return
        if wait.alike:
            line.kinds[shape].parked = wait
        else:
            line.set_aside[key] = None
        root.parking[line.queue] = line
        self._stale[line.queue] = line

    def _unpark(self, line: _Line) -> None:
        line.set_aside.clear()
        for shape, kind in list(line.kinds.items()):
            kind.parked = None
            if not kind.members:
                del line.kinds[shape]
        self._root(line.queue).parking.pop(line.queue, None)
        self._stale[line.queue] = line

    def _is_current(self, key: str, tried: _Tried) -> bool:
        """Whether a search may go on where it stopped: nothing was freed since, or only just."""
        if self._policy.keep_scan_progress and self._cycle - tried.cycle < 1:
            return True
        return self._root(self._places[key][0].queue).releases == tried.releases

    def _root(self, queue: str) -> _Root:
        return self._roots.setdefault(queue, _Root())


class _Kind:
    """Workloads of one shape in one queue."""

    __slots__ = ("members", "parked")

    def __init__(self) -> None:
        self.members: dict[str, Workload] = {}
        #: Why all of them, and those still to come, are parked.
        self.parked: Wait | None = None


class _Line:
    """One queue."""

    __slots__ = ("kinds", "nominated", "queue", "set_aside", "waits")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self.kinds: dict[Shape, _Kind] = {}
        #: Those that are parked each for itself, by key.
        self.set_aside: dict[str, None] = {}
        #: What was last said of each, by key.
        self.waits: dict[str, Wait] = {}
        #: The workload that was last promised room.
        self.nominated: str | None = None

    def active(self) -> tuple[Workload, ...]:
        """Who is to be looked at."""
        kinds = [kind.members for kind in self.kinds.values() if kind.parked is None]
        if not self.set_aside:
            return tuple(workload for members in kinds for workload in members.values())
        return tuple(
            workload
            for members in kinds
            for key, workload in members.items()
            if key not in self.set_aside
        )


class _Root:
    """A tree of queues that share quota."""

    __slots__ = ("parking", "releases")

    def __init__(self) -> None:
        #: How often something in it ended or was changed.
        self.releases = 0
        #: Its lines in which somebody is parked, by queue.
        self.parking: dict[str, _Line] = {}


class _Tried(msgspec.Struct, frozen=True):
    """How far a search for flavors came."""

    positions: dict[str, dict[str, int]]
    cycle: int
    releases: int


def shape_of(workload: Workload, policy: Policy) -> Shape:
    """Equal for workloads of which a cycle would say the same: same priority, same pods."""
    pod_sets = [
        (each.name, each.template, count, each.min_count, each.topology)
        for each, count in zip(workload.pod_sets, counts_of(workload), strict=True)
    ]
    return msgspec.msgpack.encode((priority_of(workload, policy), pod_sets), order="deterministic")


def _above(parent: str | None) -> TreeNode | None:
    return None if parent is None else TreeNode(NodeKind.COHORT, parent)
