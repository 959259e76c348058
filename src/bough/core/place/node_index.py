"""What is free on each node, arranged so that a place is found without looking at every node.

Nodes are bits of integers: one mask for each number of free GPUs. The rest must be tested node by
node, and each shape remembers the nodes that cannot take it until something is given back to them.
What is free is known twice: what is idle, and what will be once the pods that are ending have ended
(`later`). A pod fits *now* where it fits into both, so that nothing takes what is promised.
Every change goes through the undo log.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import add, sub

from bough.core.place.columns import GPUS, Columns, Row
from bough.core.place.free_magnitudes import Magnitudes
from bough.core.place.node_bits import mask_of, positions
from bough.core.place.node_changes import Changes, Returns
from bough.core.place.node_matching import Matcher
from bough.core.place.pod_shapes import Shape, Shapes
from bough.core.undo import UndoLog
from bough.errors import Broken
from bough.model.cluster import Node
from bough.model.place_policy import NodeOrder, PlacePolicy


class Index:
    """The free room of a set of nodes; a node is its position in `nodes`."""

    def __init__(self, nodes: Iterable[Node], policy: PlacePolicy, log: UndoLog) -> None:
        self.policy = policy
        self.log = log
        #: In the order in which ties are broken.
        self.nodes: tuple[Node, ...] = _in_order(nodes, policy.order)
        self.position = {node.name: at for at, node in enumerate(self.nodes)}
        self.columns = Columns(node.capacity for node in self.nodes)
        self.capacity: tuple[Row, ...] = tuple(
            self.columns.offer(node.capacity) for node in self.nodes
        )
        #: The two are one object where they are equal, as they are on most nodes.
        self.idle: list[Row] = list(self.capacity)
        self.later: list[Row] = list(self.capacity)
        most = max((row[GPUS] for row in self.capacity), default=0)
        #: The nodes by how many GPUs will be free later.
        self.by_gpus: list[int] = [0] * (1 + most)
        for at, row in enumerate(self.capacity):
            self.by_gpus[row[GPUS]] |= 1 << at
        self.matcher = Matcher(self.nodes)
        self.everything = self.matcher.everything
        self.shapes = Shapes(self.columns, self.matcher)
        self.changes = Changes()
        self._magnitudes = Magnitudes(self.later, self.changes)
        self._returns = Returns()
        #: Whether anything is ending; in a list, so that the log can set it.
        self._ending = [False]
        #: What came back since the last event of `_returns`.
        self._back = 0
        self._forgets = not policy.remember
        log.watch(self.idle, self._restored)
        log.watch(self.later, self._restored)

    def cordon(self, nodes: Iterable[Node]) -> None:
        """Take over which nodes are cordoned now; nothing else about them has changed."""
        self.nodes = _in_order(nodes, self.policy.order)
        self.matcher.cordon(self.nodes)
        self.shapes.cordoned()

    @property
    def anything_ends(self) -> bool:
        """Whether some node may have more room later than now."""
        return self._ending[0]

    def take(self, at: int, row: Row, *, waits: bool = False) -> None:
        """Give room on a node away: at once, or (`waits`) when what is ending there has ended."""
        later, idle = self.later[at], self.idle[at]
        left = tuple(map(sub, later, row))
        self._put_later(at, left)
        if idle is later and not waits:
            self.log.put(self.idle, at, left)
        elif not waits:
            self._put_idle(at, tuple(map(sub, idle, row)))

    def promise(self, at: int, row: Row) -> None:
        """Something on a node is ending, or no longer waits for room there: free it for later."""
        self._put_later(at, tuple(map(add, self.later[at], row)))
        self._back |= 1 << at
        if not self._ending[0]:
            self.log.put(self._ending, 0, value=True)

    def free(self, at: int, row: Row) -> None:
        """Something on a node is gone: free its room for now and later."""
        self._put_later(at, tuple(map(add, self.later[at], row)))
        self._put_idle(at, tuple(map(add, self.idle[at], row)))
        self._back |= 1 << at

    def vacate(self, at: int, row: Row) -> None:
        """Something on a node that was ending is gone: its room was free for later, and is now."""
        self._put_idle(at, tuple(map(add, self.idle[at], row)))
        self._back |= 1 << at

    def fits(self, at: int, shape: Shape, *, later: bool = False) -> bool:
        """Whether a node has room for one more pod of a shape; its rules are not looked at."""
        free = self.later[at]
        for column, amount in shape.wants:
            if free[column] < amount:
                return False
        idle = self.idle[at]
        if later or idle is free:
            return True
        return all(idle[column] >= amount for column, amount in shape.wants)

    def copies(self, at: int, shape: Shape, *, later: bool = False) -> int:
        """How many pods of a shape a node has room for; its rules are not looked at."""
        free = self.later[at]
        count = min(free[column] // amount for column, amount in shape.wants)
        idle = self.idle[at]
        if not later and idle is not free:
            count = min(count, *(idle[column] // amount for column, amount in shape.wants))
        return max(count, 0)

    def could_fit(self, shape: Shape) -> int:
        """The nodes that would have room for a pod of a shape if they were empty."""
        if shape.large_enough is None:
            shape.large_enough = mask_of(
                at
                for at in positions(shape.possible)
                if all(self.capacity[at][column] >= amount for column, amount in shape.wants)
            )
        return shape.large_enough

    def could_hold(self, shape: Shape, within: int, enough: int) -> int:
        """How many pods of a shape empty nodes would have room for; stops once that is `enough`."""
        count = 0
        for at in positions(self.could_fit(shape) & within):
            row = self.capacity[at]
            count += min((row[column] // n for column, n in shape.wants), default=enough)
            if count >= enough:
                return enough
        return count

    def may_fit(self, shape: Shape, within: int, *, later: bool = False) -> int:
        """The nodes among these that are not known to be unfit for a shape."""
        returns = self._returns
        if self._back or shape.seen != returns.count or shape.era != returns.era or self._forgets:
            self._recall(shape)
        return (shape.later if later else shape.now) & within

    def unfit(self, shape: Shape, nodes: int, *, later: bool = False) -> None:
        """Remember that these nodes, which may have fitted, do not."""
        # What does not fit later does not fit now.
        shape.now &= ~nodes
        if later:
            shape.later &= ~nodes

    def with_gpus(self, gpus: int) -> int:
        """The nodes on which so many GPUs will be free later."""
        if not gpus:
            return self.everything
        enough = 0
        for nodes in self.by_gpus[gpus:]:
            enough |= nodes
        return enough

    def room(self, shape: Shape, within: int, enough: int) -> int:
        """How many pods of a shape fit by their GPUs, at most; stops once that is `enough`.

        No node is looked at, and no memory: the same for the same state, whatever was asked before.
        """
        nodes = shape.possible & within
        count = 0
        for gpus in range(len(self.by_gpus) - 1, shape.gpus - 1, -1):
            count += (self.by_gpus[gpus] & nodes).bit_count() * (gpus // shape.gpus)
            if count >= enough:
                break
        return count

    def has_room(self, shape: Shape, within: int, pods: int) -> bool:
        """Whether so many pods of a shape may fit, as far as GPUs tell."""
        return not shape.gpus or self.room(shape, within, pods) >= pods

    def count(self, shape: Shape, within: int, *, later: bool = False) -> int:
        """How many pods of a shape fit, exactly."""
        nodes = self.may_fit(shape, within, later=later)
        nodes &= self.with_gpus(shape.gpus)
        return sum(self.copies(at, shape, later=later) for at in positions(nodes))

    def _put_later(self, at: int, row: Row) -> None:
        before = max(self.later[at][GPUS], 0)
        gpus = max(row[GPUS], 0)
        self.log.put(self.later, at, row)
        self.changes.append(at)
        if gpus == before:
            return
        if gpus >= len(self.by_gpus):
            raise Broken(f"node {self.nodes[at].name!r} gets more back than it ever had")
        bit = 1 << at
        self.log.put(self.by_gpus, before, self.by_gpus[before] ^ bit)
        self.log.put(self.by_gpus, gpus, self.by_gpus[gpus] ^ bit)

    def _put_idle(self, at: int, row: Row) -> None:
        later = self.later[at]
        self.log.put(self.idle, at, later if row == later else row)

    def _restored(self, at: int) -> None:
        self._back |= 1 << at
        self.changes.append(at)

    def _recall(self, shape: Shape) -> None:
        """Give a shape the nodes back to which something came back since it last looked."""
        returns = self._returns
        if self._back:
            returns.append(self._back)
            self._back = 0
        if self._forgets:
            shape.now = shape.later = shape.possible
        elif shape.era != returns.era:
            enough = self._magnitudes.at_least(shape.request)
            start = shape.possible if enough is None else shape.possible & enough
            shape.now = shape.later = start
        else:
            back = returns.since(shape.seen) & shape.possible
            shape.now |= back
            shape.later |= back
        shape.era = returns.era
        shape.seen = returns.count


def _in_order(nodes: Iterable[Node], order: NodeOrder) -> tuple[Node, ...]:
    """Nodes in the order in which ties are broken; of several with one name the first counts."""
    named: dict[str, Node] = {}
    for node in nodes:
        named.setdefault(node.name, node)
    if order is NodeOrder.GIVEN:
        return tuple(named.values())
    return tuple(sorted(named.values(), key=lambda node: node.name))
