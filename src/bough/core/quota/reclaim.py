"""What a gang may reclaim from other queues where fair shares decide, and where that stops.

The question is asked of two nodes: those just below the lowest node that is above both queues. The
other side gives back while it has more than its fair share and what it deserves; or, if the gang's
side stays within what it deserves, while the other has more than that. Its side must not end up
further above its fair share than the other.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from fractions import Fraction

from bough.core.quota.account import Charge, charge, credit
from bough.core.quota.fairness import (
    Entitlements,
    Requests,
    is_above_allocatable,
    is_within_deserved,
    is_within_share,
    stays_behind,
)
from bough.model.policy import ShareRule
from bough.model.quota import TreeNode


class Reclaim:
    """One gang that reclaims, by the usage when this is made."""

    def __init__(
        self,
        entitled: Callable[[TreeNode], Entitlements],
        path: Sequence[TreeNode],
        request: Requests,
        rules: Container[ShareRule],
        factor: Fraction = Fraction(1),
    ) -> None:
        """`path`: the gang's queue, and the nodes above it."""
        self._entitled = entitled
        self._path = path
        self._request = request
        self._factor = factor
        #: By queue; see `sides`.
        self._sides: dict[TreeNode, tuple[TreeNode, TreeNode]] = {}
        self._by_share = ShareRule.FAIR_SHARE in rules
        #: The nodes of its side that would stay within what they deserve.
        self._deserving = frozenset(
            node
            for node in path
            if ShareRule.DESERVED in rules and is_within_deserved(entitled(node), request)
        )
        self._asked = {what for what, amount in request.items() if amount}

    @property
    def is_within_share(self) -> bool:
        """Whether the gang's queue would stay within its fair share: else it reclaims nothing."""
        return is_within_share(self._entitled(self._path[0]), self._request)

    def sides(self, path: Sequence[TreeNode]) -> tuple[TreeNode, TreeNode]:
        """Of both paths, the nodes below the first that they have in common."""
        found = self._sides.get(path[0])
        if found is None:
            above = set(self._path)
            at = next((at for at, node in enumerate(path) if node in above), len(path))
            found = self._path[-1], path[-1]
            if at < len(path):
                found = self._path[self._path.index(path[at]) - 1], path[at - 1]
            self._sides[path[0]] = found
        return found

    def is_deserved(self, path: Sequence[TreeNode]) -> bool:
        """Whether the gang's side stays within what it deserves, as seen from a queue."""
        return self.sides(path)[0] in self._deserving

    def may_ask(self, path: Sequence[TreeNode]) -> bool:
        """Whether a queue has more than its right, so that it may be made to give back."""
        own, other = self.sides(path)
        theirs = self._entitled(other)
        if self._by_share and is_above_allocatable(theirs):
            return True
        return own in self._deserving and not is_within_deserved(theirs)

    def lets(self, path: Sequence[TreeNode], charges: Sequence[Charge]) -> bool:
        """Whether something of a queue may be taken, after what was taken before it."""
        if not self.may_ask(path):
            return False
        own, other = self.sides(path)
        theirs = self._entitled(other)
        before = [each.counted.usage for each in theirs]
        credit(charges)
        given = (
            each.what
            for each, usage in zip(theirs, before, strict=True)
            if each.counted.usage != usage
        )
        involved = self._asked.union(given)
        behind = stays_behind(self._entitled(own), self._request, theirs, involved, self._factor)
        charge(charges)
        return behind
