"""Queues with quota, limit and weight, as KAI has them, as nodes of the one quota tree.

A queue's `quota` is that of its whole subtree: an inner queue's own quota is what its children
leave of it, negative where they are oversubscribed on purpose. `limit` is quota and borrowing limit
together. Above all stands the cluster, whose own quota is the capacity that no queue has, so that
idle capacity can be borrowed and never more than there is. A queue without a minimum runtime has
that of the nearest queue above it that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

import msgspec

from bough.model.admission_rules import AdmissionRules
from bough.model.cluster import Node
from bough.model.fair_queue import FairAmount, FairQueue, QueueObstacle, QueueObstacleKind
from bough.model.quota import Cohort, FlavorQuotas, Queue, Quota, ResourceGroup

#: These queues count over the whole cluster: quota of this flavor is used on nodes of every flavor.
ANY_FLAVOR = "any"
#: The node above all queues; no queue can have this name.
CLUSTER = "(cluster)"
GPU = "gpu"
CPU = "cpu"
MEMORY = "memory"


class FairTree(NamedTuple):
    """The quota tree of some queues."""

    cohorts: tuple[Cohort, ...]
    queues: tuple[Queue, ...]


def capacity_of(nodes: Iterable[Node]) -> dict[str, int]:
    """What nodes have together, by the names that the tree counts with."""
    nodes = tuple(nodes)
    return {
        GPU: sum(node.capacity.gpus for node in nodes),
        CPU: sum(node.capacity.cpu_milli for node in nodes),
        MEMORY: sum(node.capacity.memory_bytes for node in nodes),
    }


def fair_tree(queues: Iterable[FairQueue], capacity: Mapping[str, int]) -> FairTree:
    """Queues as a quota tree. A queue whose parent does not exist hangs below an empty cohort."""
    return _Mapping({queue.name: queue for queue in queues}, capacity).tree()


def fair_amount(queue: FairQueue, resource: str) -> FairAmount:
    """What a queue has of a resource, by the name that the tree counts with."""
    return {GPU: queue.gpus, CPU: queue.cpu_milli, MEMORY: queue.memory_bytes}[resource]


def with_amount(queue: FairQueue, resource: str, amount: FairAmount) -> FairQueue:
    """The same queue with another amount of a resource."""
    field = {GPU: "gpus", CPU: "cpu_milli", MEMORY: "memory_bytes"}[resource]
    return msgspec.structs.replace(queue, **{field: amount})


def queue_obstacle(name: str, queues: Mapping[str, FairQueue]) -> QueueObstacle | None:
    """Why a queue takes no gangs; `None` where it does: an existing leaf below existing queues."""
    if not name:
        return QueueObstacle(QueueObstacleKind.UNNAMED, name)
    queue = queues.get(name)
    if queue is None:
        return QueueObstacle(QueueObstacleKind.MISSING, name)
    above = ancestry_obstacle(queue, queues)
    if above is not None and above.kind is QueueObstacleKind.CYCLE and name in above.others:
        return above  # What is below it is on the cycle, too, and takes no gangs either.
    below = tuple(child.name for child in queues.values() if child.parent == name)
    return QueueObstacle(QueueObstacleKind.INNER, name, below) if below else above


def ancestry_obstacle(queue: FairQueue, queues: Mapping[str, FairQueue]) -> QueueObstacle | None:
    """Why no queue at this place takes gangs: one above it is missing, or they are in a cycle."""
    name, line = queue.name, [queue.name]
    while queue.parent is not None:
        if queue.parent not in queues:
            return QueueObstacle(QueueObstacleKind.ORPHAN, name, (queue.parent,))
        if queue.parent in line:
            cycle = line[line.index(queue.parent) :]
            return QueueObstacle(QueueObstacleKind.CYCLE, name, tuple(cycle))
        line.append(queue.parent)
        queue = queues[queue.parent]
    return None


def weighed_resource(capacity: Mapping[str, int]) -> str:
    """The tree has one weight for a node: that of GPUs, or of CPU where there are no GPUs."""
    return GPU if capacity[GPU] else CPU


class _Mapping:
    def __init__(self, queues: dict[str, FairQueue], capacity: Mapping[str, int]) -> None:
        self._queues = queues
        self._capacity = capacity
        self._below: dict[str | None, list[FairQueue]] = {}
        for queue in queues.values():
            self._below.setdefault(queue.parent, []).append(queue)

    def tree(self) -> FairTree:
        rest = {
            resource: Quota(amount - self._deserved_below(None, resource))
            for resource, amount in self._capacity.items()
        }
        inner = [queue for queue in self._queues.values() if queue.name in self._below]
        leaves = [queue for queue in self._queues.values() if queue.name not in self._below]
        return FairTree(
            (
                Cohort(CLUSTER, None, _group(rest)),
                *(self._cohort(each) for each in inner),
            ),
            tuple(self._queue(each) for each in leaves),
        )

    def _cohort(self, queue: FairQueue) -> Cohort:
        return Cohort(
            name=queue.name,
            parent=self._parent(queue),
            resource_groups=self._group(queue),
            weight=self._weight(queue),
            priority=queue.priority,
            reclaim_min_runtime_ms=self._runtime_ms(queue, _reclaim_s),
            preempt_min_runtime_ms=self._runtime_ms(queue, _preempt_s),
            created_ms=queue.created_ms,
        )

    def _queue(self, queue: FairQueue) -> Queue:
        return Queue(
            name=queue.name,
            cohort=self._parent(queue),
            resource_groups=self._group(queue),
            weight=self._weight(queue),
            priority=queue.priority,
            # Namespaces do not matter here: every one may use it.
            rules=AdmissionRules(namespaces=()),
            reclaim_min_runtime_ms=self._runtime_ms(queue, _reclaim_s),
            preempt_min_runtime_ms=self._runtime_ms(queue, _preempt_s),
            created_ms=queue.created_ms,
        )

    def _runtime_ms(
        self, queue: FairQueue, seconds: Callable[[FairQueue], int | None]
    ) -> int | None:
        """Its own minimum runtime, or that of the nearest queue above it that has one."""
        seen: set[str] = set()
        above: FairQueue | None = queue
        while above is not None and above.name not in seen:
            found = seconds(above)
            if found is not None:
                return 1000 * found
            seen.add(above.name)
            above = None if above.parent is None else self._queues.get(above.parent)
        return None

    def _parent(self, queue: FairQueue) -> str:
        return CLUSTER if queue.parent is None else queue.parent

    def _group(self, queue: FairQueue) -> tuple[ResourceGroup, ...]:
        quotas: dict[str, Quota] = {}
        for resource in self._capacity:
            deserved = self._deserved(queue, resource)
            amount = fair_amount(queue, resource)
            limit, weight = amount.limit, max(Fraction(0), amount.over_quota_weight)
            quotas[resource] = Quota(
                deserved - self._deserved_below(queue.name, resource),
                None if limit is None else int(limit) - deserved,
                weight=None if weight == self._weight(queue) else weight,
            )
        return _group(quotas)

    def _deserved(self, queue: FairQueue, resource: str) -> int:
        """In whole units; a queue that deserves as much as there is deserves all of it."""
        quota = fair_amount(queue, resource).quota
        return self._capacity[resource] if quota is None else int(quota)

    def _deserved_below(self, name: str | None, resource: str) -> int:
        return sum(self._deserved(child, resource) for child in self._below.get(name, ()))

    def _weight(self, queue: FairQueue) -> Fraction:
        resource = weighed_resource(self._capacity)
        return max(Fraction(0), fair_amount(queue, resource).over_quota_weight)


def _reclaim_s(queue: FairQueue) -> int | None:
    return queue.reclaim_min_runtime_s


def _preempt_s(queue: FairQueue) -> int | None:
    return queue.preempt_min_runtime_s


def _group(quotas: dict[str, Quota]) -> tuple[ResourceGroup, ...]:
    return (ResourceGroup(tuple(quotas), (FlavorQuotas(ANY_FLAVOR, quotas),)),)
