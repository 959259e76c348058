"""What workers ask the server for: the loop's plan, keys of sessions, turns, and figures.

These are the things of which a server has one, however many processes answer its requests.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from bough.control.workflows.rendering import make_turns
from bough.errors import BoughError, Broken
from bough.model.session import SessionKind
from bough.server.loop_messages import Answered, Ask, AskStandings, Stand
from bough.server.loop_watch import MOST_QUESTIONS, LoopWatch
from bough.server.process_channel import Failed, Line
from bough.server.sessions import MOST_ANNOUNCED, Sessions
from bough.server.workers.messages import (
    Answer,
    AskFigures,
    Figures,
    FindSession,
    FromWorker,
    GiveTurn,
    MakeOffer,
    Offered,
    Redeemed,
    SessionAnnounced,
    SessionBegan,
    SessionEnded,
    TakeOffer,
    TakeTurn,
    Turn,
    Whereabouts,
)

LOG = logging.getLogger(__name__)


class _Session(msgspec.Struct):
    """A session that a worker has."""

    user: str
    kind: SessionKind
    workflow: str
    keys: deque[str]


class Caller:
    """One worker, from the start of its process to its end."""

    def __init__(self, worker: int, line: Line, fail: Callable[[], None]) -> None:
        """fail:  called if the worker takes no answers."""
        self.worker = worker
        self._line = line
        self._fail = fail
        self.gone = threading.Event()
        self.sessions: dict[int, _Session] = {}
        #: The templates that it renders, or is about to; set when they are done.
        self.turns: dict[int, threading.Event] = {}

    def answer(self, message: Answer) -> None:
        """Send an answer."""
        try:
            if not self.gone.is_set():
                self._line.send(message)
        except TimeoutError:
            self._fail()
        except OSError:
            # Its end is noticed elsewhere.
            pass


class Desk:
    """Answers the questions of all workers. Any thread can use it."""

    def __init__(self, loop: LoopWatch, workers: Callable[[], tuple[int, int]]) -> None:
        """workers:  how many there are, and how often one was started again."""
        self._loop = loop
        self._workers = workers
        self._offers = Sessions()
        self._turns = make_turns()
        self._lock = threading.Lock()
        self._callers: set[Caller] = set()
        self._threads = ThreadPoolExecutor(MOST_QUESTIONS + 1, "desk")

    def enter(self, caller: Caller) -> None:
        """A worker begins."""
        with self._lock:
            self._callers.add(caller)

    def leave(self, caller: Caller) -> None:
        """A worker is gone: what it had is free."""
        caller.gone.set()
        with self._lock:
            self._callers.discard(caller)
            held = list(caller.turns.values())
        for each in held:
            each.set()

    def hear(self, caller: Caller, said: FromWorker) -> None:
        """Handle a message of a worker; what takes time is done in other threads."""
        if isinstance(said, Ask):
            self._slowly(caller, said.number, lambda: self._ask(said))
        elif isinstance(said, AskStandings):
            self._slowly(caller, said.number, lambda: self._ask_standings(said))
        elif isinstance(said, AskFigures):
            caller.answer(self._figures(said.number))
        elif isinstance(said, MakeOffer):
            self._answer(caller, said.number, lambda: self._offer(said))
        elif isinstance(said, TakeOffer):
            offer = self._offers.take(said.user, said.kind, said.workflow, said.key)
            caller.answer(Redeemed(said.number, offer))
        elif isinstance(said, FindSession):
            caller.answer(self._find(said))
        elif isinstance(said, TakeTurn):
            self._begin_turn(caller, said)
        elif isinstance(said, GiveTurn):
            with self._lock:
                done = caller.turns.get(said.number)
            if done is not None:
                done.set()
        else:
            self._note_session(caller, said)

    def _ask(self, said: Ask) -> Answer:
        return Answered(said.number, self._loop.ask(said.question))

    def _ask_standings(self, said: AskStandings) -> Answer:
        return Stand(said.number, self._loop.standings(said.user))

    def _offer(self, said: MakeOffer) -> Answer:
        return Offered(said.number, self._offers.offer(said.user, said.target, said.wanted))

    def _figures(self, number: int) -> Figures:
        workers, restarts = self._workers()
        return Figures(number, self._loop.counts, self._loop.restarts, workers, restarts)

    def _slowly(self, caller: Caller, number: int, find: Callable[[], Answer]) -> None:
        self._threads.submit(self._answer, caller, number, find)

    def _answer(self, caller: Caller, number: int, find: Callable[[], Answer]) -> None:
        try:
            found = find()
        except BoughError as error:
            found = Failed.of(number, error)
        except Exception:
            LOG.exception("a question of a worker could not be answered")
            found = Failed.of(number, Broken())
        caller.answer(found)

    # Sessions

    def _note_session(self, caller: Caller, said: FromWorker) -> None:
        with self._lock:
            if isinstance(said, SessionBegan):
                keys: deque[str] = deque(maxlen=MOST_ANNOUNCED)
                found = _Session(said.user, said.kind, said.workflow, keys)
                caller.sessions[said.session] = found
            elif isinstance(said, SessionAnnounced) and said.session in caller.sessions:
                caller.sessions[said.session].keys.append(said.key)
            elif isinstance(said, SessionEnded):
                caller.sessions.pop(said.session, None)

    def _find(self, said: FindSession) -> Whereabouts:
        """Which worker has the session that announced a key, which is good for one connection."""
        awaited = False
        with self._lock:
            for caller in self._callers:
                for each in caller.sessions.values():
                    if (each.user, each.kind, each.workflow) == (
                        said.user,
                        said.kind,
                        said.workflow,
                    ):
                        awaited = True
                        if said.key in each.keys:
                            each.keys.remove(said.key)
                            return Whereabouts(said.number, caller.worker, awaited)
        return Whereabouts(said.number, None, awaited)

    # Turns

    def _begin_turn(self, caller: Caller, said: TakeTurn) -> None:
        done = threading.Event()
        with self._lock:
            caller.turns[said.number] = done
        threading.Thread(
            target=self._have_turn, args=(caller, said, done), name="turn", daemon=True
        ).start()

    def _have_turn(self, caller: Caller, said: TakeTurn, done: threading.Event) -> None:
        """Wait for a turn, and have it until the worker gives it back or is gone."""
        try:
            with self._turns.turn(said.user, said.wait_s):
                if not caller.gone.is_set():
                    caller.answer(Turn(said.number))
                    done.wait()
        except BoughError as error:
            caller.answer(Failed.of(said.number, error))
        finally:
            with self._lock:
                caller.turns.pop(said.number, None)
