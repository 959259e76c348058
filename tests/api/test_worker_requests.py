"""What the workers of a server ask it for, over real lines, without their processes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from bough.control.scheduling.plan_questions import Question
from bough.control.workflows import rendering
from bough.control.workflows.sessions import SessionTarget
from bough.model.session import SessionKind, SessionRequest
from bough.server.loop_messages import Answered, Ask
from bough.server.process import put_together
from bough.server.process_channel import Failed, Line
from bough.server.sessions import MOST_KEYS
from bough.server.settings import Settings
from bough.server.workers.messages import (
    TO_WORKER,
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
from bough.server.workers.worker_requests import Caller, Desk

#: For a machine that is busy with other tests.
PATIENCE_S = 60
TARGET = SessionTarget("train-1", "main", "attempt", "default")
EXEC = SessionRequest(SessionKind.EXEC, ("sh",))


class Worker:
    """A worker that asks; it has no process."""

    def __init__(self, desk: Desk, number: int, stack: ExitStack) -> None:
        ours, theirs = (stack.enter_context(each) for each in socket.socketpair())
        ours.settimeout(PATIENCE_S)
        self._desk = desk
        self._line = Line(ours)
        self._caller = Caller(number, Line(theirs), lambda: None)
        desk.enter(self._caller)

    def say(self, message: FromWorker) -> None:
        self._desk.hear(self._caller, message)

    def ask(self, message: FromWorker) -> Any:
        self.say(message)
        return self.hear()

    def hear(self) -> Any:
        return self._line.read(TO_WORKER)

    def hears_nothing(self) -> bool:
        self._line.socket.settimeout(0.2)
        try:
            self.hear()
        except TimeoutError:
            return True
        finally:
            self._line.socket.settimeout(PATIENCE_S)
        return False

    def die(self) -> None:
        self._desk.leave(self._caller)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder: Path = tmp_path_factory.mktemp("desk")
    with put_together(Settings(folder / "data", backend="virtual", gpus=8)) as running:
        yield Desk(running.loop, lambda: (2, 5))


@pytest.fixture
def workers(made: Desk) -> Iterator[tuple[Worker, Worker]]:
    with ExitStack() as stack:
        found = Worker(made, 0, stack), Worker(made, 1, stack)
        yield found
        for each in found:
            each.die()


def test_the_plan_and_the_figures_are_those_of_the_loop(workers: tuple[Worker, Worker]):
    for worker in workers:
        assert Answered(7, {}) == worker.ask(Ask(7, Question("ann", waiting=("unknown",))))
        found = worker.ask(AskFigures(8))
        assert isinstance(found, Figures)
        assert (8, 0, 2, 5) == (
            found.number,
            found.loop_restarts,
            found.workers,
            found.worker_restarts,
        )


def test_a_key_of_one_worker_opens_a_session_at_another_once_and_for_its_user_alone(
    workers: tuple[Worker, Worker],
):
    first, second = workers
    offered = first.ask(MakeOffer(1, "ann", TARGET, EXEC))
    assert isinstance(offered, Offered)
    wrong = TakeOffer(1, "bob", SessionKind.EXEC, "train-1", offered.key)
    assert Redeemed(1, None) == second.ask(wrong)
    right = TakeOffer(2, "ann", SessionKind.EXEC, "train-1", offered.key)
    found = second.ask(right)
    assert isinstance(found, Redeemed)
    assert found.offer is not None
    assert ("ann", TARGET, EXEC) == (found.offer.user, found.offer.target, found.offer.wanted)
    assert Redeemed(2, None) == first.ask(right)


def test_a_user_has_so_many_unused_keys_at_all_workers_together(workers: tuple[Worker, Worker]):
    for number in range(MOST_KEYS):
        found = workers[number % 2].ask(MakeOffer(number + 1, "zoe", TARGET, EXEC))
        assert isinstance(found, Offered)
    refused = workers[0].ask(MakeOffer(999, "zoe", TARGET, EXEC))
    assert isinstance(refused, Failed)
    assert ("Throttled", "zoe has asked for 200 sessions and opened none.") == (
        refused.kind,
        refused.message,
    )


def test_the_session_that_announced_a_key_is_found_from_every_worker(
    workers: tuple[Worker, Worker],
):
    first, second = workers
    find = FindSession(3, "ann", SessionKind.PORT_FORWARD, "train-1", "key")
    assert Whereabouts(3, None, awaited=False) == first.ask(find)
    second.say(SessionBegan(1, "ann", SessionKind.PORT_FORWARD, "train-1"))
    assert Whereabouts(3, None, awaited=True) == first.ask(find)
    second.say(SessionAnnounced(1, "key"))
    other = FindSession(3, "bob", SessionKind.PORT_FORWARD, "train-1", "key")
    assert Whereabouts(3, None, awaited=False) == first.ask(other)
    assert Whereabouts(3, 1, awaited=True) == first.ask(find)
    assert Whereabouts(3, None, awaited=True) == first.ask(find)
    second.say(SessionEnded(1))
    assert Whereabouts(3, None, awaited=False) == first.ask(find)


def test_sessions_of_a_worker_that_is_gone_are_awaited_no_more(workers: tuple[Worker, Worker]):
    first, second = workers
    second.say(SessionBegan(1, "ann", SessionKind.RSYNC, "train-1"))
    second.die()
    find = FindSession(3, "ann", SessionKind.RSYNC, "train-1", "key")
    assert Whereabouts(3, None, awaited=False) == first.ask(find)


def test_workers_render_few_templates_at_a_time_and_one_of_each_user(
    workers: tuple[Worker, Worker],
):
    first, second = workers
    assert (2, 1) == (rendering.AT_ONCE, rendering.OF_ONE_USER)
    assert Turn(1) == first.ask(TakeTurn(1, "ann", PATIENCE_S))
    # Ann has her turn, whichever worker asks for another.
    second.say(TakeTurn(1, "ann", PATIENCE_S))
    assert second.hears_nothing()
    assert Turn(2) == second.ask(TakeTurn(2, "bob", PATIENCE_S))
    first.say(TakeTurn(2, "cem", PATIENCE_S))
    assert first.hears_nothing()
    second.say(GiveTurn(2))
    assert Turn(2) == first.hear()
    first.say(GiveTurn(1))
    assert Turn(1) == second.hear()
    assert isinstance(second.ask(TakeTurn(3, "dan", 0.1)), Failed)
    second.say(GiveTurn(1))
    first.say(GiveTurn(2))


def test_turns_of_a_worker_that_is_gone_are_free(workers: tuple[Worker, Worker]):
    first, second = workers
    for number in range(rendering.AT_ONCE):
        assert Turn(number) == first.ask(TakeTurn(number, f"user-{number}", PATIENCE_S))
    second.say(TakeTurn(1, "ann", PATIENCE_S))
    assert second.hears_nothing()
    first.die()
    assert Turn(1) == second.hear()
    second.say(GiveTurn(1))
