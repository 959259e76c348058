"""Queues of the quota tree by the names of their pools and subpools.

The tree has a queue for each pool and leaves below it; explanations are for people who know pools
only.
"""

from __future__ import annotations

from bough.control.pools.quota_tree import GPU
from bough.control.site import Site
from bough.model.names import SHARED, QueueName, canonical_name
from bough.model.quota import FlavorResource, TreeNode
from bough.model.words import Words

#: The name of the node above all pools.
EVERYTHING = "the whole cluster"


class PoolWords(Words):
    """Pools in the place of queues and cohorts, and GPUs in the place of a flavor of them."""

    def __init__(self, site: Site) -> None:
        self._namespace = site.namespace
        self._prefix = site.prefix
        #: By queue; one object of these words says the reasons of many workflows.
        self._known: dict[str, str | None] = {}

    def node(self, node: TreeNode | None) -> str:
        """A node of the tree, as it stands in a sentence."""
        shown = None if node is None else self._shown(node.name)
        if shown is None:
            return super().node(node)
        return shown if shown == EVERYTHING else f"pool {shown}"

    def amount(self, what: FlavorResource | None, written: str) -> str:
        """GPUs are the same to all pools, whatever nodes they are on."""
        if what is None or what.resource != GPU:
            return super().amount(what, written)
        return "1 GPU" if written == "1" else f"{written} GPUs"

    def identity(self, node: TreeNode) -> tuple[str, str]:
        """The kind and the name of a node, for programs."""
        shown = self._shown(node.name)
        return super().identity(node) if shown is None else ("pool", shown)

    def _shown(self, name: str) -> str | None:
        """What people call it; `None`: it is no queue of a pool."""
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> str | None:
        queue = QueueName.parse(name, self._namespace, self._prefix)
        if queue is None:
            return None
        if queue.pool is None:
            return EVERYTHING
        if queue.leaf in (None, SHARED):
            return queue.pool
        return canonical_name(queue.pool, queue.leaf)
