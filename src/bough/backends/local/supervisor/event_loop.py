"""What a supervisor waits for: streams, signals, ended processes, and work that is done beside it.

Must not know what any of it means.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import socket
from collections.abc import Callable
from typing import Any

from bough.backends.local.supervisor.forked_work import ForkedWork
from bough.backends.local.supervisor.ptrace import is_held


class EventLoop:
    """Everything that can happen to a process with one thread."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        #: What is called when one of these has ended, by the number of the process.
        self._finishers: dict[int, Callable[[], None]] = {}
        #: A signal came that says that something is to be read again.
        self.nudged = False

    @property
    def forked_pids(self) -> tuple[int, ...]:
        """The numbers of all that works beside the supervisor."""
        return tuple(self._finishers)

    def listen(self) -> None:
        """Let signals wake the supervisor."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        # It must live as long as signals write into it.
        self._bell = theirs
        self.add(ours, lambda: self._hear(ours))

    def add(self, source: Any, call: Callable[[], None]) -> None:
        """Call when there is something to read."""
        self._selector.register(source, selectors.EVENT_READ, call)

    def remove(self, source: Any) -> None:
        """Listen no more, if it was listened to."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def wait(self, timeout_s: float) -> None:
        """Sleep until something happens, or long enough; and call for it."""
        for key, _ in self._selector.select(timeout_s):
            # What was called before may have ended this one.
            if self._selector.get_map().get(key.fd) is key:
                key.data()

    def fork_work(
        self, work: Callable[[], bytes], done: Callable[[ForkedWork], None]
    ) -> ForkedWork:
        """Have some work done, and call when it is."""
        forked = ForkedWork(work)

        def read() -> None:
            if forked.read():
                self.remove(forked.descriptor)

        def finish() -> None:
            forked.read()
            self.remove(forked.descriptor)
            forked.close()
            done(forked)

        self.add(forked.descriptor, read)
        self._finishers[forked.pid] = finish
        return forked

    def reap(
        self,
        ended: Callable[[os.waitid_result], None],
        held: Callable[[os.waitid_result], None],
    ) -> bool:
        """Look at every process that has ended, also those that were left behind; whether any had.

        `ended` is called before a process is waited for, so that its number is still its own;
        `held` for one that only stands still.
        """
        any_ended = False
        while True:
            try:
                found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return any_ended
            if found is None:
                return any_ended
            if is_held(found):
                os.waitid(os.P_PID, found.si_pid, os.WEXITED)
                held(found)
                continue
            any_ended = True
            ended(found)
            os.waitid(os.P_PID, found.si_pid, os.WEXITED)
            finish = self._finishers.pop(found.si_pid, None)
            if finish is not None:
                finish()

    def _hear(self, ours: socket.socket) -> None:
        if signal.SIGUSR1 in ours.recv(4_096):
            self.nudged = True
