"""Copies folders of tasks from and to the data of pools; run by supervisors, outside of sandboxes.

A folder that is only read consists of links to the contents themselves: it takes no space, and
stays the same whatever is written to the pool meanwhile. The outputs of a task become visible all
at once.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from bough.backends.local.data.copying import Copied
from bough.backends.local.data.file_name_patterns import matching
from bough.backends.local.data.paths import made, make_below, open_below, opened
from bough.backends.local.data.walking import READ_FILE, READ_FOLDER, Found, Walk
from bough.backends.local.errors import CopyFailed
from bough.backends.local.pool_data.contents import Contents, copy_hashed, hash_open
from bough.backends.local.pool_data.index import Index
from bough.backends.local.pool_data.pool_folder import (
    check_room,
    keep_contents,
    opened_pool,
    publish_draft,
)
from bough.backends.local.task_command import Copy, PoolPlace, UserAccount
from bough.errors import BoughError
from bough.model.pool_data import DataEntry, DataFile, PoolSpace, data_path_fault

#: How many bytes and files to copy before they become contents.
_BATCH_FILES, _BATCH_BYTES = 1_000, 256 << 20
_CHUNK = 1 << 24
#: Errors of linking after which a copy helps: another disk, too many links, or not allowed.
_UNLINKABLE = (errno.EXDEV, errno.EMLINK, errno.EPERM)


def fetch_tree(copy: Copy, place: PoolPlace) -> Copied:
    """Make a folder of everything at a path in a pool's data; empty if there is nothing."""
    with _guarded(place, "read"), made(Path(copy.target)) as target:
        if not Path(place.folder).exists():
            return Copied()
        with opened_pool(Path(place.folder)) as (index, contents):
            with index.writing():
                index.use(place.path, _now_ms())
                found = index.list_below(_space(place), place.path, "", copy.bounds.files + 1)
            if len(found) > copy.bounds.files:
                raise CopyFailed(f"it has more than {copy.bounds.files:,} files")
            names = [_relative(each, place.path) for each in found]
            chosen = matching(copy.regex, names)
            maker = _Maker(contents, target, copy)
            for number in chosen:
                maker.make(found[number], names[number])
    return Copied(len(chosen), sum(found[number].size_bytes for number in chosen))


def store_tree(copy: Copy, place: PoolPlace) -> Copied:
    """Write a folder or a file of a task into the data of a pool, all of it or nothing."""
    try:
        with (
            _guarded(place, "written"),
            opened_pool(Path(place.folder)) as (index, contents),
            opened(Path(copy.source).parent) as parent,
        ):
            return _Storing(copy, place, index, contents).store(parent)
    except FileNotFoundError:
        if copy.optional:
            return Copied()
        raise CopyFailed(f"{copy.source} is not there") from None


class _Maker:
    """Makes the files of a folder from contents."""

    def __init__(self, contents: Contents, target: int, copy: Copy) -> None:
        self._contents = contents
        self._target = target
        self._copy = copy

    def make(self, file: DataFile, name: str) -> None:
        """Make one file."""
        *above, last = name.split("/")
        folder = make_below(self._target, tuple(above), account=self._copy.account)
        try:
            linkable = self._copy.only_read and not file.executable
            if not linkable or not self._link(file, folder, last):
                self._write(file, folder, last)
        except FileExistsError:
            # The spec has a file of that name for the working folder, which takes precedence.
            return
        except FileNotFoundError:
            raise CopyFailed(f"{file.path} was removed while it was read") from None
        finally:
            os.close(folder)

    def _link(self, file: DataFile, folder: int, name: str) -> bool:
        try:
            os.link(self._contents.path(file.sha256), name, dst_dir_fd=folder)
        except OSError as error:
            if error.errno not in _UNLINKABLE:
                raise
            return False
        return True

    def _write(self, file: DataFile, folder: int, name: str) -> None:
        source = self._contents.open(file.sha256)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            target = os.open(name, flags, 0o600, dir_fd=folder)
            try:
                done = 0
                while done < file.size_bytes:
                    sent = os.sendfile(target, source, done, min(_CHUNK, file.size_bytes - done))
                    if sent == 0:
                        raise CopyFailed(f"{file.path} is damaged: {done:,} bytes are left of it")
                    done += sent
                _finish(target, file, self._copy.account)
            finally:
                os.close(target)
        finally:
            os.close(source)


class _Storing:
    """Copies one folder or file into the data of a pool."""

    def __init__(self, copy: Copy, place: PoolPlace, index: Index, contents: Contents) -> None:
        self._copy = copy
        self._place = place
        self._index = index
        self._contents = contents
        self._walk = Walk(copy.source, copy.bounds)
        self._draft = f"task-{secrets.token_hex(16)}"
        self._below = place.path
        #: Copies that are not contents yet, by checksum, with file and size; and the files that
        #: name them.
        self._files: dict[str, tuple[Path, int]] = {}
        self._entries: list[DataEntry] = []
        self._bytes = 0
        self._count = 0

    def store(self, parent: int) -> Copied:
        """Write everything, then make it visible."""
        name = Path(self._copy.source).name
        kind = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
        source = os.dup(parent)
        try:
            if stat.S_ISREG(kind):
                self._walk.found.append(Found((name,), kind))
            elif stat.S_ISDIR(kind):
                os.close(source)
                source = os.open(name, READ_FOLDER, dir_fd=parent)
                self._walk.find(os.dup(source), ())
                if self._copy.named:
                    self._below = f"{self._below}/{name}" if self._below else name
            else:
                raise CopyFailed(f"{self._copy.source} is neither a file nor a folder")
            return self._store_all(source)
        except BaseException:
            self._give_up()
            raise
        finally:
            os.close(source)

    def _store_all(self, source: int) -> Copied:
        found = self._walk.found
        for number in matching(self._copy.regex, ["/".join(each.parts) for each in found]):
            each = found[number]
            fault = data_path_fault("/".join(each.parts))
            if fault is not None or not stat.S_ISREG(each.mode):
                self._walk.skip(each.parts, fault or "links are not kept")
                continue
            self._store_one(source, each)
        self._flush()
        if self._count:
            with self._index.writing():
                user = self._place.user
                publish_draft(self._index, self._draft, self._below, user, _now_ms())
                self._index.use(self._below, _now_ms())
        return Copied(self._count, self._bytes, tuple(self._walk.skipped))

    def _store_one(self, source: int, found: Found) -> None:
        try:
            folder = open_below(source, found.parts[:-1])
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            file = os.open(found.parts[-1], READ_FILE, dir_fd=folder)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.ELOOP:
                raise
            self._walk.skip(found.parts, "it has become a link")
            return
        finally:
            os.close(folder)
        try:
            self._store_file(file, found.parts)
        finally:
            os.close(file)

    def _store_file(self, file: int, parts: tuple[str, ...]) -> None:
        before = os.fstat(file)
        if not stat.S_ISREG(before.st_mode) or self._is_same(before, parts):
            return
        sha256 = self._take(file, before.st_size)
        after = os.fstat(file)
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
            self._walk.skip(parts, "it was being written")
            return
        executable = bool(before.st_mode & 0o111)
        self._entries.append(
            DataEntry("/".join(parts), sha256, before.st_size, executable, before.st_mtime_ns)
        )
        self._count += 1
        self._bytes += before.st_size
        waiting = sum(size for _, size in self._files.values())
        if len(self._entries) >= _BATCH_FILES or waiting >= _BATCH_BYTES:
            self._flush()

    def _is_same(self, about: os.stat_result, parts: tuple[str, ...]) -> bool:
        """Whether a file was stored before and is unchanged, as most of a checkpoint is."""
        path = "/".join((*([self._below] if self._below else []), *parts))
        there = self._index.find(_space(self._place), path)
        wanted = (about.st_size, about.st_mtime_ns)
        return there is not None and (there.size_bytes, there.modified_ns) == wanted

    def _take(self, file: int, size: int) -> str:
        """Copy a file, unless its content exists already; returns its checksum."""
        waiting = sum(each for _, each in self._files.values())
        if self._index.used_bytes() + waiting + size > self._place.quota_bytes:
            sha256 = hash_open(file)
            if sha256 not in self._files and not self._index.known([sha256]):
                check_room(self._index, _space(self._place), waiting + size)
            return sha256
        path = self._contents.new_file()
        sha256, _ = copy_hashed(file, path, size)
        if sha256 in self._files:
            path.unlink()
        else:
            self._files[sha256] = path, size
        return sha256

    def _flush(self) -> None:
        """Turn the copies into contents; the draft names them first, so that they are kept."""
        if self._entries:
            with self._index.writing():
                self._index.add_to_draft(self._draft, self._entries, _now_ms())
        if self._files:
            keep_contents(_space(self._place), self._index, self._contents, self._files)
        self._entries, self._files = [], {}

    def _give_up(self) -> None:
        for path, _ in self._files.values():
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        with contextlib.suppress(sqlite3.Error), self._index.writing():
            self._index.drop_draft(self._draft)


@contextlib.contextmanager
def _guarded(place: PoolPlace, done: str) -> Iterator[None]:
    """Say in words which data could not be read or written, and why."""
    url = f"bough://{place.pool}/{place.path}"
    try:
        yield
    except FileNotFoundError:
        raise
    except BoughError as error:
        hint = f" ({error.hint})" if error.hint else ""
        raise CopyFailed(f"{url} could not be {done}: {error.message}{hint}") from error
    except (OSError, sqlite3.Error) as error:
        why = error.strerror if isinstance(error, OSError) else None
        raise CopyFailed(f"{url} could not be {done}: {why or error}") from error


def _finish(target: int, file: DataFile, account: UserAccount | None) -> None:
    if account is not None:
        os.fchown(target, account.user_id, account.group_id)
    os.fchmod(target, 0o755 if file.executable else 0o644)
    os.utime(target, ns=(file.modified_ns, file.modified_ns))


def _relative(file: DataFile, path: str) -> str:
    """The path of a file below another; for the path itself, its name."""
    if file.path == path:
        return path.rpartition("/")[2]
    return file.path[len(path) + 1 :] if path else file.path


def _space(place: PoolPlace) -> PoolSpace:
    return PoolSpace(place.folder, place.quota_bytes, name=place.pool)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
