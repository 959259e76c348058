"""What the server does with the data of pools, for requests: drafts, contents, lists, removal."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from bough.backends.local.data.locations import safe_name
from bough.backends.local.errors import lacks_room
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data.contents import Contents, append, hash_open
from bough.backends.local.pool_data.index import Index
from bough.backends.local.pool_data.pool_folder import (
    FOLDER,
    INDEX,
    check_room,
    drop_unnamed,
    keep_contents,
    opened_pool,
    publish_draft,
    shown_size,
)
from bough.backends.local.pool_data.spare_file import Reserve, room_at
from bough.durable_files import write_whole
from bough.errors import Conflict, Invalid, Unavailable
from bough.model.pool_data import (
    KEEP_S,
    MOST_FILES,
    ContentPart,
    DataEntry,
    DataFile,
    DataFiles,
    DataUsage,
    PoolSpace,
    data_path_fault,
)

_RESERVE = f"{FOLDER}-reserve"
#: What an index needs to be read, roughly.
_INDEX_BYTES = 64 << 10
#: The file that says since when the pool has been gone, in milliseconds since 1970.
_GONE = "gone-since"
_CHECKSUM = re.compile(r"[0-9a-f]{64}")
_DRAFT = re.compile(r"[A-Za-z0-9_-]{8,96}")
#: How long a draft and its contents are kept after the last addition.
DRAFT_S = 24 * 3_600
#: The most files of all drafts of a pool: nothing of them counts against its quota before a content
#: comes, and each takes room in the index.
MOST_DRAFTED = 10 * MOST_FILES
#: How often to look for contents that nothing names.
_SCAN_S = 24 * 3_600
_MOST_BYTES = 1 << 50
#: How much of the disk uploads leave free.
_LEFT_BYTES = 64 << 20


class LocalPoolData:
    """The data of the pools of this machine."""

    def __init__(
        self, options: LocalOptions, now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    ) -> None:
        self._folder = options.folder / FOLDER
        self._reserve = Reserve(options.folder / _RESERVE)
        self._now_ms = now_ms
        #: When the contents of each pool were last compared with its index.
        self._scanned: dict[str, float] = {}

    def draft(
        self, space: PoolSpace, draft: str, entries: Sequence[DataEntry]
    ) -> Mapping[str, int]:
        """Add files to a draft; returns the missing contents, with the bytes received of each."""
        if _DRAFT.fullmatch(draft) is None:
            raise Invalid(f"{draft[:80]!r} cannot be the name of a draft.")
        for each in entries:
            _check(each)
        sizes = {each.sha256: each.size_bytes for each in entries}
        with self._opened(space) as (index, contents):
            with index.writing():
                known = index.known(sizes)
                missing = [each for each in sizes if each not in known]
                more = sum(sizes[each] for each in missing)
                check_room(index, space, more)
                _check_disk(contents, more)
                if index.count_drafted() + len(entries) > MOST_DRAFTED:
                    raise Conflict(
                        f"The uploads to this pool that are not finished have {MOST_DRAFTED:,} "
                        "files, the most that are possible.",
                        hint="finish one, or wait: a day after its last part it is forgotten",
                    )
                if index.add_to_draft(draft, entries, self._now_ms()) > MOST_FILES:
                    raise Invalid(f"More than {MOST_FILES:,} files cannot be written at once.")
            return {each: contents.received(each) for each in missing}

    def receive(self, space: PoolSpace, parts: Iterable[ContentPart]) -> Mapping[str, int]:
        """Keep parts of contents that drafts name; returns the incomplete ones likewise."""
        partial: dict[str, int] = {}
        whole: dict[str, ContentPart] = {}
        with self._opened(space) as (index, contents):
            sent = list(parts)
            drafted = index.drafted(each.sha256 for each in sent)
            known = index.known(drafted)
            for each in sent:
                _check_part(each, drafted)
                if each.sha256 in known:
                    continue
                if each.offset == 0 and len(each.content) == each.size_bytes:
                    whole[each.sha256] = each
                else:
                    there = self._receive_part(space, index, contents, each)
                    partial.pop(each.sha256, None)
                    if there < each.size_bytes:
                        partial[each.sha256] = there
            _keep_whole(space, index, contents, list(whole.values()))
        return partial

    def _receive_part(
        self, space: PoolSpace, index: Index, contents: Contents, part: ContentPart
    ) -> int:
        with index.writing():
            if not index.is_expected(part.sha256):
                check_room(index, space, part.size_bytes)
            index.expect(part.sha256, part.size_bytes, self._now_ms())
        with contents.incoming(part.sha256) as descriptor:
            there = append(descriptor, part.offset, part.content)
            if there < part.size_bytes:
                return there
            path = contents.incoming_path(part.sha256)
            if there > part.size_bytes or hash_open(descriptor) != part.sha256:
                path.unlink(missing_ok=True)
                raise Invalid(
                    f"What came as {part.sha256[:12]}… has another checksum; send it again."
                )
            keep_contents(space, index, contents, {part.sha256: (path, part.size_bytes)})
            return there

    def publish(self, space: PoolSpace, draft: str, below: str, owner: str) -> int:
        """Make all files of a draft visible at once, below a path; returns how many."""
        with self._opened(space) as (index, _), index.writing():
            count = publish_draft(index, draft, below, owner, self._now_ms())
        self._reserve.make()
        return count

    def list_files(self, space: PoolSpace, path: str, after: str, limit: int) -> DataFiles:
        """List files at and below a path, after one of them, up to a limit."""
        if not self._exists(space):
            return DataFiles((), False)
        with self._opened(space, spares=True) as (index, _):
            found = index.list_below(space, path, after, limit + 1)
        return DataFiles(tuple(found[:limit]), len(found) > limit)

    def read_part(
        self, space: PoolSpace, path: str, offset: int, limit: int
    ) -> tuple[DataFile, bytes] | None:
        """A part of a file; `None`: there is no such file."""
        if not self._exists(space):
            return None
        with self._opened(space, spares=True) as (index, contents):
            file = index.find(space, path)
            if file is None:
                return None
            try:
                descriptor = contents.open(file.sha256)
            except FileNotFoundError:
                # It was removed just now.
                return None
            try:
                return file, os.pread(descriptor, limit, offset)
            finally:
                os.close(descriptor)

    def delete(self, space: PoolSpace, path: str) -> int:
        """Remove the file or the folder at a path; returns how many files."""
        if not self._exists(space):
            return 0
        with self._opened(space, spares=True) as (index, contents):
            with index.writing():
                count = index.delete(path)
            drop_unnamed(index, contents)
        self._reserve.make()
        return count

    def usage(self, space: PoolSpace) -> DataUsage:
        """How much there is."""
        if not self._exists(space):
            return DataUsage(0, 0, space.quota_bytes)
        with self._opened(space, spares=True) as (index, _):
            return DataUsage(index.count_files(), index.used_bytes(), space.quota_bytes)

    def clean(self, spaces: Iterable[PoolSpace]) -> int:
        """Remove expired files, and contents that nothing needs; returns how many files."""
        known = {safe_name(each.pool): each for each in spaces}
        count = 0
        names = sorted(os.listdir(self._folder)) if self._folder.is_dir() else []
        for name in names:
            space = known.get(name)
            if space is None:
                self._clean_gone(self._folder / name)
                continue
            (self._folder / name / _GONE).unlink(missing_ok=True)
            with self._opened(space, spares=True) as (index, contents):
                count += self._clean(space, index, contents)
        if names:
            self._reserve.make()
        return count

    def _clean_gone(self, folder: Path) -> None:
        """Remove the data of a pool that has been gone for long enough.

        That is counted from when it was first missing: a pool that comes back, as by a restored
        database, has all of its data again.
        """
        now_ms = self._now_ms()
        try:
            since_ms = int((folder / _GONE).read_text())
        except (FileNotFoundError, ValueError):
            with suppress(OSError):
                write_whole(folder / _GONE, str(now_ms).encode())
            return
        if now_ms - since_ms >= KEEP_S * 1_000:
            shutil.rmtree(folder, ignore_errors=True)

    def _clean(self, space: PoolSpace, index: Index, contents: Contents) -> int:
        now_ms = self._now_ms()
        with index.writing():
            count = index.expire(now_ms - space.keep_s * 1_000)
            index.drop_old(now_ms - DRAFT_S * 1_000)
        drop_unnamed(index, contents)
        contents.drop_incoming(DRAFT_S)
        now = time.monotonic()
        if now - self._scanned.get(space.pool, -_SCAN_S) >= _SCAN_S:
            self._scanned[space.pool] = now
            _drop_strays(index, contents)
        return count

    def _exists(self, space: PoolSpace) -> bool:
        return (self._place(space) / INDEX).exists()

    def _place(self, space: PoolSpace) -> Path:
        return self._folder / safe_name(space.pool)

    @contextmanager
    def _opened(
        self, space: PoolSpace, *, spares: bool = False
    ) -> Iterator[tuple[Index, Contents]]:
        """spares:  works on a full disk, too, for what only reads or deletes."""
        try:
            with (
                self._reserve.given_up() if spares else nullcontext(),
                opened_pool(self._place(space)) as found,
            ):
                yield found
        except (OSError, sqlite3.Error) as error:
            why = _why(error, self._folder)
            raise Unavailable(f"The data of the pool cannot be used now: {why}.") from error


def _check_disk(contents: Contents, more: int) -> None:
    """Refuse bytes that would fill the disk, which tasks need, too."""
    found = os.statvfs(contents.folder)
    if more and found.f_bavail * found.f_frsize - more < _LEFT_BYTES:
        raise Unavailable(
            f"The disk of the tasks' files has no room for {shown_size(more)} more.",
            hint="remove some data, or let an administrator make room",
        )


def _drop_strays(index: Index, contents: Contents) -> None:
    stored = [each for each in contents.stored() if _CHECKSUM.fullmatch(each)]
    strays = set(stored) - index.known(stored)
    if strays:
        with index.writing():
            for sha256 in strays - index.known(strays):
                contents.drop(sha256)


def _keep_whole(
    space: PoolSpace, index: Index, contents: Contents, parts: Sequence[ContentPart]
) -> None:
    files: dict[str, tuple[Path, int]] = {}
    try:
        for each in parts:
            files[each.sha256] = contents.write_whole(each.content, each.sha256), each.size_bytes
        if files:
            keep_contents(space, index, contents, files)
    except BaseException:
        for path, _ in files.values():
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise


def _check(entry: DataEntry) -> None:
    fault = data_path_fault(entry.path)
    if fault is not None:
        raise Invalid(f"The path {entry.path[:200]!r} is not possible: {fault}.")
    if _CHECKSUM.fullmatch(entry.sha256) is None:
        raise Invalid(f"{entry.path[:200]!r}: {entry.sha256[:80]!r} is not a SHA-256 checksum.")
    if not 0 <= entry.size_bytes <= _MOST_BYTES or abs(entry.modified_ns) >= 1 << 63:
        raise Invalid(f"{entry.path[:200]!r}: its size or time cannot be right.")


def _check_part(part: ContentPart, drafted: Mapping[str, set[int]]) -> None:
    sizes = drafted.get(part.sha256)
    if sizes is None:
        raise Conflict(f"No draft has a file with the checksum {part.sha256[:12]}….")
    if part.size_bytes not in sizes or part.offset + len(part.content) > part.size_bytes:
        known = " or ".join(f"{each:,}" for each in sorted(sizes))
        raise Invalid(f"The content {part.sha256[:12]}… has {known} bytes in its draft.")


def _why(error: Exception, folder: Path) -> str:
    with suppress(OSError):
        if lacks_room(error) or "full" in str(error) or room_at(folder) < _INDEX_BYTES:
            return "the disk is full"
    if isinstance(error, OSError) and error.errno != errno.ENOENT:
        return error.strerror or str(error)
    return str(error)
