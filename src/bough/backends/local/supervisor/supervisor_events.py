"""The pipe by which supervisors tell the server at once that an attempt has changed.

What is missed here is found when all attempts are read again.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from pathlib import Path

_READ_BYTES = 65_536


class SupervisorEvents:
    """Reads the pipe in a thread."""

    def __init__(self, path: Path, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._names: dict[str, None] = {}
        # Opened for writing too, so that there is no end of file when the last supervisor exits.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._stop, self._stopping = os.pipe2(os.O_CLOEXEC)
        self._thread = threading.Thread(target=self._listen, name="local news", daemon=True)
        self._thread.start()

    def take(self) -> list[str]:
        """The attempts that have changed since the last call, by folder name."""
        with self._lock:
            names, self._names = list(self._names), {}
            return names

    def close(self) -> None:
        """Stop the thread."""
        os.close(self._stopping)
        self._thread.join()
        os.close(self._pipe)
        os.close(self._stop)

    def _listen(self) -> None:
        rest = b""
        poll = select.poll()
        for each in (self._pipe, self._stop):
            poll.register(each, select.POLLIN)
        while True:
            if self._stop in (descriptor for descriptor, _ in poll.poll()):
                return
            try:
                *names, rest = (rest + os.read(self._pipe, _READ_BYTES)).split(b"\n")
            except BlockingIOError:
                continue
            with self._lock:
                self._names |= {each.decode(errors="replace"): None for each in names}
            self._wake()
