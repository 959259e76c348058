"""What people declared, which remedies change, and the snapshot that is made from it.

A remedy is a change of what people wrote, not of what was derived from it: `Source` takes a
snapshot's own cohorts and queues for what was written; where the tree is derived from something
else, a subclass changes that and makes the tree anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import TypeVar

import msgspec

from bough.core.explain.changed_snapshot import door_to, labels_of, new_nodes, take_step
from bough.core.explain.judge import find_gang
from bough.core.quota.taken_share import write_weight
from bough.model.admission_rules import StopPolicy
from bough.model.cluster import Resources
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
from bough.model.remedy import (
    AddNodes,
    AnyNodes,
    BePreemptible,
    Change,
    End,
    HeldPart,
    Knob,
    LowerMinimum,
    Move,
    Raise,
    RaisePriority,
    Resume,
    Step,
    Tolerate,
    Uncordon,
    Untangle,
    Value,
    Weigh,
)
from bough.model.snapshot import Snapshot
from bough.model.words import write_amount

Declared = TypeVar("Declared", Cohort, Queue)
replace = msgspec.structs.replace

#: The steps that change the workload itself.
OF_WORKLOAD = (BePreemptible, RaisePriority, LowerMinimum, AnyNodes, Tolerate, Move)


class Source:
    """A snapshot whose cohorts and queues are what people wrote."""

    #: What a node is called, and where it says that it takes no pods.
    node_kind = "node"
    cordoned_field = "cordoned"

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def apply(self, workload: str, steps: Sequence[Step]) -> Snapshot:
        """The snapshot with some steps taken for a workload; nothing else is different."""
        snapshot = self.snapshot
        for step in steps:
            snapshot = self.take(snapshot, workload, step)
        return self.declare(snapshot, steps)

    def take(self, snapshot: Snapshot, workload: str, step: Step) -> Snapshot:
        """The snapshot after a step that does not concern the quota tree."""
        return take_step(snapshot, workload, step)

    def declare(self, snapshot: Snapshot, steps: Sequence[Step]) -> Snapshot:
        """The snapshot with the quota tree of what is declared after some steps."""
        for step in steps:
            if isinstance(step, Raise):
                snapshot = _change_quota(snapshot, step, _raiser(step))
            elif isinstance(step, Weigh):
                snapshot = _weighed(snapshot, step)
            elif isinstance(step, Untangle):
                snapshot = _untangled(snapshot, step.cohort)
        return snapshot

    # What can be done

    def can_raise(self, node: TreeNode, what: FlavorResource, knob: Knob) -> bool:
        """Whether a node of the quota tree has something that could be raised."""
        quota = self._quota(node, what)
        if quota is None:
            return False
        return knob is Knob.QUOTA or _limit_of(quota, knob) is not None

    def weight_of(self, node: TreeNode) -> Fraction | None:
        """The weight that was written for a node; `None`: it cannot have one."""
        declared = next((each for each in self._table(node) if each.name == node.name), None)
        return None if declared is None else declared.weight

    def can_uncordon(self, node: str) -> bool:
        """Whether a node that takes no pods could be told to take them."""
        return any(each.name == node and each.cordoned for each in self.snapshot.nodes)

    def can_be_preemptible(self, workload: str) -> bool:  # noqa: ARG002
        """Whether it could be made to borrow, and be evicted, without ending anything first."""
        return True

    def priorities_for(self, workload: str) -> list[RaisePriority]:
        """The higher priorities that a workload could have, the lowest first.

        Only those that put it before one more of the others: all else is the same.
        """
        gang = find_gang(self.snapshot, workload)
        if gang is None:
            return []
        others = {each.priority for row in self.snapshot.gangs.values() for each in row}
        return [RaisePriority(each + 1) for each in sorted(others) if each >= gang.priority]

    def queues_for(self, workload: str) -> list[str]:
        """The other queues that a workload could name, by name."""
        gang = find_gang(self.snapshot, workload)
        if gang is None:
            return []
        names = sorted(queue.name for queue in self.snapshot.queues if queue.name != gang.queue)
        if not gang.pod_sets:
            return names
        # Pod sets come to a queue through a local queue of their namespace.
        doors = (door_to(self.snapshot, gang.namespace, name) for name in names)
        return [name for name, door in zip(names, doors, strict=True) if door is not None]

    # How it is told

    def tell(self, workload: str, step: Step) -> Iterable[Change]:
        """What a step changes, in the objects that people wrote."""
        if isinstance(step, OF_WORKLOAD):
            yield from self.tell_workload(workload, step)
        else:
            yield from self.tell_cluster(step)

    def tell_workload(self, name: str, step: Step) -> Iterable[Change]:
        """What a step changes in the workload itself."""
        kind = self.kind_of(name)
        match step:
            case RaisePriority(priority):
                gang = find_gang(self.snapshot, name)
                before = None if gang is None else gang.priority
                yield Change(kind, name, "priority", before, priority)
            case LowerMinimum(subgroup, before, after):
                field = "minimum" if subgroup is None else f"{subgroup}.minimum"
                word = "the minimum" if subgroup is None else f"the minimum of {subgroup}"
                yield Change(kind, name, field, before, after, word)
            case Move(queue):
                yield Change(kind, name, "queue", self._queue_of(name), queue, "queue")
            case AnyNodes():
                yield Change(kind, name, "node_selector")
            case Tolerate(key):
                yield Change(kind, name, "tolerations", None, key)
            case _:
                yield Change(kind, name, "preemptible", False, True)

    def tell_cluster(self, step: Step) -> Iterable[Change]:
        """What a step changes in queues, cohorts, nodes and other workloads."""
        match step:
            case End(name):
                yield Change(self.kind_of(name), name, before=name)
            case Resume(part, name):
                yield self.tell_resume(part, name)
            case Untangle(name):
                yield Change("cohort", name, "parent", self.parent_of(name), None)
            case Uncordon(name):
                yield Change(self.node_kind, name, self.cordoned_field, True, False)
            case Raise():
                yield self.tell_raise(step)
            case Weigh():
                yield self.tell_weight(step)
            case AddNodes():
                yield from self.tell_nodes(step)
            case _:
                return

    def tell_nodes(self, step: AddNodes) -> Iterable[Change]:
        """The new nodes, and what they have more than the one that they are like."""
        model = next(node for node in self.snapshot.nodes if node.name == step.like)
        names = [(node.name, node.capacity) for node in new_nodes(self.snapshot, step)]
        had = dict(amounts_of(model.capacity))
        for name, capacity in names:
            yield Change(self.node_kind, name, after=step.like)
            for key, value in sorted(labels_of(self.snapshot, step.flavor).items()):
                field, was = self.label_field(key), model.labels.get(key)
                yield Change(self.node_kind, name, field, was, value, f"the label {key}")
            for resource, amount in amounts_of(capacity):
                before = had.get(resource, 0)
                if amount != before:
                    field, written = self.capacity_field(resource), write_amount(resource, amount)
                    was = write_amount(resource, before)
                    yield Change(self.node_kind, name, field, was, written, resource=resource)

    def label_field(self, key: str) -> str:
        """Where a node carries a label."""
        return f"labels.{key}"

    def capacity_field(self, resource: str) -> str:
        """Where a node says how much it has of a resource."""
        return f"capacity.{resource}"

    def kind_of(self, workload: str) -> str:
        """What a workload is called."""
        gang = find_gang(self.snapshot, workload)
        return "workload" if gang is not None and gang.pod_sets else "gang"

    def tell_raise(self, step: Raise) -> Change:
        """What a raise changes."""
        what, kind = step.flavor_resource, step.node.kind.value
        quota = self._quota(step.node, what) or Quota()
        raised = _raiser(step)(quota)
        if step.knob is Knob.QUOTA:
            field, before, after = "quota", quota.nominal, raised.nominal
        else:
            field = "borrowing limit" if step.knob is Knob.LIMIT else step.knob.value
            before, after = _limit_of(quota, step.knob) or 0, _limit_of(raised, step.knob) or 0
        return Change(
            kind,
            step.node.name,
            field.replace(" ", "_"),
            write_amount(what.resource, before),
            write_amount(what.resource, after),
            f"the {field}",
            str(what),
        )

    def tell_weight(self, step: Weigh) -> Change:
        """What another weight changes."""
        kind, name = step.node.kind.value, step.node.name
        return Change(kind, name, "weight", self.written_weight(step), step.weight, "the weight")

    def written_weight(self, step: Weigh) -> Value:
        """The weight that a node has before a step."""
        before = self.weight_of(step.node)
        if before is None or before.denominator != 1:
            return None if before is None else write_weight(before)
        return int(before)

    def tell_resume(self, part: HeldPart, name: str) -> Change:
        """What it means that something is no longer held."""
        if part is HeldPart.WORKLOAD:
            return Change("workload", name, "active", False, True)
        return Change(part.value, name, "stop", self.stop_of(part, name), str(StopPolicy.NONE))

    def stop_of(self, part: HeldPart, name: str) -> Value:
        """How a queue, or a local queue, is held now."""
        if part is HeldPart.QUEUE:
            stops = (each.rules.stop for each in self.snapshot.queues if each.name == name)
        else:
            doors = self.snapshot.local_queues
            stops = (each.stop for each in doors if f"{each.namespace}/{each.name}" == name)
        return next((str(stop.value) for stop in stops), None)

    def parent_of(self, cohort: str) -> str | None:
        """The parent that a cohort names."""
        return next((each.parent for each in self.snapshot.cohorts if each.name == cohort), None)

    def _queue_of(self, workload: str) -> str | None:
        gang = find_gang(self.snapshot, workload)
        return None if gang is None else gang.queue

    def _quota(self, node: TreeNode, what: FlavorResource) -> Quota | None:
        table = self._table(node)
        groups = next((each.resource_groups for each in table if each.name == node.name), ())
        return quotas_of(groups).get(what)

    def _table(self, node: TreeNode) -> tuple[Cohort | Queue, ...]:
        return self.snapshot.cohorts if node.kind is NodeKind.COHORT else self.snapshot.queues


def amounts_of(resources: Resources) -> Iterator[tuple[str, int]]:
    """What a node has, by the name of each resource."""
    yield "gpu", resources.gpus
    yield "cpu", resources.cpu_milli
    yield "memory", resources.memory_bytes
    yield "pods", resources.pods
    yield from resources.other


def _raiser(step: Raise) -> Callable[[Quota], Quota]:
    if step.knob is Knob.QUOTA:
        return lambda quota: replace(quota, nominal=quota.nominal + step.by)
    if step.knob is Knob.LENDING:
        return lambda quota: replace(quota, lending_limit=(quota.lending_limit or 0) + step.by)
    return lambda quota: replace(quota, borrowing_limit=(quota.borrowing_limit or 0) + step.by)


def _limit_of(quota: Quota, knob: Knob) -> int | None:
    return quota.borrowing_limit if knob is Knob.LIMIT else quota.lending_limit


def _weighed(snapshot: Snapshot, step: Weigh) -> Snapshot:
    def changed(declared: Declared) -> Declared:
        named = declared.name == step.node.name
        return replace(declared, weight=Fraction(step.weight)) if named else declared

    if step.node.kind is NodeKind.COHORT:
        return replace(snapshot, cohorts=tuple(map(changed, snapshot.cohorts)))
    return replace(snapshot, queues=tuple(map(changed, snapshot.queues)))


def _untangled(snapshot: Snapshot, name: str) -> Snapshot:
    return replace(
        snapshot,
        cohorts=tuple(
            replace(each, parent=None) if each.name == name else each for each in snapshot.cohorts
        ),
    )


def _change_quota(snapshot: Snapshot, step: Raise, change: Callable[[Quota], Quota]) -> Snapshot:
    """The snapshot with another quota for something that a node lists."""
    node, what = step.node, step.flavor_resource

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
