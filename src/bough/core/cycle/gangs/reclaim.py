"""Who may be evicted for whom, and in what order.

Only what is preemptible, and what a gang has beyond its minimum, is ever taken: from other queues
where every node between them and the common ancestor is above its quota, so that a subtree within
its quota is never touched by others; then from lower priorities of the same queue. What is surplus
goes before any gang is broken; the newest goes first. Must not know whether it will be enough.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.world import World
from bough.core.gang.release import UnitKind, next_unit
from bough.core.quota.tree import QuotaTree
from bough.model.gang import Pod
from bough.model.plan import EvictionRule
from bough.model.quota import Amounts, FlavorResource, TreeNode


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

    def __init__(
        self, world: World, preemptor: Claim, request: Amounts, spared: Container[str] = ()
    ) -> None:
        self._world = world
        self._preemptor = preemptor
        #: Gangs that are no victims, whatever they are.
        self._spared = spared
        self._whats = tuple(request)
        self._tree = world.ledgers.total
        self._path = world.path(preemptor.queue)
        self._own = Source(preemptor.queue, EvictionRule.PREEMPT, self._path[0], ())
        self._reclaims = world.rules.reclaim and self._may_reclaim(request)
        #: What may be taken from each queue, as far as anybody asked; `None`: nothing.
        self._sources: dict[str, Source | None] = {preemptor.queue: None}

    def candidates(self) -> Iterator[Victim]:
        """Surplus before whole gangs; other queues before the own; the newest first."""
        world = self._world
        own = self._own_claims()
        for claim, source in self._from_others(world.elastic):
            yield from self._surplus(claim, source)
        for claim in own:
            yield from self._surplus(claim, self._own)
        for claim, source in self._from_others(world.preemptible):
            if self._may_break(claim):
                yield Victim(claim, claim.running, source, whole=True)
        for claim in own:
            lower = claim.gang.priority < self._preemptor.gang.priority
            if lower and claim.gang.preemptible and self._may_break(claim):
                yield Victim(claim, claim.running, self._own, whole=True)

    def allowed(self, victim: Victim) -> bool:
        """Whether a victim may still be taken, after what was taken before it."""
        return all(is_above_quota(self._tree, node, self._whats) for node in victim.source.chain)

    def _may_reclaim(self, request: Amounts) -> bool:
        """What is preemptible may only take back what its queue's own quota has room for."""
        return not self._preemptor.gang.preemptible or all(
            self._tree.balance(self._path[0], what) >= amount for what, amount in request.items()
        )

    def _from_others(self, row: list[Claim]) -> Iterator[tuple[Claim, Source]]:
        """What may be taken from other queues, the newest first."""
        if not self._reclaims:
            return
        sources = self._sources
        for claim in reversed(row):
            queue = claim.queue
            source = sources[queue] if queue in sources else self._find_source(queue)
            if source is not None and self._is_left(claim):
                yield claim, source

    def _own_claims(self) -> list[Claim]:
        if not self._world.rules.preempt:
            return []
        claims = [
            claim
            for claim in self._world.running.get(self._preemptor.queue, {}).values()
            if claim is not self._preemptor and self._is_left(claim)
        ]
        return sorted(claims, key=lambda claim: claim.age, reverse=True)

    def _is_left(self, claim: Claim) -> bool:
        return claim.name not in self._spared and not self._world.is_evicted(claim)

    def _surplus(self, claim: Claim, source: Source) -> Iterator[Victim]:
        if not claim.elastic:
            return
        held = self._world.held(claim)
        unit = next_unit(claim.tree, held)
        while unit is not None and unit.kind is not UnitKind.GANG:
            yield Victim(claim, unit.pods, source, whole=False)
            held = claim.tree.without_pods(held, (pod.name for pod in unit.pods))
            unit = next_unit(claim.tree, held)

    def _may_break(self, claim: Claim) -> bool:
        """Whether it has run for as long as it may at least."""
        safe_for = self._world.rules.minimum_runtime_ms
        started = claim.gang.started_ms
        return not safe_for or started is None or started + safe_for <= self._world.now_ms

    def _find_source(self, queue: str) -> Source | None:
        """What may be taken from a queue: nothing where a node on the way is within its quota."""
        chain: list[TreeNode] = []
        found = None
        for node in self._world.path(queue) if queue in self._world.tariffs else ():
            if node in self._path:
                found = Source(queue, EvictionRule.RECLAIM, node, tuple(chain))
                break
            if not is_above_quota(self._tree, node, self._whats):
                break
            chain.append(node)
        self._sources[queue] = found
        return found


def is_above_quota(tree: QuotaTree, node: TreeNode, whats: Iterable[FlavorResource]) -> bool:
    """Whether a node uses more than its quota of any of these."""
    return any(tree.balance(node, what) < 0 for what in whats)
