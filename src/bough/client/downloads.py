"""Downloads of results and of data: checked part by part, and resumed where they stopped.

A file appears under its name when it is whole. Nothing is written outside of the folder, whatever
a server says, and nothing through a link.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bough.api.pool_data import DataPart
from bough.api.results import Downloaded, ResultFile, ResultPart
from bough.client.data import DataAddress, PoolData
from bough.client.workflows import Workflows
from bough.errors import Invalid, NotFound, Unavailable

COMPLETED = "COMPLETED"
#: Begins the names of files that are not whole yet.
UNFINISHED = ".bough-part-"


class DownloadProgress(NamedTuple):
    """How far a download is."""

    files: int
    of_files: int
    bytes: int
    of_bytes: int


class _Wanted(NamedTuple):
    file: ResultFile
    target: Path
    #: Reads a part of it, from an offset on.
    read: Callable[[int], ResultPart | DataPart]


def _silent(_: DownloadProgress) -> None:
    """Say nothing."""


class _Fetching:
    """Files of a server into a folder."""

    def __init__(
        self, folder: Path, *, overwrite: bool, tell: Callable[[DownloadProgress], None]
    ) -> None:
        self._folder = folder
        self._overwrite = overwrite
        self._tell = tell
        self._left_out = 0
        self._progress = DownloadProgress(0, 0, 0, 0)

    def _fetch_all(self, wanted: list[_Wanted]) -> Downloaded:
        """Download the files that are not there already."""
        missing = [each for each in wanted if not self._is_there(each)]
        total = sum(each.file.size_bytes for each in missing)
        self._progress = DownloadProgress(0, len(missing), 0, total)
        try:
            for each in missing:
                self._fetch(each)
        except OSError as error:
            place = error.filename or self._folder
            raise Invalid(
                f"{place} cannot be written: {error.strerror or error}.",
                hint="run it again to continue where it stopped",
            ) from error
        return Downloaded(
            folder=str(self._folder),
            files=len(missing),
            bytes=total,
            unchanged=len(wanted) - len(missing),
            left_out=self._left_out,
        )

    def _target(self, folder: Path, path: str) -> Path:
        parts = path.split("/")
        wrong = any(each in ("", ".", "..") or "\0" in each or os.sep in each for each in parts)
        if wrong:
            raise Unavailable(f"The server names a file {path[:200]!r}, which cannot be written.")
        return folder.joinpath(*parts)

    def _is_there(self, wanted: _Wanted) -> bool:
        """Whether a file was downloaded before; another one in its place is refused."""
        target = wanted.target
        for above in (target, *target.parents):
            if above == self._folder:
                break
            if above.is_symlink():
                raise Invalid(f"{above} is a link; nothing is written through links.")
        try:
            about = target.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise Invalid(f"{target} cannot be written: {error.strerror}.") from error
        same = about.st_size == wanted.file.size_bytes
        if same and about.st_mtime_ns // 1_000_000 == _modified_ms(wanted.file):
            return True
        if not self._overwrite or not target.is_file():
            raise Invalid(
                f"{target} already exists, and is not what is downloaded.",
                hint="choose another folder, or use --overwrite",
            )
        return False

    # One file

    def _fetch(self, wanted: _Wanted) -> None:
        target, file = wanted.target, wanted.file
        target.parent.mkdir(parents=True, exist_ok=True)
        mark = hashlib.sha256(f"{file.path}\0{file.version}".encode()).hexdigest()[:16]
        unfinished = target.parent / f"{UNFINISHED}{mark}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(unfinished, flags, 0o666), "wb") as stream:
            # What a part of it says was checked before it was written.
            offset = min(os.fstat(stream.fileno()).st_size, file.size_bytes)
            stream.truncate(offset)
            stream.seek(offset)
            self._advance(offset)
            while offset < file.size_bytes:
                content = self._part(wanted, offset)
                stream.write(content)
                offset += len(content)
                self._advance(len(content))
            stream.flush()
        modified_ns = _modified_ms(file) * 1_000_000
        os.utime(unfinished, ns=(modified_ns, modified_ns))
        unfinished.replace(target)
        self._progress = self._progress._replace(files=self._progress.files + 1)
        self._tell(self._progress)

    def _part(self, wanted: _Wanted, offset: int) -> bytes:
        file = wanted.file
        part = wanted.read(offset)
        right = hashlib.sha256(part.content).hexdigest() == part.sha256
        if (
            not right
            or part.offset != offset
            or not 0 < len(part.content) <= file.size_bytes - offset
        ):
            raise Unavailable(
                f"What came of {file.path} from byte {offset:,} on is damaged.", hint="ask again"
            )
        return part.content

    def _advance(self, count: int) -> None:
        self._progress = self._progress._replace(bytes=self._progress.bytes + count)
        self._tell(self._progress)


class Download(_Fetching):
    """The results of one workflow into a folder."""

    def __init__(
        self,
        workflows: Workflows,
        name: str,
        folder: Path,
        *,
        overwrite: bool = False,
        tell: Callable[[DownloadProgress], None] = _silent,
    ) -> None:
        super().__init__(folder, overwrite=overwrite, tell=tell)
        self._workflows = workflows
        self._name = name

    def fetch(self, task: str | None = None, path: str | None = None) -> Downloaded:
        """Download what a task left, all of it or what is at a path; or what all tasks left."""
        wanted = list(self._wanted(task, path))
        if path is not None and not wanted:
            raise NotFound(f"Task {task} of {self._name} has left nothing at {path}.")
        return self._fetch_all(wanted)

    def _wanted(self, task: str | None, path: str | None) -> Iterator[_Wanted]:
        if task is not None:
            yield from self._files(task, self._folder, path)
            return
        found = self._workflows.get(self._name)
        tasks = [each for group in found.groups for each in group.tasks]
        done = [each.name for each in tasks if each.status == COMPLETED]
        if not done:
            raise NotFound(
                f"No task of {self._name} has completed; results are kept of those that have."
            )
        for name in done:
            yield from self._files(name, self._folder / name, None)

    def _files(self, task: str, folder: Path, path: str | None) -> Iterator[_Wanted]:
        after, more = "", True
        while more:
            page = self._workflows.results(self._name, task, after=after)
            self._left_out += page.left_out
            for file in page.files:
                if path is None or file.path == path or file.path.startswith(f"{path}/"):
                    target = self._target(folder, file.path)
                    yield _Wanted(file, target, partial(self._read, task, file))
                after = file.path
            more = page.more_entries and bool(page.files)

    def _read(self, task: str, file: ResultFile, offset: int) -> ResultPart:
        return self._workflows.result_part(
            self._name, task, file.path, offset=offset, version=file.version
        )


class DataDownload(_Fetching):
    """What is at a path in the data of a pool, into a folder."""

    def __init__(
        self,
        data: PoolData,
        address: DataAddress,
        folder: Path,
        *,
        overwrite: bool = False,
        tell: Callable[[DownloadProgress], None] = _silent,
    ) -> None:
        super().__init__(folder, overwrite=overwrite, tell=tell)
        self._data = data
        self._address = address

    def fetch(self) -> Downloaded:
        """Download the file, or all files below the folder."""
        wanted = list(self._wanted())
        if not wanted:
            raise NotFound(f"{self._address} does not exist.")
        return self._fetch_all(wanted)

    def _wanted(self) -> Iterator[_Wanted]:
        path = self._address.path
        for each in self._data.files(self._address):
            name = path.rpartition("/")[2] if each.path == path else each.path[len(path) :]
            file = ResultFile(each.path, each.size_bytes, each.sha256, each.modify_time)
            target = self._target(self._folder, name.lstrip("/"))
            yield _Wanted(file, target, partial(self._read, file))

    def _read(self, file: ResultFile, offset: int) -> DataPart:
        address = DataAddress(self._address.pool, file.path)
        return self._data.part(address, offset=offset, version=file.version)


def _modified_ms(file: ResultFile) -> int:
    try:
        at = datetime.fromisoformat(file.modify_time).replace(tzinfo=UTC)
    except ValueError:
        raise Unavailable(f"The server names no time of {file.path}.") from None
    return round(at.timestamp() * 1_000)
