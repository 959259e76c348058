"""The folder of a pool's data, and the changes that the server and supervisors make to it alike.

Each change is whole: there is room for all of it, and contents are on disk before they are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bough.backends.local.data.locations import safe_name
from bough.backends.local.options import LocalOptions
from bough.backends.local.pool_data.contents import Contents
from bough.errors import Conflict, Invalid
from bough.model.pool_data import DataEntry, PoolSpace, data_path_fault

if TYPE_CHECKING:
    from bough.backends.local.pool_data.index import Index

FOLDER = "pool-data"
INDEX = "index.sqlite"


def space_folder(options: LocalOptions, space: PoolSpace) -> Path:
    """The folder of a pool's data."""
    return options.folder / FOLDER / safe_name(space.pool)


@contextmanager
def opened_pool(folder: Path) -> Iterator[tuple[Index, Contents]]:
    """Open the index and the contents of a pool's data; creates them if they are missing."""
    # Loaded by those that use it, because supervisors, which seldom do, are forked often.
    from bough.backends.local.pool_data.index import opened_index  # noqa: PLC0415

    contents = Contents(folder)
    contents.make()
    with opened_index(folder / INDEX) as index:
        yield index, contents


def check_room(index: Index, space: PoolSpace, more: int) -> None:
    """Refuse bytes that do not fit into the pool's quota."""
    used = index.used_bytes()
    if more and used + more > space.quota_bytes:
        raise Conflict(
            f"The data of pool {space.name or space.pool} is full: {shown_size(used)} of "
            f"{shown_size(space.quota_bytes)} are used, and {shown_size(more)} more are needed.",
            hint="remove some (bough data delete), or let an administrator raise its --data-quota",
        )


def keep_contents(
    space: PoolSpace, index: Index, contents: Contents, files: Mapping[str, tuple[Path, int]]
) -> None:
    """Turn files into contents, by checksum, if there is room for all of them.

    They are on disk before the index names them.
    """
    with index.writing():
        known = index.known(files)
        new = {sha256: size for sha256, (_, size) in files.items() if sha256 not in known}
        # Expected contents have their space reserved already.
        check_room(index, space, sum(new[each] for each in new if not index.is_expected(each)))
        for sha256, (path, _) in files.items():
            if sha256 in known:
                path.unlink(missing_ok=True)
            else:
                contents.keep(path, sha256)
        if len(known) < len(files):
            contents.sync()
        for sha256, (_, size) in files.items():
            if sha256 not in known:
                index.add_content(sha256, size)


def publish_draft(index: Index, draft: str, below: str, owner: str, now_ms: int) -> int:
    """Make all files of a draft visible, within a transaction of the caller."""
    found = index.draft_entries(draft)
    if not found:
        raise Conflict("There is nothing to write: the draft is empty, or was written before.")
    sizes = index.sizes(each.sha256 for each in found)
    missing = {each.sha256 for each in found} - sizes.keys()
    if missing:
        raise Conflict(f"{len(missing):,} contents of the draft have not come yet; send them.")
    wrong = next((each for each in found if each.size_bytes != sizes[each.sha256]), None)
    if wrong is not None:
        raise Invalid(
            f"{wrong.path[:200]!r}: its content has {sizes[wrong.sha256]:,} bytes, "
            f"not {wrong.size_bytes:,}."
        )
    entries = [_moved(each, below) for each in found]
    _check_folders(index, [each.path for each in entries])
    index.put_files(entries, now_ms, owner)
    index.drop_draft(draft)
    return len(entries)


def drop_unnamed(index: Index, contents: Contents) -> None:
    """Drop contents that neither a file nor a draft names.

    A crash between the two transactions leaves files that nothing names; these are strays.
    """
    with index.writing():
        dropped = index.unnamed()
        index.forget_contents(dropped)
    if dropped:
        with index.writing():
            # Contents that were uploaded again meanwhile stay.
            for sha256 in set(dropped) - index.known(dropped):
                contents.drop(sha256)


def _moved(entry: DataEntry, below: str) -> DataEntry:
    path = f"{below}/{entry.path}" if below else entry.path
    fault = data_path_fault(path)
    if fault is not None:
        raise Invalid(f"The path {path[:200]!r} is not possible: {fault}.")
    return DataEntry(path, entry.sha256, entry.size_bytes, entry.executable, entry.modified_ns)


def _check_folders(index: Index, paths: Sequence[str]) -> None:
    """No path is a file and a folder at once."""
    above = {
        "/".join(parts[:depth])
        for parts in (path.split("/") for path in paths)
        for depth in range(1, len(parts))
    }
    taken = sorted(above.intersection(paths)) or sorted(index.among_files(sorted(above)))
    if taken:
        raise Conflict(f"{taken[0][:200]} is a file, so nothing can be written below it.")
    folders = next((each for each in paths if index.has_below(each)), None)
    if folders is not None:
        raise Conflict(f"{folders[:200]} is a folder, so no file can have its name.")


def shown_size(size: int) -> str:
    """A size as people write it."""
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"
