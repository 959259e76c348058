"""What the kernel knows of processes: who they are, whose they are, how to end them for sure.

A number of a process is given again after its end; so nothing is ever sent to a number alone.
Must not know what the processes do.
"""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


class Process(msgspec.Struct, frozen=True):
    """A process as the kernel shows it."""

    pid: int
    parent: int
    group: int
    session: int
    #: When it started, in the kernel's own count.
    since: int
    #: It has ended, and only its parent has not looked yet.
    dead: bool


def find_process(pid: int) -> Process | None:
    """A process, if it is there."""
    try:
        content = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name stands in parentheses, and may have more of them within.
    fields = content[content.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        since=int(fields[19]),
        dead=fields[0] in (b"Z", b"X"),
    )


def boot_id() -> str:
    """The identity of the machine's run, from its start to its shutdown."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def children(pid: int) -> list[int]:
    """The children of a process with a single thread."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return [each.pid for each in all_processes() if each.parent == pid]


def descendants(pid: int) -> list[Process]:
    """Everything below a process, also what has ended and was not looked at."""
    found: list[Process] = []
    below: dict[int, list[Process]] | None = None
    waiting = children(pid)
    while waiting:
        each = waiting.pop()
        process = find_process(each)
        if process is None:
            continue
        found.append(process)
        if below is None:
            # What has threads can have children in each of them, so all are looked at.
            below = {}
            for other in all_processes():
                below.setdefault(other.parent, []).append(other)
        waiting += [child.pid for child in below.get(each, [])]
    return found


def all_processes() -> Iterator[Process]:
    """Every process of the machine that can be seen."""
    for name in os.listdir("/proc"):
        if name.isdigit():
            process = find_process(int(name))
            if process is not None:
                yield process


def environment_has(pid: int, entry: bytes) -> bool:
    """Whether a process was started with an entry `NAME=value` in its environment."""
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return entry in content.split(b"\0")


def send_signal(pid: int, since: int, number: int) -> bool:
    """Signal a process if it is still the one that started then; whether it could be."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # From here on the number cannot be given to another, as far as the descriptor goes.
        process = find_process(pid)
        if process is None or process.since != since or process.dead:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        # It is gone, or has the rights of its program's owner and is not ours to signal.
        return False
    finally:
        os.close(descriptor)
    return True


def kill_all(processes: Iterable[Process]) -> int:
    """Kill processes; how many were still alive."""
    return sum(
        send_signal(each.pid, each.since, signal.SIGKILL) for each in processes if not each.dead
    )


def left_of(attempt: str, pid: int, since: int) -> list[Process]:
    """What still lives of an attempt whose supervisor is gone: told by what it was started with."""
    entry = f"BOUGH_ATTEMPT={attempt}".encode()
    return [
        each
        for each in all_processes()
        if not each.dead
        and ((each.pid == pid and each.since == since) or environment_has(each.pid, entry))
    ]


def kill_left(pid: int, attempt: str, others: Collection[int], *, alone: bool) -> bool:
    """Kill what is left of a task that had this number; whether there was anything.

    `others` are children of the supervisor to leave alone; `alone`: no other task lives.
    """
    orphans = [find_process(each) for each in children(os.getpid()) if each not in others]
    entry = f"BOUGH_ATTEMPT={attempt}".encode()
    doomed = [
        each
        for each in orphans
        if each is not None
        and not each.dead
        and (alone or pid in (each.group, each.session) or environment_has(each.pid, entry))
    ]
    if not doomed:
        return False
    # Those at the top first, so that they cannot start anew what is ended below them.
    kill_all(doomed)
    kill_all(_below(doomed))
    return True


def is_left(group: int) -> bool:
    """Whether a process lives that has become the supervisor's child and is of this group."""
    orphans = (find_process(each) for each in children(os.getpid()) if each != group)
    return any(each is not None and not each.dead and each.group == group for each in orphans)


def _below(roots: list[Process]) -> list[Process]:
    found: list[Process] = []
    for each in roots:
        found += descendants(each.pid)
    return found


def adopt_orphans() -> None:
    """Become the parent of whatever this process's descendants leave behind."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def die_with_parent() -> None:
    """Be killed when the parent ends. It does not outlive a change of account."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
