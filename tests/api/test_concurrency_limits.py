"""A user who sends many slow requests waits for them, and other users do not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest

from bough.control.workflows import rendering
from bough.errors import Throttled
from bough.server import concurrency_limits
from bough.server.concurrency_limits import ANONYMOUS, AT_ONCE, WAITING, run_limited
from bough.server.routes.workflows import SUBMISSIONS
from tests.api.house import House

#: For a machine that is busy with other tests.
PATIENCE_S = 60


class Obstacle:
    """Something that takes until it is told to end; counts who is at it."""

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
        async with anyio.create_task_group() as group:
            for _ in range(3 * AT_ONCE):
                group.start_soon(run_limited, "greedy", obstacle)
            await anyio.to_thread.run_sync(obstacle.expect, AT_ONCE)
            answered = [await run_limited(user, user.upper) for user in ("other", "")]
            obstacle.gone.set()
        return answered

    assert ["OTHER", ""] == anyio.run(run)
    assert (0, AT_ONCE) == (obstacle.there, obstacle.most)


def test_those_who_do_not_say_who_they_are_keep_nobody_waiting():
    obstacle = Obstacle()

    async def run() -> str:
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(run_limited, "", obstacle)
            await anyio.to_thread.run_sync(obstacle.expect, ANONYMOUS)
            answered = await run_limited("somebody", lambda: "answered")
            obstacle.gone.set()
        return answered

    assert "answered" == anyio.run(run)
    assert ANONYMOUS == obstacle.most


def test_who_waits_for_far_too_much_is_told_so():
    obstacle = Obstacle()

    async def run() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(AT_ONCE + WAITING):
                group.start_soon(run_limited, "greedy", obstacle)
            await anyio.to_thread.run_sync(obstacle.expect, AT_ONCE)
            with pytest.raises(Throttled, match="greedy waits for 200 answers already"):
                await run_limited("greedy", lambda: None)
            obstacle.gone.set()

    anyio.run(run)


def test_templates_that_take_long_keep_the_server_from_nothing_else(
    team: House, monkeypatch: pytest.MonkeyPatch
):
    obstacle = Obstacle()
    monkeypatch.setattr(rendering, "_TURNS", _Slow(obstacle))
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


def test_one_user_has_so_many_streams_and_no_more(team: House, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(concurrency_limits, "STREAMS", 2)
    name = team.submit(1)
    paths = [f"/api/workflow/{name}/logs", f"/api/workflow/{name}/events", "/api/events"]

    async def run() -> None:
        with concurrency_limits.streaming("greedy"), concurrency_limits.streaming("greedy"):
            concurrency_limits.check_streams("other")
            with pytest.raises(Throttled, match="greedy has 2 streams open already"):
                concurrency_limits.check_streams("greedy")
        concurrency_limits.check_streams("greedy")

    anyio.run(run)
    for path in paths[:2]:
        assert 200 == team.ask("GET", f"{path}?follow=false").status_code
    monkeypatch.setattr(concurrency_limits, "STREAMS", 0)
    assert [429, 429, 429] == [team.ask("GET", path).status_code for path in paths]


class _Slow:
    def __init__(self, obstacle: Obstacle) -> None:
        self._obstacle = obstacle

    def acquire(self, timeout: float) -> bool:
        self._obstacle()
        return timeout > 0

    def release(self) -> None:
        pass
