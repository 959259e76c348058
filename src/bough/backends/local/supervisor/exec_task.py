"""From a forked copy of the supervisor to the task's own program.

The copy sets everything up, says that it is ready, and waits. It executes the program when all
tasks of its gang are ready. Errors are reported in words.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import stat
from functools import partial
from typing import NamedTuple

from bough.backends.local.errors import lacks_room
from bough.backends.local.sandbox.cgroup_mounts import PIDS
from bough.backends.local.sandbox.executing import (
    execute,
    find_program,
    prefer_to_be_killed,
    reset_signals,
)
from bough.backends.local.sandbox.limits import Cgroup
from bough.backends.local.sandbox.network import Namespaces
from bough.backends.local.sandbox.sandbox import (
    begins_namespace,
    enter,
    environment_of,
    fork_first,
    lead_namespace,
)
from bough.backends.local.sandbox.syscalls import die_with_parent
from bough.backends.local.supervisor.ptrace import learn_senders
from bough.backends.local.task_command import SandboxKind, TaskCommand
from bough.errors import BoughError

READY, GO, FAILED, NO_ROOM = b"R", b"G", b"E", b"0"
_CHANNEL = 3
_MESSAGE_BYTES = 4_000


class ForkedTask(NamedTuple):
    """The process that becomes a task."""

    pid: int
    channel: socket.socket
    #: The pipe that says how the task ended; `None`: the process ends as the task does.
    status: int | None = None


def fork_task(
    command: TaskCommand,
    group: Cgroup | None,
    streams: tuple[int, int],
    limit: tuple[int, int],
    network: Namespaces | None = None,
    *,
    alone: bool = False,
) -> ForkedTask:
    """Fork a copy that becomes the task; `alone`: no other task starts with it."""
    ours, theirs = socket.socketpair()
    learn_senders(ours)
    first = begins_namespace(command)
    pipe = os.pipe2(os.O_CLOEXEC) if first else ()
    try:
        pid = fork_first(command) if first else os.fork()
        if pid == 0:
            kept = () if network is None else network.descriptors
            descriptors = (*streams, theirs.fileno(), *pipe[1:], *kept)
            _become(command, group, descriptors, limit, alone=alone)
    except BaseException:
        for each in (ours.detach(), *pipe[:1]):
            os.close(each)
        raise
    finally:
        for each in (theirs.detach(), *pipe[1:]):
            os.close(each)
    ours.setblocking(False)
    return ForkedTask(pid, ours, *pipe[:1])


def can_be_held(command: TaskCommand) -> bool:
    """Whether its program can be traced until it has started.

    A set-user-ID program gets the rights of its owner only if none but root traces it.
    """
    if os.geteuid() == 0:
        return True
    if command.sandbox is not None and command.sandbox.kind is SandboxKind.BUBBLEWRAP:
        return False
    program = find_program(command.argv[0], command.environment.get("PATH"))
    return program is None or not os.stat(program).st_mode & (stat.S_ISUID | stat.S_ISGID)


def _become(
    command: TaskCommand,
    group: Cgroup | None,
    descriptors: tuple[int, ...],
    limit: tuple[int, int],
    *,
    alone: bool,
) -> None:
    """Become the task; never returns."""
    channel = None
    try:
        channel = _arrange(descriptors)
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
        if group is not None:
            group.join()
        if command.limits.processes is not None and (group is None or PIDS not in group.folders):
            _leave_processes_to_the_server()
        numbers = list(range(_CHANNEL + 1, len(descriptors) + 1))
        status = numbers.pop(0) if begins_namespace(command) else None
        network = Namespaces(*numbers) if numbers else None
        if alone and status is not None:
            lead_namespace(command, network, status, partial(_wait, channel))
        argv = enter(command, network, status)
        # A change of account resets it.
        die_with_parent()
        _wait(channel)
        execute(argv, environment_of(command))
    except BaseException as error:  # any error is reported to the supervisor
        _tell(channel, error)
    os._exit(127)


def _wait(channel: socket.socket) -> None:
    """Say that everything is set up, and wait for the word to start the program."""
    channel.sendall(READY)
    if channel.recv(1) != GO:
        os._exit(1)


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
    reset_signals()
    os.umask(0o022)
    with contextlib.suppress(OSError):
        prefer_to_be_killed()
    nothing = os.open(os.devnull, os.O_RDONLY)
    # Duplicated first, because the numbers can overlap.
    copies = [os.dup(each) for each in (nothing, *descriptors)]
    for number, each in enumerate(copies):
        os.dup2(each, number, inheritable=number < _CHANNEL)
    os.closerange(len(copies), os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=_CHANNEL)


def _tell(channel: socket.socket | None, error: BaseException) -> None:
    expected = isinstance(error, BoughError | OSError)
    message = str(error) if expected else f"{type(error).__name__}: {error}"
    mark = NO_ROOM if lacks_room(error) else FAILED
    if channel is not None:
        with contextlib.suppress(OSError):
            channel.sendall(mark + message.encode(errors="replace")[:_MESSAGE_BYTES])
