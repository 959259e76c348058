"""Nodes of a server, and the GPU-hours of its pools and users."""

from __future__ import annotations

from collections.abc import Sequence

from bough.api.nodes import NodeDrained, NodeLine, NodeList, NodeLost, ResourceList
from bough.client.addresses import Parameter, given, path_of
from bough.client.transport import Transport


class NodeResources:
    """Nodes, for users."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, pools: Sequence[str] = (), platforms: Sequence[str] = ()) -> ResourceList:
        """Nodes with what they have and what is used; of all pools, or of some."""
        query = {"all_pools": not pools, **given(pools=list(pools), platforms=list(platforms))}
        return self._transport.get(ResourceList, path_of("resources"), query)

    def get(self, node: str) -> ResourceList:
        """One node."""
        backend, _, name = node.rpartition("/")
        return self._transport.get(ResourceList, path_of("resources", name), given(backend=backend))


class Nodes:
    """Nodes, for administrators.

    A node is named as it is, or as BACKEND/NAME where several backends have one of its name.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> NodeList:
        """All nodes: whether they take work, what they have, and what is used of it."""
        return self._transport.get(NodeList, path_of("node"))

    def cordon(self, name: str) -> NodeLine:
        """Let nothing new onto a node; what runs keeps running."""
        path, query = _node(name, "cordon")
        return self._transport.send(NodeLine, "POST", path, query=query)

    def uncordon(self, name: str) -> NodeLine:
        """Let work onto a node again."""
        path, query = _node(name, "uncordon")
        return self._transport.send(NodeLine, "POST", path, query=query)

    def drain(self, name: str, *, leave: bool = False) -> NodeDrained:
        """Empty a node: what runs is moved elsewhere or, with `leave`, runs to its end."""
        path, query = _node(name, "drain")
        query = {**query, **given(leave=leave or None)}
        return self._transport.send(NodeDrained, "POST", path, query=query)

    def declare_lost(self, name: str) -> NodeLost:
        """Count the machine of a node that does not answer as dead; its tasks start elsewhere."""
        path, query = _node(name, "declare_lost")
        return self._transport.send(NodeLost, "POST", path, query=query)


def _node(node: str, deed: str) -> tuple[str, dict[str, Parameter]]:
    """The address of what is done to a node, and the query that says which one is meant."""
    backend, _, name = node.rpartition("/")
    return path_of("node", name, deed), given(backend=backend)
