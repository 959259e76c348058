"""Which gangs have what is missing: how much, guaranteed or borrowed, whether it may be taken."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from bough.core.cycle.candidates import Candidates
from bough.core.cycle.claim import Claim
from bough.core.cycle.quota_cost import amount_of
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.release import core_pods
from bough.core.gang.tree import pods_of
from bough.core.quota.tree import QuotaTree
from bough.model.certificate import Holder
from bough.model.cluster import Resources
from bough.model.gang import Pod
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode

#: How much of what is missing a pod has; 0: none.
Measure = Callable[[Claim, Pod], int]

#: From the names that placement has for resources to a request for one unit.
_ONE_OF = {
    "gpus": Resources(gpus=1),
    "cpu": Resources(cpu_milli=1),
    "memory": Resources(memory_bytes=1),
    "pods": Resources(pods=1),
}


class Holders:
    """The gangs that hold something after a cycle."""

    def __init__(self, copy: WorkingCopy, claim: Claim, request: Amounts) -> None:
        self._copy = copy
        self._claim = claim
        self._evictable = self._find_evictable(request)

    def below(self, node: TreeNode, what: FlavorResource, *, guaranteed: bool) -> list[Holder]:
        """The gangs below a node of the tree that have it: only what is guaranteed, or all."""
        copy = self._copy
        tree = copy.ledgers.total
        queues = {each.name for each in tree.subtree(node) if each.kind is NodeKind.QUEUE}
        holders = self._holders(
            queues,
            lambda claim, pod: copy.cost(claim, pod).get(what, 0),
            lambda claim: claim.usage.get(what, 0),
        )
        if guaranteed:
            holders = [each for each in holders if each.guaranteed]
        return share_borrowed(holders, lambda queue: borrowed_of(tree, queue, what))

    def on(self, nodes: int, resource: str) -> list[Holder]:
        """The gangs that have a resource, by placement's name for it, on some nodes."""
        copy = self._copy
        placer = copy.placer
        names = placer.index.columns.names
        if resource not in names:
            return []  # No node has any of it, so that there is no holder either.
        column = names.index(resource)

        def measure(claim: Claim, pod: Pod) -> int:
            holding = placer.holding(claim.name, pod.name)
            on_them = holding is not None and nodes >> holding.at & 1
            return holding.row[column] if holding is not None and on_them else 0

        holders = self._holders({*copy.costs}, measure, lambda _: 0)
        return share_borrowed(holders, lambda queue: self._borrowed(queue, resource))

    def _holders(
        self, queues: set[str], measure: Measure, count: Callable[[Claim], int]
    ) -> list[Holder]:
        found: list[Holder] = []
        for name in sorted(self._copy.claims):
            claim = self._copy.claims[name]
            if claim is not self._claim and claim.queue in queues:
                holder = (
                    self._counted(claim, count(claim))
                    if claim.counted
                    else self._holder(claim, measure)
                )
                if holder is not None:
                    found.append(holder)
        return found

    def _counted(self, claim: Claim, amount: int) -> Holder | None:
        """A gang of pod sets: it has all of its quota, or none."""
        if not amount or not claim.holds:
            return None
        conditions = claim.gang.conditions
        since = next((each.since_ms for each in conditions if each.type == "QuotaReserved"), None)
        return Holder(
            workload=claim.name,
            queue=claim.queue,
            amount=amount,
            guaranteed=0 if claim.preemptible else amount,
            evictable=amount if claim.name in self._evictable else 0,
            owner=claim.gang.owner,
            priority=claim.gang.priority,
            since_ms=since,
        )

    def _holder(self, claim: Claim, measure: Measure) -> Holder | None:
        copy = self._copy
        if not claim.running and not copy.has_changed(claim):
            return None
        held = copy.held(claim)
        pods = [
            pod
            for leaf, bits in zip(claim.tree.leaves, held, strict=True)
            for pod in pods_of(leaf, bits)
        ]
        amount = sum(measure(claim, pod) for pod in pods)
        if not amount:
            return None
        core = set[str]()
        if not claim.preemptible:
            kept = core_pods(claim.tree, held) if copy.rules.growth_borrows else pods
            core = {pod.name for pod in kept}
        evictable = self._evictable.get(claim.name, set())
        return Holder(
            workload=claim.name,
            queue=claim.queue,
            amount=amount,
            guaranteed=sum(measure(claim, pod) for pod in pods if pod.name in core),
            evictable=sum(measure(claim, pod) for pod in pods if pod.name in evictable),
            owner=claim.gang.owner,
            priority=claim.gang.priority,
            since_ms=claim.gang.started_ms,
            starting=not claim.running,
        )

    def _find_evictable(self, request: Amounts) -> dict[str, set[str]]:
        """By gang: the pods that may be evicted for the one that waits."""
        claim, copy = self._claim, self._copy
        takes = not claim.preemptible or copy.rules.preemptible_takes_victims
        found: dict[str, set[str]] = {}
        if not takes or claim.leaf is None or claim.leaf.cycle:
            return found
        preemptor = Preemptor(
            claim.leaf,
            claim.standing,
            request,
            tuple(request),
            guaranteed=not claim.preemptible,
            needs_room=not claim.counted,
        )
        candidates = Candidates(copy, preemptor)
        for victim in candidates.in_order(borrowing=False):
            surplus = copy.firm(victim.claim, victim.surplus)
            if candidates.allowed(victim, surplus, borrowing=False):
                pods = found.setdefault(victim.claim.name, set())
                pods.update(pod.name for pod in victim.pods)
        return found

    def _borrowed(self, queue: str, resource: str) -> int:
        """How much a queue uses beyond its quota, on the flavor where that is most."""
        one = _ONE_OF.get(resource, Resources(other=((resource, 1),)))
        tree = self._copy.ledgers.total
        node = TreeNode(NodeKind.QUEUE, queue)
        amounts = (
            borrowed_of(tree, queue, what)
            for what in tree.flavor_resources(node)
            if amount_of(one, what.resource)
        )
        return max(amounts, default=0)


def share_borrowed(holders: Iterable[Holder], borrowed: Callable[[str], int]) -> list[Holder]:
    """Divide what a queue has borrowed among its gangs: what is not guaranteed, newest first.

    The result is in the order in which people should read it.
    """
    left: dict[str, int] = {}
    found: list[Holder] = []
    for holder in sorted(holders, key=_newest_first):
        rest = left.setdefault(holder.queue, borrowed(holder.queue))
        part = min(rest, holder.amount - holder.guaranteed)
        left[holder.queue] = rest - part
        found.append(msgspec.structs.replace(holder, borrowed=part))
    return sorted(found, key=lambda each: (-each.evictable, -each.amount, each.workload))


def borrowed_of(tree: QuotaTree, queue: str, what: FlavorResource) -> int:
    """How much a queue uses beyond its quota."""
    node = TreeNode(NodeKind.QUEUE, queue)
    return max(0, -tree.balance(node, what)) if node in tree else 0


def _newest_first(holder: Holder) -> tuple[bool, int, str]:
    return (not holder.starting, -(holder.since_ms or 0), holder.workload)
