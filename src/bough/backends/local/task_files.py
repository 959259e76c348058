"""Reads logs of this machine's tasks, and opens sessions with them, by their folders alone.

Any process of the machine can use it; only `LocalBackend` starts and stops tasks.
"""

from __future__ import annotations

import socket
from collections.abc import Callable

from bough.backends.local.attempt_folder import Folders, folder_name
from bough.backends.local.attempt_state import read_state
from bough.backends.local.data.results import LocalResults
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data.pool_store import LocalPoolData
from bough.backends.local.sessions.opening import open_session
from bough.backends.logs.log_reader import PART_BYTES, AttemptLogReader
from bough.model.backend import LogPart, Machine
from bough.model.session import SessionRequest


class LocalTaskFiles:
    """The files of the tasks of a folder. Any thread can read."""

    def __init__(
        self, options: LocalOptions, now_ms: Callable[[], int], name: str = "default"
    ) -> None:
        self._options = options = options.resolved()
        self._name = name
        self._now_ms = now_ms
        self._folders = Folders(options.folder)
        self._machine: Machine | None = None
        self.results = LocalResults(options)
        self.pool_data = LocalPoolData(options, now_ms)

    @property
    def name(self) -> str:
        """The name that pools refer to."""
        return self._name

    @property
    def machine(self) -> Machine:
        """The machine that it belongs to, by the identity of its folder."""
        if self._machine is None:
            place = f"{socket.gethostname()}:{self._folders.root}"
            try:
                self._machine = Machine(self._folders.machine.read_text().strip(), place)
            except FileNotFoundError:
                # No backend has been here yet.
                return Machine("", place)
        return self._machine

    def read_log(
        self,
        attempt: str,
        position: int = 0,
        *,
        last_lines: int | None = None,
        limit_bytes: int | None = None,
    ) -> LogPart | None:
        """The log of an attempt from a position, or its last lines; `None`: there is none."""
        folder = self._folders.of(folder_name(attempt))
        state = read_state(folder.state)
        if state is None:
            return None
        end = state.end
        lost_lines = 0 if end is None else end.lost_lines
        reader = AttemptLogReader(folder.path, finished=end is not None, lost_lines=lost_lines)
        if last_lines is not None:
            return reader.read_last(last_lines)
        return reader.read(position, PART_BYTES if limit_bytes is None else limit_bytes)

    def open_session(self, attempt: str, wanted: SessionRequest) -> int:
        """Open a session with a running task; returns the line to it."""
        return open_session(self._folders, attempt, wanted)
