"""What the server tells its supervisors: the settings of this machine, and which attempts to run.

`Setup`, each `SupervisorRequest` and each `ConnectRequest` go to the fork server; a `StartOrder` is
the content of an attempt's `launch.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bough.backends.local.options import LocalOptions
from bough.backends.local.order_lease import OrderLease
from bough.backends.local.sandbox.limits import CgroupSetup
from bough.backends.local.sandbox.network import NetworkSetup
from bough.backends.local.supervisor.group_network import GroupAddress
from bough.backends.local.task_command import SandboxKind
from bough.model.backend import Launch

#: Lines that ask for a connection begin with it; others ask for a supervisor.
CONNECT = b"connect "


class Setup(msgspec.Struct, frozen=True):
    """How tasks are run on this machine."""

    options: LocalOptions
    #: `None`: tasks see the machine as it is.
    sandbox: SandboxKind | None = None
    limits: CgroupSetup | None = None
    #: `None`: tasks share the network of this machine.
    network: NetworkSetup | None = None


class StartOrder(msgspec.Struct, frozen=True):
    """One attempt to run."""

    workflow_id: str
    group: str
    launch: Launch
    #: Others of its group were started in this machine's network, and it must reach them.
    shares_host_network: bool = False


class SupervisorRequest(msgspec.Struct, frozen=True):
    """Attempts that start together, by the names of their folders, and under which lease."""

    names: tuple[str, ...]
    lease: OrderLease = OrderLease()


class ConnectRequest(msgspec.Struct, frozen=True):
    """The server wants a connection into the network of a group."""

    number: int
    wanted: GroupAddress
    timeout_s: float


class ConnectAnswer(msgspec.Struct, frozen=True):
    """The connection comes with it, or it says why there is none."""

    number: int
    fault: str = ""


def encode(value: Setup | StartOrder | SupervisorRequest) -> bytes:
    """Encode it as JSON on one line."""
    return msgspec.json.encode(value, enc_hook=_plain)


def decode_setup(text: bytes) -> Setup:
    """Read what `encode` wrote."""
    return msgspec.json.decode(text, type=Setup, dec_hook=_path)


def decode_order(text: bytes) -> StartOrder:
    """Read what `encode` wrote."""
    return _ORDERS.decode(text)


def decode_request(text: bytes) -> SupervisorRequest:
    """Read what `encode` wrote."""
    return msgspec.json.decode(text, type=SupervisorRequest)


def _plain(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value)} is not a plain value")


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise TypeError(f"{kind} is not a plain value")


_ORDERS = msgspec.json.Decoder(StartOrder)
