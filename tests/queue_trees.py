"""Random trees of queues, and a cluster in memory that is judged after each change."""

from __future__ import annotations

import math

import msgspec
from hypothesis import strategies as st

from bough.backends.kubernetes.kai.kai_types import KaiQueue
from bough.backends.kubernetes.kai.object_changes import (
    WRITTEN,
    Change,
    FoundObjects,
    Verb,
    digest_of,
    quota_of,
)
from bough.backends.kubernetes.kai.wanted_objects import Owner
from bough.kube.objects import Meta
from bough.model.names import SHARED, QueueName
from bough.model.queue_tree import LeafQueue, PoolQueue, QueueTree

OWNER = Owner("5172", "default")
ROOT = QueueName("ns")
#: Some are not valid in Kubernetes, and some would meet if they were merely made so.
NAMES = ("team", "Team", "te_am", "te.am", "a", "a-b", "a_b", "A-b", "x" * 40)


def pool_queue(
    name: str, quota: int | None, levels: tuple[str, ...] = (), **subpools: int
) -> PoolQueue:
    """A pool with subpools of these quotas; the shared leaf has the rest."""
    pool = QueueName("ns", name)
    left = None if quota is None else quota - sum(subpools.values())
    leaves = [LeafQueue(QueueName("ns", name, SHARED), left)]
    leaves += [LeafQueue(QueueName("ns", name, sub), given) for sub, given in subpools.items()]
    return PoolQueue(pool, quota, leaves=tuple(leaves), levels=levels)


def tree(*pools: PoolQueue) -> QueueTree:
    """These pools."""
    return QueueTree(ROOT, pools)


@st.composite
def pools(draw: st.DrawFn, name: str) -> PoolQueue:
    """A pool that is divided as its quota allows."""
    quota = draw(st.none() | st.integers(0, 40))
    levels = draw(st.sampled_from([(), ("zone",), ("zone", "rack")]))
    left, subpools = quota or 0, {}
    for sub in draw(st.lists(st.sampled_from(("a", "b", "B", "c_d")), unique=True, max_size=4)):
        given = draw(st.integers(0, left))
        # One that is being deleted has none.
        subpools[sub] = given
        left -= given
    return pool_queue(name, quota, levels, **({} if quota is None else subpools))


@st.composite
def trees(draw: st.DrawFn) -> QueueTree:
    """Some pools."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    return tree(*(draw(pools(name)) for name in names))


class Cluster:
    """What a cluster has; every write is a revision that is looked at."""

    def __init__(self) -> None:
        self.kinds: dict[str, dict[str, object]] = {
            "Queue": {},
            "Topology": {},
            "PriorityClass": {},
        }
        self.writes = 0
        #: The worst of all revisions: by how much the leaves of a pool had more than the pool.
        self.excess = 0.0

    @property
    def found(self) -> FoundObjects:
        return FoundObjects(*(dict(each) for each in self.kinds.values()))  # type: ignore[arg-type]

    @property
    def queues(self) -> dict[str, KaiQueue]:
        return self.kinds["Queue"]  # type: ignore[return-value]

    def play(self, change: Change) -> None:
        """Write one change."""
        name, of = change.item.metadata.name, self.kinds[change.kind]
        if change.verb in (Verb.DELETE, Verb.REMAKE):
            del of[name]
            self._judge()
        if change.verb is not Verb.DELETE:
            assert (change.verb is Verb.UPDATE) == (name in of)
            of[name] = written(change.item)
        self._judge()

    def _judge(self) -> None:
        self.writes += 1
        self.excess = max(self.excess, excess(self.queues))


def written(item: object) -> object:
    """An object as the keeper writes it."""
    metadata: Meta = item.metadata  # type: ignore[attr-defined]
    noted = msgspec.structs.replace(metadata, annotations={WRITTEN: digest_of(item)})  # type: ignore[arg-type]
    return msgspec.structs.replace(item, metadata=noted)  # type: ignore[type-var]


def excess(queues: dict[str, KaiQueue]) -> float:
    """By how much the leaves of some queue have more than it."""
    given: dict[str, float] = {}
    for each in queues.values():
        parent = each.spec.parent_queue or ""
        given[parent] = given.get(parent, 0.0) + quota_of(each)
    worst = 0.0
    for name, amount in given.items():
        if name in queues and not math.isinf(have := quota_of(queues[name])):
            worst = max(worst, amount - have)
    return worst
