"""What a keeper is told besides what to run: how this machine is used, in plain values.

Must not know how any of it is found out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from bough.backends.local.command import ViewKind
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.limits import LimitSetup
from bough.model.backend import Launch


class Setup(msgspec.Struct, frozen=True):
    """How tasks are run here."""

    options: LocalOptions
    #: `None`: tasks see the machine as it is.
    view: ViewKind | None = None
    limits: LimitSetup | None = None


class Order(msgspec.Struct, frozen=True):
    """One attempt that is to run, as the server was told."""

    workflow_id: str
    group: str
    launch: Launch


def encode(value: Setup | Order) -> bytes:
    """Make it plain text on one line."""
    return msgspec.json.encode(value, enc_hook=_plain)


def decode_setup(text: bytes) -> Setup:
    """Read what `encode` wrote."""
    return msgspec.json.decode(text, type=Setup, dec_hook=_path)


def decode_order(text: bytes) -> Order:
    """Read what `encode` wrote."""
    return _ORDERS.decode(text)


def _plain(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value)} is no plain value")


def _path(kind: type, value: Any) -> Any:
    if kind is Path:
        return Path(value)
    raise TypeError(f"{kind} is no plain value")


_ORDERS = msgspec.json.Decoder(Order)
