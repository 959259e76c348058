"""The last steps of a process before it becomes a program: default signals, errors in words."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

from bough.backends.local.sandbox import syscalls
from bough.errors import BoughError

#: If memory runs out, the kernel kills tasks before the server and other programs.
_OOM_SCORE, _OOM_SCORE_FILE = b"200", "/proc/self/oom_score_adj"
#: Signals that a supervisor does not leave at their default: Python ignores the first two, the fork
#: server the others; supervisors handle the last two.
CHANGED_SIGNALS = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGTERM,
    signal.SIGUSR1,
    signal.SIGCHLD,
)


def reset_signals() -> None:
    """Start with default signals, whatever Python, the fork server and supervisors changed."""
    for number in CHANGED_SIGNALS:
        syscalls.reset_signal(number)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def prefer_to_be_killed() -> None:
    """Let the kernel kill this process before the server when memory runs out."""
    file = os.open(_OOM_SCORE_FILE, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, _OOM_SCORE)
    finally:
        os.close(file)


def find_program(name: str, path: str | None = None) -> str | None:
    """The program of that name in a search path, or in that of this process.

    As `shutil.which`; its module has libraries loaded that every fork of a supervisor would copy.
    """
    folders = os.get_exec_path() if path is None else path.split(os.pathsep)
    for each in [name] if "/" in name else [f"{folder}/{name}" for folder in folders if folder]:
        if os.path.isfile(each) and os.access(each, os.X_OK):
            return each
    return None


def execute(argv: tuple[str, ...], environment: dict[str, str]) -> None:
    """Become a program; raises a sentence that says why that is not possible."""
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - this is what it is for
    except OSError as error:
        raise BoughError(_explain(argv[0], error)) from None
    except ValueError as error:
        raise BoughError(f"{argv[0]}: {error}") from None


def spawn(argv: tuple[str, ...], environment: dict[str, str]) -> int:
    """Start a program that leads a session, with the real user and group of this process.

    Its process id; the program has started then. Raises as `execute` does. No memory is copied.
    """
    folders = [""] if "/" in argv[0] else os.get_exec_path(environment)
    fault: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for folder in folders:
        try:
            return os.posix_spawn(
                os.path.join(folder, argv[0]),
                argv,
                environment,
                resetids=True,
                setsid=True,
                setsigmask=(),
            )
        except OSError as error:
            # As a shell does: what is there, and cannot be run, says more.
            if fault.errno in (errno.ENOENT, errno.ENOTDIR):
                fault = error
        except ValueError as error:
            raise BoughError(f"{argv[0]}: {error}") from None
    raise BoughError(_explain(argv[0], fault))


def _explain(program: str, error: OSError) -> str:
    """Why a program cannot be run, in words."""
    if error.errno == errno.ENOENT:
        if "/" not in program:
            return f"there is no command {program!r}"
        interpreter = _interpreter(program)
        if interpreter is not None:
            return f"{program}: its interpreter {interpreter!r} does not exist"
        return f"{program}: there is no such file"
    if error.errno == errno.ENOEXEC:
        return f"{program}: it is not a program, and does not start with #! and an interpreter"
    if error.errno == errno.E2BIG:
        return f"{program}: its arguments and environment together are too long"
    return f"{program}: {error.strerror}"


def _interpreter(program: str) -> str | None:
    """The interpreter that a script names in its first line."""
    try:
        with Path(program).open("rb") as file:
            first = file.readline(256)
    except OSError:
        return None
    if not first.startswith(b"#!"):
        return None
    words = first[2:].decode(errors="replace").split()
    return words[0] if words else ""
