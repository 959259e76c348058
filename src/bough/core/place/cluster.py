"""Nodes and the pods on them, as they are and as they would be.

Made once a scheduling cycle. `mark`, then `take`, `release` and `keep` in any order, then `undo`:
each costs what it touches.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from enum import Enum, auto

import msgspec

from bough.core.place.columns import Row
from bough.core.place.domains import Topologies
from bough.core.place.node_index import Index
from bough.core.undo import UndoLog
from bough.errors import Broken
from bough.model.cluster import Node, Topology
from bough.model.gang import Gang, Pod, PodState
from bough.model.place_policy import PlacePolicy

#: The name of a gang, and of one of its pods.
PodKey = tuple[str, str]


class Hold(Enum):
    """How a pod holds its place."""

    #: It is there, or starts now.
    FIRM = auto()
    #: It starts when others have ended.
    WAITS = auto()
    #: It is ending.
    ENDS = auto()


class Holding(msgspec.Struct, frozen=True, gc=False):
    """The place of a pod."""

    at: int
    row: Row
    hold: Hold


class Cluster:
    """What is where."""

    def __init__(
        self,
        nodes: Iterable[Node],
        topologies: Iterable[Topology] = (),
        policy: PlacePolicy | None = None,
        log: UndoLog | None = None,
    ) -> None:
        self.log = UndoLog() if log is None else log
        self.index = Index(nodes, policy or PlacePolicy(), self.log)
        self.topologies = Topologies(topologies, self.index)
        self._holdings: dict[PodKey, Holding] = {}
        #: What was refused since something was last given back, and whether the search gave up. It
        #: would be refused again, as room only shrinks. In a list, so that the log can replace it.
        self._refused: list[dict[Hashable, bool]] = [{}]

    def cordon(self, nodes: Iterable[Node]) -> None:
        """Take over which nodes are cordoned now; nothing else about them has changed."""
        self.index.cordon(nodes)
        self._refused[0] = {}

    def mark(self) -> int:
        """Where things stand; `undo` comes back to it."""
        return self.log.mark()

    def undo(self, mark: int) -> None:
        """Take back everything since a mark."""
        self.log.undo(mark)

    def add(self, gangs: Iterable[Gang]) -> None:
        """Put the pods of gangs where they say that they are."""
        for gang in gangs:
            for pod in gang.pods:
                if pod.node is None:
                    continue
                if pod.state is PodState.RUNNING:
                    self.take(gang.name, pod, pod.node)
                elif pod.state is PodState.RELEASING:
                    self.take(gang.name, pod, pod.node)
                    self.release(gang.name, pod.name)

    def node_of(self, gang: str, pod: str) -> str | None:
        """The node of a pod, whether it is there, waits for it, or is ending on it."""
        holding = self._holdings.get((gang, pod))
        return None if holding is None else self.index.nodes[holding.at].name

    def holding(self, gang: str, pod: str) -> Holding | None:
        """The place of a pod, if it has one."""
        return self._holdings.get((gang, pod))

    def take(self, gang: str, pod: Pod, node: str, *, waits: bool = False) -> None:
        """Put a pod onto a node, whether or not it fits; on an unknown node it holds nothing."""
        at = self.index.position.get(node)
        if at is not None:
            row = self.index.columns.request(pod.requests)
            self.index.take(at, row, waits=waits)
            self._hold((gang, pod.name), Holding(at, row, Hold.WAITS if waits else Hold.FIRM))

    def release(self, gang: str, pod: str, *, gone: bool = False) -> None:
        """End a pod: its room is free later or, when it is `gone`, now."""
        key = (gang, pod)
        holding = self._holdings.get(key)
        if holding is None:
            return
        at, row, hold = holding.at, holding.row, holding.hold
        if hold is Hold.ENDS:
            if not gone:
                return
            self.index.vacate(at, row)
        elif hold is Hold.FIRM and gone:
            self.index.free(at, row)
        else:
            self.index.promise(at, row)
        self.log.put(self._refused, 0, {})
        if hold is Hold.FIRM and not gone:
            self.log.put_key(self._holdings, key, Holding(at, row, Hold.ENDS))
        else:
            self.log.drop_key(self._holdings, key)

    def keep(self, gang: str, pod: str) -> None:
        """A pod that was told to end stays, whether or not its room is promised to another."""
        holding = self._holdings[gang, pod]
        if holding.hold is Hold.ENDS:
            self.index.take(holding.at, holding.row, waits=True)
            holding = Holding(holding.at, holding.row, Hold.FIRM)
            self.log.put_key(self._holdings, (gang, pod), holding)

    def _hold(self, key: PodKey, holding: Holding) -> None:
        if key in self._holdings:
            raise Broken(f"pod {key[1]!r} of gang {key[0]!r} has a place already")
        self.log.put_key(self._holdings, key, holding)
