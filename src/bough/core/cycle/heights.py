"""How much of the tree somebody needs: the height of the lowest subtree that could hold a request.

Must not know who asks.
"""

from __future__ import annotations

from typing import NamedTuple

from bough.core.cycle.forest import Leaf
from bough.core.quota.account import Account


class Reach(NamedTuple):
    """The lowest subtree whose own quota could hold a request on top of what it uses."""

    #: 0 is the queue itself; where no subtree could, the whole tree.
    height: int
    #: Whether that is less than the whole tree.
    partial: bool


def reach_of(leaf: Leaf, account: Account, amount: int) -> Reach:
    """From how far up the queue would have to borrow."""
    inner = leaf.parent
    if inner is None:
        return Reach(0, partial=False)
    if account.usage + amount <= account.subtree_quota:
        return Reach(0, partial=True)
    rest = amount - max(0, account.local_quota - account.usage)
    above = account.parent
    while above is not None:
        if above.usage + rest <= above.subtree_quota:
            return Reach(inner.height, partial=above.parent is not None)
        rest -= max(0, above.local_quota - above.usage)
        above = above.parent
        if inner.parent is not None:
            inner = inner.parent
    return Reach(inner.height, partial=False)
