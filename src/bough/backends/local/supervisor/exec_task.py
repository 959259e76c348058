"""From a forked copy of the supervisor to the task's own program.

The copy sets everything up, says that it is ready, and waits. It executes the program when all
tasks of its gang are ready. Errors are reported in words.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import socket
import stat
from pathlib import Path

from bough.backends.local.command import SandboxKind, TaskCommand
from bough.backends.local.errors import lacks_room
from bough.backends.local.sandbox.cgroups import PIDS
from bough.backends.local.sandbox.limits import Cgroup
from bough.backends.local.sandbox.network import Namespaces
from bough.backends.local.sandbox.sandbox import enter, environment_of
from bough.backends.local.sandbox.syscalls import die_with_parent
from bough.backends.local.supervisor.ptrace import learn_senders
from bough.errors import BoughError

READY, GO, FAILED, NO_ROOM = b"R", b"G", b"E", b"0"
_CHANNEL = 3
#: If memory runs out, the kernel kills tasks before the server and others.
_OOM_SCORE, _OOM_SCORE_FILE = "200", Path("/proc/self/oom_score_adj")
_MESSAGE_BYTES = 4_000


def fork_task(
    command: TaskCommand,
    group: Cgroup | None,
    streams: tuple[int, int],
    limit: tuple[int, int],
    network: Namespaces | None = None,
) -> tuple[int, socket.socket]:
    """Fork a copy that becomes the task; its process id, and the channel to it."""
    ours, theirs = socket.socketpair()
    learn_senders(ours)
    pid = os.fork()
    if pid == 0:
        kept = () if network is None else network.descriptors
        _become(command, group, (*streams, theirs.fileno(), *kept), limit)
    theirs.close()
    ours.setblocking(False)
    return pid, ours


def can_be_held(command: TaskCommand) -> bool:
    """Whether its program can be traced until it has started.

    A set-user-ID program gets the rights of its owner only if none but root traces it.
    """
    if os.geteuid() == 0:
        return True
    if command.sandbox is not None and command.sandbox.kind is SandboxKind.BUBBLEWRAP:
        return False
    program = shutil.which(command.argv[0], path=command.environment.get("PATH"))
    return program is None or not os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID)


def _become(
    command: TaskCommand,
    group: Cgroup | None,
    descriptors: tuple[int, ...],
    limit: tuple[int, int],
) -> None:
    """Become the task; never returns."""
    channel = None
    try:
        channel = _arrange(descriptors)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        if group is not None:
            group.add(os.getpid())
        if command.limits.processes is not None and (group is None or PIDS not in group.folders):
            _leave_processes_to_the_server()
        numbers = range(_CHANNEL + 1, len(descriptors) + 1)
        argv = enter(command, Namespaces(*numbers) if numbers else None)
        # A change of account resets it.
        die_with_parent()
        channel.sendall(READY)
        if channel.recv(1) != GO:
            os._exit(1)
        _execute(argv, environment_of(command))
    except BaseException as error:  # any error is reported to the supervisor
        _tell(channel, error)
    os._exit(127)


def _leave_processes_to_the_server() -> None:
    """Without a control group for processes: leave some of its user's processes to the server.

    It does not hold for root.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NPROC)
    if most != resource.RLIM_INFINITY:
        bound = most * 3 // 4
        resource.setrlimit(resource.RLIMIT_NPROC, (bound, bound))


def _arrange(descriptors: tuple[int, ...]) -> socket.socket:
    """Start a session, with standard streams and no other open files but those given after them."""
    os.setsid()
    die_with_parent()
    signal.set_wakeup_fd(-1)
    _reset_signals()
    os.umask(0o022)
    with contextlib.suppress(OSError):
        _OOM_SCORE_FILE.write_text(_OOM_SCORE)
    nothing = os.open(os.devnull, os.O_RDONLY)
    # Duplicated first, because the numbers can overlap.
    copies = [os.dup(each) for each in (nothing, *descriptors)]
    for number, each in enumerate(copies):
        os.dup2(each, number, inheritable=number < _CHANNEL)
    os.closerange(len(copies), os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=_CHANNEL)


def _reset_signals() -> None:
    """Start with default signals, whatever Python or the one who started the server ignores.

    A plain shell, for example, starts a server in the background with SIGINT and SIGQUIT ignored.
    """
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _execute(argv: tuple[str, ...], environment: dict[str, str]) -> None:
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - this is what it is for
    except OSError as error:
        raise BoughError(_explain(argv[0], error)) from None
    except ValueError as error:
        raise BoughError(f"{argv[0]}: {error}") from None


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
        return f"{program}: it is no program, and does not start with #! and an interpreter"
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


def _tell(channel: socket.socket | None, error: BaseException) -> None:
    expected = isinstance(error, BoughError | OSError)
    message = str(error) if expected else f"{type(error).__name__}: {error}"
    mark = NO_ROOM if lacks_room(error) else FAILED
    if channel is not None:
        with contextlib.suppress(OSError):
            channel.sendall(mark + message.encode(errors="replace")[:_MESSAGE_BYTES])
