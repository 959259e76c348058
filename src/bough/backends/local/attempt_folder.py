"""Where everything of an attempt is on the disk. Must not know what is in the files.

attempts/<attempt>/          one folder each, for as long as it is kept
    state                    see state.py
    launch.json, secrets.json  what is to run; the secrets only until it is prepared
    log.<offset>             see logs.py
    task/                    everything that the task itself can see
open/<attempt>               a mark for each attempt whose end is not yet written down elsewhere
past/<day>/<attempt>         a mark for each other, by the day on which that was done
news                         a pipe on which supervisors say that something happened
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

import msgspec

from bough.errors import Invalid

_ATTEMPT = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,200})/([0-9]{1,9})")

#: What a start may need for itself, apart from the data of its tasks.
_ROOM_BYTES = 2**20
_ROOM_FILES = 256


def folder_name(attempt: str) -> str:
    """The name of an attempt's folder."""
    match = _ATTEMPT.fullmatch(attempt)
    if match is None:
        raise Invalid(f"{attempt!r} cannot be the identity of an attempt: it is NAME/NUMBER.")
    return f"{match[1]}-{match[2]}"


class AttemptFolder(msgspec.Struct, frozen=True):
    """The files of one attempt."""

    path: Path

    @property
    def state(self) -> Path:
        """What is known of it."""
        return self.path / "state"

    @property
    def launch(self) -> Path:
        """What is to run."""
        return self.path / "launch.json"

    @property
    def secrets(self) -> Path:
        """The credentials that it was given."""
        return self.path / "secrets.json"

    @property
    def group(self) -> Path:
        """What enforces its limits."""
        return self.path / "group.json"

    @property
    def cleaning(self) -> Path:
        """The program that ends it where its processes are not all: its container."""
        return self.path / "cleaning.json"

    @property
    def task(self) -> Path:
        """What the task itself can see."""
        return self.path / "task"


class Folders:
    """All that the local backend keeps."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.attempts = root / "attempts"
        self.open = root / "open"
        self.finished = root / "past"
        self.trash = root / "trash"
        self.events_pipe = root / "news"
        self.log = root / "keepers.log"
        #: Held for a moment by a supervisor while it takes what it is to keep.
        self.taking = root / "taking.lock"
        #: Held by the one server that uses all this.
        self.server = root / "server.lock"

    def make(self, mode: int) -> None:
        """Make what is missing; the mode decides who can pass through to the tasks' folders."""
        self.root.mkdir(mode=mode, parents=True, exist_ok=True)
        self.attempts.mkdir(mode=mode, exist_ok=True)
        for each in (self.open, self.finished, self.trash):
            each.mkdir(mode=0o700, exist_ok=True)
        if not self.events_pipe.exists():
            os.mkfifo(self.events_pipe, 0o600)

    def has_room(self) -> bool:
        """Whether the disk has room for the files of another start."""
        found = os.statvfs(self.root)
        # Some file systems do not count files, and say that there can be none.
        files = found.f_favail >= _ROOM_FILES or not found.f_files
        return files and found.f_bavail * found.f_frsize >= _ROOM_BYTES

    def of(self, name: str) -> AttemptFolder:
        """The files of an attempt, by the name of its folder."""
        return AttemptFolder(self.attempts / name)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        part.rename(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
