"""Which topology and level a constraint means, and what may be constrained where.

Levels are named by node label, by alias, or by what comes after the slash of a label (`rack` for
`example.com/rack`); where no topology is named, the only one is meant. Two spellings are read: a
`topologyConstraint` stands where it holds and nests, while `topologyConstraints` names what it
holds for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bough.core.gang.problem_list import Findings
from bough.model.gang import NODE_LABEL, TopologyConstraint

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bough.core.gang.outline import Outline
    from bough.model.cluster import Topology
    from bough.model.pod_group import PodGroup
    from bough.model.problem import FieldPath, Problem

_CONSTRAINTS: FieldPath = ("spec", "topologyConstraints")
_HOST_LABEL = "kubernetes.io/hostname"
_MAX_LEVELS = 16


def check_constraints(
    pod_group: PodGroup,
    shape: Outline,
    topologies: Sequence[Topology] | None,
    found: Findings,
) -> None:
    """Report what is wrong with a PodGroup's constraints; `None`: no topologies are known."""
    for path, constraint in _constraints(pod_group):
        if constraint.required is None and constraint.preferred is None:
            found.warn(path, "names no level, so that it says nothing")
        elif topologies is not None:
            resolve(constraint, topologies, path, found)
    _check_named(pod_group, shape, found)
    _check_sets(pod_group, shape, found)
    if pod_group.constraint is not None and pod_group.constraints.fallback is not None:
        found.error(
            (*_CONSTRAINTS, "global"),
            "is for what nothing more specific is said about, but spec.topologyConstraint holds"
            " for everything; keep one of them",
        )


def check_topology(topology: Topology) -> tuple[Problem, ...]:
    """Report what is wrong with a topology."""
    found = Findings(f"Topology/{topology.name}")
    path: FieldPath = ("spec", "levels")
    if not 1 <= len(topology.levels) <= _MAX_LEVELS:
        count = len(topology.levels)
        found.error(path, f"has {count} levels, but must have 1 to {_MAX_LEVELS}")
    taken: dict[str, int] = {}
    for index, level in enumerate(topology.levels):
        names = {"nodeLabel": level.label, "alias": level.alias}
        for field, name in names.items():
            if name is None or name == "":
                continue
            if taken.setdefault(name, index) != index:
                message = f"{name!r} names levels[{taken[name]}] already"
                found.error((*path, index, field), message)
        if level.label == _HOST_LABEL and index + 1 != len(topology.levels):
            message = f"{_HOST_LABEL} is the narrowest level there is, and must come last"
            found.error((*path, index, "nodeLabel"), message)
    return tuple(found.problems)


def levels_named(topology: Topology, name: str) -> tuple[int, ...]:
    """The places of the levels that a name may mean, the widest first: none, one, or several.

    A label counts before an alias, and an alias before the end of a label.
    """
    levels = topology.levels
    for at, level in enumerate(levels):
        if level.label == name:
            return (at,)
    for at, level in enumerate(levels):
        if level.alias == name:
            return (at,)
    return tuple(at for at, level in enumerate(levels) if level.label.endswith(f"/{name}"))


def resolved(
    constraint: TopologyConstraint | None, topologies: Sequence[Topology]
) -> TopologyConstraint | None:
    """A constraint with its topology named and its levels as labels, as far as they are known."""
    if constraint is None or not topologies:
        return constraint
    return resolve(constraint, topologies, (), Findings(""))


def resolve(
    constraint: TopologyConstraint,
    topologies: Sequence[Topology],
    path: FieldPath,
    found: Findings,
) -> TopologyConstraint:
    """Look up topology and levels, and report what cannot be found."""
    if constraint.topology == NODE_LABEL:
        return constraint
    topology = _find_topology(constraint, topologies, path, found)
    if topology is None:
        return constraint
    required = _find_level(constraint.required, topology, (*path, "requiredTopologyLevel"), found)
    field = (*path, "preferredTopologyLevel")
    preferred = _find_level(constraint.preferred, topology, field, found)
    if required is not None and preferred is not None and preferred < required:
        found.warn(
            field,
            f"{constraint.preferred!r} is wider than the required level {constraint.required!r},"
            " which already keeps it",
        )
    labels = [level.label for level in topology.levels]
    return msgspec.structs.replace(
        constraint,
        topology=topology.name,
        required=constraint.required if required is None else labels[required],
        preferred=constraint.preferred if preferred is None else labels[preferred],
    )


def _find_topology(
    constraint: TopologyConstraint,
    topologies: Sequence[Topology],
    path: FieldPath,
    found: Findings,
) -> Topology | None:
    known = ", ".join(topology.name for topology in topologies)
    if constraint.topology is not None:
        for topology in topologies:
            if topology.name == constraint.topology:
                return topology
        message = f"there is no topology {constraint.topology!r}; known: {known or 'none'}"
        found.error((*path, "topology"), message)
    elif len(topologies) == 1:
        return topologies[0]
    elif topologies:
        found.error((*path, "topology"), f"is missing, and there are several: {known}")
    else:
        found.error((*path, "topology"), "is missing, and no topology is known")
    return None


def _find_level(
    level: str | None, topology: Topology, path: FieldPath, found: Findings
) -> int | None:
    """The place of a level among those of a topology."""
    if level is None:
        return None
    meant = levels_named(topology, level)
    if len(meant) == 1:
        return meant[0]
    if meant:
        labels = " or ".join(topology.levels[at].label for at in meant)
        message = (
            f"{level!r} may mean {labels} of topology {topology.name!r}; write one of them out"
        )
    else:
        names = ", ".join(known.alias or known.label for known in topology.levels)
        message = f"topology {topology.name!r} has no level {level!r}; its levels are {names}"
    found.error(path, message)
    return None


def _constraints(pod_group: PodGroup) -> Iterator[tuple[FieldPath, TopologyConstraint]]:
    if pod_group.constraint is not None:
        yield ("spec", "topologyConstraint"), pod_group.constraint
    for index, subgroup in enumerate(pod_group.subgroups):
        if subgroup.constraint is not None:
            yield ("spec", "subGroups", index, "topologyConstraint"), subgroup.constraint
    if pod_group.constraints.fallback is not None:
        yield (*_CONSTRAINTS, "global"), pod_group.constraints.fallback
    for name, constraint in pod_group.constraints.subgroups.items():
        yield (*_CONSTRAINTS, "subGroups", name), constraint
    for index, group in enumerate(pod_group.constraints.sets):
        yield (*_CONSTRAINTS, "subGroupSets", index, "constraint"), group.constraint


def _check_named(pod_group: PodGroup, shape: Outline, found: Findings) -> None:
    own = {subgroup.name for subgroup in pod_group.subgroups if subgroup.constraint is not None}
    for name in pod_group.constraints.subgroups:
        path = (*_CONSTRAINTS, "subGroups", name)
        if name not in shape.parents:
            found.error(path, f"there is no subgroup {name!r}")
        elif name in own:
            found.error(path, f"subgroup {name!r} has a topologyConstraint as well; keep one")


def _check_sets(pod_group: PodGroup, shape: Outline, found: Findings) -> None:
    taken: dict[str, int] = {}
    for index, group in enumerate(pod_group.constraints.sets):
        path = (*_CONSTRAINTS, "subGroupSets", index, "subGroups")
        if not group.members:
            found.error(path, "is empty; a set names the subgroups that it holds for")
        for position, name in enumerate(group.members):
            if name not in shape.parents:
                found.error((*path, position), f"there is no subgroup {name!r}")
            elif name in taken:
                message = f"{name!r} is in subGroupSets[{taken[name]}] already; one set is allowed"
                found.error((*path, position), message)
            taken.setdefault(name, index)
        parents = {name: shape.parents[name] for name in group.members if name in shape.parents}
        if len(set(parents.values())) > 1:
            named = ", ".join(
                f"{name} below {parent or 'the PodGroup'}" for name, parent in parents.items()
            )
            found.error(path, f"the members of a set share a parent, but these do not: {named}")
