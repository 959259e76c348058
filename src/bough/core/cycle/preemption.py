"""The search for victims under the classical rules: with and without borrowing, none superfluous.

Feeds the one search loop with candidates and says what must hold at its end. The accounts are as
before when it returns. Must not know flavors, nor what becomes of the victims.
"""

from __future__ import annotations

from typing import NamedTuple

from bough.core.cycle.candidates import (
    Candidate,
    Candidates,
    Preemptor,
    is_out_of_reach,
)
from bough.core.cycle.forest import Forest
from bough.core.cycle.holder import Holder
from bough.core.cycle.victims import search
from bough.core.quota.account import available
from bough.model.plan import EvictionRule
from bough.model.quota import TreeNode


class Victim(NamedTuple):
    """Somebody who is to be evicted."""

    holder: Holder
    rule: EvictionRule
    #: The lowest node that both are below.
    level: TreeNode


def find_victims(forest: Forest, preemptor: Preemptor) -> list[Victim]:
    """Whom to evict so that the request fits; empty where nobody's end would help."""
    candidates = Candidates(forest, preemptor)
    for borrowing in _attempts(candidates, preemptor):
        found = _attempt(forest, preemptor, candidates, borrowing=borrowing)
        if found is not None:
            for candidate in found:
                candidate.holder.put_back()
            return [_victim(preemptor, candidates, each) for each in found]
    return []


def _attempts(candidates: Candidates, preemptor: Preemptor) -> tuple[bool, ...]:
    """Whether to let the queue borrow afterwards, in the order in which it is tried.

    Without borrowing there are more candidates, with it less is asked of them.
    """
    if not candidates.elsewhere:
        return (True,)
    if candidates.reclaims_while_borrowing:
        return (True, False)
    if not _is_below_nominal(preemptor):
        return (True,)
    return (True, False) if candidates.with_advantage else (False, True)


def _is_below_nominal(preemptor: Preemptor) -> bool:
    """Whether the queue has some quota of its own left of everything that is scarce."""
    accounts = (preemptor.leaf.account(what) for what in preemptor.scarce)
    return all(account.usage < account.nominal for account in accounts)


def _attempt(
    forest: Forest, preemptor: Preemptor, candidates: Candidates, *, borrowing: bool
) -> list[Candidate] | None:
    """One run of the search; those that are found stay taken."""
    charges = [(preemptor.leaf.account(what), n) for what, n in preemptor.amounts.items()]
    leaves, scarce = forest.leaves, preemptor.scarce

    def allowed(candidate: Candidate) -> bool:
        level = candidate.level
        if level is None:
            return True
        forbidden = borrowing and not level.advantage
        if forbidden and candidates.only_without_borrowing(candidate.holder):
            return False
        return not is_out_of_reach(candidate, leaves[candidate.holder.queue], scarce)

    def fits() -> bool:
        for account, amount in charges:
            if not borrowing and account.usage + amount > account.subtree_quota:
                return False
            if amount > max(0, available(account)[0]):
                return False
        return True

    return search(
        candidates.in_order(borrowing=borrowing),
        allowed=allowed,
        take=_take,
        put_back=_put_back,
        fits=fits,
    )


def _take(candidate: Candidate) -> None:
    candidate.holder.take()


def _put_back(candidate: Candidate) -> None:
    candidate.holder.put_back()


def _victim(preemptor: Preemptor, candidates: Candidates, candidate: Candidate) -> Victim:
    level = candidate.level
    node = preemptor.leaf.node if level is None else level.inner.node
    return Victim(candidate.holder, candidates.rule(candidate), node)
