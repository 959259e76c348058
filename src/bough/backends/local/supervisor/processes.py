"""Processes of this machine: finding them, and killing what a task left behind.

Process ids are reused, so a signal is only sent if the start time of the process fits, too.

Orphans of tasks become children of the supervisor. Where it has several tasks, an orphan belongs to
the one whose process group, session or environment it has; one that has none of these is killed
with the last task.
"""

from __future__ import annotations

import functools
import os
import signal
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import msgspec


class Process(msgspec.Struct, frozen=True):
    """A process as the kernel shows it."""

    pid: int
    parent: int
    group: int
    session: int
    #: When it started, by the kernel's count.
    since: int
    #: It has ended, and its parent has not waited for it yet.
    dead: bool


def find_process(pid: int) -> Process | None:
    """A process, if it exists."""
    try:
        with open(f"/proc/{pid}/stat", "rb", 0) as file:
            content = file.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name is in parentheses, and can contain some itself.
    fields = content[content.rindex(b")") + 2 :].split()
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        since=int(fields[19]),
        dead=fields[0] in (b"Z", b"X"),
    )


@functools.cache
def start_of(pid: int) -> int:
    """When this very process started, by the kernel's count, which does not change."""
    process = find_process(pid)
    return 0 if process is None else process.since


def boot_id() -> str:
    """The kernel's id of this boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def children(pid: int) -> list[int]:
    """The children of a process with one thread."""
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return [each.pid for each in all_processes() if each.parent == pid]


def descendants(pid: int) -> list[Process]:
    """All descendants of a process, those that have ended included."""
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
            # Each thread of a process can have children, so all processes are read.
            below = {}
            for other in all_processes():
                below.setdefault(other.parent, []).append(other)
        waiting += [child.pid for child in below.get(each, [])]
    return found


def all_processes() -> Iterator[Process]:
    """All processes of the machine that can be read."""
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
    """Signal a process if it is still the one that started then; whether that was possible."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        # From here on the descriptor stands for this process, even if its id is reused.
        process = find_process(pid)
        if process is None or process.since != since or process.dead:
            return False
        signal.pidfd_send_signal(descriptor, number)
    except (ProcessLookupError, PermissionError):
        # It is gone, or is a set-user-ID program that we cannot signal.
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
    """The live processes of an attempt whose supervisor died, found by their environment."""
    entry = f"BOUGH_ATTEMPT={attempt}".encode()
    return [
        each
        for each in all_processes()
        if not each.dead
        and ((each.pid == pid and each.since == since) or environment_has(each.pid, entry))
    ]


def kill_left(pid: int, attempt: str, others: Collection[int], *, alone: bool) -> bool:
    """Kill what is left of a task with this process id; whether there was anything.

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
    # Parents first, so that they cannot restart their children.
    kill_all(doomed)
    kill_all(_below(doomed))
    return True


def is_left(group: int) -> bool:
    """Whether an orphan of this process group lives."""
    orphans = (find_process(each) for each in children(os.getpid()) if each != group)
    return any(each is not None and not each.dead and each.group == group for each in orphans)


def _below(roots: list[Process]) -> list[Process]:
    found: list[Process] = []
    for each in roots:
        found += descendants(each.pid)
    return found
