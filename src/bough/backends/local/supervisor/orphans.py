"""Ends what a task has left behind: its process group, and what went away from there.

What a task leaves without a parent becomes the keeper's own child. Where several tasks have one
keeper, a child is told by its group, its session or the environment that it was started with;
what can be told by none of them is ended with the last of the tasks. Must not know why.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from bough.backends.local.supervisor.processes import (
    Process,
    children,
    descendants,
    environment_has,
    find_process,
    kill_all,
)


def kill_left(pid: int, attempt: str, others: Collection[int], *, alone: bool) -> bool:
    """Kill what is left of a task that had this number; whether there was anything.

    `others` are children of the keeper that are not to be touched; `alone`: no other task lives.
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
    """Whether a process lives that has become the keeper's child and is of this group."""
    orphans = (find_process(each) for each in children(os.getpid()) if each != group)
    return any(each is not None and not each.dead and each.group == group for each in orphans)


def _below(roots: list[Process]) -> list[Process]:
    found: list[Process] = []
    for each in roots:
        found += descendants(each.pid)
    return found
