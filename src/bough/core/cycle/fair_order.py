"""In which order queues are served where shares decide.

A node for which others were told to end goes first. Where fair shares decide, `fairness.rank`
compares: whether it has more than its share, whether it stays within what it deserves, its
priority, and how much of what it may have it would use. Where the largest of all shares decides:
whether it would take anything beyond its own part, its priority, how much for its weight and, among
equals, the order by weight.
"""

from __future__ import annotations

from collections.abc import Callable

from bough.core.cycle.contest import Contender, Rank, Seat, by_weight
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.fairness import FairRank, rank
from bough.model.gang_rules import LineOrder
from bough.model.quota import Amounts, TreeNode


def ranking(copy: WorkingCopy) -> Callable[[Seat[Contender], Contender], Rank]:
    """How a node ranks with what it would start next, by the policy."""
    dominant = copy.dominant
    if dominant is not None:

        def by_dominant_share(seat: Seat[Contender], contender: Contender) -> Rank:
            taken = dominant.rank(seat.node, contender.queue, contender.request)
            first = (not contender.nominated, taken[1] > 0, -seat.declared.priority, taken)
            return *first, by_weight(seat, contender)

        return by_dominant_share
    if copy.rules.line is not LineOrder.BY_FAIR_SHARE:
        return by_weight

    def by_fair_share(seat: Seat[Contender], contender: Contender) -> Rank:
        ranked = rank_of(copy, seat.node, contender.request)
        return not contender.nominated, ranked, contender.order

    return by_fair_share


def rank_of(copy: WorkingCopy, node: TreeNode, request: Amounts) -> FairRank:
    """How a node ranks with a request."""
    tree = copy.ledgers.total
    return rank(
        copy.fair.of(node),
        request,
        priority=tree.priority(node),
        created_ms=tree.created_ms(node),
    )
