"""A PodGroup as written, and its pods, into the one Gang that it means.

The single place where the older forms and both spellings of topology end. It takes what validation
has found no error in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from bough.core.gang.from_workload import OF_WORKLOAD
from bough.core.gang.outline import DEFAULT_SUBGROUP, Entry, Outline, outline
from bough.core.gang.priority import find_priority, is_preemptible, known_priorities
from bough.core.gang.topology import resolved
from bough.model.gang import Gang, PodState, SubGroup, SubGroupSet
from bough.model.pod_group import DEFAULT_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bough.model.cluster import Topology
    from bough.model.gang import Pod, TopologyConstraint
    from bough.model.pod_group import MemberPod, PodGroup, PriorityClass

#: What follows the name of a pod that is on its own, where something else has that name.
OF_POD = " (pod)"


def normalise(
    pod_group: PodGroup,
    pods: Iterable[Pod],
    topologies: Sequence[Topology] = (),
    priority_classes: Sequence[PriorityClass] = (),
    *,
    starts_ms: Iterable[int] = (),
    name: str | None = None,
) -> Gang:
    """Read a valid PodGroup as a gang.

    starts_ms:  when its running pods started.
    name:  what plans call it, where another PodGroup has its name (`gang_names`).
    """
    pods = tuple(pods)
    shape = outline(pod_group)
    own = _own_constraints(pod_group)
    sets = [SubGroupSet(group.members, group.constraint) for group in pod_group.constraints.sets]
    constraint = pod_group.constraint
    fallback = pod_group.constraints.fallback
    if fallback is not None:
        members = _uncovered(shape, own, sets)
        if members == list(shape.gang.children):
            constraint = fallback
        elif members:
            sets.append(SubGroupSet(tuple(members), fallback))
    priority = _priority(pod_group, priority_classes)
    return Gang(
        name=name or pod_group.full_name,
        queue=pod_group.queue,
        pods=tuple(_assigned(pod, shape) for pod in pods),
        subgroups=tuple(_subgroups(shape, own, topologies)),
        minimum=_gang_minimum(pod_group, shape, pods),
        constraint=resolved(constraint, topologies),
        sets=tuple(_resolved_set(group, topologies) for group in sets),
        priority=priority,
        preemptible=is_preemptible(pod_group.preemptibility, priority),
        submitted_ms=pod_group.created_ms or 0,
        started_ms=_started_ms(pod_group, starts_ms),
        namespace=pod_group.namespace or DEFAULT_NAMESPACE,
    )


def written_name(gang: str) -> str:
    """The name of the object that a gang was made of."""
    return gang.removesuffix(OF_POD).removesuffix(OF_WORKLOAD)


def gang_names(pod_groups: Iterable[PodGroup]) -> dict[str, PodGroup]:
    """PodGroups by what plans call them: Kubernetes' own by its key where KAI's has the name."""
    groups = list(pod_groups)
    taken = {group.full_name for group in groups if not group.native}
    return {gang_name(group, taken=group.full_name in taken): group for group in groups}


def gang_name(pod_group: PodGroup, *, taken: bool) -> str:
    """What plans call a PodGroup; `taken`: one of KAI has its name."""
    return pod_group.key if taken else pod_group.full_name


def with_queue(pod_group: PodGroup, members: Sequence[MemberPod]) -> PodGroup:
    """A PodGroup that names no queue is in that of its oldest pod, which comes first."""
    if pod_group.queue or not members:
        return pod_group
    return msgspec.structs.replace(pod_group, queue=members[0].queue)


def gang_of_one(
    member: MemberPod, priority_classes: Sequence[PriorityClass] = (), *, taken: bool = False
) -> Gang:
    """A pod that belongs to no PodGroup is a gang by itself; `taken`: a PodGroup has its name."""
    pod = msgspec.structs.replace(member.pod, subgroup=None)
    priority = find_priority(member.priority_class, priority_classes)
    return Gang(
        name=f"{pod.name}{OF_POD}" if taken else pod.name,
        queue=member.queue,
        pods=(pod,),
        minimum=1,
        priority=priority,
        preemptible=is_preemptible(member.preemptibility, priority),
        submitted_ms=member.created_ms or 0,
        started_ms=member.started_ms,
        namespace=member.namespace or DEFAULT_NAMESPACE,
    )


def _priority(pod_group: PodGroup, classes: Sequence[PriorityClass]) -> int:
    """By its class; by its number where that is not known.

    A zero is what an apiserver writes where no class is named: then the default is meant, as for a
    pod.
    """
    if pod_group.priority and pod_group.priority_class not in known_priorities(classes):
        return pod_group.priority
    return find_priority(pod_group.priority_class, classes)


def _gang_minimum(pod_group: PodGroup, shape: Outline, pods: Sequence[Pod]) -> int | None:
    """What the gang needs; one that is disrupted only as a whole needs all that runs of it."""
    least = _minimum(shape.gang)
    if not pod_group.disrupted_whole or least is None:
        return least
    return max(least, sum(pod.state is PodState.RUNNING for pod in pods))


def _started_ms(pod_group: PodGroup, starts_ms: Iterable[int]) -> int | None:
    """When it last started as a whole; the time that was recorded for it counts while it runs."""
    first = min(starts_ms, default=None)
    written = pod_group.last_start_ms
    return first if first is None or written is None else written


def _subgroups(
    shape: Outline, own: dict[str, TopologyConstraint], topologies: Sequence[Topology]
) -> Iterator[SubGroup]:
    for entry in shape.entries:
        if entry.name is not None:
            yield SubGroup(
                name=entry.name,
                parent=shape.parents[entry.name],
                minimum=_minimum(entry),
                constraint=resolved(own.get(entry.name), topologies),
            )


def _minimum(entry: Entry) -> int | None:
    """Pods of a leaf, else children; `None`: all of them."""
    if entry.is_leaf:
        return 1 if entry.min_member is None else entry.min_member
    if entry.min_sub_group is not None:
        return entry.min_sub_group
    # More than there are children counts pods: then all children are needed.
    if entry.min_member is None or not 0 < entry.min_member <= len(entry.children):
        return None
    return entry.min_member


def _own_constraints(pod_group: PodGroup) -> dict[str, TopologyConstraint]:
    own = dict(pod_group.constraints.subgroups)
    for subgroup in pod_group.subgroups:
        if subgroup.constraint is not None:
            own[subgroup.name] = subgroup.constraint
    return own


def _uncovered(
    shape: Outline, own: dict[str, TopologyConstraint], sets: Sequence[SubGroupSet]
) -> list[str]:
    """The largest subtrees for whose pods nothing specific is said, in spec order."""
    specific = {*own, *(name for group in sets for name in group.members)}
    mixed = {above for name in specific for above in shape.ancestors(name)}
    children = {entry.name: entry.children for entry in shape.entries}
    free: list[str] = []
    waiting = list(reversed(shape.gang.children))
    while waiting:
        name = waiting.pop()
        if name in specific:
            continue
        if name in mixed:
            waiting.extend(reversed(children[name]))
        else:
            free.append(name)
    return free


def _assigned(pod: Pod, shape: Outline) -> Pod:
    """A pod of a PodGroup without subgroups may call its only leaf by the default name."""
    if shape.gang.is_leaf and pod.subgroup == DEFAULT_SUBGROUP:
        return msgspec.structs.replace(pod, subgroup=None)
    return pod


def _resolved_set(group: SubGroupSet, topologies: Sequence[Topology]) -> SubGroupSet:
    constraint = resolved(group.constraint, topologies) or group.constraint
    return SubGroupSet(group.members, constraint)
