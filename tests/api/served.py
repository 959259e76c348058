"""A real server: the program in a process of its own, on a free port of the loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from bough.data_folder_names import DATABASE_FILE
from bough.store import Store
from bough.store.migration import upgrade
from tests.warm import Program

WAIT_S = 60
#: Runs commands one after the other, each from a line, and prints how each ended.
_COMMANDS = """
import contextlib, io, json, sys
from bough.cli.main import run
for line in sys.stdin:
    said, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = run(json.loads(line))
    print(json.dumps([code, said.getvalue(), errors.getvalue()]), flush=True)
"""


def run_commands(*commands: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """Exit code, output and errors of commands, one after the other in a process of their own."""
    with Program(_COMMANDS) as running:
        running.stdin.writelines(f"{json.dumps(each)}\n" for each in commands)
        return [tuple(json.loads(line)) for line in running.output().splitlines()]


@cache
def _migrated_database() -> bytes:
    """An empty database as a first start makes it, which costs a third of that start."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / DATABASE_FILE
        store = Store.open(path)
        upgrade(store)
        store.close()
        return path.read_bytes()


class Served:
    """Starts `bough serve`, within another program if need be, and stops it in the end."""

    def __init__(
        self, data: Path, *options: str, within: tuple[str, ...] = (), migrated: bool = True
    ) -> None:
        """migrated:  whether a new data folder has a database already, if it gets one."""
        if migrated and not data.exists() and "--database" not in options:
            data.mkdir(mode=0o700, parents=True)
            (data / DATABASE_FILE).write_bytes(_migrated_database())
        command = [
            *within,
            sys.executable,
            "-m",
            "bough",
            "serve",
            "--port",
            "0",
            "--data",
            str(data),
        ]
        # The last of several holds, so a test can choose another.
        command += ["--backend", "virtual"]
        self.data = data
        self._log = (data.parent / f"{data.name}.log").open("w+")
        self.process = subprocess.Popen(
            [*command, *options], stdout=subprocess.PIPE, stderr=self._log, text=True
        )
        self.address = self._read_address()

    def __enter__(self) -> Served:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate(timeout=WAIT_S)
        self._log.close()

    @property
    def token(self) -> str:
        return (self.data / "admin-token").read_text().strip()

    @property
    def log(self) -> str:
        self._log.flush()
        return Path(self._log.name).read_text()

    def printed(self) -> str:
        """What it printed after its address, once it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {self.token}"}
        return httpx.request(method, self.address + path, headers=headers, timeout=30, **options)

    def get(self, path: str) -> Any:
        response = self.ask("GET", path)
        assert response.status_code == 200, response.text
        return response.json()

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal, and wait for the end."""
        os.kill(self.process.pid, number)
        return self.process.wait(timeout=WAIT_S)

    def until(self, what: Any) -> Any:
        """Wait until a condition holds."""
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            found = what()
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"it did not come to be so\n{self.log[-2000:]}")

    def _read_address(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if "listens on " not in line:
            self.process.wait(timeout=WAIT_S)
            raise AssertionError(f"the server did not start\n{self.log}")
        return line.split("listens on ")[1].strip()
