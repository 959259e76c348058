"""Two real servers on one PostgreSQL, each with the folder of its own tasks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.api.served import Served

#: Writes a line for each of its starts, with its process, and runs until it is told to end.
TASK = """\
workflow:
  name: {name}
  resources:
    default: {{gpu: 2, cpu: 0, memory: 0Gi, storage: 0Gi}}
  tasks:
  - name: main
    command: [bash, -c]
    args: ["echo start; echo $$ >> {starts}; trap 'exit 7' TERM; while :; do sleep 0.1; done"]
"""
#: Tasks write where this test can read it.
_AS_ROOT = ("--task-user", "root") if os.geteuid() == 0 else ()
LOCAL = ("--backend", "local", "--gpus", "2", "--not-private", *_AS_ROOT)


class Pair:
    """Two servers, and what their tasks wrote."""

    def __init__(self, url: str, folder: Path, stack: ExitStack) -> None:
        self._url, self._folder, self._stack = url, folder, stack
        # Where any account can write.
        shared = Path(stack.enter_context(TemporaryDirectory(dir="/tmp")))
        shared.chmod(0o777)
        self.starts = shared / "starts"
        self.starts.touch()
        self.starts.chmod(0o666)
        self.token = ""

    def serve(self, name: str) -> Served:
        options = ("--database", self._url, *LOCAL)
        server = self._stack.enter_context(Served(self._folder / name, *options))
        self.token = self.token or server.token
        if not (self._folder / name / "admin-token").exists():
            (self._folder / name / "admin-token").write_text(self.token)
        return server

    def pids(self) -> list[int]:
        return [int(line) for line in self.starts.read_text().split()]

    def submit(self, server: Served, name: str) -> str:
        file = TASK.format(name=name, starts=self.starts)
        answer = server.ask("POST", "/api/pool/default/workflow", json={"file": file})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()["name"]

    def runs(self, server: Served, name: str) -> int:
        """The process of a workflow, once it runs."""
        server.until(lambda: status(server, name) == "RUNNING" and self.pids())
        return self.pids()[-1]


def status(server: Served, name: str) -> str:
    return server.get(f"/api/workflow/{name}")["status"]


def leads(server: Served) -> bool:
    return server.get("/health")["schedules"]


def pool(server: Served) -> dict[str, Any]:
    (found,) = server.get("/api/pool_quota?all_pools=True")["node_sets"][0]["pools"]
    return found


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.fixture
def pair(postgres, tmp_path) -> Iterator[Pair]:
    with ExitStack() as stack:
        made = Pair(postgres.make(migrated=False), tmp_path, stack)
        yield made
        for pid in made.pids():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_the_tasks_of_a_dead_leader_are_left_to_its_machine_until_it_comes_back(pair):
    one = pair.serve("one")
    one.until(lambda: leads(one))
    name = pair.submit(one, "job")
    pid = pair.runs(one, name)
    two = pair.serve("two")

    one.stop(signal.SIGKILL)
    two.until(lambda: leads(two))
    two.until(lambda: pool(two)["status"] == "OFFLINE")

    place = f"{os.uname().nodename}:{one.data / 'local'}"
    silent = f"Machine {place} of backend default does not answer."
    assert silent == pool(two)["offline"]
    assert ("RUNNING", True) == (status(two, name), lives(pid))
    (run,) = two.get(f"/api/workflow/{name}/why")["running"]
    assert run["message"].endswith(silent.rstrip("."))
    waiting = pair.submit(two, "late")
    two.until(lambda: two.get(f"/api/workflow/{waiting}/why")["groups"][0]["reason"] == "backend")
    log = two.ask("GET", f"/api/workflow/{name}/logs?follow=false").text
    assert f"What main wrote is on machine {place}, and the server there at {one.address}" in log
    time.sleep(2)
    assert ([pid], True) == (pair.pids(), lives(pid))

    again = pair.serve("one")
    again.until(lambda: pool(again)["status"] == "ONLINE")
    assert (True, False) == (leads(two), leads(again))
    assert ("RUNNING", [pid]) == (status(two, name), pair.pids())
    assert "start" in again.ask("GET", f"/api/workflow/{name}/logs?follow=false").text
    # What is decided by the one is done by the other.
    assert 200 == two.ask("POST", f"/api/workflow/{name}/cancel").status_code
    two.until(lambda: status(two, name) == "FAILED_CANCELED")
    two.until(lambda: status(two, waiting) == "RUNNING" and len(pair.pids()) == 2)
    (task,) = two.get(f"/api/workflow/{waiting}")["groups"][0]["tasks"]
    assert (0, False) == (task["retry_id"], lives(pid))


def test_a_machine_that_is_declared_lost_is_replaced_and_ends_its_tasks_when_it_comes_back(pair):
    one = pair.serve("one")
    name = pair.submit(one, "job")
    pid = pair.runs(one, name)
    (node,) = one.get("/api/node")["nodes"]
    refused = one.ask("POST", f"/api/node/{node['name']}/declare_lost")
    expected = f"Node {node['name']} cannot be declared lost: backend default answers."
    assert (409, expected) == (refused.status_code, refused.json()["message"])
    two = pair.serve("two")
    one.stop(signal.SIGKILL)
    two.until(lambda: leads(two) and pool(two)["status"] == "OFFLINE")

    lost = two.ask("POST", f"/api/node/{node['name']}/declare_lost").json()
    place = f"{os.uname().nodename}:{one.data / 'local'}"
    assert {"backend": "default", "machine": place, "nodes": [node["name"]], "tasks": 1} == lost
    (entry,) = two.get(f"/api/audit?subject=node/default/{node['name']}")["entries"]
    assert ("node:DeclareLost", "admin") == (entry["action"], entry["actor"])
    two.until(lambda: len(pair.pids()) == 2 and status(two, name) == "RUNNING")
    assert (True, "ONLINE") == (lives(pid), pool(two)["status"])
    (task,) = two.get(f"/api/workflow/{name}")["groups"][0]["tasks"]
    assert 1 == task["retry_id"]

    again = pair.serve("one")
    again.until(lambda: not lives(pid))
    assert "belongs to machine" in again.log
    assert ("RUNNING", "ONLINE") == (status(again, name), pool(again)["status"])
    first, second = pair.pids()
    assert (pid, True) == (first, lives(second))
