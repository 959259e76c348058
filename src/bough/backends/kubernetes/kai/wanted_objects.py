"""The KAI objects that a quota tree requires. Pure: same tree, same objects.

    osmo-default-{ns}                       no limit
    └── osmo-pool-{ns}-{pool}               the pool's quota, maximum and weight
        ├── osmo-pool-{ns}-{pool}---shared  what the subpools leave over
        └── osmo-pool-{ns}-{pool}--{sub}    its quota; 0 while it is being deleted

Names that Kubernetes does not allow are replaced; a label holds the original.
"""

from __future__ import annotations

import msgspec

from bough.backends.kubernetes.kai.kai_types import (
    KaiQueue,
    KaiTopology,
    PriorityClass,
    QueueAmounts,
    QueueResources,
    QueueSpec,
    TopologyLevel,
    TopologySpec,
)
from bough.backends.kubernetes.names import SITE, label_value
from bough.kube.objects import Meta
from bough.model.names import QueueName
from bough.model.queue_tree import LeafQueue, PoolQueue, QueueTree, class_name, topology_name

#: The labels of our objects: the backend that keeps them, and the name in Bough's own tree.
BACKEND = "bough.backend"
QUEUE = "bough.queue"
NAMESPACE = "osmo.namespace"
POOL = "osmo.pool"
#: KAI's default, written explicitly.
PRIORITY = 100
#: KAI never preempts a workload whose priority is 100 or more.
PRIORITIES = {"high": 125, "normal": 100, "low": 50}
_NO_LIMIT = -1.0
_UNBOUNDED = QueueAmounts(_NO_LIMIT, _NO_LIMIT, 1.0)


class WantedObjects(msgspec.Struct, frozen=True):
    """Everything that a cluster should have, by name."""

    root: KaiQueue
    pools: dict[str, KaiQueue]
    leaves: dict[str, KaiQueue]
    topologies: dict[str, KaiTopology]
    classes: dict[str, PriorityClass]

    @property
    def queues(self) -> dict[str, KaiQueue]:
        """All Queues."""
        return {self.root.metadata.name: self.root, **self.pools, **self.leaves}


class Owner(msgspec.Struct, frozen=True):
    """Whose objects these are, and the labels by which we recognise them."""

    site: str
    backend: str

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all our objects have."""
        return {SITE: self.site, BACKEND: label_value(self.backend)}

    def owns(self, metadata: Meta) -> bool:
        """Whether an object is ours to change."""
        found = metadata.labels or {}
        return all(found.get(name) == value for name, value in self.labels.items())


def wanted_objects(tree: QueueTree, owner: Owner) -> WantedObjects:
    """The objects that a tree requires."""
    root = tree.root.exported
    pools: dict[str, KaiQueue] = {}
    leaves: dict[str, KaiQueue] = {}
    topologies: dict[str, KaiTopology] = {}
    for pool in tree.pools:
        name = pool.name.exported
        pools[name] = _queue(owner, pool.name, _pool_spec(pool, pool.name, root, pool.quota))
        for leaf in pool.leaves:
            leaves[leaf.name.exported] = _leaf(owner, pool, leaf)
        if pool.levels:
            topologies[topology_name(pool.name)] = _topology(owner, pool)
    return WantedObjects(
        _queue(owner, tree.root, _spec(tree.root, "", _UNBOUNDED)),
        pools,
        leaves,
        topologies,
        {each.metadata.name: each for each in _classes(owner, tree.root)},
    )


def _leaf(owner: Owner, pool: PoolQueue, leaf: LeafQueue) -> KaiQueue:
    return _queue(owner, leaf.name, _pool_spec(pool, leaf.name, pool.name.exported, leaf.quota))


def _pool_spec(pool: PoolQueue, name: QueueName, parent: str, quota: int | None) -> QueueSpec:
    """The spec of a pool or leaf: each has its own quota, leaves share the pool's other values."""
    return _spec(
        name, parent, QueueAmounts(_amount(quota), _amount(pool.limit), float(pool.weight))
    )


def _spec(name: QueueName, parent: str, gpu: QueueAmounts) -> QueueSpec:
    resources = QueueResources(gpu=gpu, cpu=_UNBOUNDED, memory=_UNBOUNDED)
    return QueueSpec(str(name), parent, PRIORITY, resources=resources)


def _amount(gpus: int | None) -> float:
    """GPUs as KAI writes them; never negative, as KAI would read that as no limit."""
    return _NO_LIMIT if gpus is None else float(max(0, gpus))


def _queue(owner: Owner, name: QueueName, spec: QueueSpec) -> KaiQueue:
    labels = _labels(owner, name) | {QUEUE: label_value(str(name))}
    return KaiQueue(Meta(name.exported, labels=labels), spec)


def _topology(owner: Owner, pool: PoolQueue) -> KaiTopology:
    levels = tuple(map(TopologyLevel, pool.levels))
    metadata = Meta(topology_name(pool.name), labels=_labels(owner, pool.name))
    return KaiTopology(metadata, TopologySpec(levels))


def _classes(owner: Owner, root: QueueName) -> list[PriorityClass]:
    return [
        PriorityClass(Meta(class_name(root.prefix, name), labels=owner.labels), value)
        for name, value in PRIORITIES.items()
    ]


def _labels(owner: Owner, name: QueueName) -> dict[str, str]:
    pool = {} if name.pool is None else {POOL: label_value(name.pool)}
    return {**owner.labels, NAMESPACE: label_value(name.namespace), **pool}
