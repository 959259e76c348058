"""Tries out one kind of sandbox in a process of its own, as `python -m`.

A script in it says by its exit code whether the sandbox is as it should be.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from bough.backends.local.errors import Unstartable
from bough.backends.local.sandbox.sandbox import (
    begins_namespace,
    enter,
    environment_of,
    fork_first,
    read_status,
)
from bough.backends.local.task_command import Mount, Sandbox, SandboxKind, TaskCommand

_TIMEOUT_S = 30
#: A top-level folder that no machine has.
_WORK = "/bough-probe/work"
_SECRET = "secret"  # noqa: S105 - the name of a folder
#: It sees nothing that is hidden, can write its own files and no others, and has /proc and /dev.
_SCRIPT = """
test ! -e "$1/file" && touch written /tmp/written && : > /dev/null && test -e /proc/self/status \\
&& ! { touch /etc/bough-probe 2>/dev/null && rm /etc/bough-probe; }
"""


@functools.cache
def try_sandbox(kind: SandboxKind) -> str | None:
    """Why a kind of sandbox does not work on this machine; `None`: it does."""
    with tempfile.TemporaryDirectory(prefix="bough-") as name:
        command = _arrange(Path(name).resolve(), kind)
        program = (sys.executable, "-m", __name__, msgspec.json.encode(command).decode())
        try:
            answer = subprocess.run(  # noqa: S603 - this program itself
                program,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            )
        except subprocess.TimeoutExpired:
            return f"a trial did not end within {_TIMEOUT_S} seconds"
        except OSError as error:
            return f"{sys.executable} cannot be run again: {error.strerror}"
        if answer.returncode == 0 and Path(name, "work", "written").exists():
            return None
    lines = answer.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"a trial ended with exit code {answer.returncode}"


def _arrange(folder: Path, kind: SandboxKind) -> TaskCommand:
    for name in ("root", "tmp", "work", _SECRET):
        (folder / name).mkdir()
    (folder / _SECRET / "file").touch()
    sandbox = Sandbox(
        temporary=str(folder / "tmp"),
        root=str(folder / "root"),
        kind=kind,
        mounts=(Mount(str(folder / "work"), _WORK, writable=True),),
        hidden=(str(folder / _SECRET),),
    )
    argv = ("/bin/sh", "-c", _SCRIPT, "probe", str(folder / _SECRET))
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    return TaskCommand("probe", "probe", argv, environment, _WORK, sandbox)


def main(text: str) -> None:
    """Enter the sandbox, and run the script."""
    command = msgspec.json.decode(text, type=TaskCommand)
    os.setsid()
    try:
        argv = enter(command, status=_begin(command))
    except Unstartable as error:
        sys.exit(error.message)
    try:
        os.execve(argv[0], argv, environment_of(command))  # noqa: S606 - this is what it is for
    except OSError as error:
        sys.exit(f"{argv[0]}: {error.strerror}")


def _begin(command: TaskCommand) -> int | None:
    """Go on in a new process namespace, where supervisors begin there; the pipe for the status."""
    if not begins_namespace(command):
        return None
    reading, writing = os.pipe2(os.O_CLOEXEC)
    pid = fork_first(command)
    if pid == 0:
        os.close(reading)
        return writing
    os.close(writing)
    status = os.waitpid(pid, 0)[1]
    told = read_status(reading)
    sys.exit(os.waitstatus_to_exitcode(status if told is None else told))


if __name__ == "__main__":
    main(sys.argv[1])
