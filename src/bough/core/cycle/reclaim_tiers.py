"""From which other queues a gang may take, cohort by cohort up the tree.

It reclaims what they use beyond their quota: a queue, or a cohort between it and the preemptor,
that is within its quota is never touched. The preemptor has the *advantage* over those that use
quota of a subtree which it is in and which could hold it, as what is guaranteed always has; from
the others it may take only while it does not itself borrow, or where its queue lets it reclaim
while borrowing.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import NamedTuple

from bough.core.cycle.forest import Inner, Leaf, Ranked
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.account import Account
from bough.model.admission_rules import ReclaimWithinCohort
from bough.model.quota import Amounts, FlavorResource


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
    """A cohort above the preemptor; candidates below it, but not below the level before it.

    Where shares decide, those of one queue, with the lowest cohort that it and the preemptor share.
    """

    inner: Inner
    #: Whether the preemptor has the advantage over these candidates.
    advantage: bool
    #: Queues that are not of this level.
    skipped: frozenset[str]
    #: Sorted, those of skipped queues among them: what was told to end, and what was not.
    leaving: list[Ranked]
    running: list[Ranked]


def tiers_of(copy: WorkingCopy, preemptor: Preemptor) -> Iterator[Tier]:
    """The cohorts from which the preemptor may reclaim, from its own up to the root."""
    leaf = preemptor.leaf
    rule = leaf.preemption.reclaim_within_cohort
    inner = leaf.parent
    if inner is None or rule is ReclaimWithinCohort.NEVER:
        return
    if copy.policy.take_by_share:
        yield from _borrowers_of(copy, preemptor)
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


def _borrowers_of(copy: WorkingCopy, preemptor: Preemptor) -> Iterator[Tier]:
    """Every other queue of the tree that borrows, with the cohort that both are below.

    Where what a node has a right to decides, every other queue: a node above it may have more.
    """
    own = preemptor.leaf
    above: list[Inner] = []
    inner = own.parent
    while inner is not None:
        above.append(inner)
        inner = inner.parent
    if copy.divides:
        leaves = [
            copy.forest.leaves[name] for name in sorted(above[-1].names & copy.running.keys())
        ]
    else:
        leaves = copy.forest.borrowers(above[-1], preemptor.scarce)
    for leaf in leaves:
        if leaf is own:
            continue
        common = next(inner for inner in above if leaf.queue.name in inner.names)
        leaving, running = leaf.leaving, leaf.running
        if not preemptor.needs_room:
            leaving, running = leaf.users(preemptor.scarce)
        if leaving or running:
            yield Tier(common, False, frozenset(), leaving, running)


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


def is_out_of_reach(leaf: Leaf, tier: Tier, scarce: tuple[FlavorResource, ...]) -> bool:
    """Whether a queue of a tier, or a cohort between it and the preemptor, borrows no more."""
    if leaf.is_within_nominal(scarce):
        return True
    inner = leaf.parent
    while inner is not None and inner is not tier.inner:
        if inner.is_within_nominal(scarce):
            return True
        inner = inner.parent
    return False
