"""The scheduler's loop is a process of its own: killed, frozen or orphaned, nothing is lost."""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.crash.crashes import scene, seed_of_this_run, serving
from tests.crash.loops import await_loop, crash_loops, health, kill_loop
from tests.crash.postgres import durable_postgres
from tests.crash.server import Server, is_alive, until
from tests.crash.takeovers import frozen

KILLS = 20
BUDGET_S = 400
#: Only one of them fits.
LARGE = """\
workflow:
  name: large
  resources: {default: {gpu: 99}}
  tasks: [{name: a, command: [sleep, infinity]}]
"""
SHORT = "workflow: {name: y, tasks: [{name: a, command: [echo, done]}]}"


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    if request.param == "sqlite":
        yield None
        return
    with durable_postgres() as postgres:
        yield postgres.url


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of its own."""
    made = Server(tmp_path, gpus=100)
    with serving(made):
        yield made


def test_a_loop_that_is_killed_under_load_loses_nothing(database: str | None, tmp_path: Path):
    with scene(tmp_path, seed_of_this_run(), database) as now:
        pid = now.server.pid
        assert KILLS == crash_loops(now, KILLS, BUDGET_S)
        assert pid == now.server.pid
        now.settle()


def test_a_loop_that_is_frozen_is_replaced_and_what_was_submitted_runs(server: Server):
    before = await_loop(server)
    with frozen(before):
        made = server.client().workflows.submit("default", SHORT)
        assert 200 == health(server).status_code
        await_loop(server, before)
        until(lambda: _status(server, made.name) == "COMPLETED", "what was submitted ran")
        assert not is_alive(before)
    assert "said nothing for 15 s and was killed" in server.log.read_text()


def test_health_says_that_the_loop_is_started_again_and_why_is_asked_for_later(server: Server):
    (name,) = _waiting(server, 1)
    before = await_loop(server)
    why = f"http://127.0.0.1:{server.port}/api/workflow/{name}/why"
    headers = _token(server)
    # The next one does not come far: it cannot have the folder of the tasks.
    with (server.data / "local" / "server.lock").open() as lock:
        kill_loop(server)
        until(lambda: _locked(lock.fileno()), "the folder is ours")
        until(lambda: health(server).json()["status"] == "degraded", "it is said")
        said = health(server)
        answer = httpx.get(why, headers=headers, timeout=60)
        fcntl.flock(lock, fcntl.LOCK_UN)
    assert 200 == said.status_code
    (reason,) = said.json()["reasons"]
    assert "signal 9 (SIGKILL)" in reason or "exit code 1" in reason
    assert (503, "1") == (answer.status_code, answer.headers["retry-after"])
    assert "The scheduler is being started again" in answer.json()["message"]
    await_loop(server, before)
    assert 200 == httpx.get(why, headers=headers, timeout=60).status_code
    assert "the scheduler was restarted" in server.log.read_text()


def test_many_ask_why_at_once_while_the_loop_is_killed(server: Server):
    names, headers = _waiting(server, 5), _token(server)
    before = await_loop(server)

    def ask(number: int) -> tuple[int, str]:
        name = names[number % len(names)]
        url = f"http://127.0.0.1:{server.port}/api/workflow/{name}/why"
        answer = httpx.get(url, headers=headers, timeout=60)
        return answer.status_code, answer.headers.get("retry-after", "")

    with ThreadPoolExecutor(16) as askers:
        asked = [askers.submit(ask, number) for number in range(120)]
        kill_loop(server)
        found = {each.result() for each in asked}
    assert found <= {(200, ""), (503, "1")}
    await_loop(server, before)
    with ThreadPoolExecutor(16) as askers:
        assert {(200, "")} == set(askers.map(ask, range(64)))


@pytest.mark.parametrize("stopped", [False, True], ids=["runs", "is frozen"])
def test_no_loop_is_left_when_its_server_is_killed(server: Server, *, stopped: bool):
    loop = await_loop(server)
    if stopped:
        os.kill(loop, signal.SIGSTOP)
    server.kill()
    until(lambda: not is_alive(loop), "the loop ends with its server")
    server.start()
    server.await_ready()
    made = server.client().workflows.submit("default", SHORT)
    until(lambda: _status(server, made.name) == "COMPLETED", "the next server runs it")


def test_a_loop_that_is_told_to_end_ends_in_order_and_is_replaced(server: Server):
    before = await_loop(server)
    os.kill(before, signal.SIGTERM)
    await_loop(server, before)
    assert "ended with exit code 0; restarting it in" in server.log.read_text()
    loop = server.loop
    assert 0 == server.stop()
    assert not is_alive(loop)


def _waiting(server: Server, count: int) -> list[str]:
    """Workflows that wait for another one."""
    submit = server.client().workflows.submit
    first, *others = (submit("default", LARGE).name for _ in range(1 + count))
    until(lambda: _status(server, first) == "RUNNING", "the first one runs")
    return others


def _token(server: Server) -> dict[str, str]:
    return {"authorization": f"Bearer {(server.data / 'admin-token').read_text().strip()}"}


def _status(server: Server, name: str) -> str:
    return server.client().workflows.get(name).status


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
