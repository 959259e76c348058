"""The results of tasks: the files that one left in `{{output}}`, as a backend keeps them."""

from __future__ import annotations

from typing import NamedTuple, Protocol, runtime_checkable


class KeptFile(NamedTuple):
    """A file among the results of a task."""

    #: Below the folder of the results, with `/` between its parts.
    path: str
    size_bytes: int
    #: Another one as soon as the file may be another.
    version: str
    modified_ms: int


class KeptFiles(NamedTuple):
    """A part of the files that a task left, in the order of their paths."""

    files: tuple[KeptFile, ...]
    #: Whether there are more after the last one.
    more: bool
    #: How many were passed over that are neither files nor folders, or have no proper name.
    left_out: int


class FilePart(NamedTuple):
    """A part of a file, as it is now."""

    content: bytes
    file: KeptFile


class ResultStore(Protocol):
    """Reads the results of completed tasks, a part at a time."""

    def list_files(
        self, workflow_id: str, task: str, after: tuple[str, ...], limit: int
    ) -> KeptFiles | None:
        """The files after a path, at most so many; `None`: nothing is kept of the task."""
        ...

    def read_part(
        self, workflow_id: str, task: str, path: tuple[str, ...], offset: int, limit: int
    ) -> FilePart | None:
        """A part of a file; `None`: there is no such file."""
        ...


@runtime_checkable
class ResultKeeper(Protocol):
    """A backend that keeps results where it can read them."""

    @property
    def results(self) -> ResultStore:
        """The results of its tasks."""
        ...
