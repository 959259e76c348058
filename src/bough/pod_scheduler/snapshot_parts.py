"""Nodes, gangs and Queues in the form that a snapshot has, rebuilt only where they changed."""

from __future__ import annotations

from bisect import bisect_left

from bough.core.quota.fair_tree import FairTree, capacity_of, fair_tree, queue_obstacle
from bough.formats.live.kai import live_queue
from bough.formats.live.nodes import live_node
from bough.formats.live.objects import LiveNode, LiveQueue
from bough.model.cluster import Node
from bough.model.fair_queue import FairQueue, QueueObstacleKind
from bough.model.gang import Gang
from bough.model.workload import Flavor, LocalQueue


class NodeRow:
    """All nodes, sorted by name; a heartbeat changes nothing."""

    def __init__(self) -> None:
        #: Sorted.
        self.names: list[str] = []
        self._nodes: list[Node] = []
        self._row: tuple[Node, ...] | None = ()
        self.capacity = capacity_of(())

    def put(self, written: LiveNode) -> bool:
        """Take in a node; return whether it changed."""
        node = live_node(written)
        at = bisect_left(self.names, node.name)
        known = at < len(self.names) and self.names[at] == node.name
        if known and self._nodes[at] == node:
            return False
        if known:
            self._count(self._nodes[at], -1)
            self._nodes[at] = node
        else:
            self.names.insert(at, node.name)
            self._nodes.insert(at, node)
        self._count(node, 1)
        self._row = None
        return True

    def remove(self, name: str) -> bool:
        """A node is gone; return whether it was known."""
        at = bisect_left(self.names, name)
        if at == len(self.names) or self.names[at] != name:
            return False
        self._count(self._nodes[at], -1)
        del self.names[at], self._nodes[at]
        self._row = None
        return True

    def row(self) -> tuple[Node, ...]:
        """All nodes; the same object as long as none changed."""
        if self._row is None:
            self._row = tuple(self._nodes)
        return self._row

    def _count(self, node: Node, sign: int) -> None:
        for resource, amount in capacity_of((node,)).items():
            self.capacity[resource] += sign * amount


class GangRow:
    """The gangs of one queue, in the order of their keys; the same object while none changes."""

    def __init__(self) -> None:
        self.keys: list[tuple[bool, str]] = []
        self._gangs: list[Gang] = []
        self._row: tuple[Gang, ...] | None = None

    def put(self, key: tuple[bool, str], gang: Gang) -> None:
        """Add a gang."""
        at = bisect_left(self.keys, key)
        self.keys.insert(at, key)
        self._gangs.insert(at, gang)
        self._row = None

    def remove(self, key: tuple[bool, str]) -> None:
        """Take a gang out."""
        at = bisect_left(self.keys, key)
        del self.keys[at], self._gangs[at]
        self._row = None

    def gangs(self) -> tuple[Gang, ...]:
        """All of them."""
        if self._row is None:
            self._row = tuple(self._gangs)
        return self._row


class QueueTree:
    """All Queues, and the quota tree made from them and the capacity of the cluster."""

    #: What only Kueue's quota uses: empty here.
    flavors: tuple[Flavor, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    namespaces: dict[str, dict[str, str]] | None = None

    def __init__(self) -> None:
        self._queues: dict[str, FairQueue] = {}
        #: For each queue: what is wrong with its fields; empty if nothing is.
        self._wrong: dict[str, str] = {}
        self._made_of: dict[str, int] | None = None
        self.tree = FairTree((), ())
        #: For each queue that takes no gangs: why not.
        self.closed: dict[str, str] = {}

    @property
    def queues(self) -> dict[str, FairQueue]:
        """All Queues by name."""
        return self._queues

    def put(self, written: LiveQueue) -> bool:
        """Take in a Queue; return whether it changed."""
        queue, problems = live_queue(written)
        wrong = "; ".join(f"{each.field}: {each.message}" for each in problems)
        same = self._queues.get(queue.name) == queue
        if same and self._wrong.get(queue.name, "") == wrong:
            return False
        self._queues[queue.name] = queue
        self._wrong[queue.name] = wrong
        self._made_of = None
        return True

    def remove(self, name: str) -> bool:
        """A Queue is gone; return whether it was known."""
        self._wrong.pop(name, None)
        if self._queues.pop(name, None) is None:
            return False
        self._made_of = None
        return True

    def on_nodes(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes as this quota counts them: unchanged, as KAI has no flavors."""
        return nodes

    def refresh(self, capacity: dict[str, int]) -> None:
        """Rebuild the tree if anything has changed."""
        if self._made_of == capacity:
            return
        self._made_of = dict(capacity)
        queues = {name: self._queues[name] for name in sorted(self._queues)}
        self.closed = {
            name: f"queue {name!r} is stopped: {self._wrong[name]}"
            for name in queues
            if self._wrong[name]
        }
        for name in queues:
            obstacle = queue_obstacle(name, queues)
            if obstacle is not None and obstacle.kind is QueueObstacleKind.ORPHAN:
                self.closed[name] = obstacle.sentence
        chosen = [queue for name, queue in queues.items() if name not in self.closed]
        self.tree = fair_tree(chosen, capacity) if chosen else FairTree((), ())
