"""Remedies applied: the world as it would be if somebody did what a remedy says.

Must not know whether that helps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec

from bough.core.quota.edges import Edges
from bough.model.admission import StopPolicy
from bough.model.certificate import Raise, Remedy, RemedyKind
from bough.model.gang import Gang, Pod, SubGroup
from bough.model.quota import (
    Cohort,
    FlavorQuotas,
    FlavorResource,
    NodeKind,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
    quotas_of,
)
from bough.model.snapshot import Snapshot
from bough.model.workload import PodSet

Declared = TypeVar("Declared", Cohort, Queue)
replace = msgspec.structs.replace


def apply_remedy(snapshot: Snapshot, workload: str, remedy: Remedy) -> Snapshot:
    """The snapshot with a remedy for a workload applied; nothing else is different."""
    match remedy.kind:
        case RemedyKind.WAIT:
            return without(snapshot, remedy.ends)
        case RemedyKind.RUN_AS_LOW:
            return change_gang(snapshot, workload, lambda gang: _as_low(snapshot, gang))
        case RemedyKind.SMALLER_MINIMUM:
            return _with_minimum(snapshot, workload, remedy.subgroup, remedy.minimum)
        case RemedyKind.OTHER_FLAVOR:
            return _anywhere(snapshot, workload)
        case RemedyKind.RESUME:
            return _resumed(snapshot, remedy.node)
        case RemedyKind.UNTANGLE:
            return _untangled(snapshot, remedy.node)
        case RemedyKind.RAISE_QUOTA:
            return _with_quotas(snapshot, remedy.raises)
        case RemedyKind.RAISE_LIMIT:
            return _with_limits(snapshot, remedy.raises)


def without(snapshot: Snapshot, ended: Collection[str]) -> Snapshot:
    """As if some workloads had ended and were gone."""
    return replace(snapshot, gangs=_filtered(snapshot.gangs, lambda gang: gang.name not in ended))


def change_gang(snapshot: Snapshot, name: str, change: Callable[[Gang], Gang]) -> Snapshot:
    """As if a gang were another one."""
    return replace(
        snapshot,
        gangs={
            queue: tuple(change(gang) if gang.name == name else gang for gang in gangs)
            if any(gang.name == name for gang in gangs)
            else gangs
            for queue, gangs in snapshot.gangs.items()
        },
    )


def _filtered(
    table: dict[str, tuple[Gang, ...]], keeps: Callable[[Gang], bool]
) -> dict[str, tuple[Gang, ...]]:
    """Tuples in which all are kept stay the very same, so that a memo sees what changed."""
    return {
        queue: row if all(map(keeps, row)) else tuple(filter(keeps, row))
        for queue, row in table.items()
    }


def _as_low(snapshot: Snapshot, gang: Gang) -> Gang:
    """Preemptible, and behind all others that are."""
    others = [
        each.priority for gangs in snapshot.gangs.values() for each in gangs if each.preemptible
    ]
    return replace(gang, preemptible=True, priority=min([gang.priority, *others]))


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

    def free_set(pod_set: PodSet) -> PodSet:
        return replace(pod_set, template=replace(pod_set.template, node_selector={}, affinity=()))

    return change_gang(
        snapshot,
        workload,
        lambda gang: replace(
            gang,
            pods=tuple(map(free, gang.pods)),
            pod_sets=tuple(map(free_set, gang.pod_sets)),
        ),
    )


def _resumed(snapshot: Snapshot, node: TreeNode | None) -> Snapshot:
    def resume(queue: Queue) -> Queue:
        if node is None or queue.name != node.name:
            return queue
        return replace(queue, rules=replace(queue.rules, stop=StopPolicy.NONE))

    return replace(snapshot, queues=tuple(map(resume, snapshot.queues)))


def _untangled(snapshot: Snapshot, node: TreeNode | None) -> Snapshot:
    def cut(cohort: Cohort) -> Cohort:
        named = node is not None and cohort.name == node.name
        return replace(cohort, parent=None) if named else cohort

    return replace(snapshot, cohorts=tuple(map(cut, snapshot.cohorts)))


def _with_limits(snapshot: Snapshot, raises: Sequence[Raise]) -> Snapshot:
    for each in raises:
        snapshot = _change_quota(
            snapshot,
            each.node,
            each.flavor_resource,
            lambda quota, by=each.by: replace(
                quota, borrowing_limit=(quota.borrowing_limit or 0) + by
            ),
        )
    return snapshot


def _with_quotas(snapshot: Snapshot, raises: Sequence[Raise]) -> Snapshot:
    """More quota. Where there are nodes it comes from the node above, so that sums stay."""
    for each in raises:
        what = each.flavor_resource
        snapshot = _change_quota(snapshot, each.node, what, _adder(each.by))
        above = _above(snapshot, each.node, what) if snapshot.nodes else None
        if above is not None:
            snapshot = _change_quota(snapshot, above, what, _adder(-each.by))
    return snapshot


def _adder(by: int) -> Callable[[Quota], Quota]:
    return lambda quota: replace(quota, nominal=quota.nominal + by)


def _above(snapshot: Snapshot, node: TreeNode, what: FlavorResource) -> TreeNode | None:
    """The nearest node above that lists this."""
    edges = Edges()
    for cohort in snapshot.cohorts:
        edges.put(TreeNode(NodeKind.COHORT, cohort.name), _parent(cohort.parent))
    for queue in snapshot.queues:
        edges.put(TreeNode(NodeKind.QUEUE, queue.name), _parent(queue.cohort))
    if node not in edges or edges.cycle(node):
        return None
    listing = {
        cohort.name for cohort in snapshot.cohorts if what in quotas_of(cohort.resource_groups)
    }
    return next((each for each in edges.path(node)[1:] if each.name in listing), None)


def _parent(name: str | None) -> TreeNode | None:
    return None if name is None else TreeNode(NodeKind.COHORT, name)


def _change_quota(
    snapshot: Snapshot, node: TreeNode, what: FlavorResource, change: Callable[[Quota], Quota]
) -> Snapshot:
    """As if what a node lists were another quota."""

    def changed(declared: Declared) -> Declared:
        if declared.name != node.name:
            return declared
        groups = tuple(_change_group(group, what, change) for group in declared.resource_groups)
        return replace(declared, resource_groups=groups)

    if node.kind is NodeKind.COHORT:
        return replace(snapshot, cohorts=tuple(map(changed, snapshot.cohorts)))
    return replace(snapshot, queues=tuple(map(changed, snapshot.queues)))


def _change_group(
    group: ResourceGroup, what: FlavorResource, change: Callable[[Quota], Quota]
) -> ResourceGroup:
    def changed(flavor: FlavorQuotas) -> FlavorQuotas:
        quota = flavor.resources.get(what.resource)
        if flavor.name != what.flavor or quota is None:
            return flavor
        return replace(flavor, resources={**flavor.resources, what.resource: change(quota)})

    return replace(group, flavors=tuple(map(changed, group.flavors)))
