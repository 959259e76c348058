"""What is written to a connection in one turn of the event loop is sent in one go.

A short answer is written as its head and its body. Each of them alone would be a call of the
kernel, in which other threads take the interpreter, and would wake up the client.
"""

from __future__ import annotations

import asyncio
from typing import Any

#: With so much, nothing is gained by waiting for more.
ENOUGH_BYTES = 256 << 10


class JoinedWrites:
    """Wraps a transport; everything but writing is left to it."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        """Send it with what else is written in this turn."""
        if not data:
            return
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= ENOUGH_BYTES:
            self.flush()

    def flush(self) -> None:
        """Send what was written."""
        if self._parts:
            parts, self._parts, self._size = self._parts, [], 0
            self._transport.write(parts[0] if len(parts) == 1 else b"".join(parts))

    def close(self) -> None:
        """Close it once everything is sent."""
        self.flush()
        self._transport.close()

    def get_write_buffer_size(self) -> int:
        """What was written and is not taken yet, in bytes."""
        return self._size + self._transport.get_write_buffer_size()

    def __getattr__(self, name: str) -> Any:
        """Whatever else a transport can do."""
        return getattr(self._transport, name)
