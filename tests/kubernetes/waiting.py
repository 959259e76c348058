"""Waiting for what a cluster will have done sooner or later."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
#: Only a bound of patience; machines are shared.
PATIENCE_S = 240.0


def wait_for(look: Callable[[], T | None], what: str = "it") -> T:
    """What `look` returns once it is true."""
    until = time.monotonic() + PATIENCE_S
    while not (seen := look()):
        if time.monotonic() > until:
            raise AssertionError(f"waited in vain for {what}")
        time.sleep(0.05)
    return seen
