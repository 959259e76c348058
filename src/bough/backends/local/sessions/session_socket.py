"""The supervisor's side of sessions: a Unix socket in the attempt's folder, for its server alone.

Ends everything that a session leaves behind when its process ends or is killed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct

from bough.backends.local.attempt_folder import AttemptFolder
from bough.backends.local.sessions.log_relay import LogPipes
from bough.backends.local.sessions.session_group import SessionGroup
from bough.backends.local.sessions.session_process import be_session
from bough.backends.local.sessions.task_namespaces import RunningTask

#: The most sessions of one task at a time.
MOST_SESSIONS = 256
_BACKLOG = 128
_CREDENTIALS = struct.Struct("3i")


class SessionDoor:
    """Accepts the sessions of one task, for as long as it runs."""

    def __init__(self, folder: AttemptFolder, task: RunningTask) -> None:
        self._folder = folder
        self._task = task
        self._groups: dict[int, SessionGroup] = {}
        self._count = 0
        #: Into the log of the task; made for the first session.
        self._pipes: LogPipes | None = None
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._listen()
        except BaseException:
            self.socket.close()
            raise

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes of its sessions."""
        return tuple(self._groups)

    def make_pipes(self) -> tuple[int, int] | None:
        """Pipes by which sessions add lines to the log: where to read them; `None`: made before."""
        if self._pipes is not None:
            return None
        pipes = [os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK) for _ in range(2)]
        (output, output_end), (errors, errors_end) = pipes
        self._pipes = LogPipes(output_end, errors_end)
        return output, errors

    def open(self) -> None:
        """Accept one session."""
        try:
            line, _ = self.socket.accept()
        except OSError:
            return
        with line:
            if len(self._groups) >= MOST_SESSIONS or not _is_own(line):
                return
            self._count += 1
            group = SessionGroup.below(self._task.group, str(self._count))
            pid = os.fork()
            if pid == 0:
                be_session(self._task, group, line, self._pipes)
            self._groups[pid] = group

    def ended(self, pid: int) -> None:
        """A process has ended; if it was a session's, end everything of that session."""
        group = self._groups.pop(pid, None)
        if group is not None:
            group.end()

    def close(self) -> None:
        """The task ends: accept no more sessions, and end the existing ones."""
        self.socket.close()
        for each in (self._task.process, *(self._pipes or ())):
            os.close(each)
        with contextlib.suppress(OSError):
            self._folder.sessions.unlink()
        for pid, group in self._groups.items():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            group.end()
        self._groups.clear()

    def _listen(self) -> None:
        # By a descriptor of the folder, since the path of a Unix socket has to be short.
        folder = os.open(self._folder.path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        before = os.umask(0o177)
        try:
            self.socket.bind(f"/proc/self/fd/{folder}/{self._folder.sessions.name}")
        finally:
            os.umask(before)
            os.close(folder)
        self.socket.setblocking(False)
        self.socket.listen(_BACKLOG)


def _is_own(line: socket.socket) -> bool:
    """Whether the other end is root, or the user of this process."""
    told = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return _CREDENTIALS.unpack(told)[1] in (0, os.geteuid())
