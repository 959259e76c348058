"""Bough: hierarchical GPU quota and elastic gang scheduling that can say why.

Nothing is imported here before it is asked for, so that the command line starts fast.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bough.client import Client

__all__ = ["Client"]


def __getattr__(name: str) -> object:
    if name != "Client":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from bough.client import Client  # noqa: PLC0415  only for those who ask

    return Client
