"""Tools by name, imported when a command runs and not before. Must not know any tool."""

from __future__ import annotations

import importlib
from typing import Any


def tool(name: str) -> Any:
    """The module `bough.tools.NAME`."""
    return importlib.import_module(f"bough.tools.{name}")
