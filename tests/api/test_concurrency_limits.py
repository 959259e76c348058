"""A user who sends many slow requests waits for them, and other users do not."""

from __future__ import annotations

import select
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import anyio
import pytest

from bough.control.fair_turns import FairTurns
from bough.control.workflows import rendering
from bough.errors import Throttled, Unavailable
from bough.server import concurrency_limits
from bough.server.concurrency_limits import ANONYMOUS, AT_ONCE, STREAMS, WAITING, run_limited
from bough.server.routes.workflows import SUBMISSIONS
from tests.api.house import House, spec
from tests.api.served import Served

#: For a machine that is busy with other tests.
PATIENCE_S = 60
PATH = "/api/pool/default/workflow"


class Obstacle:
    """Work that takes until it is told to end; counts how many are at it."""

    def __init__(self) -> None:
        self.came = threading.Semaphore(0)
        self.gone = threading.Event()
        self._lock = threading.Lock()
        self.there = self.most = 0

    def __call__(self) -> None:
        with self._lock:
            self.there += 1
            self.most = max(self.most, self.there)
        self.came.release()
        assert self.gone.wait(PATIENCE_S)
        with self._lock:
            self.there -= 1

    def expect(self, count: int) -> None:
        """Wait until so many more are at it."""
        for _ in range(count):
            assert self.came.acquire(timeout=PATIENCE_S)


def test_few_requests_of_one_user_are_worked_on_at_once():
    obstacle = Obstacle()

    async def run() -> list[str]:
        answered: list[str] = []
        async with anyio.create_task_group() as group:
            for _ in range(3 * AT_ONCE):
                group.start_soon(run_limited, "greedy", obstacle)
            await anyio.to_thread.run_sync(obstacle.expect, AT_ONCE)
            answered += [await run_limited(user, user.upper) for user in ("other", "")]
            obstacle.gone.set()
        return answered

    assert ["OTHER", ""] == anyio.run(run)
    assert (0, AT_ONCE) == (obstacle.there, obstacle.most)


def test_requests_without_a_user_keep_no_user_waiting():
    obstacle = Obstacle()

    async def run() -> str:
        answered = ""
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(run_limited, "", obstacle)
            await anyio.to_thread.run_sync(obstacle.expect, ANONYMOUS)
            answered = await run_limited("known", lambda: "answered")
            obstacle.gone.set()
        return answered

    assert "answered" == anyio.run(run)
    assert ANONYMOUS == obstacle.most


@pytest.mark.parametrize("workers", [1, 4])
def test_who_waits_for_far_too_much_is_told_so(workers: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(concurrency_limits._Together, "workers", workers)
    at_once, waiting = AT_ONCE // workers, WAITING // workers
    obstacle = Obstacle()

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(at_once + waiting):
                group.start_soon(run_limited, "greedy", obstacle)
            await anyio.to_thread.run_sync(obstacle.expect, at_once)
            with pytest.raises(Throttled, match=f"greedy waits for {waiting} answers"):
                await run_limited("greedy", lambda: None)
            obstacle.gone.set()

    anyio.run(run)


def test_templates_that_take_long_keep_the_server_from_nothing_else(
    team: House, monkeypatch: pytest.MonkeyPatch
):
    obstacle = Obstacle()
    monkeypatch.setattr(rendering, "_run", _after(obstacle))
    monkeypatch.setattr(rendering, "_TURNS", FairTurns(100, 100))
    body = {"file": "# {{ 1 }}\nworkflow: {name: x, tasks: [{name: a}]}"}
    with ThreadPoolExecutor(24) as threads:
        sent = [
            threads.submit(team.ask, "POST", "/api/pool/team/workflow", json=body)
            for _ in range(24)
        ]
        try:
            obstacle.expect(SUBMISSIONS)
            paths = ("/health", "/api/workflow?all_pools=true")
            assert [200, 200] == [team.ask("GET", path).status_code for path in paths]
        finally:
            obstacle.gone.set()
        assert {200} == {each.result().status_code for each in sent}
    assert SUBMISSIONS == obstacle.most


def test_templates_of_one_user_keep_no_other_user_waiting_for_theirs(
    team: House, monkeypatch: pytest.MonkeyPatch
):
    obstacles = {b"greedy": Obstacle(), b"modest": Obstacle()}
    real = rendering._run

    def run(request: bytes, answer: int) -> int:
        next(each for name, each in obstacles.items() if name in request)()
        return real(request, answer)

    monkeypatch.setattr(rendering, "_run", run)

    def submit(user: str) -> int:
        body = {"file": f"# {{{{ '{user}' }}}}\nworkflow: {{name: x, tasks: [{{name: a}}]}}"}
        path = "/api/pool/team/workflow?dry_run=true"
        return team.ask("POST", path, json=body, user=user).status_code

    for name in ("greedy", "modest"):
        team.user(name, "osmo-team-user")
    with ThreadPoolExecutor(24) as threads:
        sent = [threads.submit(submit, "greedy") for _ in range(20)]
        try:
            obstacles[b"greedy"].expect(1)
            waiting = rendering._TURNS._waiting
            while len(waiting.get("greedy", ())) + obstacles[b"greedy"].there < SUBMISSIONS:
                threading.Event().wait(0.01)
            sent.append(threads.submit(submit, "modest"))
            # None of the twenty has come to its end.
            assert obstacles[b"modest"].came.acquire(timeout=PATIENCE_S)
        finally:
            for each in obstacles.values():
                each.gone.set()
        assert {200} == {each.result() for each in sent}


def test_users_have_their_turns_one_after_the_other_whatever_they_wait_with():
    turns, had = FairTurns(1, 1), []
    lock, held = threading.Lock(), threading.Event()

    def work(user: str) -> None:
        with turns.turn(user, PATIENCE_S), lock:
            had.append(user)

    threads = [threading.Thread(target=work, args=(user,)) for user in "aaaaaabbc"]
    with turns.turn("holder", 0):
        for number, each in enumerate(threads, 1):
            each.start()
            while sum(map(len, turns._waiting.values())) < number:
                held.wait(0.001)
    for each in threads:
        each.join(PATIENCE_S)

    assert list("abcabaaaa") == had


def test_who_waits_too_long_for_a_turn_is_told_so_and_keeps_no_place():
    turns = FairTurns(1, 1, "Too many templates; try again.")
    with turns.turn("one", 0):
        with pytest.raises(Unavailable, match="Too many templates"), turns.turn("two", 0.01):
            pass
        assert {} == turns._waiting
    with turns.turn("two", 0):
        pass


def test_one_user_has_so_many_streams_and_no_more(team: House, monkeypatch: pytest.MonkeyPatch):
    name = team.submit(1)
    paths = [f"/api/workflow/{name}/logs", f"/api/workflow/{name}/events", "/api/events"]
    for path in paths[:2]:
        assert 200 == team.ask("GET", f"{path}?follow=false").status_code
    monkeypatch.setattr(concurrency_limits, "STREAMS", 0)
    assert [429, 429, 429] == [team.ask("GET", path).status_code for path in paths]


@pytest.mark.served
def test_bodies_that_one_user_sends_at_once_are_bounded_and_others_send_theirs(tmp_path):
    part = b" " * (7 << 20)

    def sending(server: Served, token: str) -> socket.socket:
        host, _, port = server.address.removeprefix("http://").partition(":")
        made = socket.create_connection((host, int(port)), PATIENCE_S)
        made.sendall(
            b"POST /api/pool/default/workflow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Authorization: Bearer %s\r\n"
            % token.encode()
            + b"Content-Length: %d\r\n\r\n" % (len(part) + 1)
            + part
        )
        return made

    with Served(tmp_path / "data") as server, ExitStack() as stack:
        server.ask("POST", "/api/auth/user", json={"id": "other"})
        server.ask("POST", "/api/auth/user/other/roles", json={"role_name": "osmo-admin"})
        made = server.ask("POST", "/api/auth/user/other/access_token/x")
        other = made.json() if isinstance(made.json(), str) else made.json()["token"]
        greedy = [stack.enter_context(sending(server, server.token)) for _ in range(10)]
        refused = [each for each in greedy if select.select([each], [], [], 0)[0]]
        # One of them goes beyond 64 MiB; it is told so when it sends no more for a while.
        while not refused:
            refused = select.select(greedy, [], [], PATIENCE_S)[0]
        assert b"429" == refused[0].recv(4_096).split()[1]
        modest = stack.enter_context(sending(server, other))
        modest.sendall(b" ")
        assert b"400" == modest.recv(4_096).split()[1]

        for each in greedy:
            each.close()
        server.until(lambda: server.ask("POST", PATH, json={"file": spec(1)}).status_code == 200)


def test_a_body_without_a_user_is_small(house: House):
    path = "/api/auth/jwt/access_token"

    status, message = house.refused("POST", path, {"token": "x" * 100_000}, user=None)

    assert (400, "The body is larger than 64 KiB, the most without a user.") == (status, message)


@pytest.mark.served
def test_the_limit_of_streams_holds_exactly_however_many_are_opened_and_closed_at_once(tmp_path):
    with Served(tmp_path / "data", "--gpus", "8") as server, ExitStack() as stack:
        server.ask("POST", "/api/pool/default/workflow", json={"file": spec(1)})
        server.until(lambda: server.get("/api/workflow/job-1")["status"] == "RUNNING")
        host, _, port = server.address.removeprefix("http://").partition(":")
        head = f"HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {server.token}\r\n\r\n"
        paths = ("/api/workflow/job-1/events", "/api/events")

        def open_streams(count: int) -> list[socket.socket]:
            made = [socket.create_connection((host, int(port)), PATIENCE_S) for _ in range(count)]
            for number, each in enumerate(made):
                stack.enter_context(each)
                each.sendall(f"GET {paths[number % 2]} {head}".encode())
            answers = [each.recv(4_096) for each in made]
            statuses = {int(answer.split()[1]) for answer in answers}
            assert statuses <= {200, 429}
            return [
                each for each, got in zip(made, answers, strict=True) if got.split()[1] == b"200"
            ]

        streams = open_streams(STREAMS + 60)
        assert STREAMS == len(streams)
        for closed in (1, 70):
            for each in streams[:closed]:
                each.close()
            del streams[:closed]
            # A closed connection is noticed a moment later.
            server.until(lambda: streams.extend(open_streams(20)) or len(streams) >= STREAMS)
            assert STREAMS == len(streams)


def _after(obstacle: Obstacle):
    """Render only after an obstacle."""
    real = rendering._run

    def run(*arguments: Any) -> int:
        obstacle()
        return real(*arguments)

    return run
