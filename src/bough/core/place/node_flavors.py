"""Which flavor the use of a node counts against."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bough.model.cluster import Node
from bough.model.workload import Flavor


def with_flavors(nodes: tuple[Node, ...], flavors: Iterable[Flavor]) -> tuple[Node, ...]:
    """Nodes with the flavor whose labels they carry: the one with most labels, then by name."""
    order = sorted(flavors, key=lambda flavor: (-len(flavor.node_labels), flavor.name))

    def flavor_of(node: Node) -> str | None:
        for flavor in order:
            if flavor.node_labels.items() <= node.labels.items():
                return flavor.name
        return None

    if not order:
        return nodes
    return tuple(msgspec.structs.replace(node, flavor=flavor_of(node)) for node in nodes)
