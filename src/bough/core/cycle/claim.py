"""One gang in the working copy: what it is, and what is cheap to know about it.

What it holds at any moment within a cycle is the working copy's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from bough.core.cycle.queue_order import (
    Standing,
    VictimOrder,
    priority_of,
    standing_of,
    victim_order,
)
from bough.core.gang.order import Order
from bough.core.gang.sufficiency import is_stale
from bough.core.gang.tree import GangTree
from bough.core.place.pod_shapes import is_alike
from bough.model.gang import Gang, Pod, PodState
from bough.model.policy import Policy
from bough.model.quota import FlavorResource
from bough.model.workload import PodSet

if TYPE_CHECKING:
    from bough.core.cycle.forest import Leaf
    from bough.core.cycle.offers import Wants
    from bough.core.quota.account import Charge

#: Shared, as there are very many claims.
_NOTHING: Mapping[FlavorResource, int] = {}
_WAITING = (PodState.PENDING, PodState.GATED)


class Alike:
    """What is known of all gangs of one shape in a line, whichever of them was looked at."""

    __slots__ = ("has_nodes", "wants")

    def __init__(self) -> None:
        #: What they want; the pods are those of one of them.
        self.wants: Wants | None = None
        #: Whether nodes are large enough for that, with the state of the nodes for which this is
        #: known.
        self.has_nodes: tuple[int, bool] | None = None


class Claim:
    """A gang that runs, waits, or both. Its tree is laid out when it is first asked for."""

    __slots__ = (
        "_order",
        "_shape",
        "_tree",
        "alike",
        "charges",
        "counted",
        "elastic",
        "ending",
        "evicted",
        "gang",
        "holds",
        "leaf",
        "name",
        "policy",
        "preemptible",
        "queue",
        "running",
        "standing",
        "usage",
        "victim_order",
        "waiting",
        "wants",
    )

    def __init__(self, gang: Gang, policy: Policy, order: Order) -> None:
        self.gang = gang
        self.name = gang.name
        self.queue = gang.queue
        self.policy = policy
        self.preemptible = gang.preemptible
        self._order = order
        self._shape: bytes | None = None
        self._tree: GangTree | None = None
        #: What it wants as long as it holds what it held when it was made; see `offers.wants_of`.
        self.wants: Wants | None = None
        #: What it has in common with others; `None` where it is in no line.
        self.alike: Alike | None = None
        #: Its place in line.
        self.standing: Standing = standing_of(gang, policy)
        #: Where all that it held when the cycle began is counted, and how much that is.
        self.leaf: Leaf | None = None
        self.usage: Mapping[FlavorResource, int] = _NOTHING
        self.charges: Sequence[Charge] = ()
        #: Pods that hold a place, and pods that were told to give theirs up.
        self.running: tuple[Pod, ...] = ()
        self.ending: tuple[Pod, ...] = ()
        #: Its pod sets were told to end, and hold their quota until they have.
        self.evicted = False
        #: Whether it may hold more than it needs; known without laying out the tree.
        self.elastic = False
        #: Whether it is decided by quota alone: its pods are made once it has it.
        self.counted = bool(gang.pod_sets) or gang.admission is not None
        if self.counted:
            self.holds = gang.holds_quota
            self.waiting = not self.holds and not (gang.conditions and gang.has("Finished"))
            self.evicted = self.holds and gang.has("Evicted")
        else:
            self._look_at_pods(gang)
        self.victim_order: VictimOrder | None = None
        if self.holds:
            self.victim_order = victim_order(gang, policy, self.standing.priority)

    def _look_at_pods(self, gang: Gang) -> None:
        running: list[Pod] = []
        ending: list[Pod] = []
        self.waiting = not gang.pods
        for pod in gang.pods:
            state = pod.state
            if state is PodState.RUNNING:
                running.append(pod)
            elif state in _WAITING:
                self.waiting = True
            elif state is PodState.RELEASING and pod.node is not None:
                ending.append(pod)
        self.running, self.ending = tuple(running), tuple(ending)
        self.holds = bool(running)
        self.elastic = bool(gang.subgroups or len(self.running) > _needed(gang))

    @property
    def tree(self) -> GangTree:
        """The gang as a tree of subgroups."""
        if self._tree is None:
            self._tree = GangTree.of(self.gang, self._order)
        return self._tree

    @property
    def shape(self) -> bytes:
        """Equal for gangs of a queue about which a cycle would say the same."""
        if self._shape is None:
            self._shape = shape_of(self.gang, self.policy)
        return self._shape

    @property
    def has_optional_pods(self) -> bool:
        """Whether it may have more than it needs; known without laying out the tree."""
        gang = self.gang
        return bool(gang.subgroups) or len(gang.pods) > _needed(gang)

    @property
    def is_stale(self) -> bool:
        """Whether it runs with less than it needs."""
        if not self.running or (
            not self.gang.subgroups and len(self.running) >= _needed(self.gang)
        ):
            return False
        return is_stale(self.tree)


def shape_of(gang: Gang, policy: Policy) -> bytes:
    """Equal for gangs of a queue about which a cycle would say the same: same rank, same pods."""
    parts: list[object] = [-priority_of(gang, policy), gang.preemptible]
    if gang.pod_sets:
        finished = gang.reclaimable_pods
        for each in gang.pod_sets:
            template = each.template
            count = _count_of(each, finished) if finished else each.count
            parts += (each.name, count, each.min_count, each.topology, template.requests)
            parts += (template.node_selector, template.affinity, template.tolerations)
        return _encoded(parts, gang)
    parts += (gang.owner, gang.minimum, gang.subgroups, gang.constraint, gang.sets)
    before: Pod | None = None
    for pod in gang.pods:
        if pod.node is not None or pod.state is not PodState.PENDING:
            # A gang that runs in part is like no other.
            parts.append(gang.name)
            break
        if before is None or not _asks_the_same(before, pod):
            parts += (pod.subgroup, pod.requests, pod.node_selector, pod.affinity, pod.tolerations)
            parts += (pod.rank, pod.unsupported)
        else:
            parts.append(None)
        before = pod
    return _encoded(parts, gang)


def _encoded(parts: list[object], gang: Gang) -> bytes:
    try:
        return msgspec.msgpack.encode(parts, order="deterministic")
    except OverflowError:
        # A gang that asks for more than 64 bits can count is like no other.
        return msgspec.msgpack.encode(gang.name)


def counts_of(gang: Gang) -> tuple[int, ...]:
    """How many pods of each pod set need quota: finished ones do not."""
    finished = gang.reclaimable_pods
    if not finished:
        return tuple([each.count for each in gang.pod_sets])
    return tuple([_count_of(each, finished) for each in gang.pod_sets])


def _count_of(pod_set: PodSet, finished: Mapping[str, int]) -> int:
    return max(0, pod_set.count - finished.get(pod_set.name, 0))


def _asks_the_same(one: Pod, other: Pod) -> bool:
    return one.subgroup == other.subgroup and one.rank == other.rank and is_alike(one, other)


def _needed(gang: Gang) -> int:
    return len(gang.pods) if gang.minimum is None else gang.minimum
