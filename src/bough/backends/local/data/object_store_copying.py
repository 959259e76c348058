"""Copies folders of tasks from and to object stores; run by supervisors, outside of sandboxes.

Inputs are downloaded to a folder that the task does not see, and given to the task when all of them
are there. The folder lasts as long as the task, so a process that replaces a killed one finds what
was downloaded.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from functools import partial
from pathlib import Path

from bough.backends.local.data.copying import Copied
from bough.backends.local.data.file_name_patterns import matching
from bough.backends.local.data.paths import open_below, opened
from bough.backends.local.data.walking import READ_FILE, READ_FOLDER, Found, Walk
from bough.backends.local.errors import CopyFailed
from bough.backends.local.task_command import Copy, StorePlace
from bough.errors import BoughError
from bough.model.object_store import StoreUrl, read_store_url
from bough.model.pool_data import data_path_fault
from bough.object_stores.downloading import Fetch
from bough.object_stores.listing import list_objects
from bough.object_stores.opening import open_store
from bough.object_stores.uploading import FileToSend, Sending

_FILE, _FOLDER = 0o644, 0o755


def fetch_from_store(copy: Copy, place: StorePlace) -> Copied:
    """Make a folder of everything at a URL; an empty one if there is nothing."""
    url = _url(place)
    found = list_objects(open_store(url, place.credential), url, copy.bounds.files)
    chosen = [found[number] for number in matching(copy.regex, [each.name for each in found])]
    size = sum(each.size_bytes for each in chosen)
    if size > copy.bounds.bytes:
        raise CopyFailed(f"{url} has {size:,} bytes, and at most {copy.bounds.bytes:,} are copied")
    target = Path(copy.target)
    name = hashlib.sha256(f"{target.name}\0{url}".encode()).hexdigest()[:32]
    folder = Path(place.progress) / f"{name}.input"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        Fetch(url, place.credential, folder).fetch(chosen)
        _drop_others(folder, {each.name for each in chosen})
        _open_to_all(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rmdir()
        folder.rename(target)
    except OSError as error:
        raise CopyFailed(f"{url} could not be read: {error.strerror or error}") from error
    return Copied(len(chosen), size)


def send_to_store(copy: Copy, place: StorePlace) -> Copied:
    """Upload a folder or a file of a task to a URL; each file appears when it is complete."""
    try:
        with opened(Path(copy.source).parent) as parent:
            return _send(copy, place, parent)
    except BoughError:
        raise
    except FileNotFoundError:
        if copy.optional:
            return Copied()
        raise CopyFailed(f"{copy.source} is not there") from None
    except OSError as error:
        raise CopyFailed(f"{place.url} could not be written: {error.strerror or error}") from error


def _send(copy: Copy, place: StorePlace, parent: int) -> Copied:
    url = _url(place)
    walk = Walk(copy.source, copy.bounds)
    name = Path(copy.source).name
    kind = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    if stat.S_ISREG(kind):
        source = os.dup(parent)
        walk.found.append(Found((name,), kind))
    elif stat.S_ISDIR(kind):
        source = os.open(name, READ_FOLDER, dir_fd=parent)
        walk.find(os.dup(source), ())
        if copy.named:
            url = url._replace(path=f"{url.path}/{name}" if url.path else name)
    else:
        raise CopyFailed(f"{copy.source} is neither a file nor a folder")
    try:
        files: list[FileToSend] = []
        for number in matching(copy.regex, ["/".join(each.parts) for each in walk.found]):
            each = walk.found[number]
            path = "/".join(each.parts)
            fault = data_path_fault(path)
            if fault is not None or not stat.S_ISREG(each.mode):
                walk.skip(each.parts, fault or "links are not kept")
                continue
            files.append(FileToSend(path, partial(_open, source, each.parts)))
        sent = Sending(url, place.credential, Path(place.progress)).send(files)
    finally:
        os.close(source)
    for path in sent.changed:
        walk.skip(tuple(path.split("/")), "it was being written")
    return Copied(sent.files, sent.bytes, tuple(walk.skipped))


def _open(source: int, parts: tuple[str, ...]) -> int | None:
    """Open a file of a task, without following a link; `None`: it no longer exists."""
    try:
        folder = open_below(source, parts[:-1])
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        file = os.open(parts[-1], READ_FILE, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ELOOP):
            return None
        raise
    finally:
        os.close(folder)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        return None
    return file


def _drop_others(folder: Path, names: set[str]) -> None:
    """Remove files of an earlier attempt that are no longer at the URL."""
    for above, _, files in os.walk(folder):
        for file in files:
            path = Path(above, file)
            if str(path.relative_to(folder)) not in names:
                path.unlink()


def _open_to_all(folder: Path) -> None:
    """Make everything readable for the task's account."""
    for above, _, files in os.walk(folder):
        Path(above).chmod(_FOLDER)
        for each in files:
            Path(above, each).chmod(_FILE)


def _url(place: StorePlace) -> StoreUrl:
    found = read_store_url(place.url)
    if found is None:
        raise CopyFailed(f"{place.url} names no bucket")
    return found
