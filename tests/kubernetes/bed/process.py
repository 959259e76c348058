"""One program of a bed: started, paused, killed, started again; it never outlives the tests."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)
#: The kernel ends a child when the thread that started it ends, so one thread starts them all.
_starter = ThreadPoolExecutor(1, thread_name_prefix="bed-starter")


class Process:
    """A program with its output in a file."""

    def __init__(self, arguments: list[str], log: Path, **environment: str) -> None:
        self.arguments = arguments
        self.log = log
        self._environment = {**os.environ, **environment}
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id."""
        assert self._running is not None
        return self._running.pid

    @property
    def ended(self) -> bool:
        """Whether it ended, by itself or otherwise."""
        return self._running is None or self._running.poll() is not None

    def start(self) -> None:
        """Start it; the same command each time."""
        assert self.ended
        self._running = _starter.submit(
            _start, self.arguments, self.log, self._environment
        ).result()

    def stop(self) -> None:
        """End it politely, then not."""
        if self._running is None:
            return
        self.go_on()
        self._running.terminate()
        try:
            self._running.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a power cut does."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()

    def pause(self) -> None:
        """Let it hang: it keeps its connections and answers nothing."""
        self._signal(signal.SIGSTOP)
        # A thread on another processor may still answer for a moment.
        while not self.ended and _states(self.pid) - {"T", "Z"}:
            time.sleep(0.001)

    def go_on(self) -> None:
        """Let it run on after a pause."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(number)

    def cpu_s(self) -> float:
        """The processor time it has used, its own and the kernel's for it."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def last_words(self) -> str:
        """The end of what it wrote."""
        return self.log.read_text(errors="replace")[-4_000:] if self.log.exists() else ""


def _states(pid: int) -> set[str]:
    """The states of a process's threads, as the kernel says them in a letter."""
    states = set[str]()
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            states.add((thread / "stat").read_text().rpartition(")")[2].split()[0])
    return states


def free_port() -> int:
    """A port of the loopback that nothing listens on now."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _start(
    arguments: list[str], log: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    starter = os.getpid()

    def end_with_the_starter() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != starter:
            os._exit(1)

    with open(log, "ab") as written:
        return subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=written,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
            preexec_fn=end_with_the_starter,  # noqa: PLW1509
        )
