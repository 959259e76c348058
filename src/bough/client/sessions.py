"""Sessions with running tasks: requested, and opened as websockets."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from bough.api.sessions import PluginConfigs, RouterAnswer
from bough.client.addresses import path_of
from bough.client.transport import Transport
from bough.websocket.channels import PROTOCOL
from bough.websocket.peer import Peer

#: How existing clients name the keys of single connections.
_CONNECTION = "PORTFORWARD-"


class Sessions:
    """Commands, ports and files of running tasks."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def exec(self, name: str, task: str, argv: Sequence[str], *, terminal: bool) -> Peer:
        """Run a command in a task; its streams are channels of the returned websocket."""
        path = path_of("workflow", name, "exec", "task", task)
        asked = {"entry_command": shlex.join(argv), "tty": terminal}
        found = self._transport.send(RouterAnswer, "POST", path, query=asked)
        return self._open("exec", name, found.key)

    def forward(self, name: str, task: str, port: int, *, udp: bool = False) -> Peer:
        """Forward a port; the returned websocket controls it, or carries the datagrams."""
        path = path_of("workflow", name, "portforward", task)
        asked = {"task_ports": [str(port)], "use_udp": udp}
        (found,) = self._transport.send(list[RouterAnswer], "POST", path, query=asked)
        return self._open("portforward", name, found.key)

    def ask_for_rsync(self, name: str, task: str) -> str:
        """Ask for rsync in a task; returns the key to start it with, good for a minute."""
        path = path_of("workflow", name, "rsync", "task", task)
        return self._transport.send(RouterAnswer, "POST", path).key

    def rsync(self, name: str, key: str) -> Peer:
        """Start rsync in a task by its key; the returned websocket controls it."""
        return self._open("rsync", name, key)

    def connect(self, kind: str, name: str, key: str) -> Peer:
        """Open one connection of a session, by the key that was announced for it."""
        return self._open(kind, name, key)

    def plugins(self) -> PluginConfigs:
        """What the server says of rsync."""
        return self._transport.get(PluginConfigs, path_of("plugins", "configs"))

    def _open(self, kind: str, name: str, key: str) -> Peer:
        return self._transport.websocket(path_of("router", kind, name, "client", key), PROTOCOL)


def new_connection_key() -> str:
    """A unique key for one connection of a session."""
    from secrets import token_hex  # noqa: PLC0415  only where ports are forwarded

    return _CONNECTION + token_hex(16)
