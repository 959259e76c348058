"""A server in a process of its own, and the `osmo` command against it: what a user has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

PROGRAM = Path(sys.executable).with_name("bough")
OSMO = Path(sys.executable).with_name("osmo")
#: For a machine that is busy with other tests.
PATIENCE_S = 60
NODE = """\
apiVersion: v1
kind: Node
metadata:
  name: large
status:
  allocatable: {nvidia.com/gpu: "100", cpu: "400", memory: 2Ti, pods: "200"}
"""


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    output: str
    errors: str


class Served:
    """A running server with one node of 100 GPUs, and its first administrator."""

    def __init__(self, address: str, token: str, folder: Path) -> None:
        self.address = address
        self.token = token
        self._folder = folder
        self._program: tuple[str, ...] = (str(OSMO),)
        self._environment = {
            "PATH": os.environ.get("PATH", ""),
            "BOUGH_SERVER": address,
            "BOUGH_TOKEN": token,
            "XDG_CONFIG_HOME": str(folder),
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
        }

    def as_user(self, token: str) -> Served:
        """The same server, asked with another token."""
        return Served(self.address, token, self._folder)

    def as_guest(self, folder: Path) -> Served:
        """The command as a new user has it, without a server."""
        guest = Served(self.address, "", folder)
        del guest._environment["BOUGH_SERVER"], guest._environment["BOUGH_TOKEN"]
        return guest

    def osmo(self, *arguments: str) -> Ended:
        """Run a command; it may fail."""
        done = subprocess.run(
            [*self._program, *arguments],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def done(self, *arguments: str) -> str:
        """Run a command that must succeed; what it printed."""
        ended = self.osmo(*arguments)
        assert 0 == ended.code, ended
        return ended.output

    def json(self, *arguments: str) -> Any:
        """Run a command that must succeed; its answer for programs."""
        return json.loads(self.done(*arguments, "--format-type", "json"))

    def spec(self, gpus: int) -> str:
        """A file with a workflow of one task that holds GPUs until it is told to end."""
        path = self._folder / f"job-{gpus}.yaml"
        task = "{name: main, image: ubuntu, command: [sleep, infinity]}"
        resources = f"{{default: {{gpu: {gpus}, cpu: 1, memory: 1Gi, storage: 0Gi}}}}"
        path.write_text(f"workflow:\n  name: job\n  resources: {resources}\n  tasks: [{task}]\n")
        return str(path)

    def submit(self, pool: str, gpus: int, priority: str) -> str:
        """Submit such a workflow; its ID."""
        arguments = ("--pool", pool, "--priority", priority, self.spec(gpus))
        return self.json("workflow", "submit", *arguments)["name"]

    def status(self, workflow: str) -> str:
        return self.json("workflow", "query", workflow)["status"]

    def run(self, pool: str, gpus: int, priority: str) -> str:
        """Submit such a workflow, and wait until it runs; its ID."""
        name = self.submit(pool, gpus, priority)
        self.until(lambda: "RUNNING" == self.status(name))
        return name

    def quotas(self, pool: str = "team") -> dict[str, int]:
        """The quotas of all queues of a pool, by the end of their names; the pool's own is ``."""
        start = f"osmo-pool-ns-{pool}"
        return {
            each["name"].removeprefix(start): each["quota"]
            for each in self.json("queue", "list")
            if each["name"] == start or each["name"].startswith(f"{start}--")
        }

    def used(self, pool: str = "team") -> dict[str, tuple[int, int]]:
        """What is used of the leaves of a pool: by all, and by HIGH and NORMAL."""
        start = f"osmo-pool-ns-{pool}"
        return {
            each["name"].removeprefix(start): (each["used"], each["used_guaranteed"])
            for each in self.json("queue", "list")
            if each["leaf"] and each["name"].startswith(f"{start}--")
        }

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for a condition that must come true."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, "it did not come about"
            time.sleep(0.1)


@contextmanager
def serving(folder: Path, database: str | None = None) -> Iterator[Served]:
    """Serve on a free port until the block ends; data is in the folder, or in a database."""
    nodes = folder / "nodes.yaml"
    nodes.write_text(NODE)
    data = folder / "data"
    command = [PROGRAM, "serve", "--port", "0", "--data", data, "--namespace", "ns"]
    command += [
        "--backend",
        "virtual",
        "--nodes",
        nodes,
        *(["--database", database] if database else []),
    ]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            first = process.stdout.readline() if process.stdout is not None else ""
            log.seek(0)
            assert first.startswith("Bough listens on "), first + log.read()
            token = (data / "admin-token").read_text().strip()
            yield Served(first.split()[-1], token, folder)
        finally:
            process.terminate()
            process.communicate(timeout=PATIENCE_S)
