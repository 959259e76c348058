"""Who may be evicted for whom, and in what order.

Only what is preemptible, and what a gang has beyond its minimum, is ever taken: from other queues
where every node between them and the common ancestor is above its quota, so that a subtree within
its quota is never touched by others; then from lower priorities of the same queue. What is surplus
goes before any gang is broken; the newest goes first. Must not know whether it will be enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import pairwise
from typing import NamedTuple

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.world import World
from bough.core.gang.release import UnitKind, next_unit
from bough.core.quota.tree import QuotaTree
from bough.model.gang import Pod
from bough.model.plan import EvictionRule
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode


class Source(NamedTuple):
    """A queue from which something may be taken."""

    queue: str
    rule: EvictionRule
    #: The lowest node that it and the preemptor's queue are below.
    level: TreeNode
    #: From the queue up to the level, without it: all must be above their quota.
    chain: tuple[TreeNode, ...]


class Victim:
    """Pods that go together."""

    __slots__ = ("claim", "pods", "source", "whole")

    def __init__(self, claim: Claim, pods: tuple[Pod, ...], source: Source, *, whole: bool) -> None:
        self.claim = claim
        #: Of a whole gang: all that it holds, some of which may be taken already.
        self.pods = pods
        self.source = source
        self.whole = whole


class Reclaim:
    """The candidates for one preemptor that needs certain resources."""

    def __init__(self, world: World, preemptor: Claim, request: Amounts) -> None:
        self._world = world
        self._preemptor = preemptor
        self._whats = tuple(request)
        self._tree = world.ledgers.total
        self._others = list(self._borrowers()) if self._may_reclaim(request) else []
        own = world.queue_node(preemptor.queue)
        self._own = Source(preemptor.queue, EvictionRule.PREEMPT, own, ())

    def candidates(self) -> Iterator[Victim]:
        """Surplus before whole gangs; other queues before the own; the newest first."""
        own = [self._own] if self._world.rules.preempt else []
        for sources in (self._others, own):
            for claim, source in self._claims(sources):
                yield from self._surplus(claim, source)
        for sources in (self._others, own):
            for claim, source in self._claims(sources):
                if self._may_break(claim, source):
                    yield Victim(claim, claim.running, source, whole=True)

    def allowed(self, victim: Victim) -> bool:
        """Whether a victim may still be taken, after what was taken before it."""
        return all(is_above_quota(self._tree, node, self._whats) for node in victim.source.chain)

    def _may_reclaim(self, request: Amounts) -> bool:
        """What is preemptible may only take back what its queue's own quota has room for."""
        if not self._world.rules.reclaim:
            return False
        own = self._world.queue_node(self._preemptor.queue)
        return not self._preemptor.gang.preemptible or all(
            self._tree.balance(own, what) >= amount for what, amount in request.items()
        )

    def _claims(self, sources: list[Source]) -> Iterator[tuple[Claim, Source]]:
        """What runs in some queues, the newest first."""
        rows = [self._newest_first(source) for source in sources]
        return merge(*rows, key=lambda found: found[0].age, reverse=True)

    def _newest_first(self, source: Source) -> list[tuple[Claim, Source]]:
        claims = [
            claim
            for claim in self._world.running.get(source.queue, {}).values()
            if claim is not self._preemptor and not self._world.is_evicted(claim)
        ]
        claims.sort(key=lambda claim: claim.age, reverse=True)
        return [(claim, source) for claim in claims]

    def _surplus(self, claim: Claim, source: Source) -> Iterator[Victim]:
        if not claim.may_have_surplus:
            return
        held = self._world.held(claim)
        unit = next_unit(claim.tree, held)
        while unit is not None and unit.kind is not UnitKind.GANG:
            yield Victim(claim, unit.pods, source, whole=False)
            held = claim.tree.without_pods(held, (pod.name for pod in unit.pods))
            unit = next_unit(claim.tree, held)

    def _may_break(self, claim: Claim, source: Source) -> bool:
        gang = claim.gang
        if not gang.preemptible:
            return False
        if source is self._own and gang.priority >= self._preemptor.gang.priority:
            return False
        started = gang.started_ms
        safe_for = self._world.rules.minimum_runtime_ms
        return started is None or started + safe_for <= self._world.now_ms

    def _borrowers(self) -> Iterator[Source]:
        """The queues that nothing but quota above its limit separates from the preemptor's."""
        path = self._tree.path(self._world.queue_node(self._preemptor.queue))
        for below, level in pairwise(path):
            for child in self._tree.children(level):
                if child != below:
                    yield from self._above_quota(child, level, ())

    def _above_quota(
        self, node: TreeNode, level: TreeNode, above: tuple[TreeNode, ...]
    ) -> Iterator[Source]:
        if not is_above_quota(self._tree, node, self._whats):
            return
        chain = (node, *above)
        if node.kind is NodeKind.QUEUE:
            yield Source(node.name, EvictionRule.RECLAIM, level, chain)
            return
        for child in self._tree.children(node):
            yield from self._above_quota(child, level, chain)


def is_above_quota(tree: QuotaTree, node: TreeNode, whats: Iterable[FlavorResource]) -> bool:
    """Whether a node uses more than its quota of any of these."""
    return any(tree.balance(node, what) < 0 for what in whats)
