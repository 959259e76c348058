"""Where the kernel's control groups are mounted, and in which of them this process is.

Reads both versions, also side by side.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bough.backends.local.sandbox.syscalls import Mounted, read_mounts

CPU, MEMORY, PIDS, DEVICES = "cpu", "memory", "pids", "devices"
UNIFIED = "unified"
_MOUNTS = Path("/proc/self/mountinfo")
_OWN = Path("/proc/self/cgroup")


class Hierarchy(msgspec.Struct, frozen=True):
    """A tree of control groups, as it is mounted here."""

    #: Version 1: its controllers; version 2: `unified`.
    controllers: tuple[str, ...]
    mount: Path
    #: The group of this process, below the mount.
    own: Path

    @property
    def unified(self) -> bool:
        """Whether it is version 2."""
        return UNIFIED in self.controllers

    def ancestors(self) -> tuple[Path, ...]:
        """The group of this process and all above it, as far as they are mounted."""
        found = [self.own]
        while found[-1] != self.mount:
            found.append(found[-1].parent)
        return tuple(found)


def find_hierarchies() -> tuple[Hierarchy, ...]:
    """The trees that are mounted here, if any."""
    try:
        return read_hierarchies(
            _MOUNTS.read_text(errors="surrogateescape"), _OWN.read_text(errors="surrogateescape")
        )
    except OSError:
        return ()


def read_hierarchies(mounts: str, own: str) -> tuple[Hierarchy, ...]:
    """The trees, from the texts of /proc."""
    groups = dict(_read_groups(own))
    found: dict[tuple[str, ...], Hierarchy] = {}
    for each in read_mounts(mounts):
        controllers = _controllers(each, groups)
        if controllers is None or controllers in found:
            continue
        mount = Path(each.path)
        below = _below(groups[controllers], each.root)
        found[controllers] = Hierarchy(controllers, mount, mount / below)
    return tuple(found.values())


def controlling(hierarchies: tuple[Hierarchy, ...], controller: str) -> Hierarchy | None:
    """The tree of version 1 with this controller, else the one of version 2."""
    for each in hierarchies:
        if controller in each.controllers:
            return each
    return next((each for each in hierarchies if each.unified), None)


def _read_groups(text: str) -> list[tuple[tuple[str, ...], str]]:
    """The group of this process in each tree, by the controllers of the tree."""
    found: list[tuple[tuple[str, ...], str]] = []
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        key = (UNIFIED,) if number == "0" and not controllers else tuple(controllers.split(","))
        found.append((key, path))
    return found


def _controllers(mounted: Mounted, groups: dict[tuple[str, ...], str]) -> tuple[str, ...] | None:
    """The controllers of a tree; `None`: it is none, or this process is not in it."""
    if mounted.kind == "cgroup2":
        return (UNIFIED,) if (UNIFIED,) in groups else None
    if mounted.kind != "cgroup":
        return None
    told = mounted.system_options
    return next((each for each in groups if each != (UNIFIED,) and told.issuperset(each)), None)


def _below(group: str, root: str) -> str:
    """The path of a group below the mount; empty if the group is not mounted."""
    if root != "/":
        if group != root and not group.startswith(root + "/"):
            return ""
        group = group.removeprefix(root)
    return "" if ".." in group.split("/") else group.lstrip("/")
