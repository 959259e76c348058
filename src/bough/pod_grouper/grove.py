"""What a PodGang of Grove needs: cliques become subgroups, sets of cliques their parents.

This is phase 2 of the hierarchical PodGroup design. A topology level is written where it applies:
on the whole gang, on a set of cliques, or on a clique.
"""

from __future__ import annotations

from bough.errors import Invalid
from bough.formats.live.objects import LivePod
from bough.formats.live.owners import (
    LiveClique,
    LiveCliqueSet,
    LiveOwner,
    LivePodGangConstraint,
    LivePodGangSpec,
    read_part,
)
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import SubGroupSpec
from bough.pod_grouper.owner_gangs import Gathering, subgroup_name

#: The labels by which a pod names its PodGang and its clique.
GANG_LABEL = "grove.io/podgang"
CLIQUE_LABEL = "grove.io/podclique"
POD_GANG = ("scheduler.grove.io", "PodGang")
#: The API group of the owners of Grove's pods.
GROVE = "grove.io"
_TOPOLOGY_ANNOTATIONS = ("grove.io/topology-name", "kai.scheduler/topology")


def pod_gang(owner: LiveOwner, pod: LivePod) -> Gathering:
    """The gang that a PodGang describes."""
    spec = read_part(owner.spec, LivePodGangSpec, "spec")
    topology = _topology_of(owner)
    cliques = spec.podgroups or ()
    sets = _sets(spec.topology_constraint_group_configs or (), cliques)
    parents = {clique: name for name, (_, members) in sets.items() for clique in members}
    above = [
        SubGroupSpec(
            name=name,
            min_sub_group=len(members),
            constraint=_constraint(written.topology_constraint, topology),
        )
        for name, (written, members) in sets.items()
    ]
    leaves = tuple(_leaf(each, parents, topology) for each in cliques)
    return Gathering(
        subgroups=(*above, *leaves),
        subgroup=subgroup_name(_clique_of(pod, cliques)),
        constraint=_constraint(spec.topology_constraint, topology),
        priority_class=spec.priority_class_name or "",
    )


def _sets(
    written: tuple[LiveCliqueSet, ...], cliques: tuple[LiveClique, ...]
) -> dict[str, tuple[LiveCliqueSet, tuple[str, ...]]]:
    """The sets of cliques by their names as subgroups, each with the cliques that count for it.

    A clique in several sets counts for the last of them, and one that does not exist for none: a
    parent that waits for more children than it has would never start.
    """
    last = {clique: each for each in written for clique in each.pod_group_names or ()}
    taken = {subgroup_name(each.name) for each in cliques}
    found: dict[str, tuple[LiveCliqueSet, tuple[str, ...]]] = {}
    for number, each in enumerate(written):
        members = tuple(clique.name for clique in cliques if last.get(clique.name) is each)
        if members:
            plain = subgroup_name(each.name or "set")
            name = plain if plain not in taken else subgroup_name(f"{each.name}/{number}")
            taken.add(name)
            found[name] = each, members
    return found


def _leaf(written: LiveClique, parents: dict[str, str], topology: str) -> SubGroupSpec:
    if written.min_replicas is None or written.min_replicas < 1:
        raise Invalid(
            f"minReplicas of clique {written.name!r} is {written.min_replicas}, but must be"
            " greater than 0"
        )
    return SubGroupSpec(
        name=subgroup_name(written.name),
        parent=parents.get(written.name),
        min_member=written.min_replicas,
        constraint=_constraint(written.topology_constraint, topology),
    )


def _clique_of(pod: LivePod, cliques: tuple[LiveClique, ...]) -> str:
    """The clique of a pod: the one that lists it, or else the one that the pod names."""
    here = (pod.metadata.namespace or "", pod.metadata.name)
    for each in cliques:
        if any((one.namespace, one.name) == here for one in each.pod_references or ()):
            return each.name
    named = (pod.metadata.labels or {}).get(CLIQUE_LABEL, "")
    if named not in {each.name for each in cliques}:
        raise Invalid(f"no clique of it has pod {pod.metadata.name}")
    return named


def _topology_of(owner: LiveOwner) -> str:
    annotations = owner.metadata.annotations or {}
    return next((annotations[name] for name in _TOPOLOGY_ANNOTATIONS if name in annotations), "")


def _constraint(written: LivePodGangConstraint | None, topology: str) -> TopologyConstraint | None:
    packed = None if written is None else written.pack_constraint
    if packed is None or not (packed.required or packed.preferred):
        return None
    if not topology:
        raise Invalid(
            f"it names levels of a topology, but no topology: annotation {_TOPOLOGY_ANNOTATIONS[0]}"
            " is missing"
        )
    return TopologyConstraint(topology, packed.required or None, packed.preferred or None)
