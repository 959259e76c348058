"""The state of an attempt: one small file, whose room on the disk is reserved before it starts.

The file has a page for each event of an attempt's life, each written by one side alone. So the end
can be recorded when the disk is full, and two writers never wait for each other. The supervisor of
an attempt holds a lock on the file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import msgspec

PAGE = 4_096
#: The longest message of an end; the rest of its page is for everything else.
MESSAGE_CHARACTERS = 600
_LOCK = "hhqqi4x"


class Acceptance(msgspec.Struct, frozen=True):
    """The server accepted it. Page 0, with which the file appears."""

    attempt: str
    node: str
    accepted_ms: int
    #: The kernel's id of the boot, to notice restarts of the machine.
    boot: str
    gpu_indices: tuple[int, ...] = ()


class StopRequest(msgspec.Struct, frozen=True):
    """It must end. Page 1, written by the server."""

    reason: str
    grace_s: int
    at_ms: int


class SupervisorProcess(msgspec.Struct, frozen=True):
    """The process that supervises it. Page 2, written by the supervisor."""

    pid: int
    #: When that process started, by the kernel's count, because process ids are reused.
    pid_since: int
    #: Its tasks have a network of their group; those of older versions have this machine's.
    own_network: bool = False


class Begun(msgspec.Struct, frozen=True):
    """It may have run. Page 3, written by the supervisor before the program starts."""

    pid: int
    pid_since: int
    #: When its program was started; the second by CLOCK_BOOTTIME, which is never set.
    started_ms: int | None = None
    started_boot_ms: int | None = None


class AttemptEnd(msgspec.Struct, frozen=True):
    """How it ended. Page 4, written by the supervisor, or by the server if that is gone."""

    #: One of model.backend.Sight.
    sight: str
    at_ms: int
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""
    #: Lines of its log that could not be written, and that the log does not mention.
    lost_lines: int = 0
    #: When, by CLOCK_BOOTTIME; and whether it was told to end before its process ended. Earlier
    #: versions wrote neither.
    boot_ms: int | None = None
    told: bool | None = None


class AttemptState(msgspec.Struct, frozen=True):
    """All pages."""

    accepted: Acceptance
    stop_request: StopRequest | None = None
    supervisor: SupervisorProcess | None = None
    begun: Begun | None = None
    end: AttemptEnd | None = None


_KINDS = (Acceptance, StopRequest, SupervisorProcess, Begun, AttemptEnd)
_NAMES = AttemptState.__struct_fields__
_PAGES: dict[type[msgspec.Struct], int] = {kind: number for number, kind in enumerate(_KINDS)}
# Made here and not on first use, because several threads read states at once.
_DECODERS = tuple(msgspec.json.Decoder(kind) for kind in _KINDS)
_ENCODER = msgspec.json.Encoder()


def create_state(path: Path, accepted: Acceptance, *more: StopRequest | AttemptEnd) -> None:
    """Make the file, whole or not at all, with room for all pages."""
    part = path.with_suffix(".part")
    descriptor = os.open(part, os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        _reserve(descriptor, len(_KINDS) * PAGE)
        for each in (accepted, *more):
            _put(descriptor, each)
    finally:
        os.close(descriptor)
    part.rename(path)


def read_state(path: Path) -> AttemptState | None:
    """Read all pages; `None`: there is no such attempt."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return _get(descriptor)
    finally:
        os.close(descriptor)


def write_state(path: Path, each: StopRequest | AttemptEnd) -> None:
    """Write one page."""
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        _put(descriptor, each)
    finally:
        os.close(descriptor)


def look(path: Path) -> tuple[AttemptState | None, bool]:
    """Read all pages, and whether a supervisor has the attempt now."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None, False
    try:
        while True:
            # In this order: a supervisor that exits in between has written everything before.
            held = _held(descriptor)
            state = _get(descriptor)
            if held or state is None or state.supervisor is None:
                return state, held
            # One that came in between has written its page; it is there, or has exited since.
            if not _held(descriptor) and _get(descriptor) == state:
                return state, False
    finally:
        os.close(descriptor)


class AttemptLock:
    """The lock of an attempt's supervisor, held while this process or a fork of it lives."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)

    def take(self) -> bool:
        """Take the lock, if it is free."""
        lock = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        try:
            fcntl.fcntl(self._descriptor, fcntl.F_OFD_SETLK, lock)
        except OSError as error:
            if error.errno in (errno.EAGAIN, errno.EACCES):
                return False
            raise
        return True

    def read(self) -> AttemptState | None:
        """Read all pages."""
        return _get(self._descriptor)

    def write(self, each: SupervisorProcess | Begun | AttemptEnd, *, durably: bool = False) -> None:
        """Write one page; if durably, it survives a crash of the machine."""
        _put(self._descriptor, each)
        if durably:
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Release the lock."""
        os.close(self._descriptor)


def _held(descriptor: int) -> bool:
    """Whether the lock is held, without taking it even for a moment."""
    asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    found = fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked)
    return struct.unpack(_LOCK, found)[0] != fcntl.F_UNLCK


def _reserve(descriptor: int, size: int) -> None:
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        os.pwrite(descriptor, bytes(size), 0)


def _put(descriptor: int, each: msgspec.Struct) -> None:
    """A page is a checksum and the record: a half-written page counts as empty."""
    text = _ENCODER.encode(_shortened(each))
    page = b"%08x%s\n" % (zlib.crc32(text), text)
    if len(page) > PAGE:
        raise ValueError(f"a record of {len(page)} bytes does not fit into {PAGE}")
    os.pwrite(descriptor, page.ljust(PAGE, b"\0"), _PAGES[type(each)] * PAGE)


def _shortened(each: msgspec.Struct) -> msgspec.Struct:
    if isinstance(each, AttemptEnd) and len(each.message) > MESSAGE_CHARACTERS:
        return msgspec.structs.replace(each, message=f"{each.message[:MESSAGE_CHARACTERS]}…")
    return each


def _get(descriptor: int) -> AttemptState | None:
    content = os.pread(descriptor, len(_KINDS) * PAGE, 0)
    found: dict[str, Any] = {}
    for number, (name, decoder) in enumerate(zip(_NAMES, _DECODERS, strict=True)):
        page = content[number * PAGE : (number + 1) * PAGE]
        end = page.find(b"\n")
        if end < 8 or page[:8] != b"%08x" % zlib.crc32(page[8:end]):
            continue
        found[name] = decoder.decode(page[8:end])
    return AttemptState(**found) if "accepted" in found else None
