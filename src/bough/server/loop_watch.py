"""Starts the scheduler's loop as a process of its own, watches it, and asks it questions.

So planning and answering requests do not share one interpreter. A loop that dies or freezes is
replaced; meanwhile requests are answered, submitted workflows wait, and tasks keep running.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

import msgspec

from bough.control.clock import SteadyClock
from bough.control.pools.node_shares import Standings
from bough.control.scheduling.plan_questions import Answers, Question
from bough.errors import BoughError, Busy
from bough.model.backend import TaskFiles
from bough.server.child_watch import Child, ChildWatch
from bough.server.loop_messages import (
    FROM_LOOP,
    Answered,
    Ask,
    AskStandings,
    Begin,
    FromLoop,
    Listens,
    Ready,
    Stand,
    Status,
    ToLoop,
)
from bough.server.loop_view import Counts
from bough.server.process_channel import Failed, write_settings
from bough.server.settings import Settings

_MODULE = "bough.server.loop_process"
#: Questions at the same time, and how long one may take, waiting included.
MOST_QUESTIONS = 64
ANSWER_S = 90.0
_BUSY = "Too many ask the scheduler at once; try again."
_AGAIN = "The scheduler is being started again; try again in a moment."


class LoopWatch(ChildWatch):
    """The server's side of the loop's process."""

    def __init__(
        self, settings: Settings, clock: SteadyClock, backends: Mapping[str, TaskFiles]
    ) -> None:
        child = Child(
            "the scheduler",
            _MODULE,
            descriptors=lambda: (self._bell,),
            begin_message=self._begin_message,
            read=lambda line: line.read(FROM_LOOP),
            hear=self._hear,
            gone=self._forget,
        )
        super().__init__(child)
        self._settings = settings
        self._clock = clock
        self.backends = backends
        self.leads = False
        self._address: str | None = None
        #: Counters of the running process, and of all before it.
        self._counts = Counts()
        self._before = Counts()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._ringing = threading.Lock()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[Any]] = {}

    # For the server

    def begin(self) -> Ready:
        """Let the loop begin, now that the database is prepared; raises the loop's own error."""
        found: Ready = super().begin()
        return found

    def stop(self) -> None:
        """Let it finish the current cycle, and end."""
        super().stop()
        with self._ringing:
            os.close(self._bell)
            self._bell = -1

    @property
    def bell(self) -> int:
        """The descriptor that is written to in order to wake the loop."""
        return self._bell

    def ring(self) -> None:
        """Wake the loop, even one that is still starting."""
        with self._ringing:
            if self._bell >= 0:
                os.eventfd_write(self._bell, 1)

    def listens_at(self, address: str) -> None:
        """Set where this server answers."""
        self._address = address
        self._send(Listens(address))

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

    # In the thread

    def _begin_message(self) -> msgspec.Struct:
        now_ms, since_boot_ms = self._clock.moment()
        return Begin(write_settings(self._settings), since_boot_ms, now_ms, self._address)

    def _hear(self, said: FromLoop) -> None:
        if isinstance(said, Status):
            self.leads, self._counts = said.leads, said.counts
        elif isinstance(said, Ready):
            self._became_ready(said)
            if self._address is not None:
                self._send(Listens(self._address))
        elif isinstance(said, Failed) and not said.number:
            self._could_not_start(said.error())
        else:
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

    def _forget(self) -> None:
        """Answer what was asked of a process that is gone; `fault` keeps others from asking."""
        with self._lock:
            asked, self._asked = self._asked, {}
        self.leads = False
        self._before, self._counts = self.counts, Counts()
        error: BoughError = Busy(_AGAIN)
        for each in asked.values():
            each.set_exception(error)
