"""Processes of tests that start at once: forked from one that has imported the program already.

A start of an interpreter with the server's modules costs a second of the processor. What is forked
is a process like any other: it has its own memory and connections, and is frozen or killed.

`Program` runs a text, as `python -c` does; `Process` a module, as `subprocess.Popen` starts it.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import IO, Any

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
#: What starts tasks: far less, and so a fork of it costs less.
SMALL = ("bough.backends.local.supervisor.fork_server", "tests.local.entering")
_LONGEST = 1 << 20
_MOST_PIPES = 16


class Program:
    """A program that runs, with its pipes: the part of `subprocess.Popen` that tests need."""

    def __init__(self, text: str, *arguments: str) -> None:
        """text:  what it does; its arguments are in `sys.argv`, as after `python -c`."""
        ends = [os.pipe() for _ in range(2)]
        (stdin, write_end), (read_end, stdout) = ends
        told = {"text": text, "arguments": arguments, "environment": dict(os.environ)}
        told |= {"folder": str(Path.cwd()), "descriptors": [0, 1]}
        self._handle, _ = _parent(IMPORTED, os.getpid()).start(told, [stdin, stdout])
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


class Process:
    """A module that runs: the part of `subprocess.Popen` that the program and its tests need."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        stdin: int,
        stdout: IO[bytes] | int,
        stderr: IO[bytes] | int,
        pass_fds: Sequence[int] = (),
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        start_new_session: bool = False,
    ) -> None:
        """command:  `sys.executable`, `-m`, a module and its arguments."""
        assert (sys.executable, "-m", subprocess.DEVNULL) == (*command[:2], stdin)
        self.returncode: int | None = None
        self.stdout, output = _opened(stdout)
        self.stderr, errors = _opened(stderr)
        nothing = os.open(os.devnull, os.O_RDONLY)
        self._ended, ends = os.pipe()
        told = {
            "module": command[2],
            "arguments": command[3:],
            "environment": dict(os.environ) if env is None else env,
            "folder": cwd or str(Path.cwd()),
            "session": start_new_session,
            "descriptors": [0, 1, 2, *pass_fds],
        }
        given = [nothing, output, errors, *pass_fds]
        self._handle, self.pid = _parent(SMALL, os.getpid()).start(told, given, ends)
        # What was opened here, and not what was handed in.
        own = (output if self.stdout else None, errors if self.stderr else None)
        for each in (nothing, ends, *(each for each in own if each is not None)):
            os.close(each)

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._ended], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            self.returncode = os.waitstatus_to_exitcode(int(os.read(self._ended, 16)))
            os.close(self._ended)
            os.close(self._handle)
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What it has written to both when all that hold them have ended."""
        assert self.stdout is not None
        assert self.stderr is not None
        written = {self.stdout.fileno(): b"", self.stderr.fileno(): b""}
        with self.stdout, self.stderr:
            open_ones = list(written)
            while open_ones:
                ready = select.select(open_ones, [], [], timeout)[0]
                if not ready:
                    raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
                for each in ready:
                    part = os.read(each, _LONGEST)
                    written[each] += part
                    if not part:
                        open_ones.remove(each)
        self.wait(timeout)
        output, errors = (each.decode() for each in written.values())
        return output, errors


#: In the place of the module, where something is to be started at once.
SUBPROCESS = SimpleNamespace(**{**vars(subprocess), "Popen": Process})


def _opened(wanted: IO[bytes] | int) -> tuple[IO[str] | None, int]:
    """Our end of a new pipe, if that is wanted, and what the process writes to."""
    if wanted == subprocess.PIPE:
        reading, writing = os.pipe()
        return os.fdopen(reading), writing
    return None, wanted if isinstance(wanted, int) else wanted.fileno()


class _Parent:
    """The process that has imported everything, as those see it that want another one."""

    def __init__(self, imported: tuple[str, ...]) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = f"from tests.warm import serve; serve({theirs.fileno()}, {imported})"
        self._process = subprocess.Popen(
            [sys.executable, "-c", command], cwd=ROOT, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._socket = ours

    def start(
        self, told: dict[str, Any], pipes: list[int], ended: int | None = None
    ) -> tuple[int, int]:
        """A handle of the new process, and its number; its status is written to `ended`."""
        message = json.dumps(told | {"tells": ended is not None}).encode()
        given = pipes if ended is None else [*pipes, ended]
        socket.send_fds(self._socket, [message], given)
        pid, (handle,), _, _ = socket.recv_fds(self._socket, 16, 1)
        return handle, int(pid)

    def end(self) -> None:
        self._socket.close()
        self._process.wait(WAIT_S)


@cache
def _parent(imported: tuple[str, ...], _: int) -> _Parent:
    """One of this process: a fork of it may have another user, or another view of the machine."""
    made = _Parent(imported)
    atexit.register(made.end)
    return made


# In the process that has imported everything


def serve(descriptor: int, imported: tuple[str, ...]) -> None:
    """Fork for each message, until there can be none any more."""
    # Also for those that go to another folder.
    sys.path[0] = str(ROOT)
    for name in imported:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    with socket.socket(fileno=descriptor) as asked:
        while True:
            message, pipes, _, _ = socket.recv_fds(asked, _LONGEST, _MOST_PIPES)
            if not message:
                return
            told = json.loads(message)
            ended = pipes.pop() if told["tells"] else None
            # One that ends at once is there until it has a handle.
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            pid = os.fork()
            if pid == 0:
                _become(told, pipes)
            if ended is not None:
                _TOLD[pid] = ended
            handle = os.pidfd_open(pid)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            socket.send_fds(asked, [str(pid).encode()], [handle])
            for each in (handle, *pipes):
                os.close(each)


#: Where to write how a process has ended, by its number.
_TOLD: dict[int, int] = {}


def _reap() -> None:
    with suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = found
            if pid in _TOLD:
                with suppress(BrokenPipeError):
                    os.write(_TOLD[pid], str(status).encode())
                os.close(_TOLD.pop(pid))


def _become(told: dict[str, Any], pipes: list[int]) -> None:
    """Do what was asked for, and end."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    _hold(dict(zip(told["descriptors"], pipes, strict=True)))
    if told.get("session"):
        os.setsid()
    os.environ.clear()
    os.environ.update(told["environment"])
    os.chdir(told["folder"])
    sys.argv = ["-c", *told["arguments"]]
    code = _ended(lambda: _run(told))
    sys.stdout.flush()
    os._exit(code)


def _hold(wanted: dict[int, int]) -> None:
    """Have these open by their numbers, and nothing else but what was so from the beginning."""
    above = max(*wanted, *wanted.values()) + 1
    copies = {number: fcntl.fcntl(each, fcntl.F_DUPFD, above) for number, each in wanted.items()}
    for number, copy in copies.items():
        os.dup2(copy, number)
    last = 2
    for number in sorted({*wanted, above + len(wanted) + 1_024} - {0, 1, 2}):
        os.closerange(last + 1, number)
        last = number


def _run(told: dict[str, Any]) -> None:
    if "text" in told:
        exec(told["text"], {"__name__": "__main__"})  # noqa: S102  a test's own
        return
    with warnings.catch_warnings():
        # It has been imported, which is what this is for.
        warnings.simplefilter("ignore", RuntimeWarning)
        runpy.run_module(told["module"], run_name="__main__", alter_sys=True)


def _ended(work: Callable[[], None]) -> int:
    try:
        work()
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0
