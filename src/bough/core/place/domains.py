"""Topologies as masks of nodes: the domains of each level, how much is free in each of them.

A domain is all label values from the widest level down, so racks of one name in two zones are two
domains. A node that lacks any of the labels is outside of the topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from bough.core.gang.topology import levels_named
from bough.core.place.columns import CPU, GPUS
from bough.core.place.node_bits import positions
from bough.core.place.node_index import Index
from bough.model.cluster import Node, Topology, TopologyLevel
from bough.model.gang import NODE_LABEL, TopologyConstraint

#: The domain of a node that is outside of the topology.
OUTSIDE = -1


class Level:
    """The domains of one level, in the order of their ids."""

    __slots__ = ("ids", "label", "masks", "name", "of_node")

    def __init__(self, label: str, name: str, paths: Sequence[tuple[str, ...] | None]) -> None:
        self.label = label
        #: The alias if there is one: what people call it.
        self.name = name
        found = sorted({path for path in paths if path is not None}, key=lambda p: (".".join(p), p))
        self.ids = tuple(".".join(path) for path in found)
        number = {path: at for at, path in enumerate(found)}
        #: For each node: its domain, or `OUTSIDE`.
        self.of_node = [OUTSIDE if path is None else number[path] for path in paths]
        self.masks = [0] * len(found)
        for at, domain in enumerate(self.of_node):
            if domain != OUTSIDE:
                self.masks[domain] |= 1 << at

    def holding(self, nodes: int) -> int:
        """All nodes of the domains to which some of these nodes belong."""
        union = 0
        while nodes:
            first = nodes & -nodes
            domain = self.of_node[first.bit_length() - 1]
            mask = first if domain == OUTSIDE else self.masks[domain]
            nodes &= ~mask
            union |= 0 if domain == OUTSIDE else mask
        return union


class Domains:
    """One topology over the nodes of an index."""

    def __init__(self, topology: Topology, index: Index) -> None:
        self.name = topology.name
        self._topology = topology
        labels = [level.label for level in topology.levels]
        self.levels = tuple(
            Level(
                level.label,
                level.alias or level.label,
                [_path(node, labels, depth) for node in index.nodes],
            )
            for depth, level in enumerate(topology.levels, start=1)
        )
        self.inside = 0
        for mask in self.levels[0].masks if self.levels else ():
            self.inside |= mask
        #: For each level but the last: the domains of the next one that belong to each domain.
        self.below = [_below(wide, fine) for wide, fine in pairwise(self.levels)]
        self._index = index
        self._read = 0
        self._rows = list(index.later)
        self._free = {column: self._sums(column) for column in (GPUS, CPU)}

    def number(self, level: str) -> int | None:
        """Which level is called so, if there is just one; 0 is the widest."""
        meant = levels_named(self._topology, level)
        return meant[0] if len(meant) == 1 else None

    def around(self, nodes: int, finest: int) -> tuple[int, int] | None:
        """The level and number of the narrowest domain that holds all of these nodes, if any does.

        It is not finer than `finest`; nodes outside of the topology do not count.
        """
        nodes &= self.inside
        if not nodes:
            return None
        first = next(positions(nodes))
        for at in range(finest, -1, -1):
            level = self.levels[at]
            number = level.of_node[first]
            if not nodes & ~level.masks[number]:
                return at, number
        return None

    def free(self, level: int, column: int) -> Sequence[int]:
        """How much of GPUS or CPU will be free later in each domain of a level."""
        self._follow()
        return self._free[column][level]

    def _sums(self, column: int) -> list[list[int]]:
        sums = [[0] * len(level.ids) for level in self.levels]
        for level, totals in zip(self.levels, sums, strict=True):
            for domain, row in zip(level.of_node, self._rows, strict=True):
                if domain != OUTSIDE:
                    totals[domain] += max(row[column], 0)
        return sums

    def _follow(self) -> None:
        """Take up what has changed on the nodes since the last look."""
        changed = self._index.changes.since(self._read)
        self._read = len(self._index.changes)
        if changed is None:
            self._rows = list(self._index.later)
            self._free = {column: self._sums(column) for column in (GPUS, CPU)}
            return
        for at in changed:
            before, row = self._rows[at], self._index.later[at]
            if before is row:
                continue
            self._rows[at] = row
            for column, sums in self._free.items():
                difference = max(row[column], 0) - max(before[column], 0)
                for level, totals in zip(self.levels, sums, strict=True):
                    if level.of_node[at] != OUTSIDE:
                        totals[level.of_node[at]] += difference


class ResolvedConstraint(NamedTuple):
    """A constraint, with its topology and levels looked up; at least one of the levels is there."""

    domains: Domains
    #: All pods are in one domain of this level.
    required: int | None
    #: Finer than what is required; as few domains of this level as possible.
    preferred: int | None


class UnknownTopology(msgspec.Struct, frozen=True, gc=False):
    """A constraint that cannot be looked up."""

    constraint: TopologyConstraint
    #: The part that is at fault; `None`: no topology is named, and there is not just one.
    unknown: str | None
    #: What could stand in its place.
    known: tuple[str, ...]


class Topologies:
    """All topologies of a cluster."""

    def __init__(self, topologies: Iterable[Topology], index: Index) -> None:
        self._domains: dict[str, Domains] = {}
        #: By name: labels of nodes that constraints have asked for by themselves.
        self._labels: dict[str, Domains] = {}
        self._index = index
        for topology in topologies:
            self._domains.setdefault(topology.name, Domains(topology, index))

    def __iter__(self) -> Iterator[Domains]:
        return iter(self._domains.values())

    def inside(self, topology: str) -> int:
        """The nodes that have all labels of a topology."""
        found = self._domains.get(topology) or self._labels[topology]
        return found.inside

    def scope(
        self, constraint: TopologyConstraint | None
    ) -> ResolvedConstraint | UnknownTopology | None:
        """Look a constraint up; `None` where it asks for nothing."""
        if constraint is None or constraint == TopologyConstraint():
            return None
        domains = self._named(constraint)
        if isinstance(domains, UnknownTopology):
            return domains
        numbers: list[int | None] = []
        for name in (constraint.required, constraint.preferred):
            number = domains.number(name) if name is not None else None
            if name is not None and number is None:
                known = tuple(level.name for level in domains.levels)
                return UnknownTopology(constraint, name, known)
            numbers.append(number)
        required, preferred = numbers
        if required is not None and preferred is not None and preferred <= required:
            preferred = None
        if required is None and preferred is None:
            return None
        return ResolvedConstraint(domains, required, preferred)

    def _named(self, constraint: TopologyConstraint) -> Domains | UnknownTopology:
        known = tuple(sorted(self._domains))
        if constraint.topology is None:
            if len(known) == 1:
                return self._domains[known[0]]
            return UnknownTopology(constraint, None, known)
        if constraint.topology == NODE_LABEL and constraint.required is not None:
            return self._of_label(constraint.required)
        found = self._domains.get(constraint.topology)
        return UnknownTopology(constraint, constraint.topology, known) if found is None else found

    def _of_label(self, label: str) -> Domains:
        topology = Topology(f"node label {label}", (TopologyLevel(label),))
        if topology.name not in self._labels:
            self._labels[topology.name] = Domains(topology, self._index)
        return self._labels[topology.name]


def _below(wide: Level, fine: Level) -> list[list[int]]:
    below: list[list[int]] = [[] for _ in wide.ids]
    for number, mask in enumerate(fine.masks):
        below[wide.of_node[next(positions(mask))]].append(number)
    return below


def _path(node: Node, labels: Sequence[str], depth: int) -> tuple[str, ...] | None:
    """The label values of a node down to a depth; `None` where any level's label is missing."""
    values = [node.labels.get(label) for label in labels]
    path = tuple(value for value in values if value is not None)
    return path[:depth] if len(path) == len(values) else None
