"""Which gangs wait in which queue between cycles, and which are parked until their tree changes.

For a caller of `plan` that judges the heads of queues cycle by cycle: `waiting`, `parked` and
`progress` go into the next snapshot, `settle` takes the plan in, `wake` says that something ended
or was changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from bough.core.cycle.claim import shape_of
from bough.core.cycle.gave_way import GaveWay
from bough.core.quota.tree_shape import Edges
from bough.model.gang import Gang
from bough.model.plan import Nomination, Plan, Wait
from bough.model.policy import Policy
from bough.model.quota import Cohort, NodeKind, Queue, TreeNode
from bough.model.snapshot import Parked, Progress

replace = msgspec.structs.replace
_NO_PROGRESS = Progress()


class Lines:
    """The lines of all queues."""

    def __init__(self, policy: Policy, cohorts: Iterable[Cohort], queues: Iterable[Queue]) -> None:
        self._policy = policy
        self._lines: dict[str, _Line] = {}
        #: By workload: its line and shape.
        self._places: dict[str, _Place] = {}
        self._roots: dict[str, _Root] = {}
        self._tried: dict[str, _SearchSoFar] = {}
        self._gave_way = GaveWay()
        self._waiting: dict[str, tuple[Gang, ...]] = {}
        self._parked: dict[str, Parked] = {}
        #: Lines that changed, and those in which a gang was parked or woken, since last asked.
        self._changed: dict[str, _Line] = {}
        self._moved: dict[str, _Line] = {}
        self._cycle = 0
        self.declare(cohorts, queues)

    @property
    def waiting(self) -> dict[str, tuple[Gang, ...]]:
        """The gangs that wait, by queue; a tuple is replaced only when a gang joins or leaves."""
        for queue, line in self._changed.items():
            if line.members:
                self._waiting[queue] = tuple(line.members.values())
            else:
                self._waiting.pop(queue, None)
        self._changed.clear()
        return dict(self._waiting)

    @property
    def parked(self) -> dict[str, Parked]:
        """By queue, which gangs need not be looked at."""
        for queue, line in self._moved.items():
            if line.shapes or line.set_aside:
                self._parked[queue] = Parked(tuple(line.shapes), tuple(line.set_aside))
            else:
                self._parked.pop(queue, None)
        self._moved.clear()
        return dict(self._parked)

    @property
    def progress(self) -> dict[str, Progress]:
        """What the plans so far found out about gangs that still wait."""
        found = {
            line.nominated.workload: Progress(nominated=True, promised=line.nominated.promised)
            for line in self._lines.values()
            if line.nominated is not None
        }
        for key, tried in self._tried.items():
            if self._is_current(key, tried):
                found[key] = replace(found.get(key, _NO_PROGRESS), tried=tried.positions)
        for key in self._gave_way:
            if key in self._places:
                others = self._gave_way.to(key)
                found[key] = replace(found.get(key, _NO_PROGRESS), gave_way_to=others)
        return found

    @property
    def are_at_rest(self) -> bool:
        """Whether there is nothing to look at: every gang that waits is parked."""
        return all(line.is_at_rest for line in self._lines.values())

    def wait_of(self, key: str) -> Wait | None:
        """Why a workload waits, as far as a plan has said so, of itself or of one like it."""
        place = self._places[key]
        line = place.line
        own = line.waits.get(key)
        return own if own is not None else line.shapes.get(place.shape)

    def declare(self, cohorts: Iterable[Cohort], queues: Iterable[Queue]) -> None:
        """Take over new declarations; every gang is looked at again."""
        edges = Edges()
        for cohort in cohorts:
            edges.put(TreeNode(NodeKind.COHORT, cohort.name), _above(cohort.parent))
        names = dict.fromkeys(self._lines)
        for queue in queues:
            edges.put(TreeNode(NodeKind.QUEUE, queue.name), _above(queue.cohort))
            names[queue.name] = None
        trees: dict[TreeNode, _Root] = {}
        self._roots = {name: trees.setdefault(_top(edges, name), _Root()) for name in names}
        for line in self._lines.values():
            self._unpark(line)
        self._tried.clear()

    def add(self, queue: str, gang: Gang) -> None:
        """Let a workload wait, or replace it by its newer state."""
        key = gang.name
        if key in self._places:
            self.remove(key)
        line = self._lines.get(queue)
        if line is None:
            line = self._lines[queue] = _Line(queue)
        shape = shape_of(gang, self._policy)
        line.members[key] = gang
        line.numbers[shape] = line.numbers.get(shape, 0) + 1
        self._places[key] = _Place(line, shape)
        self._changed[queue] = line

    def remove(self, key: str) -> None:
        """Take a workload out of its line."""
        place = self._places.pop(key)
        line, shape = place.line, place.shape
        del line.members[key]
        line.numbers[shape] -= 1
        if not line.numbers[shape]:
            del line.numbers[shape]
        line.waits.pop(key, None)
        if line.set_aside.pop(key, None) is not None:
            self._moved[line.queue] = line
        if line.nominated is not None and line.nominated.workload == key:
            line.nominated = None
        self._tried.pop(key, None)
        self._changed[line.queue] = line

    def settle(self, plan: Plan) -> None:
        """Take over what a plan decided about the gangs that waited.

        Evictions are left to the caller.
        """
        self._cycle += 1
        for admit in plan.admits:
            if admit.workload in self._places:
                self.remove(admit.workload)
        for bind in plan.binds:
            if bind.workload in self._places and not bind.growth:
                self.remove(bind.workload)
        for wait in plan.waits:
            if wait.workload in self._places:
                self._settle_wait(wait)
        for nomination in plan.nominations:
            if nomination.workload in self._places:
                self._places[nomination.workload].line.nominated = nomination
        if self._policy.gives_way_once:
            self._gave_way.note(plan)

    def forget(self, key: str) -> None:
        """A workload has ended, and will not wait again."""
        self._gave_way.forget(key)

    def wake(self, queue: str) -> None:
        """Look again at every gang in the queue's tree: something in it ended or was changed."""
        root = self._root(queue)
        root.releases += 1
        for line in list(root.parking.values()):
            self._unpark(line)

    def _settle_wait(self, wait: Wait) -> None:
        key = wait.workload
        place = self._places[key]
        line = place.line
        root = self._root(line.queue)
        line.waits[key] = wait
        if wait.tried:
            self._tried[key] = _SearchSoFar(wait.tried, self._cycle, root.releases)
        else:
            self._tried.pop(key, None)
        if not wait.parked:
            return
        if wait.alike:
            line.shapes[place.shape] = wait
        else:
            line.set_aside[key] = wait
        root.parking[line.queue] = line
        self._moved[line.queue] = line

    def _unpark(self, line: _Line) -> None:
        line.set_aside.clear()
        line.shapes.clear()
        self._root(line.queue).parking.pop(line.queue, None)
        self._moved[line.queue] = line

    def _is_current(self, key: str, tried: _SearchSoFar) -> bool:
        """Whether a search may go on where it stopped: nothing was freed since, or only just."""
        if self._policy.keep_scan_progress and tried.cycle == self._cycle:
            return True
        return self._root(self._places[key].line.queue).releases == tried.releases

    def _root(self, queue: str) -> _Root:
        return self._roots.setdefault(queue, _Root())


class _Line:
    """One queue."""

    __slots__ = ("members", "nominated", "numbers", "queue", "set_aside", "shapes", "waits")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        #: By key, in the order in which they came.
        self.members: dict[str, Gang] = {}
        #: How many there are of each shape.
        self.numbers: dict[bytes, int] = {}
        #: The shapes of which all are parked, and why; also those that come later.
        self.shapes: dict[bytes, Wait] = {}
        #: Those that are parked each for itself, by key.
        self.set_aside: dict[str, Wait] = {}
        #: What was last said of each, by key.
        self.waits: dict[str, Wait] = {}
        #: What was last promised room.
        self.nominated: Nomination | None = None

    @property
    def is_at_rest(self) -> bool:
        """Whether all are parked."""
        if not self.set_aside:
            return all(shape in self.shapes for shape in self.numbers)
        parked = sum(number for shape, number in self.numbers.items() if shape in self.shapes)
        return parked + len(self.set_aside) >= len(self.members)


class _Place(msgspec.Struct, frozen=True, gc=False):
    """Where a gang waits; not tracked by the garbage collector, as there are very many."""

    line: _Line
    shape: bytes


class _Root:
    """A tree of queues that share quota."""

    __slots__ = ("parking", "releases")

    def __init__(self) -> None:
        #: How often something in it ended or was changed.
        self.releases = 0
        #: Its lines in which a gang is parked, by queue.
        self.parking: dict[str, _Line] = {}


class _SearchSoFar(NamedTuple):
    """How far a search for flavors came."""

    positions: dict[str, dict[str, int]]
    cycle: int
    releases: int


def _top(edges: Edges, queue: str) -> TreeNode:
    """The node above all queues that share quota with one; on a cycle, its smallest cohort."""
    node = TreeNode(NodeKind.QUEUE, queue)
    if node not in edges:
        return node
    cycle = edges.cycle(node)
    return TreeNode(NodeKind.COHORT, cycle[0]) if cycle else edges.path(node)[-1]


def _above(parent: str | None) -> TreeNode | None:
    return None if parent is None else TreeNode(NodeKind.COHORT, parent)
