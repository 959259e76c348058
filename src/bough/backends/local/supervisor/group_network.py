"""The network of a group, held by its supervisors and found by those that come later.

Each supervisor of a group keeps the namespaces and the way out open. It writes down where, so that
another one of the same group, or the server, opens them again through /proc. What has ended, also
by a kill, holds nothing any more; its record is recognised by the start time of the process.

networks/<group>/<process>   one record for each supervisor of a group
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.errors import Unstartable
from bough.backends.local.sandbox.network import (
    Namespaces,
    NetworkSetup,
    WayOut,
    make_namespaces,
    open_way_out,
)
from bough.backends.local.supervisor.processes import find_process, start_of
from bough.durable_files import write_whole
from bough.errors import Unavailable

#: How often a way out is made again, so that a broken one is not made for ever.
_REOPENED = 20


class HeldNetwork(msgspec.Struct, frozen=True):
    """A record: which descriptors of a process are the network of a group."""

    pid: int
    #: When the process started, by the kernel's count, because process ids are reused.
    since: int
    workflow_id: str
    group: str
    network: int
    user: int | None = None
    #: The end of a pipe by which the way out is held.
    hold: int | None = None


class GroupAddress(msgspec.Struct, frozen=True):
    """Where something listens in the network of a group."""

    workflow_id: str
    group: str
    port: int
    host: str = "127.0.0.1"


class GroupNetwork:
    """The network of a group, as one of its supervisors holds it."""

    def __init__(
        self,
        setup: NetworkSetup | None,
        namespaces: Namespaces,
        record: Path,
        hold: int | None = None,
    ) -> None:
        self.namespaces = namespaces
        #: Holds a way out that another supervisor has made.
        self._hold = hold
        self._setup = setup
        self._record = record
        self._way_out: WayOut | None = None
        self._reopened = 0

    @property
    def pids(self) -> tuple[int, ...]:
        """The process that makes the way out, if it is a child of this one."""
        return () if self._way_out is None else (self._way_out.pid,)

    def open_way_out(self) -> int | None:
        """Begin to make a way out, if one is wanted; returns the end of the pipe that holds it."""
        if self._setup is None or self._setup.slirp is None:
            return None
        before = None if self._way_out is None else self._way_out.pipe
        self._way_out = open_way_out(self._setup, self.namespaces, before)
        return self._way_out.pipe[1]

    def wait(self) -> None:
        """Wait until the way out can be used, if this process has begun to make it."""
        if self._way_out is not None:
            self._way_out.wait()

    def reopen(self, ended: int) -> None:
        """Make the way out again if it was made by a process that has ended now."""
        if self._way_out is None or self._way_out.pid != ended or self._reopened >= _REOPENED:
            return
        self._reopened += 1
        with contextlib.suppress(Unstartable):
            self.open_way_out()

    def close(self) -> None:
        """Release it; the gateway ends when no supervisor of the group holds it any more."""
        pipe = () if self._way_out is None else self._way_out.pipe
        held = () if self._hold is None else (self._hold,)
        for each in (*self.namespaces.descriptors, *pipe, *held):
            os.close(each)

    def forget(self) -> None:
        """The supervisor ends: another one must not look here."""
        with contextlib.suppress(OSError):
            self._record.unlink()
            _remove_unused(self._record.parent)


def hold_network(
    folders: Folders, setup: NetworkSetup | None, workflow_id: str, group: str
) -> GroupNetwork | None:
    """Hold the network of a group, which is made if there is none; `None`: this machine's."""
    folder = _folder(folders, workflow_id, group)
    if setup is None and not folder.exists():
        return None
    with _alone(folder):
        path = folder / str(os.getpid())
        found = _open_live(folder)
        if found is None:
            if setup is None:
                return None
            network = GroupNetwork(setup, make_namespaces(setup.kind), path)
            hold = network.open_way_out()
        else:
            hold = found[1]
            network = GroupNetwork(None, found[0], path, hold)
        record = HeldNetwork(
            os.getpid(),
            start_of(os.getpid()),
            workflow_id,
            group,
            *network.namespaces,
            hold,
        )
        write_whole(path, msgspec.json.encode(record), durably=False)
    return network


def connect_into(
    folders: Folders, wanted: GroupAddress, timeout_s: float, *, own_network: bool
) -> socket.socket:
    """A connection to an address within the network of a group.

    Called in a process that was forked for it and has one thread: it enters the network. Where
    groups share this machine's network, it is made there.
    """
    found = _open_live(_folder(folders, wanted.workflow_id, wanted.group))
    if found is not None:
        found[0].join()
    elif own_network:
        raise Unavailable("no task of it runs in a network of its own")
    made = socket.create_connection((wanted.host, wanted.port), timeout_s)
    made.setblocking(True)
    return made


def forget_gone(folders: Folders) -> None:
    """Remove the records of supervisors that were killed."""
    with contextlib.suppress(FileNotFoundError):
        for folder in list(folders.networks.iterdir()):
            for path in list(folder.iterdir()):
                if _read_live(path) is None:
                    path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                _remove_unused(folder)


def _folder(folders: Folders, workflow_id: str, group: str) -> Path:
    digest = hashlib.sha256(f"{workflow_id}\0{group}".encode()).hexdigest()
    return folders.networks / digest[:32]


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Make the folder of a group, and let no other process change it meanwhile."""
    while True:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # The last supervisor of the group may have removed it in between.
            if os.fstat(descriptor).st_nlink:
                yield
                return
        finally:
            os.close(descriptor)


def _remove_unused(folder: Path) -> None:
    """Remove the folder of a group, unless it is used, or a supervisor is about to use it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.rmdir()
    finally:
        os.close(descriptor)


def _open_live(folder: Path) -> tuple[Namespaces, int | None] | None:
    """The namespaces of a group, and what holds its way out, from a supervisor that lives."""
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return None
    for path in paths:
        record = _read_live(path)
        if record is None:
            continue
        with contextlib.suppress(OSError):
            return _open_of(record)
    return None


def _open_of(record: HeldNetwork) -> tuple[Namespaces, int | None]:
    opened: list[int] = []

    def reopen(number: int, mode: int = os.O_RDONLY) -> int:
        opened.append(os.open(f"/proc/{record.pid}/fd/{number}", mode | os.O_CLOEXEC))
        return opened[-1]

    try:
        network = reopen(record.network)
        user = None if record.user is None else reopen(record.user)
        hold = None
        if record.hold is not None:
            # It cannot be opened where nothing makes a way out any more.
            with contextlib.suppress(OSError):
                hold = reopen(record.hold, os.O_WRONLY | os.O_NONBLOCK)
        # Still the same process, so these are its descriptors and not those of another one.
        found = find_process(record.pid)
        if found is None or found.since != record.since:
            raise ProcessLookupError
        return Namespaces(network, user), hold
    except BaseException:
        for each in opened:
            os.close(each)
        raise


def _read_live(path: Path) -> HeldNetwork | None:
    try:
        record = msgspec.json.decode(path.read_bytes(), type=HeldNetwork)
    except (OSError, msgspec.DecodeError):
        return None
    found = find_process(record.pid)
    alive = found is not None and found.since == record.since and not found.dead
    return record if alive else None
