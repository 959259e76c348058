"""A server in a process of its own that can be killed at any moment and started again.

Its port, its folder and its database stay the same.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import httpx

from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.cgroup_mounts import find_hierarchies
from bough.backends.local.sandbox.limits import parent_name
from bough.client import Client
from bough.errors import Unavailable

PROGRAM = Path(sys.executable).with_name("bough")
#: For a machine that is busy with other tests.
PATIENCE_S = 300
#: Below those that the system gives to connections, one of which might take it meanwhile.
_PORTS = range(20_000, 30_000)


class Server:
    """`bough serve`, again and again."""

    def __init__(
        self,
        folder: Path,
        *,
        database: str | None = None,
        gpus: int = 16,
        within: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        self.data = folder / "data"
        #: Where its data is for this process, if it sees the disk in another way.
        self.seen_data = self.data
        self.log = folder / "server.log"
        self.port = free_port()
        self.database = database or str(self.data / "bough.db")
        self._process: subprocess.Popen[bytes] | None = None
        self._command = [
            *(*within, str(PROGRAM), "serve", "--port", str(self.port), "--data", str(self.data)),
            *("--backend", "local", "--gpus", str(gpus), "--namespace", "ns"),
            # The witness of tasks listens on the loopback of this machine.
            *("--task-network", "host"),
            *(("--database", database) if database else ()),
            *options,
        ]

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, without waiting for anything."""
        assert self._process is None
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)

    def ready(self) -> bool:
        """Whether it answers; its address can be connected to all the time."""
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/health", timeout=1).status_code == 200
        except httpx.HTTPError:
            return False

    def await_ready(self) -> None:
        """Wait until it answers; say what it printed if it does not."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.ready():
            assert self._process is not None
            over = self._process.poll() is not None or time.monotonic() > deadline
            assert not over, self.log.read_text()[-4_000:]
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill it, as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end; its exit code."""
        return self._end(signal.SIGTERM)

    def client(self, timeout_s: float = 30.0) -> Client:
        """Ask it as its administrator."""
        token = (self.seen_data / "admin-token").read_text().strip()
        return Client(f"http://127.0.0.1:{self.port}", token, timeout_s=timeout_s)

    def processes(self) -> dict[int, str]:
        """What lives of it, of those who keep its tasks, and of its tasks: numbers and commands."""
        own = {os.getpid(), *_ancestors(os.getpid())}
        return {
            pid: _commanded(pid)
            for pid in _all_processes()
            if pid not in own and (self._is_of(pid) or self._runs_for(pid))
        }

    def groups(self) -> list[str]:
        """The control groups of its tasks that are there."""
        name = parent_name(LocalOptions(folder=(self.data / "local").resolve()))
        mounts = sorted({each.mount for each in find_hierarchies()})
        # Others come and go meanwhile, which a walk takes as it is.
        folders = [(path, below) for mount in mounts for path, below, _ in os.walk(mount)]
        return [
            f"{path}/{each}" for path, below in folders if Path(path).name == name for each in below
        ]

    @property
    def loop(self) -> int:
        """The process of the scheduler's loop: a child of the server; 0: there is none."""
        return loop_of(self.pid)

    @property
    def workers(self) -> list[int]:
        """The processes that answer requests, where the server does not do that itself."""
        return [pid for pid in children(self.pid) if _is_worker(pid)]

    def fork_servers(self) -> list[int]:
        """The processes that fork supervisors: children of the loop."""
        loop = self.loop
        return [pid for pid in children(loop) if self._is_of(pid)] if loop else []

    def supervisors(self) -> list[int]:
        """The processes that keep tasks: children of a fork server, or orphans."""
        others = {self.pid, self.loop, *self.workers, *self.fork_servers()}
        found = (pid for pid in self.processes() if pid not in others and self._is_of(pid))
        return [pid for pid in found if not _holds_socket(pid)]

    def _is_of(self, pid: int) -> bool:
        """Whether a process was started for this folder, or has something of it open."""
        mark = os.fsencode(self.data)
        if mark in _read(f"/proc/{pid}/cmdline"):
            return True
        return any(each.startswith(mark) for each in _opened(pid))

    def _runs_for(self, pid: int) -> bool:
        """Whether it is a task, or what a task has started."""
        for entry in _read(f"/proc/{pid}/environ").split(b"\0"):
            name, _, attempt = entry.partition(b"=")
            if name == b"BOUGH_ATTEMPT":
                folder = attempt.decode().replace("/", "-")
                return (self.seen_data / "local" / "attempts" / folder).exists()
        return False

    def clear_away(self) -> None:
        """Kill whatever is left of it, so that no test leaves anything behind."""
        for _ in range(20):
            left = self.processes()
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                return
            time.sleep(0.1)

    def _end(self, number: signal.Signals) -> int:
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(number)
        return process.wait(PATIENCE_S)

    @property
    def running(self) -> bool:
        """Whether it was started and not ended."""
        return self._process is not None


def _holds_socket(pid: int) -> bool:
    """Whether it keeps the server's address, and no tasks."""
    return b"socket_holder.py" in _read(f"/proc/{pid}/cmdline")


def loop_of(server: int) -> int:
    """The process of the loop of a server; 0: there is none."""
    return next((pid for pid in children(server) if _is_loop(pid)), 0)


def _is_loop(pid: int) -> bool:
    """Whether it is the process of a scheduler's loop, and has not ended."""
    return b"bough.server.loop_process" in _read(f"/proc/{pid}/cmdline")


def _is_worker(pid: int) -> bool:
    """Whether it is one of several processes that answer requests, and has not ended."""
    return b"bough.server.workers.worker_process" in _read(f"/proc/{pid}/cmdline")


def free_port() -> int:
    """A free port."""
    while True:
        port = random.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def until(condition: Callable[[], object], what: str, patience_s: float = PATIENCE_S) -> None:
    """Wait for a condition that must come true; a server that does not answer is asked again."""
    deadline = time.monotonic() + patience_s
    fault = ""
    while True:
        try:
            if condition():
                return
        except Unavailable as error:
            fault = f" ({error})"
        late = f"it did not come about in {patience_s:.0f} s: {what}{fault}"
        assert time.monotonic() < deadline, late
        time.sleep(0.1)


def _all_processes() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def is_alive(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(fields) and fields[0] != b"Z"


def children(pid: int) -> list[int]:
    """The processes that a process has started, and that it has not yet waited for."""
    return [each for each in _all_processes() if parent_of(each) == pid]


def _ancestors(pid: int) -> list[int]:
    found: list[int] = []
    while pid > 1:
        pid = parent_of(pid)
        found.append(pid)
    return found


def parent_of(pid: int) -> int:
    """The process that has started it; 0: it is gone."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return int(fields[1]) if fields else 0


def _opened(pid: int) -> list[bytes]:
    """The paths of what a process has open."""
    folder = f"/proc/{pid}/fd"
    found: list[bytes] = []
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError):
                found.append(os.fsencode(os.readlink(f"{folder}/{name}")))
    return found


def _commanded(pid: int) -> str:
    return _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
