"""The nodes of a cluster as last reported, and what other pods hold on them."""

from __future__ import annotations

from collections.abc import Mapping

from bough.backends.kubernetes.node_view import added, is_ready, offered, used
from bough.backends.kubernetes.pod_view import is_over
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.objects import KubeNode, KubePod
from bough.kube.watching import Relisted
from bough.model.cluster import Resources
from bough.model.pool import OfferedNode


class ClusterState:
    """Nodes and other pods; changed only under the lock of the backend."""

    def __init__(self, backend: str) -> None:
        self._backend = backend
        self._nodes: dict[str, OfferedNode] = {}
        #: The nodes as they were reported, kept for when the conditions below change.
        self._heard: dict[str, KubeNode] = {}
        self._tested: frozenset[str] = frozenset()
        self._ready: set[str] = set()
        self._offered: tuple[OfferedNode, ...] | None = None
        #: By uid: the node of another pod, and what it holds there.
        self._others: dict[str, tuple[str, Resources]] = {}
        self._on_node: dict[str, dict[str, Resources]] = {}
        self._used: dict[str, Resources] = {}
        #: Nodes whose sum must be computed again.
        self._dirty: set[str] = set()

    def offered(self) -> tuple[OfferedNode, ...]:
        """All nodes, sorted by name; the same object until something changes."""
        if self._offered is None:
            self._offered = tuple(self._nodes[name] for name in sorted(self._nodes))
        return self._offered

    def is_ready(self, node: str) -> bool:
        """Whether a node exists and its kubelet answers."""
        return node in self._ready

    def any_open(self) -> str | None:
        """A node that takes pods, or else one whose kubelet at least answers."""
        opened = (each.name for each in self.offered() if not each.closed)
        return next(opened, min(self._ready, default=None))

    def used(self) -> Mapping[str, Resources]:
        """What other pods hold on each node; a new object whenever something changes."""
        if self._dirty:
            after = dict(self._used)
            for node in sorted(self._dirty):
                held = self._on_node.get(node)
                if held:
                    after[node] = added(held.values())
                else:
                    after.pop(node, None)
            self._used = after
            self._dirty.clear()
        return self._used

    def hear_node(self, heard: Relisted[KubeNode] | WatchEvent[KubeNode]) -> bool:
        """Take in an event or a list; return whether the offered nodes changed."""
        if isinstance(heard, Relisted):
            before = self._nodes
            self._nodes = {}
            self._heard.clear()
            self._ready.clear()
            for node in heard.items:
                self._put(node)
            changed = before != self._nodes
        elif heard.kind is WatchEventKind.DELETED:
            name = heard.object.metadata.name
            self._ready.discard(name)
            self._heard.pop(name, None)
            changed = self._nodes.pop(name, None) is not None
        else:
            changed = self._put(heard.object)
        if changed:
            self._offered = None
        return changed

    def heed(self, conditions: frozenset[str]) -> bool:
        """Close nodes that failed these tests; return whether the offered nodes changed."""
        if conditions == self._tested:
            return False
        self._tested = conditions
        changed = [self._put(each) for each in list(self._heard.values())]
        if any(changed):
            self._offered = None
        return any(changed)

    def forget_pods(self) -> None:
        """Forget other pods, as all of them are about to be listed again."""
        self._dirty.update(self._on_node)
        self._others.clear()
        self._on_node.clear()

    def hear_other(self, pod: KubePod, *, gone: bool) -> bool:
        """Take in a pod that is not of this site; return whether what it holds changed."""
        node, uid = pod.spec.node_name, pod.metadata.uid
        before = self._others.get(uid)
        after = None if gone or not node or is_over(pod) else (node, used(pod))
        if before == after:
            return False
        if before is not None:
            del self._others[uid]
            del self._on_node[before[0]][uid]
            self._dirty.add(before[0])
        if after is not None:
            self._others[uid] = after
            self._on_node.setdefault(node, {})[uid] = after[1]
            self._dirty.add(node)
        return True

    def _put(self, node: KubeNode) -> bool:
        name = node.metadata.name
        (self._ready.add if is_ready(node) else self._ready.discard)(name)
        self._heard[name] = node
        made = offered(node, self._backend, self._tested)
        if self._nodes.get(name) == made:
            return False
        self._nodes[name] = made
        return True
