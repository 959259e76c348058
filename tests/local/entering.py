"""Runs one command as a supervisor does, in a process of its own: `python -m tests.local.entering`.

The first argument is the command, the second the number of a user to be from the beginning, and
the third says `old` to do without what only newer kernels have.
"""

from __future__ import annotations

import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from bough.backends.local.sandbox import syscalls
from bough.backends.local.sandbox.sandbox import enter, environment_of
from bough.backends.local.task_command import TaskCommand
from bough.errors import BoughError
from tests.warm import Process

PATIENCE_S = 60.0
UNSTARTABLE = 125
_PR_SET_DUMPABLE = 4

_MS_SHARED = 0x100000


class Running:
    """A command that was started, in a session of its own."""

    def __init__(self, command: TaskCommand, user: int | None = None, *, old: bool = False) -> None:
        arguments = (msgspec.json.encode(command).decode(), str(user or ""), "old" if old else "")
        self.process = Process(
            (sys.executable, "-m", "tests.local.entering", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def signal(self, number: int) -> None:
        """Signal it as a supervisor does: all of its process group."""
        os.killpg(self.process.pid, number)

    def end(self) -> tuple[int, str, str]:
        """Wait for its end: the exit code (or the signal, below 0), and what it wrote."""
        out, error = self.process.communicate(timeout=PATIENCE_S)
        return self.process.wait(PATIENCE_S), out, error


def wait_for(path: Path) -> None:
    """Wait until a file is there."""
    until = time.monotonic() + PATIENCE_S
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.01)


def wait_until_gone(text: str) -> None:
    """Wait until no process has a text in its arguments."""
    until = time.monotonic() + PATIENCE_S
    while processes_with(text):
        assert time.monotonic() < until, f"processes with {text} are left"
        time.sleep(0.01)


def processes_with(text: str) -> list[int]:
    """The processes that have a text in their arguments."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text in (entry / "cmdline").read_text():
                found.append(int(entry.name))
        except OSError:
            continue
    return [each for each in found if each != os.getpid()]


def _main(text: str, user: str, old: str) -> None:
    command = msgspec.json.decode(text, type=TaskCommand)
    os.setsid()
    for number in (signal.SIGINT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if os.geteuid() == 0:
        # As a server that was started from a login has some.
        os.setgroups([] if user else [0, 4])
    if user:
        os.setresgid(int(user), int(user), int(user))
        os.setresuid(int(user), int(user), int(user))
        # A process that has changed its user does not own its own files in /proc; a new one does.
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0)
    if old:
        syscalls.set_mount = _unknown
    try:
        argv = enter(command)
    except BoughError as error:
        sys.stderr.write(error.message)
        sys.stderr.flush()
        os._exit(UNSTARTABLE)
    os.execvpe(argv[0], argv, environment_of(command))  # noqa: S606 - this is what it is for


def mounts_spread(command: TaskCommand, ready: Path) -> bool:
    """Whether mounts of a task appear outside, on a machine where mounts spread.

    Called in a process that was made for it: it goes into a mount namespace of its own.
    """
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", syscalls.MS_REC | _MS_SHARED)
    before = Path("/proc/self/mountinfo").read_text()
    task = os.fork()
    if task == 0:
        os.setsid()
        argv = enter(command)
        os.execvpe(argv[0], argv, environment_of(command))  # noqa: S606 - this is what it is for
    wait_for(ready)
    during = Path("/proc/self/mountinfo").read_text()
    os.killpg(task, signal.SIGKILL)
    os.waitpid(task, 0)
    return before != during


def _unknown(descriptor: int, **attributes: object) -> None:
    del descriptor, attributes
    raise OSError(errno.ENOSYS, "Function not implemented")


if __name__ == "__main__":
    _main(*sys.argv[1:])
