"""Steps taken: a snapshot as it would be if a remedy were carried out.

Here is all that touches workloads and nodes; `declared_snapshot` has what is declared about quota.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import msgspec

from bough.core.explain.judge import find_gang
from bough.core.place.node_flavors import with_flavors
from bough.model.admission_rules import StopPolicy
from bough.model.cluster import Node, Resources, Toleration
from bough.model.gang import Gang, Pod, SubGroup
from bough.model.quota import Queue
from bough.model.remedy import (
    AddNodes,
    AnyNodes,
    BePreemptible,
    End,
    HeldPart,
    LowerMinimum,
    Move,
    RaisePriority,
    Resume,
    Step,
    Tolerate,
    Uncordon,
)
from bough.model.snapshot import Snapshot
from bough.model.workload import LocalQueue, PodSet, PodTemplate

replace = msgspec.structs.replace

#: The label by which a node names itself.
HOSTNAME = "kubernetes.io/hostname"


def take_step(snapshot: Snapshot, workload: str, step: Step) -> Snapshot:
    """The snapshot after one step for a workload; steps on the quota tree change nothing here."""
    match step:
        case End(name):
            return without(snapshot, {name})
        case BePreemptible() | RaisePriority():
            return change_gang(snapshot, workload, lambda gang: with_rank(gang, step))
        case LowerMinimum(subgroup=subgroup, after=after):
            return _with_minimum(snapshot, workload, subgroup, after)
        case AnyNodes():
            return _anywhere(snapshot, workload)
        case Tolerate(key):
            return _tolerating(snapshot, workload, key)
        case Move(queue):
            return _moved(snapshot, workload, queue)
        case Resume(part, name):
            return _resumed(snapshot, part, name)
        case Uncordon(name):
            return _uncordoned(snapshot, name)
        case AddNodes():
            return replace(snapshot, nodes=(*snapshot.nodes, *new_nodes(snapshot, step)))
        case _:
            return snapshot


def without(snapshot: Snapshot, ended: Collection[str]) -> Snapshot:
    """As if some workloads had ended and were gone."""
    return replace(snapshot, gangs=_filtered(snapshot.gangs, lambda gang: gang.name not in ended))


def change_gang(snapshot: Snapshot, name: str, change: Callable[[Gang], Gang]) -> Snapshot:
    """Replace a gang by a changed one, which may be in another queue."""
    found = find_gang(snapshot, name)
    if found is None:
        return snapshot
    changed = change(found)
    gangs = dict(snapshot.gangs)
    if changed.queue == found.queue:
        gangs[found.queue] = tuple(
            changed if gang.name == name else gang for gang in gangs[found.queue]
        )
    else:
        gangs[found.queue] = tuple(gang for gang in gangs[found.queue] if gang.name != name)
        gangs[changed.queue] = (*gangs.get(changed.queue, ()), changed)
    return replace(snapshot, gangs=gangs)


def with_rank(gang: Gang, step: BePreemptible | RaisePriority) -> Gang:
    """A gang with another priority and perhaps preemptibility; or only with the latter."""
    if isinstance(step, BePreemptible):
        return replace(gang, preemptible=True)
    preemptible = gang.preemptible if step.preemptible is None else step.preemptible
    return replace(gang, priority=step.priority, preemptible=preemptible)


def door_to(snapshot: Snapshot, namespace: str, queue: str) -> LocalQueue | None:
    """The first local queue, by name, of a namespace that leads to a queue."""
    doors = [
        each
        for each in snapshot.local_queues
        if (each.namespace, each.queue, each.stop) == (namespace, queue, StopPolicy.NONE)
    ]
    return min(doors, key=lambda each: each.name, default=None)


def new_nodes(snapshot: Snapshot, step: AddNodes) -> tuple[Node, ...]:
    """New nodes like an existing one, under names of their own."""
    like, count = step.like, step.count
    model = next(node for node in snapshot.nodes if node.name == like)
    capacity = most_of((model.capacity, step.at_least))
    more = labels_of(snapshot, step.flavor)
    taken = {node.name for node in snapshot.nodes}
    found: list[Node] = []
    number = 0
    while len(found) < count:
        number += 1
        name = f"{like}-new-{number}"
        if name not in taken:
            own = {HOSTNAME: name} if HOSTNAME in model.labels else {}
            labels = {**model.labels, **own, **more}
            found.append(Node(name, capacity, labels, model.taints, model.flavor))
    return tuple(found) if step.flavor is None else with_flavors(tuple(found), snapshot.flavors)


def labels_of(snapshot: Snapshot, flavor: str | None) -> dict[str, str]:
    """The labels by which nodes of a flavor are known."""
    for each in snapshot.flavors:
        if each.name == flavor:
            return each.node_labels
    return {}


def most_of(several: Iterable[Resources]) -> Resources:
    """The most of every resource that any of several has."""
    several = tuple(several)
    names = sorted({name for each in several for name, _ in each.other})
    return Resources(
        gpus=max(each.gpus for each in several),
        cpu_milli=max(each.cpu_milli for each in several),
        memory_bytes=max(each.memory_bytes for each in several),
        pods=max(each.pods for each in several),
        other=tuple(
            (name, max(dict(each.other).get(name, 0) for each in several)) for name in names
        ),
    )


def _filtered(
    table: dict[str, tuple[Gang, ...]], keeps: Callable[[Gang], bool]
) -> dict[str, tuple[Gang, ...]]:
    """Tuples in which all are kept stay the very same, so that a memo sees what changed."""
    return {
        queue: row if all(map(keeps, row)) else tuple(filter(keeps, row))
        for queue, row in table.items()
    }


def _with_minimum(
    snapshot: Snapshot, workload: str, subgroup: str | None, minimum: int
) -> Snapshot:
    def shrink_pods(pod_set: PodSet) -> PodSet:
        named = subgroup is None or pod_set.name == subgroup
        return replace(pod_set, min_count=minimum) if named else pod_set

    def shrink_group(group: SubGroup) -> SubGroup:
        return replace(group, minimum=minimum) if group.name == subgroup else group

    def shrink(gang: Gang) -> Gang:
        if gang.pod_sets:
            return replace(gang, pod_sets=tuple(map(shrink_pods, gang.pod_sets)))
        if subgroup is None:
            return replace(gang, minimum=minimum)
        return replace(gang, subgroups=tuple(map(shrink_group, gang.subgroups)))

    return change_gang(snapshot, workload, shrink)


def _anywhere(snapshot: Snapshot, workload: str) -> Snapshot:
    def free(pod: Pod) -> Pod:
        return replace(pod, node_selector={}, affinity=())

    def free_template(template: PodTemplate) -> PodTemplate:
        return replace(template, node_selector={}, affinity=())

    return _change_pods(snapshot, workload, free, free_template)


def _tolerating(snapshot: Snapshot, workload: str, key: str) -> Snapshot:
    more = Toleration(key, "Exists")

    def free(pod: Pod) -> Pod:
        return replace(pod, tolerations=(*pod.tolerations, more))

    def free_template(template: PodTemplate) -> PodTemplate:
        return replace(template, tolerations=(*template.tolerations, more))

    return _change_pods(snapshot, workload, free, free_template)


def _change_pods(
    snapshot: Snapshot,
    workload: str,
    change: Callable[[Pod], Pod],
    change_template: Callable[[PodTemplate], PodTemplate],
) -> Snapshot:
    """The snapshot with the pods of a gang, and the templates of its pod sets, changed."""

    def changed(gang: Gang) -> Gang:
        pod_sets = tuple(
            replace(each, template=change_template(each.template)) for each in gang.pod_sets
        )
        return replace(gang, pods=tuple(map(change, gang.pods)), pod_sets=pod_sets)

    return change_gang(snapshot, workload, changed)


def _moved(snapshot: Snapshot, workload: str, queue: str) -> Snapshot:
    def move(gang: Gang) -> Gang:
        door = door_to(snapshot, gang.namespace, queue)
        return replace(gang, queue=queue, local_queue=None if door is None else door.name)

    return change_gang(snapshot, workload, move)


def _resumed(snapshot: Snapshot, part: HeldPart, name: str) -> Snapshot:
    def resume(queue: Queue) -> Queue:
        if queue.name != name:
            return queue
        return replace(queue, rules=replace(queue.rules, stop=StopPolicy.NONE))

    def reopen(door: LocalQueue) -> LocalQueue:
        named = f"{door.namespace}/{door.name}" == name
        return replace(door, stop=StopPolicy.NONE) if named else door

    if part is HeldPart.QUEUE:
        return replace(snapshot, queues=tuple(map(resume, snapshot.queues)))
    if part is HeldPart.LOCAL_QUEUE:
        return replace(snapshot, local_queues=tuple(map(reopen, snapshot.local_queues)))
    return change_gang(snapshot, name, lambda gang: replace(gang, active=True))


def _uncordoned(snapshot: Snapshot, name: str) -> Snapshot:
    return replace(
        snapshot,
        nodes=tuple(
            replace(node, cordoned=False) if node.name == name else node for node in snapshot.nodes
        ),
    )
