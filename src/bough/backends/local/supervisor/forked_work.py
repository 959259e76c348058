"""Slow work in a forked copy of the supervisor, so that the supervisor itself never blocks."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from bough.backends.local.errors import lacks_room
from bough.backends.local.sandbox.syscalls import die_with_parent
from bough.errors import BoughError

_DONE, _FAILED, _NO_ROOM = b"+", b"-", b"0"
_READ_BYTES = 65_536


class ForkedWork:
    """A function that runs in a forked process, and its result."""

    def __init__(self, work: Callable[[], bytes]) -> None:
        self.descriptor, writing = os.pipe2(os.O_CLOEXEC)
        self._content = b""
        self.pid = os.fork()
        if self.pid == 0:
            _work(work, writing)
        os.close(writing)
        os.set_blocking(self.descriptor, False)

    def read(self) -> bool:
        """Read what is there; whether that was all."""
        try:
            while chunk := os.read(self.descriptor, _READ_BYTES):
                self._content += chunk
        except BlockingIOError:
            return False
        return True

    def result(self) -> tuple[bytes | None, str]:
        """The result, or `None` and what went wrong."""
        if self._content.startswith(_DONE):
            return self._content[1:], ""
        if self._content.startswith((_FAILED, _NO_ROOM)):
            return None, self._content[1:].decode(errors="replace")
        return None, "it was killed before it was done"

    @property
    def cut_off(self) -> bool:
        """Whether it ended without a result, because it was killed."""
        return not self._content.startswith((_DONE, _FAILED, _NO_ROOM))

    @property
    def lacked_room(self) -> bool:
        """Whether it failed because the disk was full."""
        return self._content.startswith(_NO_ROOM)

    def kill(self) -> None:
        """Kill it; only before it is waited for, while the process id is its own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipe."""
        os.close(self.descriptor)


def _work(work: Callable[[], bytes], writing: int) -> None:
    """Run the function in the forked process, and exit."""
    answer = _FAILED
    try:
        os.setpgid(0, 0)
        die_with_parent()
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        answer = _DONE + work()
    except BaseException as error:  # any error is reported to the parent
        message = error.message if isinstance(error, BoughError) else _shown(error)
        mark = _NO_ROOM if lacks_room(error) else _FAILED
        answer = mark + message.encode(errors="replace")
    with contextlib.suppress(OSError), os.fdopen(writing, "wb") as file:
        file.write(answer)
    os._exit(0)


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
