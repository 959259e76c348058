"""Which gangs may be evicted for which, and in what order.

In its own queue a gang preempts by priority. From other queues it reclaims what `reclaim_tiers`
lets it. Any part that a gang can do without goes before any gang is broken.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from itertools import chain, islice

from bough.core.cycle.claim import Claim
from bough.core.cycle.fair_giving_queues import FairGivers
from bough.core.cycle.forest import Ranked
from bough.core.cycle.giving_queues import Givers, Giving
from bough.core.cycle.reclaim_tiers import Preemptor, Tier, is_out_of_reach, tiers_of
from bough.core.cycle.victim import Victim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.release import (
    Unit,
    surplus_in_turn,
    surplus_pods,
)
from bough.core.gang.tree import pods_of
from bough.core.quota.account import Account, Charge, charge, credit
from bough.core.quota.minimum_runtimes import preempt_runtime_ms, reclaim_runtime_ms
from bough.errors import Broken
from bough.model.admission_rules import (
    PreemptionWithinQueue,
    ReclaimWithinCohort,
)
from bough.model.gang import Pod
from bough.model.plan import EvictionRule
from bough.model.policy import DIVIDING
from bough.model.quota import FlavorResource, TreeNode


class Candidates:
    """Everything that a preemptor may take, in order, by the usage when this is made."""

    def __init__(self, copy: WorkingCopy, preemptor: Preemptor) -> None:
        self._copy = copy
        self._preemptor = preemptor
        self._rules = preemptor.leaf.preemption
        #: By cohort, once it was asked for; see `_below`.
        self._own_side: dict[TreeNode, list[tuple[Account | None, int]]] = {}
        #: Whether the preemptor's queue may take from others while it borrows itself.
        self.reclaims_while_borrowing = preemptor.leaf.preempts_while_borrowing
        #: Where shares decide which queue gives back.
        self._givers = _givers_of(copy, preemptor)
        self._path = copy.path(preemptor.leaf.queue.name)
        self._levels = list(tiers_of(copy, preemptor)) if copy.rules.reclaim else []

    @property
    def elsewhere(self) -> bool:
        """Whether there are any in other queues."""
        return self._has(advantage=True) or self._has(advantage=False)

    @property
    def with_advantage(self) -> bool:
        """Whether there are any in other queues over which the preemptor has the advantage."""
        return self._has(advantage=True)

    @property
    def are_plain(self) -> bool:
        """Whether they are whole gangs, none of them told to end, and shares do not matter.

        Then they are `others`, followed by `own`.
        """
        if self._givers is not None or self._copy.elastic:
            return False
        return not self._preemptor.leaf.leaving and not any(each.leaving for each in self._levels)

    def own(self) -> Iterator[Victim]:
        """The gangs of its own queue."""
        return self._gangs_of(self._own(leaving=False, elastic=False))

    def others(self) -> Iterator[Victim]:
        """The gangs of other queues, where its own does not borrow afterwards."""
        return self._gangs_of(self._others(leaving=False, borrowing=False, elastic=False))

    def in_order(self, *, borrowing: bool) -> Iterator[Victim]:
        """Surplus before whole gangs; what was already told to end first; its own queue last.

        Of a gang's surplus, only the units that go when it does not matter which. With `borrowing`,
        gangs that may be taken only without it are left out. Where shares decide, the queue with
        the largest share comes first.
        """
        if self._givers is not None:
            yield from self._givers.in_order(self._by_queue())
            return
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

    def _by_queue(self) -> dict[str, Iterator[Victim]]:
        """What each queue would give, in order, of those that have anything to give."""
        lines = {
            (level.running or level.leaving)[0][1].queue: self._line(level)
            for level in self._levels
        }
        lines[self._preemptor.leaf.queue.name] = self._line(None)
        return lines

    def _line(self, reach: Tier | None) -> Iterator[Victim]:
        """What one queue would give: surplus, then what was told to end already, then gangs.

        Where surplus has the rank of its gang, it goes only before gangs of the same priority.
        """
        elastic: list[Claim] = []
        if self._copy.elastic:
            elastic = self._row(reach, leaving=False, elastic=True)
        if self._copy.rules.growth_borrows:
            yield from self._surplus(elastic, reach)
        for claim in self._row(reach, leaving=True, elastic=False):
            yield self._gang(claim, reach)
        gangs = self._row(reach, leaving=False, elastic=False)
        if self._copy.rules.growth_borrows:
            yield from (self._gang(claim, reach) for claim in gangs)
            return
        for priority in sorted({claim.standing.priority for claim in (*elastic, *gangs)}):
            yield from self._surplus((c for c in elastic if c.standing.priority == priority), reach)
            for claim in gangs:
                if claim.standing.priority == priority:
                    yield self._gang(claim, reach)

    def _surplus(self, claims: Iterable[Claim], reach: Tier | None) -> Iterator[Victim]:
        for claim in claims:
            turns, _ = surplus_in_turn(claim.tree, self._copy.held(claim))
            yield from (self._part(claim, unit, reach) for unit in turns)

    def _row(self, reach: Tier | None, *, leaving: bool, elastic: bool) -> list[Claim]:
        """The candidates of one queue: a list, as they are few and a generator would cost more."""
        if reach is None:
            claims = self._same_queue(leaving=leaving, elastic=elastic)
        else:
            ended = self._copy.is_evicted
            ranked = self._ranked(reach, leaving=leaving)
            excluded = self._preemptor.excluded
            claims = [each for _, each in ranked if each.name not in excluded and not ended(each)]
        return [each for each in claims if self._is_candidate(each, reach, elastic=elastic)]

    def only_without_borrowing(self, claim: Claim) -> bool:
        """Whether a gang may be taken only if the preemptor's queue then borrows nothing."""
        if not self.reclaims_while_borrowing:
            return True
        threshold = self._rules.borrow_priority_threshold
        priority = claim.standing.priority
        return priority >= self._preemptor.standing.priority or (
            threshold is not None and priority > threshold
        )

    def allowed(self, victim: Victim, surplus: tuple[Pod, ...], *, borrowing: bool) -> bool:
        """Whether a victim may be taken after what was taken before it.

        A gang is broken only if its queue, and every cohort in between, is beyond its quota even
        without the surplus that the gang still has: if giving that back would bring one of them
        within its quota, the gang is spared.
        """
        reach = victim.reach
        if reach is None:
            return True
        if self._givers is not None:
            return self._givers.lets(victim, *self._split(victim, surplus))
        if self._preemptor.within_quota and not self.is_entitled((reach.inner.node,)):
            return False
        if borrowing and not reach.advantage and self.only_without_borrowing(victim.claim):
            return False
        leaf = victim.claim.leaf
        if leaf is None:
            raise Broken(f"{victim.gang} holds quota of no queue")
        if not surplus:
            return not is_out_of_reach(leaf, reach, self._preemptor.scarce)
        charges = self.charges(victim.claim, surplus)
        credit(charges)
        out_of_reach = is_out_of_reach(leaf, reach, self._preemptor.scarce)
        charge(charges)
        return not out_of_reach

    def _split(
        self, victim: Victim, surplus: tuple[Pod, ...]
    ) -> tuple[Sequence[Charge], Sequence[Charge]]:
        """How much the core of a victim counts, and how much this surplus of it does."""
        if not surplus:
            return victim.charges, ()
        spared = {pod.name for pod in surplus}
        pods = self._copy.firm(victim.claim, victim.pods)
        core = tuple(pod for pod in pods if pod.name not in spared)
        return self.charges(victim.claim, core), self.charges(victim.claim, surplus)

    def is_entitled(self, cohorts: Iterable[TreeNode]) -> bool:
        """Whether the preemptor may take from others below these cohorts, as usage is now."""
        for cohort in cohorts:
            wanted = self._own_side.get(cohort)
            if wanted is None:
                wanted = self._own_side[cohort] = list(self._below(cohort))
            for account, amount in wanted:
                left = 0 if account is None else account.balance
                if left < amount:
                    return False
        return True

    def _below(self, cohort: TreeNode) -> Iterator[tuple[Account | None, int]]:
        """What the preemptor wants, in the accounts of all nodes on its side below a cohort."""
        tree = self._copy.ledgers.total
        for node in self._path[: self._path.index(cohort)]:
            for what, amount in self._preemptor.amounts.items():
                yield tree.account(node, what), amount

    def _elastic(self, *, borrowing: bool) -> Iterator[tuple[Claim, Tier | None]]:
        if self._copy.elastic:
            yield from self._claims(leaving=False, borrowing=borrowing, elastic=True)

    def _gangs(self, *, borrowing: bool) -> Iterator[Victim]:
        for leaving in (True, False):
            yield from self._gangs_of(
                self._claims(leaving=leaving, borrowing=borrowing, elastic=False)
            )

    def _gangs_of(self, claims: Iterable[tuple[Claim, Tier | None]]) -> Iterator[Victim]:
        return (self._gang(claim, reach) for claim, reach in claims)

    def _gang(self, claim: Claim, reach: Tier | None) -> Victim:
        charges = claim.charges
        if not claim.counted and self._copy.has_changed(claim):
            charges = self.charges(claim, self._copy.firm(claim, claim.running))
        victim = self._victim(claim, claim.running, reach, charges)
        if claim.elastic:
            victim.surplus = surplus_pods(claim.tree, self._copy.held(claim))
        return victim

    def _claims(
        self, *, leaving: bool, borrowing: bool, elastic: bool
    ) -> Iterator[tuple[Claim, Tier | None]]:
        """Other queues, then its own."""
        return chain(
            self._others(leaving=leaving, borrowing=borrowing, elastic=elastic),
            self._own(leaving=leaving, elastic=elastic),
        )

    def _others(
        self, *, leaving: bool, borrowing: bool, elastic: bool
    ) -> Iterator[tuple[Claim, Tier | None]]:
        """First those over which the preemptor has the advantage."""
        for claim, reach in self._elsewhere(leaving=leaving, advantage=True):
            if self._is_candidate(claim, reach, elastic=elastic):
                yield claim, reach
        if not borrowing or self.reclaims_while_borrowing:
            for claim, reach in self._elsewhere(leaving=leaving, advantage=False):
                if self._is_candidate(claim, reach, elastic=elastic):
                    yield claim, reach

    def _own(self, *, leaving: bool, elastic: bool) -> Iterator[tuple[Claim, Tier | None]]:
        for claim in self._same_queue(leaving=leaving, elastic=elastic):
            if self._is_candidate(claim, None, elastic=elastic):
                yield claim, None

    def _is_candidate(self, claim: Claim, reach: Tier | None, *, elastic: bool) -> bool:
        if elastic:
            return claim.elastic and self._may_shrink(claim, reach)
        if not claim.preemptible:
            return False
        return not self._copy.runtimes_matter or self._has_run_long_enough(claim, reach)

    def _may_shrink(self, claim: Claim, reach: Tier | None) -> bool:
        """Whether its surplus may go: always where growth counts as borrowed, else by rank."""
        if self._copy.rules.growth_borrows:
            return True
        lower = claim.standing.priority < self._preemptor.standing.priority
        return claim.preemptible and (reach is not None or lower)

    def _has_run_long_enough(self, claim: Claim, reach: Tier | None) -> bool:
        """Whether a gang has run for its minimum time, before which it may not be broken."""
        safe_for = self._safe_for_ms(claim, reach)
        if safe_for is None:
            safe_for = self._copy.rules.minimum_runtime_ms
        started = claim.gang.started_ms
        return not safe_for or started is None or started + safe_for <= self._copy.now_ms

    def _safe_for_ms(self, claim: Claim, reach: Tier | None) -> int | None:
        """How long it is safe from its own queue, or from the preemptor's."""
        copy = self._copy
        if claim.leaf is None:
            return None
        path = copy.path(claim.queue)
        if reach is None:
            return preempt_runtime_ms(copy.ledgers.total, path[0])
        return reclaim_runtime_ms(copy.ledgers.total, path, self._path, copy.rules.runtime_of)

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
        # Orders are never equal, so tiers are never compared.
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
        """The candidates of a tier that the queue's rule allows, sorted."""
        skipped, excluded = level.skipped, self._preemptor.excluded
        for order, claim in self._ranked(level, leaving=leaving):
            if claim.queue not in skipped and claim.name not in excluded:
                yield order, claim, level

    def _ranked(self, level: Tier, *, leaving: bool) -> list[Ranked]:
        ranked = level.leaving if leaving else level.running
        if self._rules.reclaim_within_cohort is ReclaimWithinCohort.LOWER_PRIORITY:
            return ranked[: _first_at(ranked, self._preemptor.standing.priority)]
        return ranked

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
        """Whether a unit that is not next in turn can go and leave as much guaranteed as before.

        What a gang keeps to the last is guaranteed, unless the gang is preemptible: giving
        something back must not guarantee more.
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
        if self._givers is not None:
            rule = EvictionRule.FAIR_SHARE
        elif reach.advantage or self.only_without_borrowing(claim):
            rule = EvictionRule.RECLAIM
        return Victim(claim, pods, reach, rule, reach.inner.node, charges, unit)

    def charges(self, claim: Claim, pods: tuple[Pod, ...]) -> list[Charge]:
        """How much some pods of a gang count in the ledger `total`."""
        leaf = claim.leaf
        return [
            (leaf.account(what), amount)
            for pod in pods
            for what, amount in self._copy.cost(claim, pod).items()
            if leaf is not None
        ]


def _givers_of(copy: WorkingCopy, preemptor: Preemptor) -> Giving | None:
    rules = copy.policy.take_by_share
    if not rules:
        return None
    return (FairGivers if any(rule in DIVIDING for rule in rules) else Givers)(copy, preemptor)


def _first_at(ranked: list[Ranked], priority: int) -> int:
    """Where those with at least this priority begin."""
    return bisect_left(ranked, priority, key=lambda each: each[0].priority)


def _uses(claim: Claim, whats: tuple[FlavorResource, ...]) -> bool:
    return any(what in claim.usage for what in whats)
