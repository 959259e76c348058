"""Where a task's files are: the path that the task sees, and the place in the attempt's folder.

    <attempt>/work      its working folder        /osmo/work
    <attempt>/tmp       its temporary files       /tmp
    <attempt>/output    what it leaves behind     /osmo/data/output
    <attempt>/input/0   what it was given         /osmo/data/input/0
    <attempt>/root      all other new folders     /
    <attempt>/secrets   its credentials           where the spec says

A task without a sandbox sees the places as they are.
"""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path

import msgspec

from bough.backends.local.data.paths import shown, split_path
from bough.backends.local.errors import Unstartable

SEEN_WORK = "/osmo/work"
SEEN_OUTPUT = "/osmo/data/output"
SEEN_INPUT = "/osmo/data/input"
SEEN_TEMPORARY = "/tmp"  # noqa: S108 - of the task alone
#: Top-level folders that a task has for itself, whatever the machine has there.
OWN_FOLDERS = frozenset({"osmo", "tmp"})


class Surroundings(StrEnum):
    """Where a task runs."""

    #: The machine as it is.
    MACHINE = "machine"
    #: A sandbox: the machine, with some folders of its own.
    SANDBOX = "view"
    #: The files of an image.
    CONTAINER = "container"


class TaskPath(msgspec.Struct, frozen=True):
    """A file or folder of a task."""

    #: A folder that the server made, and the path below it.
    base: Path
    parts: tuple[str, ...]
    #: The path that the task sees.
    seen: str

    @property
    def path(self) -> Path:
        """The place on this machine."""
        return self.base.joinpath(*self.parts)


class TaskLayout(msgspec.Struct, frozen=True):
    """The places of one attempt."""

    folder: Path
    surroundings: Surroundings
    #: What it sees beside its own folders: the machine, or the root folder of its image.
    machine: Path = Path("/")

    @property
    def work(self) -> Path:
        """The working folder."""
        return self.folder / "work"

    @property
    def temporary(self) -> Path:
        """The folder for temporary files."""
        return self.folder / "tmp"

    @property
    def output(self) -> Path:
        """The folder of results."""
        return self.folder / "output"

    @property
    def root(self) -> Path:
        """The folder of everything else."""
        return self.folder / "root"

    @property
    def secrets(self) -> Path:
        """The folder of credentials."""
        return self.folder / "secrets"

    def input(self, number: int) -> Path:
        """The folder of an input."""
        return self.folder / "input" / str(number)

    def seen_work(self) -> str:
        """The working folder, as the task sees it."""
        return str(self.work) if self._plain else SEEN_WORK

    def seen_temporary(self) -> str:
        """The folder for temporary files, as the task sees it."""
        return str(self.temporary) if self._plain else SEEN_TEMPORARY

    def seen_output(self) -> str:
        """The folder of results, as the task sees it."""
        return str(self.output) if self._plain else SEEN_OUTPUT

    def seen_input(self, number: int) -> str:
        """The folder of an input, as the task sees it."""
        return str(self.input(number)) if self._plain else f"{SEEN_INPUT}/{number}"

    def locate(self, path: str, what: str) -> TaskPath:
        """Find the place for a path of a spec; `what` names the field in messages."""
        parts, fault = split_path(path)
        if fault is not None:
            raise Unstartable(f"{what}: the path {shown(path)} is not possible: {fault}")
        if not path.startswith("/"):
            return TaskPath(self.work, parts, "/".join((self.seen_work(), *parts)))
        seen = "/" + "/".join(parts)
        for base, prefix in (
            (self.work, self.seen_work()),
            (self.output, self.seen_output()),
            (self.temporary, self.seen_temporary()),
        ):
            if seen.startswith(prefix + "/"):
                return TaskPath(base, tuple(seen[len(prefix) + 1 :].split("/")), seen)
            if seen == prefix:
                raise Unstartable(f"{what}: {shown(path)} is a folder; name something below it")
        self._check_elsewhere(path, parts, what)
        return TaskPath(self.root, parts, seen)

    @property
    def _plain(self) -> bool:
        return self.surroundings is Surroundings.MACHINE

    def _check_elsewhere(self, path: str, parts: tuple[str, ...], what: str) -> None:
        if self._plain:
            raise Unstartable(
                f"{what}: the absolute path {shown(path)} is not possible, because tasks have no "
                "private view of this machine; write a path below the working folder, without a "
                "leading slash (a server that runs as root, or with bubblewrap installed, allows "
                "paths below /tmp and new top-level folders)"
            )
        if self._is_input(parts):
            raise Unstartable(
                f"{what}: {shown(path)} is below {SEEN_INPUT}, which holds the inputs and is "
                "read-only; write it elsewhere"
            )
        if self.surroundings is Surroundings.SANDBOX and parts[0] not in OWN_FOLDERS:
            self._check_new(path, parts[0], what)

    def _check_new(self, path: str, top: str, what: str) -> None:
        if os.path.lexists(self.machine / top):
            whose = "this machine" if self.machine == Path("/") else "its image"
            raise Unstartable(
                f"{what}: {shown(path)} is in /{top} of {whose}, which tasks see but cannot "
                "change; possible are paths below /tmp, relative paths (below the working folder), "
                "and new top-level folders such as /workspace"
                + (f" ({whose} has one already)" if top == "workspace" else "")
            )

    def _is_input(self, parts: tuple[str, ...]) -> bool:
        start = tuple(SEEN_INPUT.strip("/").split("/"))
        return parts[: len(start)] == start or parts == start[: len(parts)]
