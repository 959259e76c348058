"""Nodes of a server, and the GPU-hours of its pools and users."""

from __future__ import annotations

from collections.abc import Sequence

from bough.api.nodes import NodeDrained, NodeLine, NodeList, ResourceList
from bough.client.addresses import given, path_of
from bough.client.transport import Transport


class Resources:
    """Nodes, for those who submit."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, pools: Sequence[str] = (), platforms: Sequence[str] = ()) -> ResourceList:
        """Nodes with what they have and what is used; of all pools, or of some."""
        query = {"all_pools": not pools, **given(pools=list(pools), platforms=list(platforms))}
        return self._transport.get(ResourceList, path_of("resources"), query)

    def get(self, node: str) -> ResourceList:
        """One node."""
        return self._transport.get(ResourceList, path_of("resources", node))


class Nodes:
    """Nodes, for those who keep them running."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> NodeList:
        """All nodes: whether they take work, what they have, and what is used of it."""
        return self._transport.get(NodeList, path_of("node"))

    def cordon(self, name: str) -> NodeLine:
        """Let nothing new onto a node; what runs keeps running."""
        return self._transport.send(NodeLine, "POST", path_of("node", name, "cordon"))

    def uncordon(self, name: str) -> NodeLine:
        """Let work onto a node again."""
        return self._transport.send(NodeLine, "POST", path_of("node", name, "uncordon"))

    def drain(self, name: str, *, leave: bool = False) -> NodeDrained:
        """Empty a node: what runs is moved elsewhere or, with `leave`, runs to its end."""
        path, query = path_of("node", name, "drain"), given(leave=leave or None)
        return self._transport.send(NodeDrained, "POST", path, query=query)
