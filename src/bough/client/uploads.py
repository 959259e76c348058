"""Uploads to the data of a pool: sends only missing contents, in parts with checksums.

The server keeps what was sent for a day, so an interrupted upload resumes where it stopped. The
files become visible all at once, when the last content has arrived.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from bough.api.pool_data import (
    MOST_BYTES,
    MOST_ENTRIES,
    PART_HEAD,
    DraftEntry,
    SentPart,
    Transferred,
)
from bough.client.data import DataAddress, PoolData
from bough.client.ignored_files import Ignored
from bough.data_folder_names import is_data_folder
from bough.errors import Invalid

#: The most bytes of a content to send in one request.
PART_BYTES = MOST_BYTES - PART_HEAD
#: The most files that a server accepts in one draft.
MOST_FILES = 100_000
_DEEPEST = 100


class UploadProgress(NamedTuple):
    """The progress of an upload: first all files are read, then the missing contents sent."""

    read: int
    of_files: int
    sent_bytes: int
    of_bytes: int


class LocalFile(NamedTuple):
    """A file of this machine."""

    #: Path below the uploaded folder, with `/` between its parts.
    path: str
    place: Path
    about: os.stat_result


class FolderFiles(NamedTuple):
    """The files of a folder."""

    files: list[LocalFile]
    #: Links and the like, which are not uploaded.
    left_out: int
    #: Data folders of servers, which are not uploaded: they have keys in them.
    data_folders: tuple[Path, ...] = ()


def _silent(_: UploadProgress) -> None:
    """Say nothing."""


class Upload:
    """Uploads files of this machine to the data of one pool."""

    def __init__(
        self,
        data: PoolData,
        found: FolderFiles,
        *,
        tell: Callable[[UploadProgress], None] = _silent,
    ) -> None:
        self._data = data
        self._files = found.files
        self._left_out = found.left_out
        self._tell = tell
        self._progress = UploadProgress(0, len(found.files), 0, 0)
        self._entries: list[DraftEntry] = []
        self._digest: str | None = None
        #: The local file with a content, by checksum.
        self._places: dict[str, LocalFile] = {}

    def digest(self) -> str:
        """The checksum over all files; reads each of them once."""
        if self._digest is None:
            self._digest = self._read()
        return self._digest

    def _read(self) -> str:
        for each in self._files:
            sha256 = _hash(each)
            self._places[sha256] = each
            executable = bool(each.about.st_mode & 0o111)
            size, modified = each.about.st_size, each.about.st_mtime_ns
            self._entries.append(DraftEntry(each.path, sha256, size, executable, modified))
            self._advance(read=1)
        lines = (f"{each.sha256} {each.executable} {each.path}\n" for each in self._entries)
        return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()

    def send(self, address: DataAddress) -> Transferred:
        """Send the missing contents, and publish all files below a path."""
        draft = f"upload-{hashlib.sha256(f'{self.digest()} {address}'.encode()).hexdigest()[:40]}"
        missing: dict[str, int] = {}
        for start in range(0, len(self._entries), MOST_ENTRIES):
            some = self._entries[start : start + MOST_ENTRIES]
            missing |= self._data.draft(address.pool, draft, some)
        sizes = {each.sha256: each.size_bytes for each in self._entries}
        total = sum(sizes[each] - there for each, there in missing.items())
        self._progress = self._progress._replace(of_bytes=total)
        for parts in _packed(self._parts(missing, sizes)):
            self._send(address.pool, parts)
            self._advance(sent_bytes=sum(len(each.content) for each in parts))
        done = self._data.publish(address, draft)
        return Transferred(
            url=str(address),
            files=done.files,
            bytes=sum(each.size_bytes for each in self._entries),
            sent_bytes=self._progress.sent_bytes,
            left_out=self._left_out,
        )

    def _send(self, pool: str, parts: list[SentPart]) -> None:
        try:
            self._data.send(pool, parts)
        except Invalid:
            # The server can only tell that a content is another one; here is known of which file.
            for each in parts:
                file = self._places[each.sha256]
                if _hash(file) != each.sha256:
                    raise _changed(file) from None
            raise

    def _parts(self, missing: dict[str, int], sizes: dict[str, int]) -> Iterator[SentPart]:
        for sha256, there in missing.items():
            size = sizes[sha256]
            with _opened(self._places[sha256]) as stream:
                stream.seek(there)
                offset = there
                while offset < size or size == 0:
                    content = stream.read(min(PART_BYTES, size - offset))
                    if len(content) < min(PART_BYTES, size - offset):
                        raise _changed(self._places[sha256])
                    yield SentPart(sha256, size, offset, content)
                    offset += len(content)
                    if size == 0:
                        break

    def _advance(self, read: int = 0, sent_bytes: int = 0) -> None:
        now = self._progress
        self._progress = now._replace(read=now.read + read, sent_bytes=now.sent_bytes + sent_bytes)
        self._tell(self._progress)


def find_files(source: Path, *, respect_ignored: bool = False) -> FolderFiles:
    """A file by its name, or all files below a folder; links and servers' data are left out."""
    try:
        about = source.stat()
        if stat.S_ISREG(about.st_mode):
            return FolderFiles([LocalFile(source.name, source, about)], 0)
        if not stat.S_ISDIR(about.st_mode):
            raise Invalid(f"{source} is neither a file nor a folder.")
        walk = _Walk(source, respect_ignored=respect_ignored)
        walk.visit("", Ignored(), 0)
    except OSError as error:
        raise Invalid(f"{error.filename or source} cannot be read: {error.strerror}.") from None
    return FolderFiles(walk.files, walk.left_out, tuple(walk.data_folders))


class _Walk:
    """The files below a folder, in the order of their names."""

    def __init__(self, root: Path, *, respect_ignored: bool) -> None:
        self._root = root
        self._respect_ignored = respect_ignored
        self.files: list[LocalFile] = []
        self.left_out = 0
        self.data_folders: list[Path] = []

    def visit(self, folder: str, ignored: Ignored, depth: int) -> None:
        """Find the files in a folder and below it."""
        if depth > _DEEPEST:
            raise Invalid(f"{self._root / folder} is deeper than {_DEEPEST} folders.")
        if self._respect_ignored:
            ignored = ignored.enter(self._root, folder)
        with os.scandir(self._root / folder) as entries:
            found = sorted(entries, key=lambda each: each.name)
        if is_data_folder([each.name for each in found]):
            self.data_folders.append(self._root / folder)
            return
        for each in found:
            path = f"{folder}/{each.name}" if folder else each.name
            is_folder = each.is_dir(follow_symlinks=False)
            if self._respect_ignored and ignored.has(path, is_folder=is_folder):
                continue
            if is_folder:
                self.visit(path, ignored, depth + 1)
            elif each.is_file(follow_symlinks=False):
                self._add(path, each)
            else:
                self.left_out += 1

    def _add(self, path: str, entry: os.DirEntry[str]) -> None:
        if len(self.files) >= MOST_FILES:
            raise Invalid(
                f"{self._root} has more than {MOST_FILES:,} files.",
                hint="name what is not needed in .gitignore, or upload less of it",
            )
        self.files.append(LocalFile(path, Path(entry.path), entry.stat(follow_symlinks=False)))


def _packed(parts: Iterator[SentPart]) -> Iterator[list[SentPart]]:
    """Pack as many parts into each request as fit."""
    some: list[SentPart] = []
    size = 0
    for each in parts:
        more = PART_HEAD + len(each.content)
        if some and size + more > MOST_BYTES:
            yield some
            some, size = [], 0
        some.append(each)
        size += more
    if some:
        yield some


def _hash(file: LocalFile) -> str:
    with _opened(file) as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
        after = os.fstat(stream.fileno())
    if (after.st_size, after.st_mtime_ns) != (file.about.st_size, file.about.st_mtime_ns):
        raise _changed(file)
    return found


def _opened(file: LocalFile) -> BufferedReader:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return open(os.open(file.place, flags), "rb")
    except OSError as error:
        raise Invalid(f"{file.place} cannot be read: {error.strerror}.") from None


def _changed(file: LocalFile) -> Invalid:
    return Invalid(f"{file.place} was changed while it was uploaded.", hint="upload it again")
