"""The tree that a PodGroup's list of subgroups stands for, also where the list is broken.

Answers which subgroup is below which and in which form the object counts, for the rules and for the
reading alike. It does not judge: what is wrong with the list is for validation to say.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from bough.model.problem import FieldPath

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from bough.model.pod_group import PodGroup

#: The pod set of a PodGroup without subgroups, as pods may call it.
DEFAULT_SUBGROUP = "default"


class Form(StrEnum):
    """How an object counts above its leaves."""

    #: With `minSubGroup`, written at least once.
    NEWER = "newer"
    #: With `minMember`, which counts children there.
    OLDER = "older"


class Entry(msgspec.Struct, frozen=True):
    """The PodGroup itself, or one of its subgroups."""

    #: `None`: the PodGroup itself.
    name: str | None
    path: FieldPath
    min_member: int | None
    min_sub_group: int | None
    #: Those directly below, in spec order.
    children: tuple[str, ...]

    @property
    def is_leaf(self) -> bool:
        """Whether it counts pods."""
        return not self.children


class Outline(msgspec.Struct, frozen=True):
    """A PodGroup's list of subgroups, with the parents looked up."""

    #: The PodGroup itself comes first, then the subgroups in spec order.
    entries: tuple[Entry, ...]
    form: Form
    #: The parent that each subgroup means; where it names none, or an unknown one, the PodGroup.
    parents: dict[str, str | None]
    #: How deep each subgroup is, from 1; those that hang on a cycle have no depth.
    depths: dict[str, int]
    #: Each from its first member in the spec upwards.
    cycles: tuple[tuple[str, ...], ...]

    @property
    def gang(self) -> Entry:
        """The PodGroup itself."""
        return self.entries[0]

    @property
    def leaves(self) -> list[Entry]:
        """The subgroups that hold pods, or the PodGroup itself."""
        return [entry for entry in self.entries if entry.is_leaf]

    def ancestors(self, name: str) -> list[str]:
        """What is above a subgroup, upwards; the subgroup must not hang on a cycle."""
        found: list[str] = []
        above = self.parents[name]
        while above is not None:
            found.append(above)
            above = self.parents[above]
        return found


def outline(pod_group: PodGroup) -> Outline:
    """Look up the parents and tell the form."""
    names = frozenset(subgroup.name for subgroup in pod_group.subgroups)
    parents: dict[str, str | None] = {}
    children: dict[str | None, list[str]] = {}
    for subgroup in pod_group.subgroups:
        parent = find_parent(subgroup.parent, names)
        if subgroup.name not in parents:
            parents[subgroup.name] = parent
            children.setdefault(parent, []).append(subgroup.name)
    entries = tuple(_entries(pod_group, children))
    newer = any(entry.min_sub_group is not None for entry in entries)
    depths, cycles = _walk(parents)
    return Outline(entries, Form.NEWER if newer else Form.OLDER, parents, depths, cycles)


def find_parent(parent: str | None, names: Container[str]) -> str | None:
    """The subgroup that a `parent` means: the one of that name, else of that name in lower case."""
    if not parent:
        return None
    return parent if parent in names else parent.lower() if parent.lower() in names else None


def _entries(pod_group: PodGroup, children: dict[str | None, list[str]]) -> Iterator[Entry]:
    below = tuple(children.get(None, ()))
    yield Entry(None, ("spec",), pod_group.min_member, pod_group.min_sub_group, below)
    for index, subgroup in enumerate(pod_group.subgroups):
        yield Entry(
            name=subgroup.name,
            path=("spec", "subGroups", index),
            min_member=subgroup.min_member,
            min_sub_group=subgroup.min_sub_group,
            children=tuple(children.get(subgroup.name, ())),
        )


def _walk(parents: dict[str, str | None]) -> tuple[dict[str, int], tuple[tuple[str, ...], ...]]:
    """Follow the parents of each subgroup once: depths, and cycles where there is no top."""
    depths: dict[str, int] = {}
    cycles: list[tuple[str, ...]] = []
    tangled: set[str] = set()
    for start in parents:
        steps: dict[str, None] = {}
        above: str | None = start
        while not (above is None or above in depths or above in tangled or above in steps):
            steps[above] = None
            above = parents[above]
        line = list(steps)
        if above in steps:
            cycles.append(tuple(line[line.index(above) :]))
        if above in steps or above in tangled:
            tangled.update(line)
            continue
        top = 0 if above is None else depths[above]
        depths.update((name, top + len(line) - index) for index, name in enumerate(line))
    return depths, tuple(cycles)
