"""Starts the scheduler's loop as a process of its own, watches it, and asks it questions.

So planning and answering requests do not share one interpreter. A loop that dies or freezes is
replaced; meanwhile requests are answered, submitted workflows wait, and tasks keep running.
"""

from __future__ import annotations

import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic
from typing import Any

import msgspec

from bough.control.clock import SteadyClock
from bough.control.pools.standings import Standings
from bough.control.scheduling.questions import Answers, Question
from bough.errors import BoughError, Busy, Unavailable
from bough.kube.back_off import BackOff
from bough.model.backend import TaskFiles
from bough.server.loop_line import (
    Answered,
    Ask,
    AskStandings,
    Begin,
    Failed,
    Line,
    Listens,
    Ready,
    Stand,
    Status,
    Stop,
    ToLoop,
    write_settings,
)
from bough.server.loop_view import Counts
from bough.server.settings import Settings

LOG = logging.getLogger(__name__)

_MODULE = "bough.server.loop_process"
#: A loop that sends nothing for so long is frozen. It normally sends something every second.
SILENT_S = 15.0
#: The wait is split into parts, so that a server that was itself frozen misses only one.
PART_S = 5.0
#: How long a new process may take until its first message.
START_S = 120.0
#: How long a stop waits for the current cycle.
STOP_S = 30.0
#: How long to wait before a restart: at first, and at most; and after how long a run the wait
#: starts from the first again.
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
STEADY_S = 2.0
#: Questions at the same time, and how long one may take, waiting included.
MOST_QUESTIONS = 64
ANSWER_S = 90.0
_STANDARD_ERROR = 2
_BUSY = "Too many ask the scheduler at once; try again."
_AGAIN = "The scheduler is being started again; try again in a moment."


class LoopWatch:
    """The server's side of the loop's process."""

    def __init__(
        self, settings: Settings, clock: SteadyClock, backends: Mapping[str, TaskFiles]
    ) -> None:
        self._settings = settings
        self._clock = clock
        self.backends = backends
        self.stopping = threading.Event()
        self._may_begin = threading.Event()
        #: Whether the process was told to end, or will be as soon as there is one.
        self._ends = False
        self.restarts = 0
        self.leads = False
        self.fault = "The scheduler is being started."
        self._address: str | None = None
        #: Counters of the running process, and of all before it.
        self._counts = Counts()
        self._before = Counts()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._ringing = threading.Lock()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._line: Line | None = None
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[Any]] = {}
        self._first: Future[Ready] = Future()
        self._pauses = BackOff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        # The kernel kills the process with the thread that started it, so one thread does
        # everything.
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    # For the server

    def start(self) -> None:
        """Start the process; it waits for `begin`."""
        self._thread.start()

    def begin(self) -> Ready:
        """Let the loop begin, now that the database is prepared; raises the loop's own error."""
        self._may_begin.set()
        return self._first.result()

    def stop(self) -> None:
        """Let it finish the current cycle, and end."""
        self._ends = True
        self.stopping.set()
        self._may_begin.set()
        if self._thread.is_alive():
            self._send(Stop())
            self._thread.join(STOP_S)
            if self._thread.is_alive():
                LOG.warning("the scheduler does not come to an end, and is killed")
                self._kill()
                self._thread.join()
        with self._ringing:
            os.close(self._bell)
            self._bell = -1

    def ring(self) -> None:
        """Wake the loop, even one that is still starting."""
        with self._ringing:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def listens_at(self, address: str) -> None:
        """Set where this server answers."""
        self._address = address
        self._send(Listens(address))

    @property
    def pid(self) -> int | None:
        """The process id, if there is a process."""
        process = self._process
        return None if process is None else process.pid

    # For requests

    @property
    def counts(self) -> Counts:
        """The loop's counters since this server started."""
        return self._counts.after(self._before)

    def ask(self, question: Question) -> Answers:
        """What the current plan says about gangs."""
        number = next(self._numbers)
        found: Answers = self._answer_to(number, Ask(number, question))
        return found

    def standings(self, user: str) -> Standings:
        """What each node of the quota tree uses and is entitled to, by the loop's policy."""
        number = next(self._numbers)
        found: Standings = self._answer_to(number, AskStandings(number, user))
        return found

    def _answer_to(self, number: int, message: ToLoop) -> Any:
        answer: Future[Any] = Future()
        with self._lock:
            if self.fault:
                raise Busy(_AGAIN)
            if len(self._asked) >= MOST_QUESTIONS:
                raise Busy(_BUSY)
            self._asked[number] = answer
        try:
            if not self._send(message):
                raise Busy(_AGAIN)
            return answer.result(ANSWER_S)
        except TimeoutError:
            raise Busy(_BUSY) from None
        finally:
            with self._lock:
                self._asked.pop(number, None)

    def _send(self, message: ToLoop) -> bool:
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

    # In the thread

    def _run(self) -> None:
        try:
            while True:
                ended = self._live_once()
                if not self._first.done():
                    raise Unavailable(f"The scheduler could not be started: it {ended}.")
                if self.stopping.is_set() or self._first.exception() is not None:
                    return
                pause_s = self._pauses.wait_s()
                LOG.warning("the scheduler %s; it is started again in %.1f s", ended, pause_s)
                if self.stopping.wait(pause_s):
                    return
                self.restarts += 1
        except BaseException as error:
            if not self._first.done():
                self._first.set_exception(error)
            else:
                LOG.exception("the scheduler is not started any more")
        finally:
            self._kill()

    def _live_once(self) -> str:
        """Run one process from start to end; returns how it ended."""
        ready_at: float | None = None
        fault = ""
        try:
            line = self._begin()
            while True:
                said = line.read_from_loop()
                line.patience = int(SILENT_S / PART_S)
                if isinstance(said, Ready):
                    ready_at = monotonic()
                self._hear(said)
        except TimeoutError:
            fault = f"said nothing for {SILENT_S:g} s and was killed"
        except EOFError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            fault = f"cannot be watched ({error}) and was killed"
        finally:
            ended = self._end()
            self._forget(fault or ended)
        if ready_at is not None and monotonic() - ready_at >= STEADY_S:
            self._pauses.reset()
        return fault or ended

    def _begin(self) -> Line:
        ours, theirs = socket.socketpair()
        ours.settimeout(PART_S)
        with theirs:
            numbers = [str(each) for each in (theirs.fileno(), self._bell, os.getpid())]
            self._process = subprocess.Popen(  # noqa: S603 - Python itself
                [sys.executable, "-P", "-m", _MODULE, *numbers],
                stdin=subprocess.DEVNULL,
                # Programs read the server's standard output.
                stdout=_STANDARD_ERROR,
                pass_fds=(theirs.fileno(), self._bell),
                # Signals of a terminal are for the server.
                start_new_session=True,
            )
        self._line = line = Line(ours, int(START_S / PART_S))
        self._may_begin.wait()
        now_ms, since_boot_ms = self._clock.moment()
        begin = Begin(write_settings(self._settings), since_boot_ms, now_ms, self._address)
        with suppress(OSError):
            line.send(Stop() if self._ends else begin)
            if self._ends:
                line.send(Stop())
        return line

    def _hear(self, said: Any) -> None:
        if isinstance(said, Status):
            self.leads, self._counts = said.leads, said.counts
        elif isinstance(said, Ready):
            if self._first.done():
                LOG.warning("the scheduler was started again")
            self.fault = ""
            if self._address is not None:
                self._send(Listens(self._address))
            if not self._first.done():
                self._first.set_result(said)
        elif isinstance(said, Failed) and not said.number:
            if self._first.done():
                LOG.warning("the scheduler cannot be started again: %s", said.message)
            else:
                self._first.set_exception(said.error())
        elif isinstance(said, (Answered, Stand, Failed)):
            self._settle(said)

    def _settle(self, said: Answered | Stand | Failed) -> None:
        with self._lock:
            answer = self._asked.pop(said.number, None)
        if answer is None:
            return
        if isinstance(said, Failed):
            answer.set_exception(said.error())
        else:
            answer.set_result(said.answers if isinstance(said, Answered) else said.standings)

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

    def _forget(self, ended: str) -> None:
        """Forget a process that is gone, so that no question goes to it."""
        with self._lock:
            self.fault = f"The scheduler {ended}, and is being started again."
            asked, self._asked = self._asked, {}
        self.leads = False
        self._before, self._counts = self.counts, Counts()
        error: BoughError = Busy(_AGAIN)
        for each in asked.values():
            each.set_exception(error)

    def _kill(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            process.kill()
