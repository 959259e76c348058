"""Which gangs may be evicted for which, and in what order.

In its own queue a gang preempts by priority. From other queues it reclaims what they use beyond
their quota: a queue, or a cohort between it and the preemptor, that is within its quota is never
touched. The preemptor has the *advantage* over those that use quota of a subtree which it is in and
which could hold it, as what is guaranteed always has; from the others it may take only while it
does not itself borrow, or where its queue lets it reclaim while borrowing. Any part that a gang can
do without goes before any gang is broken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Container, Hashable, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import NamedTuple

from msgspec.structs import astuple

from bough.core.cycle.claim import Claim
from bough.core.cycle.forest import Inner, Leaf, Ranked
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.release import (
    Unit,
    UnitKind,
    surplus_in_turn,
    surplus_pods,
)
from bough.core.gang.tree import pods_of
from bough.core.quota.account import Account, Charge, charge, credit
from bough.errors import Broken
from bough.model.admission import (
    BorrowWithinCohort,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
)
from bough.model.gang import Pod
from bough.model.plan import EvictionRule
from bough.model.quota import Amounts, Cohort, FlavorResource, Queue, TreeNode


class Preemptor(NamedTuple):
    """Which gang looks for victims, and what for."""

    leaf: Leaf
    standing: Standing
    #: Everything that it asks for.
    amounts: Amounts
    #: Of these there is not enough quota.
    scarce: tuple[FlavorResource, ...]
    #: Gangs that are no victims, whatever they are.
    excluded: Container[str] = ()
    #: Whether it is within its quota at every level, and may not exceed it.
    guaranteed: bool = False
    #: Whether it takes from others only while all nodes on its side stay within their quota.
    within_quota: bool = False
    #: Whether it also needs room on nodes; then gangs may be in its way that use none of the quota.
    needs_room: bool = False


class Tier(NamedTuple):
    """A cohort above the preemptor; candidates below it, but not below the level before it."""

    inner: Inner
    #: Whether the preemptor has the advantage over these candidates.
    advantage: bool
    #: Queues that are not of this level.
    skipped: frozenset[str]
    #: Sorted, those of skipped queues among them: what was told to end, and what was not.
    leaving: list[Ranked]
    running: list[Ranked]


class Victim:
    """What ends together: a gang, or a part that it can do without."""

    __slots__ = (
        "_parts",
        "charges",
        "claim",
        "level",
        "pods",
        "reach",
        "rule",
        "surplus",
        "unit",
        "whole",
    )

    def __init__(
        self,
        claim: Claim,
        pods: tuple[Pod, ...],
        reach: Tier | None,
        rule: EvictionRule,
        level: TreeNode,
        charges: Sequence[Charge],
        unit: Unit | None = None,
    ) -> None:
        self.claim = claim
        #: What it counts in the ledger of everything.
        self.charges = charges
        #: All that a gang or replica holds, some of which may be taken already.
        self.pods = pods
        #: `None`: it is in the preemptor's own queue.
        self.reach = reach
        self.rule = rule
        #: The lowest node of the quota tree that both are below.
        self.level = level
        #: The part of its gang that it is; `None`: the gang as a whole.
        self.unit = unit
        self.whole = unit is None
        #: Of a whole gang: what it would give back before it is broken.
        self.surplus: tuple[Pod, ...] = ()
        self._parts: frozenset[str] | None = None

    @property
    def gang(self) -> str:
        """The name of its gang."""
        return self.claim.name

    @property
    def parts(self) -> frozenset[str]:
        """The names of its pods."""
        if self._parts is None:
            self._parts = frozenset(pod.name for pod in self.pods)
        return self._parts

    @property
    def own(self) -> bool:
        """Whether it is of the preemptor's own queue."""
        return self.reach is None

    @property
    def priority(self) -> int:
        """The priority of its gang."""
        return self.claim.standing.priority

    @property
    def gpus(self) -> int:
        """The GPUs of its pods, or of its pod sets."""
        if self.claim.counted:
            usage = self.claim.usage.items()
            return sum(amount for what, amount in usage if what.resource.endswith("gpu"))
        return sum(pod.requests.gpus for pod in self.pods)

    @property
    def core(self) -> int:
        """The GPUs that its gang cannot give back without being broken; of a part all."""
        return self.gpus - sum(pod.requests.gpus for pod in self.surplus)

    @property
    def alike(self) -> Hashable:
        """What makes it as good a victim as another: its pods' requests and nodes."""
        pods = sorted((pod.node or "", astuple(pod.requests)) for pod in self.pods)
        if self.unit is not None and self.unit.kind is UnitKind.POD:
            return self.gang, self.unit.node.position, *pods
        if self.whole and self.pods and not self.surplus:
            return self.claim.queue, self.priority, *pods
        return self.gang, self.parts


class Candidates:
    """Everything that a preemptor may take, in order, as usage is when this is made."""

    def __init__(self, copy: WorkingCopy, preemptor: Preemptor) -> None:
        self._copy = copy
        self._preemptor = preemptor
        self._rules = preemptor.leaf.preemption
        self._path = copy.path(preemptor.leaf.queue.name)
        self._levels = list(_levels(copy, preemptor)) if copy.rules.reclaim else []

    @property
    def elsewhere(self) -> bool:
        """Whether there are any in other queues."""
        return self._has(advantage=True) or self._has(advantage=False)

    @property
    def with_advantage(self) -> bool:
        """Whether there are any in other queues over which the preemptor has the advantage."""
        return self._has(advantage=True)

    def in_order(self, *, borrowing: bool) -> Iterator[Victim]:
        """Surplus before whole gangs; what was told to end already first; the own queue last.

        Of surplus that which goes if it does not matter which. While borrowing, those are left out
        that can only be taken without.
        """
        for claim, reach in self._elastic(borrowing=borrowing):
            turns, _ = surplus_in_turn(claim.tree, self._copy.held(claim))
            yield from (self._part(claim, unit, reach) for unit in turns)
        yield from self._gangs(borrowing=borrowing)

    def units(self, *, borrowing: bool) -> Iterator[Victim]:
        """All that may be taken, each on its own: any surplus, then whole gangs."""
        for claim, reach in self._elastic(borrowing=borrowing):
            turns, others = surplus_in_turn(claim.tree, self._copy.held(claim))
            turns += [unit for unit in others if self._is_exchangeable(claim, unit)]
            yield from (self._part(claim, unit, reach) for unit in turns)
        yield from self._gangs(borrowing=borrowing)

    @property
    def reclaims_while_borrowing(self) -> bool:
        """Whether the preemptor's queue may take from others while it borrows itself."""
        return self._rules.borrow_within_cohort is not BorrowWithinCohort.NEVER

    def only_without_borrowing(self, claim: Claim) -> bool:
        """Whether a claim without disadvantage can be taken only if nothing is borrowed then."""
        if not self.reclaims_while_borrowing:
            return True
        threshold = self._rules.borrow_priority_threshold
        priority = claim.standing.priority
        return priority >= self._preemptor.standing.priority or (
            threshold is not None and priority > threshold
        )

    def allowed(self, victim: Victim, surplus: tuple[Pod, ...], *, borrowing: bool) -> bool:
        """Whether a victim may be taken after what was taken before it.

        A gang is broken only for what its queue, and every cohort between, has beyond quota without
        the gang's surplus, as far as that is not taken: if it could shrink so far that one is
        within its quota, it is spared.
        """
        reach = victim.reach
        if reach is None:
            return True
        if self._preemptor.within_quota and not self.is_entitled((victim,)):
            return False
        if borrowing and not reach.advantage and self.only_without_borrowing(victim.claim):
            return False
        if not surplus:
            return not is_out_of_reach(victim, self._preemptor.scarce)
        charges = self.charges(victim.claim, surplus)
        credit(charges)
        out_of_reach = is_out_of_reach(victim, self._preemptor.scarce)
        charge(charges)
        return not out_of_reach

    def is_entitled(self, victims: Iterable[Victim]) -> bool:
        """Whether the preemptor may take from where these are, as usage is now."""
        preemptor = self._preemptor
        if not preemptor.within_quota:
            return True
        highest = 0
        for victim in victims:
            if victim.reach is not None:
                highest = max(highest, self._path.index(victim.reach.inner.node))
        tree = self._copy.ledgers.total
        return all(
            tree.balance(node, what) >= amount
            for node in self._path[:highest]
            for what, amount in preemptor.amounts.items()
        )

    def _elastic(self, *, borrowing: bool) -> Iterator[tuple[Claim, Tier | None]]:
        if self._copy.elastic:
            yield from self._claims(leaving=False, borrowing=borrowing, elastic=True)

    def _gangs(self, *, borrowing: bool) -> Iterator[Victim]:
        for leaving in (True, False):
            for claim, reach in self._claims(leaving=leaving, borrowing=borrowing, elastic=False):
                charges = claim.charges
                if self._copy.has_changed(claim):
                    charges = self.charges(claim, self._copy.firm(claim, claim.running))
                victim = self._victim(claim, claim.running, reach, charges)
                if claim.elastic:
                    victim.surplus = surplus_pods(claim.tree, self._copy.held(claim))
                yield victim

    def _claims(
        self, *, leaving: bool, borrowing: bool, elastic: bool
    ) -> Iterator[tuple[Claim, Tier | None]]:
        """Other queues, those over which the preemptor has the advantage first; then the own."""
        for claim, reach in self._elsewhere(leaving=leaving, advantage=True):
            if self._is_candidate(claim, reach, elastic=elastic):
                yield claim, reach
        if not borrowing or self.reclaims_while_borrowing:
            for claim, reach in self._elsewhere(leaving=leaving, advantage=False):
                if self._is_candidate(claim, reach, elastic=elastic):
                    yield claim, reach
        for claim in self._same_queue(leaving=leaving, elastic=elastic):
            if self._is_candidate(claim, None, elastic=elastic):
                yield claim, None

    def _is_candidate(self, claim: Claim, reach: Tier | None, *, elastic: bool) -> bool:
        if elastic:
            return claim.elastic and self._may_shrink(claim, reach)
        return claim.preemptible and self._has_run_long_enough(claim, reach)

    def _may_shrink(self, claim: Claim, reach: Tier | None) -> bool:
        """Whether surplus is borrowed, whatever the gang's rank; otherwise it has that rank."""
        if self._copy.rules.growth_borrows:
            return True
        lower = claim.standing.priority < self._preemptor.standing.priority
        return claim.preemptible and (reach is not None or lower)

    def _has_run_long_enough(self, claim: Claim, reach: Tier | None) -> bool:
        """Whether a gang has run for as long as it may at least before it is broken."""
        safe_for = self._safe_for_ms(claim, reach)
        if safe_for is None:
            safe_for = self._copy.rules.minimum_runtime_ms
        started = claim.gang.started_ms
        return not safe_for or started is None or started + safe_for <= self._copy.now_ms

    def _safe_for_ms(self, claim: Claim, reach: Tier | None) -> int | None:
        """What the queue says of it; of other queues, the node below the common one says it."""
        leaf = claim.leaf
        if leaf is None or reach is None:
            return None if leaf is None else leaf.queue.preempt_min_runtime_ms
        declared: Cohort | Queue | None = leaf.queue
        inner = leaf.parent
        while inner is not None and inner is not reach.inner:
            declared = self._copy.ledgers.total.declaration(inner.node)
            inner = inner.parent
        return None if declared is None else declared.reclaim_min_runtime_ms

    def _has(self, *, advantage: bool) -> bool:
        return any(
            next(self._elsewhere(leaving=leaving, advantage=advantage), None) is not None
            for leaving in (True, False)
        )

    def _elsewhere(self, *, leaving: bool, advantage: bool) -> Iterator[tuple[Claim, Tier]]:
        streams = [
            self._at(level, leaving=leaving)
            for level in self._levels
            if level.advantage is advantage and (level.leaving if leaving else level.running)
        ]
        if not streams:
            return
        # Orders are never equal, so that levels are never compared.
        found = streams[0] if len(streams) == 1 else merge(*streams)
        if self._copy.queues_differ:
            found = sorted(found, key=self._queue_turn)
        for _, claim, level in found:
            if not self._copy.is_evicted(claim):
                yield claim, level

    def _queue_turn(self, ranked: tuple[object, Claim, Tier]) -> int:
        """The lower priority first, of the nodes that stand beside the preemptor's."""
        _, claim, level = ranked
        tree = self._copy.ledgers.total
        path = self._copy.path(claim.queue)
        return tree.priority(path[path.index(level.inner.node) - 1])

    def _at(self, level: Tier, *, leaving: bool) -> Iterator[tuple[object, Claim, Tier]]:
        """What is left at a level after the queue's rule, sorted."""
        preemptor = self._preemptor
        ranked = level.leaving if leaving else level.running
        stop = len(ranked)
        if self._rules.reclaim_within_cohort is ReclaimWithinCohort.LOWER_PRIORITY:
            stop = _first_at(ranked, preemptor.standing.priority)
        skipped, excluded = level.skipped, preemptor.excluded
        for order, claim in islice(ranked, stop):
            if claim.queue not in skipped and claim.name not in excluded:
                yield order, claim, level

    def _same_queue(self, *, leaving: bool, elastic: bool) -> Iterator[Claim]:
        """Lower priorities; what a gang has beyond its minimum, whatever its priority."""
        within = self._rules.within_queue
        if within is PreemptionWithinQueue.NEVER or not self._copy.rules.preempt:
            return
        preemptor = self._preemptor
        leaf, standing = preemptor.leaf, preemptor.standing
        newer_too = within is PreemptionWithinQueue.LOWER_OR_NEWER_EQUAL_PRIORITY
        ranked = leaf.leaving if leaving else leaf.running
        stop = len(ranked)
        if not elastic:
            stop = _first_at(ranked, standing.priority + 1 if newer_too else standing.priority)
        for _, claim in islice(ranked, stop):
            if claim.name == standing.name or claim.name in preemptor.excluded:
                continue
            own = claim.standing
            equal = not elastic and own.priority == standing.priority
            if equal and own.since_ms <= standing.since_ms:
                continue
            if self._copy.is_evicted(claim):
                continue
            if preemptor.needs_room or _uses(claim, preemptor.scarce):
                yield claim

    def _is_exchangeable(self, claim: Claim, unit: Unit) -> bool:
        """Whether something else than what goes in turn leaves as much guaranteed as before.

        What is kept to the last is guaranteed, unless the gang is preemptible: it must not become
        more by what is given back.
        """
        if claim.preemptible:
            return True
        leaves = (unit.node,) if unit.parent is None else unit.parent.children
        if any(not leaf.is_leaf or leaf.minimum != unit.node.minimum for leaf in leaves):
            return False
        held = self._copy.held(claim)
        pods = (pod for leaf in leaves for pod in pods_of(leaf, held[leaf.first_leaf]))
        costs = [self._copy.cost(claim, pod) for pod in pods]
        return all(cost == costs[0] for cost in costs)

    def _part(self, claim: Claim, unit: Unit, reach: Tier | None) -> Victim:
        return self._victim(claim, unit.pods, reach, self.charges(claim, unit.pods), unit)

    def _victim(
        self,
        claim: Claim,
        pods: tuple[Pod, ...],
        reach: Tier | None,
        charges: Sequence[Charge],
        unit: Unit | None = None,
    ) -> Victim:
        if reach is None:
            node = self._preemptor.leaf.node
            return Victim(claim, pods, None, EvictionRule.PREEMPT, node, charges, unit)
        rule = EvictionRule.RECLAIM_WHILE_BORROWING
        if reach.advantage or self.only_without_borrowing(claim):
            rule = EvictionRule.RECLAIM
        return Victim(claim, pods, reach, rule, reach.inner.node, charges, unit)

    def charges(self, claim: Claim, pods: tuple[Pod, ...]) -> list[Charge]:
        """What some pods of a gang count in the ledger of everything."""
        leaf = claim.leaf
        return [
            (leaf.account(what), amount)
            for pod in pods
            for what, amount in self._copy.cost(claim, pod).items()
            if leaf is not None
        ]


def is_out_of_reach(victim: Victim, scarce: tuple[FlavorResource, ...]) -> bool:
    """Whether the victim's queue, or a cohort between it and the preemptor, borrows no more."""
    reach, leaf = victim.reach, victim.claim.leaf
    if reach is None:
        return False
    if leaf is None:
        raise Broken(f"{victim.claim.name} holds quota of no queue")
    if leaf.is_within_nominal(scarce):
        return True
    inner = leaf.parent
    while inner is not None and inner is not reach.inner:
        if inner.is_within_nominal(scarce):
            return True
        inner = inner.parent
    return False


def _levels(copy: WorkingCopy, preemptor: Preemptor) -> Iterator[Tier]:
    """The cohorts from which the preemptor may reclaim, from its own up to the root."""
    leaf = preemptor.leaf
    rule = leaf.preemption.reclaim_within_cohort
    inner = leaf.parent
    if inner is None or rule is ReclaimWithinCohort.NEVER:
        return
    rest: list[tuple[Account | None, int]] = [
        (leaf.account(what), amount) for what, amount in preemptor.amounts.items()
    ]
    advantage = preemptor.guaranteed or preemptor.within_quota or _holds_all(rest)
    skipped = frozenset((leaf.queue.name,))
    while inner is not None:
        leaving, running = copy.forest.reclaimable(
            inner, preemptor.scarce, only_users=not preemptor.needs_room
        )
        yield Tier(inner, advantage, skipped, leaving, running)
        rest = [_passed_on(account, amount) for account, amount in rest]
        advantage = advantage or _holds_all(rest)
        skipped = inner.names
        inner = inner.parent


def _holds_all(requests: list[tuple[Account | None, int]]) -> bool:
    """Whether a node's own quota could hold all of this on top of what it uses."""
    return all(
        account is not None and account.usage + amount <= account.subtree_quota
        for account, amount in requests
    )


def _passed_on(account: Account | None, amount: int) -> tuple[Account | None, int]:
    """What a node leaves of a request to the node above it."""
    if account is None:
        return None, amount
    kept = max(0, account.local_quota - account.usage)
    return account.parent, max(0, amount - kept)


def _first_at(ranked: list[Ranked], priority: int) -> int:
    """Where those with at least this priority begin."""
    return bisect_left(ranked, priority, key=lambda each: each[0].priority)


def _uses(claim: Claim, whats: tuple[FlavorResource, ...]) -> bool:
    return any(what in claim.usage for what in whats)
