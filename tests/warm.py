"""Processes of tests that start at once: forked from one that has imported the program already.

A start of an interpreter with the server's modules costs a second of the processor. What is forked
is a process like any other: it has its own memory and connections, and is frozen or killed.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

ROOT = Path(__file__).parents[1]
WAIT_S = 60
#: What most programs of tests import, the server among it.
IMPORTED = (
    "bough.cli.commands.admin",
    "bough.cli.commands.serve",
    "bough.server.process",
    "bough.store.migration",
    "tests.store.racers",
)
_LONGEST = 1 << 20


class Program:
    """A program that runs, with its pipes: the part of `subprocess.Popen` that tests need."""

    def __init__(self, text: str, *arguments: str) -> None:
        """text:  what it does; its arguments are in `sys.argv`, as after `python -c`."""
        ends = [os.pipe() for _ in range(2)]
        (stdin, write_end), (read_end, stdout) = ends
        self._handle = _parent().start(text, arguments, stdin, stdout)
        os.close(stdin)
        os.close(stdout)
        self.stdin = os.fdopen(write_end, "w")
        self.stdout = os.fdopen(read_end)

    def __enter__(self) -> Program:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self.stdout.closed:
            self.kill()
            self._close()

    @property
    def state(self) -> str:
        """The letter of the kernel: `T` is stopped."""
        lines = Path(f"/proc/self/fdinfo/{self._handle}").read_text().splitlines()
        pid = int(next(line for line in lines if line.startswith("Pid:")).split()[1])
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]

    def send_signal(self, number: int) -> None:
        signal.pidfd_send_signal(self._handle, number)

    def freeze(self) -> None:
        """Stop it, and wait until all of it has stopped."""
        self.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + WAIT_S
        while self.state != "T":
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def kill(self) -> None:
        """Nothing, if it has ended."""
        if not self._has_ended(0):
            self.send_signal(signal.SIGKILL)
            assert self._has_ended(WAIT_S)

    def output(self) -> str:
        """What it prints until it ends by itself."""
        self.stdin.close()
        printed = self.stdout.read()
        assert self._has_ended(WAIT_S)
        self._close()
        return printed

    def _has_ended(self, within_s: float) -> bool:
        return bool(select.select([self._handle], [], [], within_s)[0])

    def _close(self) -> None:
        with suppress(BrokenPipeError):
            self.stdin.close()
        self.stdout.close()
        os.close(self._handle)


class _Parent:
    """The process that has imported everything, as those see it that want another one."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = f"from tests.warm import serve; serve({theirs.fileno()})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command], cwd=ROOT, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._socket = ours

    def start(self, text: str, arguments: tuple[str, ...], stdin: int, stdout: int) -> int:
        """A handle of the new process."""
        told = {"text": text, "arguments": arguments, "environment": dict(os.environ)}
        message = json.dumps(told | {"folder": str(Path.cwd())}).encode()
        socket.send_fds(self._socket, [message], [stdin, stdout])
        _, (handle,), _, _ = socket.recv_fds(self._socket, 16, 1)
        return handle

    def end(self) -> None:
        self._socket.close()
        self._process.wait(WAIT_S)


@cache
def _parent() -> _Parent:
    made = _Parent()
    atexit.register(made.end)
    return made


# In the process that has imported everything


def serve(descriptor: int) -> None:
    """Fork for each message, until there can be none any more."""
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    with socket.socket(fileno=descriptor) as asked:
        while True:
            message, pipes, _, _ = socket.recv_fds(asked, _LONGEST, 2)
            if not message:
                return
            # One that ends at once is there until it has a handle.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            pid = os.fork()
            if pid == 0:
                asked.close()
                _become(json.loads(message), pipes)
            handle = os.pidfd_open(pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            socket.send_fds(asked, [b"started"], [handle])
            for each in (handle, *pipes):
                os.close(each)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _become(told: dict[str, Any], pipes: list[int]) -> None:
    """Do what was asked for, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    sys.argv = ["-c", *told["arguments"]]
    code = _ended(lambda: exec(told["text"], {"__name__": "__main__"}))  # noqa: S102  a test's own
    sys.stdout.flush()
    os._exit(code)


def _ended(work: Callable[[], None]) -> int:
    try:
        work()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
