"""Where the files of attempts are on the disk.

attempts/<attempt>/          one folder for each attempt
    state                    see attempt_state
    launch.json, secrets.json  what to run; the secrets only until it is prepared
    log.<offset>             see logs.log_writer
    sessions                 a socket by which sessions are opened, while it runs
    stores/                  how far copies from and to object stores have come
    task/                    everything that the task itself can see
open/<attempt>               an empty file for each attempt whose end is not yet recorded
past/<day>/<attempt>         an empty file for each other, by the day of that
view/                        empty; each task's root is mounted there, where no other sees it
news                         a pipe to which supervisors write the names of changed attempts
trash/                       what is being deleted
leader                       whose orders count, see order_lease
machine                      the identity of this folder: its tasks are judged by its holder alone

Supervisors of an older version may still run, so these names and formats stay as they are.
"""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import msgspec

from bough.errors import Invalid

_ATTEMPT = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,200})/([0-9]{1,9})")

#: The room that a start needs, apart from the data of its tasks.
_ROOM_BYTES = 2**20
_ROOM_FILES = 256


def folder_name(attempt: str) -> str:
    """The name of an attempt's folder."""
    match = _ATTEMPT.fullmatch(attempt)
    if match is None:
        raise Invalid(f"{attempt!r} cannot be the identity of an attempt: it is NAME/NUMBER.")
    return f"{match[1]}-{match[2]}"


class AttemptFolder(msgspec.Struct, frozen=True, dict=True):
    """The files of one attempt."""

    path: Path

    @functools.cached_property
    def state(self) -> Path:
        """Its state."""
        return self.path / "state"

    @property
    def launch(self) -> Path:
        """What to run."""
        return self.path / "launch.json"

    @functools.cached_property
    def secrets(self) -> Path:
        """The credentials that it was given."""
        return self.path / "secrets.json"

    @property
    def group(self) -> Path:
        """Its control group, which enforces its limits."""
        return self.path / "group.json"

    @property
    def cleaning(self) -> Path:
        """The command that removes its container."""
        return self.path / "cleaning.json"

    @property
    def sessions(self) -> Path:
        """The socket by which sessions are opened; see sessions.session_socket."""
        return self.path / "sessions"

    @property
    def stores(self) -> Path:
        """The progress of copies from and to object stores."""
        return self.path / "stores"

    @functools.cached_property
    def task(self) -> Path:
        """What the task itself can see."""
        return self.path / "task"


@functools.cache
def folders_at(root: Path) -> Folders:
    """The folders of a backend, for those that ask often."""
    return Folders(root)


class Folders:
    """All folders and files of the local backend."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.attempts = root / "attempts"
        self.open = root / "open"
        self.finished = root / "past"
        self.trash = root / "trash"
        self.events_pipe = root / "news"
        self.log = root / "keepers.log"
        #: Locked for a moment by a supervisor while it takes its attempts.
        self.taking = root / "taking.lock"
        #: See supervisor.group_network.
        self.networks = root / "networks"
        #: What tasks with a network of their own see as /etc/resolv.conf.
        self.resolver = root / "resolv.conf"
        #: Locked, together, by all supervisors; what keeps the server's address looks at it.
        self.running = root / "running.lock"
        #: See order_lease.
        self.leader = root / "leader"
        #: The identity of the folder, which its first server made.
        self.machine = root / "machine"
        #: Locked by the one server that uses the folder.
        self.server = root / "server.lock"

    def make(self, mode: int) -> None:
        """Make what is missing; the mode decides which users can reach the tasks' folders."""
        self.root.mkdir(mode=mode, parents=True, exist_ok=True)
        self.attempts.mkdir(mode=mode, exist_ok=True)
        for each in (self.root, self.attempts):
            # An earlier start may have wanted another one.
            if mode & ~each.stat().st_mode:
                each.chmod(mode)
        for each in (self.open, self.finished, self.trash):
            each.mkdir(mode=0o700, exist_ok=True)
        if not self.events_pipe.exists():
            os.mkfifo(self.events_pipe, 0o600)

    def has_room(self) -> bool:
        """Whether the disk has room for the files of another start."""
        found = os.statvfs(self.root)
        # Some file systems do not count files, and report a maximum of 0.
        files = found.f_favail >= _ROOM_FILES or not found.f_files
        return files and found.f_bavail * found.f_frsize >= _ROOM_BYTES

    def of(self, name: str) -> AttemptFolder:
        """The files of an attempt, by the name of its folder."""
        return AttemptFolder(self.attempts / name)
