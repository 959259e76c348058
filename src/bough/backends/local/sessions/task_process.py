"""Starts a command in a running task: in its namespaces, control group, account and environment.

An intermediate process joins the namespaces but stays outside of the process namespace; its child,
inside, is the command. Both are killed when the session's process ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import resource
import signal
import socket
import struct
import termios
from typing import NamedTuple, NoReturn

import msgspec

from bough.backends.local.errors import Unstartable
from bough.backends.local.sandbox.executing import execute, prefer_to_be_killed, reset_signals
from bough.backends.local.sandbox.sandbox import give_up_rights
from bough.backends.local.sandbox.syscalls import die_with_parent
from bough.backends.local.sessions.session_group import SessionGroup
from bough.backends.local.sessions.task_namespaces import RunningTask, join_all
from bough.errors import BoughError

#: What the intermediate process reports before the command starts.
_STARTED, _TERMINAL, _FAILED = b"P", b"T", b"E"
_MESSAGE_BYTES = 4_096
_START_S = 20.0
_NOT_FOUND = 127
_TERM = "xterm"
_WINDOW = struct.Struct("HHHH")


class CommandInTask(msgspec.Struct, frozen=True):
    """A command to run in a task."""

    argv: tuple[str, ...]
    terminal: bool = False
    rows: int = 24
    columns: int = 80
    #: A socket for its standard input and output; `None`: pipes, or a terminal.
    stream: int | None = None


class TaskProcess(NamedTuple):
    """A command that runs in a task."""

    #: The intermediate process, a child of this one, which ends as the command does.
    pid: int
    #: Its pidfd, which becomes readable when it has ended.
    ended: int
    #: The process id of the command, which leads its process group.
    command: int
    #: Where to write its input; `None`: it has a socket.
    input: int | None
    #: Where to read its output and its errors; a terminal has both.
    outputs: tuple[int, ...]

    def send_signal(self, number: int) -> None:
        """Signal its process group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.command, number)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of its terminal; the kernel tells its programs."""
        with contextlib.suppress(OSError):
            _set_window(self.outputs[0], rows, columns)

    def wait(self) -> int:
        """The exit code of the ended command, as shells count it."""
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def start(task: RunningTask, group: SessionGroup, wanted: CommandInTask) -> TaskProcess:
    """Start a command in a task; raises a sentence that says why that is not possible."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pipes = _make_pipes(task, wanted)
    pid = os.fork()
    if pid == 0:
        _be_between(task, group, wanted, theirs.fileno(), tuple(each[1] for each in pipes))
    theirs.close()
    for _, end in pipes:
        os.close(end)
    ended = os.pidfd_open(pid)
    try:
        with ours:
            ours.settimeout(_START_S)
            command, terminal = _hear(ours, terminal=wanted.terminal)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for each in (ended, *(one for one, _ in pipes)):
            os.close(each)
        raise
    own = [each for each, _ in pipes] if terminal is None else [terminal, terminal]
    for each in own:
        os.set_blocking(each, False)
    return TaskProcess(pid, ended, command, own[0] if own else None, tuple(own[1:]))


def _make_pipes(task: RunningTask, wanted: CommandInTask) -> list[tuple[int, int]]:
    """Pairs for input, output and errors: what this process keeps, and what the command gets."""
    pairs: list[tuple[int, int]] = []
    for number in range(0 if wanted.terminal or wanted.stream is not None else 3):
        reading, writing = os.pipe2(os.O_CLOEXEC)
        theirs, ours = (reading, writing) if number == 0 else (writing, reading)
        account = task.command.account
        if account is not None and os.geteuid() == 0:
            # The command's account owns it, so that it can be opened again as /dev/stdout.
            os.fchown(theirs, account.user_id, account.group_id)
        pairs.append((ours, theirs))
    return pairs


def _hear(line: socket.socket, *, terminal: bool) -> tuple[int, int | None]:
    """Receive the command's process id and terminal; returns when its program has started."""
    command, opened = 0, None
    while True:
        try:
            said, descriptors, _, _ = socket.recv_fds(line, _MESSAGE_BYTES, 1)
        except TimeoutError:
            raise Unstartable("the command did not start in time") from None
        if said.startswith(_FAILED):
            raise Unstartable(said[1:].decode(errors="replace"))
        if said.startswith(_STARTED):
            command = int(said[1:])
        elif said.startswith(_TERMINAL):
            opened = descriptors[0]
        elif not command or (terminal and opened is None):
            raise Unstartable("the task is ending")
        else:
            return command, opened


def _be_between(
    task: RunningTask,
    group: SessionGroup,
    wanted: CommandInTask,
    channel: int,
    ends: tuple[int, ...],
) -> NoReturn:
    """Join the task, start the command, and end as it does."""
    line = None
    try:
        process, number = _arrange((task.process, channel), wanted, ends)
        line = socket.socket(fileno=number)
        resource.setrlimit(resource.RLIMIT_NOFILE, task.limit)
        group.join()
        join_all(task._replace(process=process))
        command = os.fork()
        if command == 0:
            _become(task, wanted, line)
        line.send(_STARTED + str(command).encode())
        line.close()
        _mirror(command)
    except BaseException as error:  # any error is reported to the session
        _tell(line, error)
    os._exit(_NOT_FOUND)


def _arrange(
    kept: tuple[int, ...], wanted: CommandInTask, ends: tuple[int, ...]
) -> tuple[int, ...]:
    """Set up the standard streams, and close everything else but what is kept.

    Returns the new descriptors of what is kept until the command begins.
    """
    os.setsid()
    die_with_parent()
    signal.set_wakeup_fd(-1)
    reset_signals()
    os.umask(0o022)
    with contextlib.suppress(OSError):
        prefer_to_be_killed()
    nothing = os.open(os.devnull, os.O_RDWR)
    if wanted.stream is not None:
        streams = (wanted.stream, wanted.stream, nothing)
    else:
        streams = ends or (nothing, nothing, nothing)
    # Duplicated first, because the numbers can overlap.
    copies = [os.dup(each) for each in (*streams, *kept)]
    for number, each in enumerate(copies):
        os.dup2(each, number, inheritable=number < len(streams))
    os.closerange(len(copies), os.sysconf("SC_OPEN_MAX"))
    return tuple(range(len(streams), len(copies)))


def _become(task: RunningTask, wanted: CommandInTask, line: socket.socket) -> NoReturn:
    """Become the command."""
    try:
        die_with_parent()
        os.setsid()
        _discard_inside(wanted)
        give_up_rights(task.command)
        # Changing the account resets it.
        die_with_parent()
        environment = dict(task.command.environment)
        if wanted.terminal:
            _take_terminal(wanted, line)
            environment.setdefault("TERM", _TERM)
        _change_folder(task.command.working_folder)
        execute(wanted.argv, environment)
    except BaseException as error:  # any error is reported to the session
        _tell(line, error)
    os._exit(_NOT_FOUND)


def _discard_inside(wanted: CommandInTask) -> None:
    """Have the task's own /dev/null in place of the machine's, which root there could change."""
    if wanted.stream is None and not wanted.terminal:
        return
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in (2,) if wanted.stream is not None else (0, 1, 2):
        os.dup2(nothing, number)
    os.close(nothing)


def _take_terminal(wanted: CommandInTask, line: socket.socket) -> None:
    """Open a terminal inside the task, make it the controlling one, and send its other end."""
    main, other = pty.openpty()
    _set_window(main, wanted.rows, wanted.columns)
    fcntl.ioctl(other, termios.TIOCSCTTY, 0)
    for number in range(3):
        os.dup2(other, number)
    os.close(other)
    socket.send_fds(line, [_TERMINAL], [main])
    os.close(main)


def _change_folder(folder: str) -> None:
    try:
        os.chdir(folder)
    except OSError:
        # The task has removed or replaced it.
        os.chdir("/")


def _mirror(command: int) -> NoReturn:
    """Wait for the command, and end in the same way."""
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        signal.signal(each, signal.SIG_IGN)
    _, status = os.waitpid(command, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else 128 - code)


def _set_window(descriptor: int, rows: int, columns: int) -> None:
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, _WINDOW.pack(rows, columns, 0, 0))


def _tell(line: socket.socket | None, error: BaseException) -> None:
    expected = isinstance(error, BoughError | OSError)
    message = str(error) if expected else f"{type(error).__name__}: {error}"
    if line is not None:
        with contextlib.suppress(OSError):
            line.send(_FAILED + message.encode(errors="replace")[: _MESSAGE_BYTES - 1])
