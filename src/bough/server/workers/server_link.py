"""A worker's side of the line to the server: the loop, figures and turns, as its requests see them.

When the server is gone, the worker ends at once.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

import msgspec

from bough.control.pools.node_shares import Standings
from bough.control.scheduling.plan_questions import Answers, Question
from bough.errors import Busy
from bough.model.backend import TaskFiles
from bough.server.loop_messages import Answered, Ask, AskStandings, Stand
from bough.server.loop_view import Counts
from bough.server.loop_watch import ANSWER_S
from bough.server.process_channel import Failed, Line, Stop
from bough.server.workers.messages import (
    TO_WORKER,
    Answer,
    AskFigures,
    BeginWorker,
    Figures,
    GiveTurn,
    Standing,
    TakeTurn,
    Turn,
)

#: How long an answer of the server itself may take, and what one of the loop may take beyond.
_PATIENCE_S = 30.0
_BUSY = "The server is busy; try again."

Kind = TypeVar("Kind", bound=Answer)


class ServerLink:
    """Asks the server. Any thread can ask."""

    def __init__(self, line: Line, stop: Callable[[], None]) -> None:
        """stop:  called when the worker is told to end."""
        self._line = line
        self._stop = stop
        self.standing = Standing(leads=False, loop_fault="", worker_faults=())
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Future[Answer]] = {}
        self._thread = threading.Thread(target=self._listen, name="server", daemon=True)

    def start(self) -> None:
        """Listen from now on."""
        self._thread.start()

    def number(self) -> int:
        """The number of a new question."""
        return next(self._numbers)

    def ask(
        self, number: int, question: msgspec.Struct, kind: type[Kind], patience_s: float
    ) -> Kind:
        """Ask, and wait for the answer; raises what it is refused with."""
        answer: Future[Answer] = Future()
        with self._lock:
            self._asked[number] = answer
        try:
            self.tell(question)
            found = answer.result(patience_s)
        except TimeoutError:
            raise Busy(_BUSY) from None
        finally:
            with self._lock:
                self._asked.pop(number, None)
        if isinstance(found, Failed):
            raise found.error()
        if not isinstance(found, kind):
            raise Busy(_BUSY)
        return found

    def tell(self, message: msgspec.Struct) -> None:
        """Say something that has no answer."""
        try:
            self._line.send(message)
        except OSError:
            os._exit(1)

    def _listen(self) -> None:
        try:
            while True:
                self._hear(self._line.read(TO_WORKER))
        except (EOFError, OSError):
            # The server is gone, and the next one must not find this process still answering.
            os._exit(1)

    def _hear(self, said: Answer | BeginWorker | Standing | Stop) -> None:
        if isinstance(said, Stop):
            self._stop()
        elif isinstance(said, Standing):
            self.standing = said
        elif not isinstance(said, BeginWorker):
            with self._lock:
                answer = self._asked.pop(said.number, None)
            if answer is not None:
                answer.set_result(said)


class DistantLoop:
    """The scheduler's loop, asked through the server."""

    def __init__(
        self, link: ServerLink, backends: Mapping[str, TaskFiles], stopping: threading.Event
    ) -> None:
        self._link = link
        self.backends = backends
        self.stopping = stopping

    @property
    def counts(self) -> Counts:
        """Its counters, the same for every worker that is asked."""
        return self._figures().loop

    @property
    def restarts(self) -> int:
        """How often it had to be restarted."""
        return self._figures().loop_restarts

    @property
    def leads(self) -> bool:
        """Whether this server decides."""
        return self._link.standing.leads

    @property
    def fault(self) -> str:
        """Why this server schedules nothing at the moment; empty: it does."""
        return self._link.standing.loop_fault

    def workers(self) -> tuple[int, int]:
        """How many workers there are, and how often one was started again."""
        found = self._figures()
        return found.workers, found.worker_restarts

    def ask(self, question: Question) -> Answers:
        """What the current plan says about gangs."""
        number = self._link.number()
        patience_s = ANSWER_S + _PATIENCE_S
        return self._link.ask(number, Ask(number, question), Answered, patience_s).answers

    def standings(self, user: str) -> Standings:
        """What each node of the quota tree uses and is entitled to, by the loop's policy."""
        number = self._link.number()
        patience_s = ANSWER_S + _PATIENCE_S
        return self._link.ask(number, AskStandings(number, user), Stand, patience_s).standings

    def _figures(self) -> Figures:
        number = self._link.number()
        return self._link.ask(number, AskFigures(number), Figures, _PATIENCE_S)


class DistantTurns:
    """Turns to render templates, which all workers take together."""

    def __init__(self, link: ServerLink) -> None:
        self._link = link

    @contextmanager
    def turn(self, user: str, wait_s: float) -> Iterator[None]:
        """Wait for a turn of a user, and have it."""
        number = self._link.number()
        try:
            self._link.ask(number, TakeTurn(number, user, wait_s), Turn, wait_s + _PATIENCE_S)
            yield
        finally:
            # Also after too long a wait, since the turn may come yet.
            self._link.tell(GiveTurn(number))
