"""Remedies in queues with quota, limit and weight, as KAI has them: what a step changes."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

from bough.core.explain.declared_snapshot import Source
from bough.core.quota.fair_tree import (
    capacity_of,
    fair_amount,
    fair_tree,
    weighed_resource,
    with_amount,
)
from bough.model.remedy import (
    Change,
    Knob,
    Raise,
    Step,
    Untangle,
    Value,
    Weigh,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from bough.model.fair_queue import FairAmount, FairQueue
    from bough.model.quota import FlavorResource, TreeNode
    from bough.model.snapshot import Snapshot


class FairSource(Source):
    """Queues with quota and limit as they are written; the tree is made of them and the nodes."""

    def __init__(
        self,
        snapshot: Snapshot,
        queues: Iterable[FairQueue],
        units: Mapping[str, int] | None = None,
        unit_names: Mapping[str, str] | None = None,
    ) -> None:
        """By resource, the unit in which it is written and what that is called, if not one."""
        super().__init__(snapshot)
        self.units = units or {}
        self.unit_names = unit_names or {}
        self.queues = {queue.name: queue for queue in queues}

    def declare(self, snapshot: Snapshot, steps: Sequence[Step]) -> Snapshot:
        """The tree made anew; cohorts and queues that come from elsewhere are changed directly."""
        others = [step for step in steps if not self._concerns(step)]
        same_nodes = len(snapshot.nodes) == len(self.snapshot.nodes)
        snapshot = super().declare(snapshot, others)
        if not self.queues or (same_nodes and len(others) == len(steps)):
            return snapshot
        tree = fair_tree(self._declared(steps).values(), capacity_of(snapshot.nodes))
        names = {each.name for each in (*tree.cohorts, *tree.queues)}
        return msgspec.structs.replace(
            snapshot,
            cohorts=(*tree.cohorts, *(each for each in snapshot.cohorts if each.name not in names)),
            queues=(*tree.queues, *(each for each in snapshot.queues if each.name not in names)),
        )

    def _concerns(self, step: Step) -> bool:
        """Whether a step changes one of these queues."""
        match step:
            case Raise(node=node) | Weigh(node=node):
                return node.name in self.queues
            case Untangle(name):
                return name in self.queues
            case _:
                return False

    def can_raise(self, node: TreeNode, what: FlavorResource, knob: Knob) -> bool:
        """Whether it is one of these queues, and the bound is one that can be higher."""
        queue = self.queues.get(node.name)
        if queue is None:
            return super().can_raise(node, what, knob) and node.name not in self._derived()
        if knob is Knob.LENDING:
            return False
        return _bound(fair_amount(queue, what.resource), knob) is not None

    def weight_of(self, node: TreeNode) -> Fraction | None:
        """A queue's weight for what others leave, of the resource whose weight counts."""
        queue = self.queues.get(node.name)
        if queue is not None:
            return fair_amount(queue, self._weighed_resource()).over_quota_weight
        return None if node.name in self._derived() else super().weight_of(node)

    def tell_weight(self, step: Weigh) -> Change:
        """The weight of one resource."""
        if step.node.name not in self.queues:
            return super().tell_weight(step)
        field = self.weight_field(self._weighed_resource())
        before = self.written_weight(step)
        return Change("queue", step.node.name, field, before, step.weight, "the weight")

    def weight_field(self, resource: str) -> str:
        """Where a weight is written."""
        return f"{resource}.weight"

    def _weighed_resource(self) -> str:
        return weighed_resource(capacity_of(self.snapshot.nodes))

    def tell_raise(self, step: Raise) -> Change:
        """Quota and limit, each in the unit in which it is written."""
        queue = self.queues.get(step.node.name)
        if queue is None:
            return super().tell_raise(step)
        resource = step.flavor_resource.resource
        raised = self._raised(queue, step)
        before, after = (
            self.written(resource, _bound(fair_amount(each, resource), step.knob))
            for each in (queue, raised)
        )
        return Change(
            "queue",
            queue.name,
            self.bound_field(resource, step.knob),
            before,
            after,
            f"the {step.knob.value}",
            self.unit_names.get(resource, resource),
        )

    def bound_field(self, resource: str, knob: Knob) -> str:
        """Where a bound is written."""
        return f"{resource}.{knob.value}"

    def written(self, resource: str, amount: Fraction | None) -> Value:
        """An amount in the unit in which it is written."""
        if amount is None:
            return None
        amount /= self.units.get(resource, 1)
        return int(amount) if amount.denominator == 1 else str(float(amount))

    def _derived(self) -> set[str]:
        """The nodes of the tree that were made of these queues."""
        if not self.queues:
            return set()
        tree = fair_tree(self.queues.values(), capacity_of(self.snapshot.nodes))
        return {each.name for each in (*tree.cohorts, *tree.queues)}

    def _declared(self, steps: Sequence[Step]) -> dict[str, FairQueue]:
        queues = dict(self.queues)
        for step in steps:
            if isinstance(step, Raise) and step.node.name in queues:
                queues[step.node.name] = self._raised(queues[step.node.name], step)
            elif isinstance(step, Weigh) and step.node.name in queues:
                queues[step.node.name] = self._weighed(queues[step.node.name], step)
            elif isinstance(step, Untangle) and step.cohort in queues:
                queues[step.cohort] = msgspec.structs.replace(queues[step.cohort], parent=None)
        return queues

    def _weighed(self, queue: FairQueue, step: Weigh) -> FairQueue:
        resource = self._weighed_resource()
        amount = fair_amount(queue, resource)
        weight = Fraction(step.weight)
        changed = msgspec.structs.replace(amount, over_quota_weight=weight)
        return with_amount(queue, resource, changed)

    def _raised(self, queue: FairQueue, step: Raise) -> FairQueue:
        """A queue with more, rounded up to whole units."""
        resource = step.flavor_resource.resource
        amount = fair_amount(queue, resource)
        before = _bound(amount, step.knob) or Fraction(0)
        unit = self.units.get(resource, 1)
        after = Fraction(-(-(int(before) + step.by) // unit) * unit)
        changed = (
            msgspec.structs.replace(amount, quota=after)
            if step.knob is Knob.QUOTA
            else msgspec.structs.replace(amount, limit=after)
        )
        return with_amount(queue, resource, changed)


def _bound(amount: FairAmount, knob: Knob) -> Fraction | None:
    return amount.quota if knob is Knob.QUOTA else amount.limit
