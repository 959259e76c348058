"""Clocks that are set while work waits, runs and ends change nothing but what the time is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.crash.clock import FakedClock
from tests.crash.crashes import serving
from tests.crash.server import Server, until

HOUR_S = 3_600
DAY_S = 86_400
#: Saves its work for a while when it is told to end, unless it may end by itself.
SAVES = "trap 'sleep 3; exit 143' TERM; while ! test -e {gate}; do sleep 0.05; done"
#: Whose clock is set: of the server alone, of those that keep tasks alone, of the whole machine.
CLOCKS = [("server",), ("supervisors",), ("server", "supervisors")]


class Machine(NamedTuple):
    server: Server
    clock: FakedClock
    gates: Path

    def ask(self, method: str, path: str, **more: Any) -> Any:
        token = (self.server.data / "admin-token").read_text().strip()
        headers = more.pop("headers", {"authorization": f"Bearer {token}"})
        address = f"http://127.0.0.1:{self.server.port}{path}"
        answer = httpx.request(method, address, headers=headers, timeout=60, **more)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def submit(self, name: str, priority: str) -> str:
        """A workflow of one task with one GPU, which ends when its gate is opened."""
        script = SAVES.format(gate=self.gates / name)
        task = {"name": "main", "image": "any", "command": ["bash", "-c"], "args": [script]}
        workflow = {
            "name": name,
            "timeout": {"exec_timeout": "10h", "queue_timeout": "10h"},
            "resources": {"default": {"gpu": 1, "cpu": 0, "memory": "0Gi"}},
            "tasks": [task],
        }
        body = {"file": json.dumps({"workflow": workflow})}
        path = f"/api/pool/default/workflow?priority={priority}"
        return self.ask("POST", path, json=body)["name"]

    def open(self, name: str) -> None:
        (self.gates / name).touch()

    def status(self, workflow: str) -> str:
        return self.ask("GET", f"/api/workflow/{workflow}")["status"]

    def await_status(self, workflow: str, status: str) -> None:
        until(lambda: self.status(workflow) == status, f"{workflow} is {status}")

    def told_to_end(self, workflow: str) -> bool:
        events = self.ask("GET", f"/api/workflow/{workflow}?verbose=true")
        return "preempt" in json.dumps(events).lower()


@contextmanager
def machine(folder: Path, of: tuple[str, ...]) -> Iterator[Machine]:
    """A server with one GPU on a machine whose clock can be set."""
    clock = FakedClock(folder / "clock", of)
    gates = folder / "gates"
    gates.mkdir()
    for path in (folder, gates):
        path.chmod(0o777)
    as_root = ("--task-user", "root") if os.geteuid() == 0 else ()
    options = ("--not-private", *as_root)
    server = Server(folder, gpus=1, within=clock.within, options=options)
    with serving(server):
        yield Machine(server, clock, gates)


@pytest.mark.parametrize("of", CLOCKS, ids="+".join)
def test_a_clock_that_is_set_back_while_a_victim_ends_lets_it_come_again(of, tmp_path: Path):
    with machine(tmp_path, of) as now:
        victim = now.submit("victim", "LOW")
        now.await_status(victim, "RUNNING")
        urgent = now.submit("urgent", "HIGH")
        until(lambda: now.told_to_end(victim), "the victim is told to end")

        now.clock.set(-HOUR_S)

        now.await_status(urgent, "RUNNING")
        assert "PENDING" == now.status(victim)
        now.open("urgent")
        now.await_status(urgent, "COMPLETED")
        now.await_status(victim, "RUNNING")
        now.open("victim")
        now.await_status(victim, "COMPLETED")


@pytest.mark.parametrize("of", CLOCKS, ids="+".join)
def test_a_clock_that_is_set_forward_bills_nothing_and_ends_nothing(of, tmp_path: Path):
    with machine(tmp_path, of) as now:
        runs = now.submit("runs", "HIGH")
        waits = now.submit("waits", "HIGH")
        now.await_status(runs, "RUNNING")
        token = (now.server.data / "admin-token").read_text().strip()
        made = now.ask("POST", "/api/auth/jwt/access_token", json={"token": token})

        now.clock.set(DAY_S)

        # Both have limits of ten hours, and the pass one of minutes.
        later = now.submit("later", "HIGH")
        by_pass = {"authorization": f"Bearer {made['token']}"}
        now.ask("GET", "/api/workflow?all_pools=true", headers=by_pass)
        assert ("RUNNING", "PENDING") == (now.status(runs), now.status(waits))
        now.open("runs")
        now.await_status(runs, "COMPLETED")
        # In the order in which they were submitted.
        now.await_status(waits, "RUNNING")
        now.clock.set(-HOUR_S)
        now.open("waits")
        now.await_status(waits, "COMPLETED")
        now.await_status(later, "RUNNING")
        now.open("later")
        now.await_status(later, "COMPLETED")
        used = now.ask("GET", "/api/usage?since=30d")["total"]["gpu_hours"]
        assert 0 < used < 0.25


def test_a_server_that_is_started_again_after_its_clock_was_set_goes_on(tmp_path: Path):
    with machine(tmp_path, ("server", "supervisors")) as now:
        runs = now.submit("runs", "HIGH")
        waits = now.submit("waits", "HIGH")
        now.await_status(runs, "RUNNING")
        now.server.kill()
        now.clock.set(DAY_S)
        now.server.start()
        now.server.await_ready()
        until(lambda: now.ask("GET", "/health")["schedules"], "it decides again")
        assert ("RUNNING", "PENDING") == (now.status(runs), now.status(waits))
        now.open("runs")
        now.await_status(runs, "COMPLETED")
        now.open("waits")
        now.await_status(waits, "COMPLETED")
        assert now.ask("GET", "/api/usage?since=30d")["total"]["gpu_hours"] < 0.25
