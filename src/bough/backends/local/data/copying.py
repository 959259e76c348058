"""Copying files of tasks: bounded, whole files only, and nothing but files, folders and links.

A file appears under its name when it is whole. A file that changes while it is read does not
replace an older copy: its next copy will. What has not changed since the last copy is not copied
again. Symbolic links are never followed: those that can only lead down are copied as links, all
others are skipped, like everything that is neither a file nor a folder.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bough.backends.local.data.file_name_patterns import matching
from bough.backends.local.data.paths import made, make_below, open_below, opened, shown
from bough.backends.local.data.removal import remove_from
from bough.backends.local.data.walking import (
    READ_FILE,
    READ_FOLDER,
    REPLACED,
    UNFINISHED,
    Found,
    Walk,
)
from bough.backends.local.errors import CopyFailed
from bough.backends.local.task_command import Copy
from bough.durable_files import sync_file_system

_CHUNK = 2**24
_NAMELESS = os.O_WRONLY | os.O_TMPFILE | os.O_CLOEXEC
#: Errors of file systems without nameless files (O_TMPFILE).
_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Copied(msgspec.Struct, frozen=True):
    """What a copy did."""

    #: Copied now; unchanged files do not count.
    files: int = 0
    bytes: int = 0
    #: What was skipped, and why: the first ones.
    skipped: tuple[str, ...] = ()


def copy_files(copy: Copy, *, durably: bool = False) -> Copied:
    """Copy or move files; an error says why that is not possible.

    What was copied durably survives a crash of the machine from then on, and until then what it
    replaces does.
    """
    try:
        if copy.move:
            return _move(Path(copy.source), Path(copy.target), durably=durably)
        with opened(Path(copy.source).parent) as parent:
            return _copy_from(parent, copy, durably=durably)
    except FileNotFoundError as error:
        if copy.optional and not _is_there(copy.source):
            return Copied()
        raise _failed(copy, error) from error
    except OSError as error:
        raise _failed(copy, error) from error


def is_empty_move(copy: Copy) -> bool:
    """Whether it only renames an empty folder."""
    if not copy.move:
        return False
    try:
        folder = os.open(copy.source, READ_FOLDER)
    except OSError:
        return True
    try:
        return not os.listdir(folder)
    finally:
        os.close(folder)


def _copy_from(parent: int, copy: Copy, *, durably: bool) -> Copied:
    name = Path(copy.source).name
    kind = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    below = (name,) if copy.named and stat.S_ISDIR(kind) else ()
    with made(Path(copy.target, *below)) as target:
        work = _CopyRun(copy, target, durably=durably)
        if stat.S_ISREG(kind):
            work.walk.found.append(Found((name,), kind))
            work.copy_all(os.dup(parent))
        elif stat.S_ISDIR(kind):
            source = os.open(name, READ_FOLDER, dir_fd=parent)
            work.walk.find(os.dup(source), ())
            work.copy_all(source)
        else:
            raise CopyFailed(f"{copy.source} is neither a file nor a folder")
        if durably and work.changed:
            with _readable(target) as folder:
                sync_file_system(folder)
        return Copied(work.files, work.bytes, tuple(work.walk.skipped))


class _CopyRun:
    """One copy in progress."""

    def __init__(self, copy: Copy, target: int, *, durably: bool) -> None:
        self._copy = copy
        self._target = target
        self._durably = durably
        #: Whether anything was written.
        self.changed = False
        self.walk = Walk(copy.source, copy.bounds)
        self.files = 0
        self.bytes = 0

    def copy_all(self, source: int) -> None:
        """Copy what was found and matches; closes the source."""
        try:
            chosen = matching(self._copy.regex, ["/".join(each.parts) for each in self.walk.found])
            for number in chosen:
                self._copy_one(source, self.walk.found[number])
        finally:
            os.close(source)

    def _copy_one(self, source: int, found: Found) -> None:
        *above, name = found.parts
        try:
            folder = open_below(source, tuple(above))
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            target = make_below(self._target, tuple(above))
            try:
                self._copy_entry(folder, target, name, found)
            finally:
                os.close(target)
        finally:
            os.close(folder)

    def _copy_entry(self, folder: int, target: int, name: str, found: Found) -> None:
        try:
            if stat.S_ISLNK(found.mode):
                self._copy_link(folder, target, name, found.parts)
                return
            file = os.open(name, READ_FILE, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            self.walk.skip(found.parts, "it has become a link")
            return
        try:
            self._copy_file(file, target, name, found.parts)
        finally:
            os.close(file)

    def _copy_link(self, folder: int, target: int, name: str, parts: tuple[str, ...]) -> None:
        leads = os.readlink(name, dir_fd=folder)
        if leads.startswith("/") or ".." in leads.split("/"):
            self.walk.skip(parts, "it is a link that leads out of the folder")
            return
        unfinished = UNFINISHED + os.urandom(8).hex()
        os.symlink(leads, unfinished, dir_fd=target)
        try:
            os.replace(unfinished, name, src_dir_fd=target, dst_dir_fd=target)
        except OSError:
            os.unlink(unfinished, dir_fd=target)
            raise
        self.changed = True

    def _copy_file(self, file: int, target: int, name: str, parts: tuple[str, ...]) -> None:
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode):
            self.walk.skip(parts, "it is neither a file nor a folder")
            return
        if _is_same(before, target, name):
            return
        if self.bytes + before.st_size > self._copy.bounds.bytes:
            raise CopyFailed(
                f"{self._copy.source} has more than {self._copy.bounds.bytes} bytes, which is "
                "the most that is copied"
            )
        with _NewFile(target) as new:
            size = _copy_bytes(file, new.descriptor, before.st_size)
            after = os.fstat(file)
            if (size, after.st_size, after.st_mtime_ns) != (
                before.st_size,
                before.st_size,
                before.st_mtime_ns,
            ):
                self.walk.skip(parts, "it was being written")
                return
            os.fchmod(new.descriptor, 0o755 if before.st_mode & 0o111 else 0o644)
            os.utime(new.descriptor, ns=(before.st_mtime_ns, before.st_mtime_ns))
            if self._durably and _is_there(name, target):
                os.fsync(new.descriptor)
            new.keep(name)
        self.changed = True
        self.files += 1
        self.bytes += size


class _NewFile:
    """A file that has no name until it is whole, so that nothing is left if the writer is killed.

    On file systems without such files it has the name of an unfinished file.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self._name: str | None = None
        try:
            self.descriptor = os.open(".", _NAMELESS, 0o600, dir_fd=folder)
        except OSError as error:
            if error.errno not in _UNSUPPORTED:
                raise
            self._name = UNFINISHED + os.urandom(8).hex()
            self.descriptor = os.open(self._name, _NEW_FILE, 0o600, dir_fd=folder)

    def __enter__(self) -> _NewFile:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self.descriptor)
        if self._name is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._name, dir_fd=self._folder)

    def keep(self, name: str) -> None:
        """Give it its name, and replace what has that name."""
        if self._name is None:
            unfinished = UNFINISHED + os.urandom(8).hex()
            os.link(f"/proc/self/fd/{self.descriptor}", unfinished, dst_dir_fd=self._folder)
            self._name = unfinished
        os.replace(self._name, name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        self._name = None


def _copy_bytes(source: int, target: int, size: int) -> int:
    """Copy up to so many bytes; holes, which take no room on the disk, stay holes."""
    done = 0
    while done < size:
        start = _seek(source, done, os.SEEK_DATA, size)
        end = _seek(source, start, os.SEEK_HOLE, size)
        os.lseek(target, start, os.SEEK_SET)
        done = start
        while done < end:
            sent = os.sendfile(target, source, done, min(_CHUNK, end - done))
            if sent == 0:
                return done
            done += sent
    os.ftruncate(target, size)
    return done


def _seek(file: int, position: int, what: int, size: int) -> int:
    """Where the next data or hole begins; the size if there is none."""
    try:
        return min(size, os.lseek(file, position, what))
    except OSError as error:
        if error.errno == errno.EINVAL:
            # A file system without holes: all is data.
            return position if what == os.SEEK_DATA else size
        if error.errno != errno.ENXIO:
            raise
        return size


def _is_same(source: os.stat_result, target: int, name: str) -> bool:
    try:
        there = os.stat(name, dir_fd=target, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISREG(there.st_mode) and (there.st_size, there.st_mtime_ns) == (
        source.st_size,
        source.st_mtime_ns,
    )


def _move(source: Path, target: Path, *, durably: bool) -> Copied:
    """Rename a folder; it is no error if that was done before."""
    with opened(source.parent) as above, made(target.parent, 0o755) as below:
        if not _is_folder(source.name, above):
            if _is_folder(target.name, below):
                return Copied()
            raise CopyFailed(f"{source} is not a folder")
        if durably:
            # What is in it was written by the task, which need not have brought it to the disk.
            with _readable(above) as folder:
                sync_file_system(folder)
        replaced = REPLACED + os.urandom(8).hex()
        with contextlib.suppress(FileNotFoundError):
            os.rename(target.name, replaced, src_dir_fd=below, dst_dir_fd=below)
        os.rename(source.name, target.name, src_dir_fd=above, dst_dir_fd=below)
        if durably:
            with _readable(below) as folder:
                os.fsync(folder)
        if _is_folder(replaced, below):
            with contextlib.suppress(OSError):
                remove_from(below, replaced)
    return Copied()


def _is_folder(name: str, parent: int) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _is_there(path: str, folder: int | None = None) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _readable(folder: int) -> Iterator[int]:
    """The same folder, which may have been opened as a mere path."""
    descriptor = os.open(".", READ_FOLDER, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _failed(copy: Copy, error: OSError) -> CopyFailed:
    where = f" ({shown(str(error.filename))})" if error.filename is not None else ""
    if error.errno in {errno.ELOOP, errno.ENOTDIR}:
        why = "a file or a symbolic link is in the way, and no link is followed"
    else:
        why = error.strerror or str(error)
    return CopyFailed(f"{copy.source} cannot be copied to {copy.target}: {why}{where}")
