"""A process that the server starts, watches over a line, and replaces when it dies or freezes.

What is said on the line is the matter of those that stand on this: the scheduler's loop
(`loop_watch`) and the workers that answer requests (`workers.worker_watch`).
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

import msgspec

from bough.errors import BoughError, Unavailable
from bough.kube.back_off import BackOff
from bough.server.process_channel import Line, Stop

LOG = logging.getLogger(__name__)


def _ignore() -> None:
    """Do nothing."""


#: A process that sends nothing for so long is frozen. It normally sends something every second.
SILENT_S = 15.0
#: The wait is split into parts, so that a server that was itself frozen misses only one.
PART_S = 5.0
#: How long a new process may take until its first message.
START_S = 120.0
#: How long a stop waits.
STOP_S = 30.0
#: How long to wait before a restart: at first, and at most; and after how long a run the wait
#: starts from the first again.
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
STEADY_S = 2.0
_STANDARD_ERROR = 2
#: What its process runs, with the name of the module that it is a process of.
_FIRST = "bough.server.child_process"


class Child(NamedTuple):
    """What is particular to a process: what it runs, what it is given, and what it says."""

    #: What sentences call it, as in `the scheduler`.
    name: str
    #: The module that it runs.
    module: str
    #: Makes the descriptors that it is given beside its line.
    descriptors: Callable[[], tuple[int, ...]]
    #: Makes the first message to it.
    begin_message: Callable[[], msgspec.Struct]
    #: Reads its next message, and handles it.
    read: Callable[[Line], Any]
    hear: Callable[[Any], None]
    #: Told when a process was started, and when one is gone.
    started: Callable[[], None] = _ignore
    gone: Callable[[], None] = _ignore


class ChildWatch:
    """The server's side of one of its processes."""

    def __init__(self, child: Child) -> None:
        self._child = child
        self.name = name = child.name
        self.stopping = threading.Event()
        self.restarts = 0
        self.fault = f"{_capital(name)} is being started."
        self._may_begin = threading.Event()
        #: Whether the process was told to end, or will be as soon as there is one.
        self._ends = False
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Line | None = None
        self._first: Future[Any] = Future()
        self._ready_at: float | None = None
        self._pauses = BackOff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        # The kernel kills the process with the thread that started it, so one thread does
        # everything.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the process; it waits for `begin`."""
        self._thread.start()

    def let_begin(self) -> None:
        """Let it begin, now that the database is prepared."""
        self._may_begin.set()

    def begin(self) -> Any:
        """The same, and wait until it is at work; raises the process's own error."""
        self.let_begin()
        return self._first.result()

    def tell_to_stop(self) -> None:
        """Let it finish what it has begun, and end."""
        self._ends = True
        self.stopping.set()
        self._may_begin.set()
        if self._thread.is_alive():
            self._send(Stop())

    def stop(self) -> None:
        """The same, and wait for its end."""
        if not self._ends:
            self.tell_to_stop()
        if self._thread.is_alive():
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                LOG.warning("%s does not stop; killing it", self.name)
                self._kill()
                self._thread.join()

    @property
    def pid(self) -> int | None:
        """The process id, if there is a process."""
        process = self._process
        return None if process is None else process.pid

    # In the thread

    def _became_ready(self, said: Any) -> None:
        """It is at work."""
        self._ready_at = monotonic()
        if self._first.done():
            LOG.warning("%s was restarted", self.name)
        self.fault = ""
        if not self._first.done():
            self._first.set_result(said)

    def _could_not_start(self, error: BoughError) -> None:
        if self._first.done():
            LOG.warning("%s cannot be restarted: %s", self.name, error.message)
        else:
            self._first.set_exception(error)

    def _run(self) -> None:
        try:
            while True:
                ended = self._live_once()
                if not self._first.done():
                    raise Unavailable(f"{_capital(self.name)} could not be started: it {ended}.")
                if self.stopping.is_set() or self._first.exception() is not None:
                    return
                pause_s = self._pauses.wait_s()
                LOG.warning("%s %s; restarting it in %.1f s", self.name, ended, pause_s)
                if self.stopping.wait(pause_s):
                    return
                self.restarts += 1
        except BaseException as error:
            if not self._first.done():
                self._first.set_exception(error)
            else:
                LOG.exception("%s is not restarted any more", self.name)
        finally:
            self._kill()

    def _live_once(self) -> str:
        """Run one process from start to end; returns how it ended."""
        self._ready_at = None
        fault = ""
        try:
            line = self._begin()
            while True:
                said = self._child.read(line)
                line.patience = int(SILENT_S / PART_S)
                self._child.hear(said)
        except TimeoutError:
            fault = f"said nothing for {SILENT_S:g} s and was killed"
        except EOFError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            fault = f"cannot be watched ({error}) and was killed"
        finally:
            ended = self._end()
            self.fault = f"{_capital(self.name)} {fault or ended}, and is being started again."
            self._child.gone()
        if self._ready_at is not None and monotonic() - self._ready_at >= STEADY_S:
            self._pauses.reset()
        return fault or ended

    def _begin(self) -> Line:
        ours, theirs = socket.socketpair()
        ours.settimeout(PART_S)
        given = self._child.descriptors()
        with theirs:
            numbers = [str(each) for each in (theirs.fileno(), *given, os.getpid())]
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [sys.executable, "-P", "-m", _FIRST, self._child.module, *numbers],
                stdin=subprocess.DEVNULL,
                # Programs read the server's standard output.
                stdout=_STANDARD_ERROR,
                pass_fds=(theirs.fileno(), *given),
                # Signals of a terminal are for the server.
                start_new_session=True,
            )
        self._child.started()
        self._line = line = Line(ours, int(START_S / PART_S))
        self._may_begin.wait()
        with suppress(OSError):
            # One that is told to end from now on is told so by `tell_to_stop`, which has the line.
            # A second `Stop` would mean that it waits for no request.
            line.send(Stop() if self._ends else self._child.begin_message())
        return line

    def _send(self, message: msgspec.Struct) -> bool:
        line = self._line
        try:
            if line is not None:
                line.send(message)
                return True
        except TimeoutError:
            # A part of it may have been sent, so nothing can follow on this line.
            self._kill()
        except OSError:
            pass
        return False

    def _end(self) -> str:
        """Make sure that the process is gone; returns how it ended."""
        process, line, self._line = self._process, self._line, None
        if line is not None:
            line.socket.close()
        if process is None:
            return "could not be started"
        with suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        self._kill()
        code = process.wait()
        self._process = None
        if code < 0:
            return f"was ended by signal {-code} ({signal.Signals(-code).name})"
        return f"ended with exit code {code}"

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()


def _capital(name: str) -> str:
    return name[:1].upper() + name[1:]
