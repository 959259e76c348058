"""Plain data into model types, from any thread.

msgspec learns a type when it is first converted to, and two threads that do so at the same time
crash the interpreter (seen with 0.22.0). So every type is learnt here, once, by one thread.
Must not know any type.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar

import msgspec

Kind = TypeVar("Kind")

_LEARNT: set[Any] = set()
_LOCK = threading.Lock()


def convert(value: Any, kind: type[Kind]) -> Kind:
    """The value as a type; msgspec.ValidationError where it is none."""
    if kind not in _LEARNT:
        with _LOCK:
            msgspec.json.Decoder(kind)
            _LEARNT.add(kind)
    return msgspec.convert(value, kind)
