"""What every node of the quota tree takes and could have, by the shares that a policy compares.

Read from a working copy, so it is what cycles decide by. Where weights alone decide, there is
nothing that a cycle works out beforehand, and `fair_now` tells people what would be fair.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.fair_now import Portion
from bough.core.quota.fairness import used_part
from bough.core.quota.taken_share import Share, write_weight
from bough.model.certificate import NodeShare
from bough.model.quota import TreeNode


class Standing(NamedTuple):
    """What a node takes, and could have."""

    #: What it is compared by.
    share: Share
    #: Resource by resource; nothing where no policy divides beforehand.
    portions: tuple[Portion, ...] = ()


def standings(copy: WorkingCopy) -> dict[TreeNode, Standing]:
    """By node, as things are when a cycle begins; empty where weights alone decide."""
    tree = copy.ledgers.total
    nodes = dict.fromkeys(node for node in tree if not tree.cycle(node))
    if copy.policy.divides:
        return _by_division(copy, nodes)
    if copy.dominant is None:
        return {}
    return {node: Standing(copy.dominant.of(node)) for node in nodes}


def share_of_side(copy: WorkingCopy, node: TreeNode) -> Share:
    """What the policy compares a node by, as it is now."""
    if copy.policy.divides:
        return used_part(copy.fair.of(node))
    return copy.shares.of(node) if copy.dominant is None else copy.dominant.of(node)


def told_share(copy: WorkingCopy, node: TreeNode) -> NodeShare:
    """The same for a certificate."""
    share = share_of_side(copy, node)
    return NodeShare(node, share.text, write_weight(share.weight), share.resource)


def _by_division(copy: WorkingCopy, nodes: Mapping[TreeNode, None]) -> dict[TreeNode, Standing]:
    asked = {
        node: amounts
        for root in copy.ledgers.total.roots()
        if root in nodes
        for node, amounts in copy.fair.asked(root).items()
    }
    found: dict[TreeNode, Standing] = {}
    for node in nodes:
        portions = (
            Portion(
                each.what.resource,
                int(each.deserved or 0),
                int(each.counted.usage),
                asked[node][each.what],
                Fraction(each.fair),
            )
            for each in copy.fair.of(node)
        )
        found[node] = Standing(share_of_side(copy, node), tuple(portions))
    return found
