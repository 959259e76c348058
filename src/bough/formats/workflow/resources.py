"""What tasks of a workflow ask for, by the names under `resources`, and which share a domain.

Each level of a topology divides the tasks of a group by the domain (`group`) that they name; tasks
with the same names down to a level share a domain of it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.workflow.values import folded, read_word, read_words
from bough.formats.yaml.quantity import CPU
from bough.model.cluster import Resources
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import SubGroupSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bough.formats.yaml.fields import Fields

DEFAULT_RESOURCE = "default"
#: A domain that is not named.
DEFAULT_DOMAIN = "default"
#: More than any machine has; larger numbers are mistakes.
_MOST = {"gpu": 10**6, "cpu": 10**9, "memory": 2**60, "storage": 2**60}
_LONGEST_NAME = 63
#: More levels than any topology has.
MAXIMUM_LEVELS = 16


class Requirement(StrEnum):
    """Whether a topology level must hold, or only should."""

    REQUIRED = "required"
    PREFERRED = "preferred"


class DomainRequest(NamedTuple):
    """A level of the topology, and the domain of it that tasks share."""

    key: str
    domain: str
    requirement: Requirement


class NamedResources(NamedTuple):
    """What a named entry of `resources` asks for."""

    requests: Resources = Resources()
    storage_bytes: int = 0
    platform: str | None = None
    nodes_excluded: tuple[str, ...] = ()
    #: The widest first.
    levels: tuple[DomainRequest, ...] = ()


class Arrangement(NamedTuple):
    """Which tasks are together: all of a group, and parts of it."""

    constraint: TopologyConstraint | None = None
    subgroups: tuple[SubGroupSpec, ...] = ()
    #: The subgroup of each task, by position; empty where there are no subgroups.
    leaves: tuple[str, ...] = ()
    #: The keys, the widest first.
    levels: tuple[str, ...] = ()


def read_resources(fields: Fields | None) -> dict[str, NamedResources]:
    """Everything that can be asked for, by name."""
    if fields is None:
        return {DEFAULT_RESOURCE: NamedResources()}
    return {name: _read_wanted(fields.child(name)) for name in fields.names()}


def arrange(fields: Fields, levels: Sequence[tuple[DomainRequest, ...]]) -> Arrangement:
    """Which tasks of a group are together, from the topology that each of them names."""
    keys = [tuple(level.key for level in each) for each in levels]
    if len(set(keys)) > 1:
        fields.error("tasks", "the tasks of a group have the same topology keys, or none")
        return Arrangement()
    if not keys or not keys[0]:
        return Arrangement()
    builder = _Builder(levels)
    for index in builder.differing():
        level = levels[index][0]
        fields.error(
            "tasks",
            f"tasks that share the domain {level.domain!r} of {level.key!r} must all have it "
            "required, or all preferred",
        )
        return Arrangement()
    everyone = range(len(levels))
    shared = builder.shared(everyone, 0)
    constraint = merged(levels[0][:shared])
    if shared == len(keys[0]):
        return Arrangement(constraint, levels=keys[0])
    builder.divide(everyone, shared, None)
    return Arrangement(constraint, tuple(builder.subgroups), tuple(builder.leaves), keys[0])


def merged(levels: Sequence[DomainRequest]) -> TopologyConstraint | None:
    """Levels that the same tasks share, as one constraint: a narrower level implies the wider."""
    required: str | None = None
    preferred: str | None = None
    for level in levels:
        if level.requirement is Requirement.REQUIRED:
            required, preferred = level.key, None
        else:
            preferred = level.key
    if required is None and preferred is None:
        return None
    return TopologyConstraint(required=required, preferred=preferred)


def unique_name(wanted: str, taken: set[str]) -> str:
    """A new name for a subgroup without one, which is taken from now on."""
    name = start = folded(wanted)[: _LONGEST_NAME - 8].strip("-.")
    number = 2
    while name in taken:
        name, number = f"{start}-{number}", number + 1
    taken.add(name)
    return name


class _Builder:
    """Divides tasks by the domains that they name, level by level."""

    def __init__(self, levels: Sequence[tuple[DomainRequest, ...]]) -> None:
        self.levels = levels
        self.subgroups: list[SubGroupSpec] = []
        self.leaves = [""] * len(levels)
        self._taken: set[str] = set()

    def differing(self) -> Iterator[int]:
        """Tasks that share a domain with others but disagree on whether it is required."""
        found: dict[tuple[str, ...], Requirement] = {}
        for index, levels in enumerate(self.levels):
            path: tuple[str, ...] = ()
            for level in levels:
                path = (*path, level.domain)
                if found.setdefault(path, level.requirement) is not level.requirement:
                    yield index

    def shared(self, tasks: Sequence[int], start: int) -> int:
        """How many levels, counted from the top, all these tasks share."""
        depth = start
        while depth < len(self.levels[tasks[0]]):
            if len({self.levels[task][depth].domain for task in tasks}) > 1:
                break
            depth += 1
        return depth

    def divide(self, tasks: Sequence[int], depth: int, parent: str | None) -> None:
        """Make a subgroup for each domain of a level, and for those below it."""
        parts: dict[str, list[int]] = {}
        for task in tasks:
            parts.setdefault(self.levels[task][depth].domain, []).append(task)
        for domain, members in parts.items():
            name = unique_name(f"{parent}-{domain}" if parent else domain, self._taken)
            below = self.shared(members, depth)
            levels = self.levels[members[0]]
            leaf = below == len(levels)
            self.subgroups.append(
                SubGroupSpec(
                    name=name,
                    parent=parent,
                    min_member=len(members) if leaf else None,
                    constraint=merged(levels[depth:below]),
                )
            )
            if leaf:
                for task in members:
                    self.leaves[task] = name
            else:
                self.divide(members, below, name)


def _read_wanted(fields: Fields) -> NamedResources:
    amounts = {name: _read_amount(fields, name) for name in _MOST}
    return NamedResources(
        requests=Resources(amounts["gpu"], amounts["cpu"], amounts["memory"]),
        storage_bytes=amounts["storage"],
        platform=read_word(fields, "platform"),
        nodes_excluded=read_words(fields, "nodesExcluded"),
        levels=tuple(_read_levels(fields)),
    )


def _read_amount(fields: Fields, name: str) -> int:
    amount = fields.optional_quantity(name, name) or 0
    if amount < 0:
        unit = "m" if name == CPU else ""
        fields.error(name, f"is {amount}{unit}, but must not be negative")
    elif amount > _MOST[name]:
        fields.error(name, "is more than any machine has")
    return max(amount, 0)


def _read_levels(fields: Fields) -> Iterator[DomainRequest]:
    seen: set[str] = set()
    levels = fields.children("topology")
    if len(levels) > MAXIMUM_LEVELS:
        fields.error("topology", f"has {len(levels)} levels; at most {MAXIMUM_LEVELS} are possible")
        for each in levels:
            each.ignore(*each.names())
        return
    for each in levels:
        key = read_word(each, "key", required=True) or ""
        domain = read_word(each, "group") or DEFAULT_DOMAIN
        if key in seen:
            each.error("key", f"{key[:60]!r} stands here twice")
        seen.add(key)
        if not folded(domain)[:1].isalnum():
            each.error("group", f"{domain[:60]!r} does not begin with a letter or digit")
        yield DomainRequest(
            key, domain, each.choice("requirementType", Requirement, Requirement.REQUIRED)
        )
