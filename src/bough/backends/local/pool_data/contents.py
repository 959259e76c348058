"""The files that hold the contents of a pool's data, each named by its checksum.

A content gets its name when it is complete and its checksum is right. Until then it is in
`incoming`, under a name that nothing reads.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bough.durable_files import sync_file_system
from bough.errors import Invalid

_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
#: Prefix of files that a task's supervisor is writing.
_COPIED = "copy-"


class Contents:
    """The contents of one pool."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._whole = folder / "contents"
        self._incoming = folder / "incoming"

    def make(self) -> None:
        """Make the folders."""
        for each in (self._whole, self._incoming):
            each.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, sha256: str) -> Path:
        """Where a content is."""
        return self._whole / sha256[:2] / sha256[2:]

    def open(self, sha256: str) -> int:
        """Open a content for reading."""
        return os.open(self.path(sha256), _READ)

    def write_whole(self, content: bytes, sha256: str) -> Path:
        """Write a content that came in one part to a file; its checksum must be right."""
        if hashlib.sha256(content).hexdigest() != sha256:
            raise Invalid(f"What came as {sha256[:12]}… has another checksum; send it again.")
        path = self.new_file()
        path.write_bytes(content)
        return path

    def new_file(self) -> Path:
        """A new path for a file that will become a content, or be removed when it is too old."""
        return self._incoming / f"{_COPIED}{os.urandom(12).hex()}"

    @contextmanager
    def incoming(self, sha256: str) -> Iterator[int]:
        """Open the file of a content that comes in parts; for one writer at a time.

        So no writer changes a content after its checksum was found to be right.
        """
        path = self.incoming_path(sha256)
        while True:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            descriptor = os.open(path, flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                # It may have become a content, or been dropped, while this waited for the lock.
                if _is_at(path, descriptor):
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def incoming_path(self, sha256: str) -> Path:
        """The path of a content while its parts arrive."""
        return self._incoming / sha256

    def received(self, sha256: str) -> int:
        """How many bytes of a content have arrived."""
        try:
            return self.incoming_path(sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def keep(self, path: Path, sha256: str) -> None:
        """Make a file a content; only within a transaction of the index."""
        target = self.path(sha256)
        target.parent.mkdir(mode=0o700, exist_ok=True)
        path.chmod(0o444)
        path.rename(target)

    def drop(self, sha256: str) -> None:
        """Remove a content; only within a transaction of the index that does not name it."""
        self.path(sha256).unlink(missing_ok=True)

    def stored(self) -> Iterator[str]:
        """The checksums of all contents that are there."""
        for above in sorted(os.listdir(self._whole)):
            for name in os.listdir(self._whole / above):
                yield above + name

    def drop_incoming(self, older_s: float) -> None:
        """Remove incoming files that are older than this."""
        last = time.time() - older_s
        for name in os.listdir(self._incoming):
            path = self._incoming / name
            try:
                if path.stat().st_mtime < last:
                    path.unlink()
            except FileNotFoundError:
                continue

    def sync(self) -> None:
        """Flush all contents to disk."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            sync_file_system(descriptor)
        finally:
            os.close(descriptor)


def append(descriptor: int, offset: int, content: bytes) -> int:
    """Write a part where it belongs; returns how many bytes there are now.

    A part that comes twice, or too early, changes nothing.
    """
    there = os.fstat(descriptor).st_size
    if offset != there:
        return there
    write_all(descriptor, content)
    return offset + len(content)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it at the end of an open file."""
    os.lseek(descriptor, 0, os.SEEK_END)
    view = memoryview(content)
    while view:
        view = view[os.write(descriptor, view) :]


def hash_open(descriptor: int) -> str:
    """The checksum of an open file."""
    os.lseek(descriptor, 0, os.SEEK_SET)
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_at(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def copy_hashed(source: int, target: Path, size: int) -> tuple[str, int]:
    """Copy an open file to a new one, up to a size; returns its checksum and size."""
    found = hashlib.sha256()
    done = 0
    descriptor = os.open(
        target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600
    )
    try:
        while done < size and (chunk := os.pread(source, min(_CHUNK, size - done), done)):
            found.update(chunk)
            write_all(descriptor, chunk)
            done += len(chunk)
    finally:
        os.close(descriptor)
    return found.hexdigest(), done
