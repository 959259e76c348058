"""The local backend: tasks are processes of this machine."""

from __future__ import annotations

from bough.backends.local.backend import LocalBackend
from bough.backends.local.options import LocalOptions

__all__ = ["LocalBackend", "LocalOptions"]
