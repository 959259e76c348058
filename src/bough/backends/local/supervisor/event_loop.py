"""What a supervisor waits for: output, signals, ended processes and forked work."""

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
    """Calls back for everything that happens to a process with one thread."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        #: Called when forked work has ended, by process id.
        self._finishers: dict[int, Callable[[], None]] = {}
        #: The server has sent a signal: stop requests must be read again.
        self.nudged = False
        self._bells: tuple[socket.socket, ...] = ()

    @property
    def forked_pids(self) -> tuple[int, ...]:
        """The process ids of all forked work."""
        return tuple(self._finishers)

    def listen(self) -> None:
        """Let signals wake the loop."""
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGUSR1):
            signal.signal(number, lambda *_: None)
        # They must stay open for as long as signals write into one of them.
        self._bells = (ours, theirs)
        self.add(ours, lambda: self._hear(ours))

    def close(self) -> None:
        """Stop listening, to signals as well."""
        signal.set_wakeup_fd(-1)
        for each in self._bells:
            each.close()
        self._selector.close()

    def add(self, source: Any, call: Callable[[], None]) -> None:
        """Call when there is something to read."""
        self._selector.register(source, selectors.EVENT_READ, call)

    def remove(self, source: Any) -> None:
        """Stop listening, if it was listened to."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def wait(self, timeout_s: float) -> None:
        """Sleep until something happens or the time is up, and call back."""
        for key, _ in self._selector.select(timeout_s):
            # An earlier callback may have removed this one.
            if self._selector.get_map().get(key.fd) is key:
                key.data()

    def fork_work(
        self, work: Callable[[], bytes], done: Callable[[ForkedWork], None]
    ) -> ForkedWork:
        """Run a function in a forked process, and call when it is done."""
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
        """Wait for every child that has ended, orphans of tasks included; whether any had.

        `ended` is called before a process is waited for, while its process id is its own; `held`
        for a traced process that is stopped.
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
