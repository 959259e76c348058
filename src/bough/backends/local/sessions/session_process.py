"""Runs one session, in a process that the supervisor forked for it.

It has one thread and a line to the server. It ends with the line, and everything it started ends
with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import traceback
from functools import partial
from typing import NoReturn

import msgspec

from bough.backends.local.errors import Unstartable
from bough.backends.local.options import SEARCH_PATH
from bough.backends.local.sandbox.executing import find_program, reset_signals
from bough.backends.local.sandbox.syscalls import die_with_parent
from bough.backends.local.sessions.exec_relay import ExecRelay
from bough.backends.local.sessions.log_relay import LogPipes, LogRelay
from bough.backends.local.sessions.port_relay import Control, Datagrams, connect
from bough.backends.local.sessions.rsync_daemon import PROGRAM, rsync_command
from bough.backends.local.sessions.session_group import SessionGroup
from bough.backends.local.sessions.task_namespaces import (
    RunningTask,
    find_inner,
    join_network,
    shares_network,
)
from bough.backends.local.sessions.task_process import TaskProcess, start
from bough.model.session import (
    SessionConnection,
    SessionEnd,
    SessionKind,
    SessionNews,
    SessionRequest,
)
from bough.websocket.frames import GOING_AWAY, REFUSED
from bough.websocket.peer import Peer
from bough.websocket.relay import Forwarding, Listener, Loop

#: The longest message on the line.
LINE_BYTES = 128 << 10
_REQUEST_S = 10.0
#: The most connections of one session at a time.
MOST_CONNECTIONS = 200
_UNREACHED = "nothing of the task listens on port {port}: {reason}"


def be_session(
    task: RunningTask, group: SessionGroup, line: socket.socket, pipes: LogPipes | None
) -> NoReturn:
    """Serve one session; never returns."""
    try:
        os.setpgid(0, 0)
        die_with_parent()
        signal.set_wakeup_fd(-1)
        reset_signals()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        own, process, *rest = _close_others(line.detach(), task.process, *(pipes or ()))
        kept = task._replace(process=process)
        Session(kept, group, socket.socket(fileno=own), LogPipes(*rest) if rest else None).run()
    except BaseException:  # it goes to the supervisors' log
        with contextlib.suppress(OSError):
            traceback.print_exc()
    os._exit(0)


def _close_others(*kept: int) -> tuple[int, ...]:
    """Close what the supervisor has open: its locks, its logs, the output of its tasks."""
    copies = [os.dup(each) for each in kept]
    numbers = tuple(range(3, 3 + len(copies)))
    for number, each in zip(numbers, [os.dup(one) for one in copies], strict=True):
        os.dup2(each, number, inheritable=False)
    os.closerange(3 + len(copies), os.sysconf("SC_OPEN_MAX"))
    return numbers


class Session:
    """A session of a client with a task."""

    def __init__(
        self,
        task: RunningTask,
        group: SessionGroup,
        line: socket.socket,
        pipes: LogPipes | None = None,
    ) -> None:
        self._task = task
        self._group = group
        self._line = line
        self._pipes = pipes
        self._loop = Loop()
        self._wanted = SessionRequest(SessionKind.EXEC)
        #: The member whose end ends the session.
        self._main: ExecRelay | Control | Datagrams | LogRelay | None = None

    def run(self) -> None:
        """Serve it until it ends."""
        self._line.settimeout(_REQUEST_S)
        request = self._line.recv(LINE_BYTES)
        try:
            self._wanted = msgspec.json.decode(request, type=SessionRequest)
            self._prepare()
        except Unstartable as error:
            self._say(SessionNews(fault=error.message))
            return
        except msgspec.MsgspecError as error:
            self._say(SessionNews(fault=f"the request cannot be read: {error}"))
            return
        self._say(SessionNews(ready=True))
        self._line.setblocking(False)
        self._loop.add(Listener(self._line.fileno(), self._hear))
        self._loop.run()
        code = self._main.exit_code if isinstance(self._main, ExecRelay) else None
        self._say(SessionNews(ended=True, exit_code=code))

    def _prepare(self) -> None:
        """Refuse what is not possible before the client is answered."""
        wanted = self._wanted
        if wanted.kind is SessionKind.LOG:
            if self._pipes is None:
                raise Unstartable("there is no room for pipes into the log of the task")
            return
        if self._task.command.clean_up:
            raise Unstartable("tasks that run in images cannot be looked into yet")
        self._task = find_inner(self._task)
        if wanted.kind is SessionKind.EXEC:
            self._group.make()
        elif wanted.kind is SessionKind.RSYNC:
            path = self._task.command.environment.get("PATH", SEARCH_PATH)
            if find_program(PROGRAM, path) is None:
                raise Unstartable("rsync is not installed on the machine that the task runs on")
            self._group.make()
        elif shares_network(self._task):
            raise Unstartable(
                "the task shares the network of its machine, whose ports are not forwarded"
            )
        else:
            join_network(self._task)

    def _hear(self, listener: Listener) -> None:
        """Take a connection that the server hands over, or the end of the session."""
        try:
            content, descriptors, _, _ = socket.recv_fds(self._line, LINE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            content, descriptors = b"", []
        if not content:
            listener.ended = self._loop.stopped = True
        elif descriptors:
            connection = socket.socket(fileno=descriptors[0])
            self._serve(connection, msgspec.json.decode(content, type=SessionConnection))
        elif self._main is not None:
            # The server says why, before it closes the line.
            with contextlib.suppress(msgspec.MsgspecError):
                told = msgspec.json.decode(content, type=SessionEnd)
                self._main.peer.close(GOING_AWAY, told.reason)

    def _serve(self, connection: socket.socket, told: SessionConnection) -> None:
        # A new connection always has room for so few bytes.
        with contextlib.suppress(OSError):
            connection.send(told.head)
        peer = Peer(connection, server=True, rest=told.rest)
        if self._main is None:
            self._main = self._loop.ends_with = self._begin(peer)
            self._loop.add(self._main)
        elif len(self._loop.members) >= MOST_CONNECTIONS:
            _refuse(peer, f"a session has {MOST_CONNECTIONS} connections at most")
        elif self._wanted.kind is SessionKind.RSYNC:
            self._serve_files(peer)
        else:
            self._serve_port(peer)

    def _begin(self, peer: Peer) -> ExecRelay | Control | Datagrams | LogRelay:
        wanted = self._wanted
        if wanted.kind is SessionKind.EXEC:
            return ExecRelay(peer, wanted, partial(start, self._task, self._group))
        if wanted.kind is SessionKind.LOG and self._pipes is not None:
            return LogRelay(peer, self._pipes)
        if wanted.udp:
            return Datagrams(peer, wanted.port)
        return Control(peer, lambda key: self._say(SessionNews(key=key)))

    def _serve_port(self, peer: Peer) -> None:
        try:
            stream = connect(self._wanted.port)
        except OSError as error:
            reason = error.strerror or str(error)
            _refuse(peer, _UNREACHED.format(port=self._wanted.port, reason=reason))
            return
        self._loop.add(Forwarding(peer, stream, halves=self._wanted.halves))

    def _serve_files(self, peer: Peer) -> None:
        ours, theirs = socket.socketpair()
        try:
            process = start(self._task, self._group, rsync_command(self._task, theirs))
        except Unstartable as error:
            ours.close()
            _refuse(peer, error.message)
            return
        finally:
            theirs.close()
        self._loop.add(Listener(process.ended, partial(_reap, process)))
        self._loop.add(Forwarding(peer, ours, halves=self._wanted.halves))

    def _say(self, news: SessionNews) -> None:
        with contextlib.suppress(OSError):
            self._line.send(msgspec.json.encode(news))


def _reap(process: TaskProcess, listener: Listener) -> None:
    """Reap the daemon of a connection that has ended."""
    listener.ended = True
    process.wait()
    os.close(process.ended)


def _refuse(peer: Peer, reason: str) -> None:
    peer.close(REFUSED, reason)
    peer.flush()
    peer.shut()
