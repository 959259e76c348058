"""What would be fair now: how much each node could have if idle capacity were divided by weight.

Level by level from the root. Of what a node has, its children first get what they ask for of their
own quota; the rest goes by weight to those that ask for more, up to their limits. What a child does
not ask for is left to the others; what it does not lend is left to no one. For people: decisions
compare shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import msgspec

from bough.core.quota.tree import QuotaTree
from bough.model.quota import FlavorResource, NodeKind, Quota, TreeNode


class Portion(msgspec.Struct, frozen=True):
    """One resource at a node, over all flavors; at a cohort of everything below it."""

    resource: str
    #: Its own quota.
    deserved: int
    used: int
    #: What it uses, and what waits in it asks for.
    asked: int
    #: What it could have, of all that there is; `None`: nothing is divided beforehand.
    fair: Fraction | None


class Claimant(msgspec.Struct, frozen=True):
    """A node that wants a part of something."""

    asked: Fraction
    deserved: Fraction
    weight: Fraction
    #: The most that it may have; `None`: no limit.
    limit: Fraction | None = None
    #: The part of its own quota that it lends to no other.
    kept: Fraction = Fraction(0)


def fair_now(
    tree: QuotaTree, waiting: Mapping[str, Mapping[str, int]]
) -> dict[TreeNode, list[Portion]]:
    """By node, resource by resource; `waiting`: what waits in each queue asks for."""
    found: dict[TreeNode, list[Portion]] = {}
    for root in tree.roots():
        resources = {what.resource for what in tree.flavor_resources(root)}
        for resource in sorted(resources):
            for node, portion in _Division(tree, root, waiting, resource).portions():
                found.setdefault(node, []).append(portion)
    return found


def divide(total: Fraction, claimants: list[Claimant]) -> list[Fraction]:
    """Divide by weight; those without weight share evenly what all others leave."""
    wants = [
        each.asked if each.limit is None else min(each.asked, each.limit) for each in claimants
    ]
    got = [min(want, each.deserved) for want, each in zip(wants, claimants, strict=True)]
    kept = sum(max(Fraction(0), each.kept - n) for each, n in zip(claimants, got, strict=True))
    rest = total - sum(got) - kept
    weights = [each.weight for each in claimants]
    for heavy in (weights, [Fraction(1)] * len(claimants)):
        while rest > 0:
            open_ = [at for at, want in enumerate(wants) if got[at] < want and heavy[at]]
            if not open_:
                break
            # As much for each unit of weight as satisfies the first of them.
            whole = sum(heavy[at] for at in open_)
            step = min(rest / whole, *((wants[at] - got[at]) / heavy[at] for at in open_))
            for at in open_:
                got[at] += step * heavy[at]
            rest -= step * whole
    return got


class _Division:
    """One resource of one tree."""

    def __init__(
        self,
        tree: QuotaTree,
        root: TreeNode,
        waiting: Mapping[str, Mapping[str, int]],
        resource: str,
    ) -> None:
        self._tree = tree
        self._resource = resource
        self._deserved: dict[TreeNode, int] = {}
        self._used: dict[TreeNode, int] = {}
        self._asked: dict[TreeNode, int] = {}
        #: Each node before those below it.
        self._nodes = [root]
        for node in self._nodes:
            self._nodes += tree.children(node)
        for node in reversed(self._nodes):
            self._add_up(node, waiting)

    def portions(self) -> Iterator[tuple[TreeNode, Portion]]:
        """What each node could have; a root has all that there is."""
        root = self._nodes[0]
        fair = {root: Fraction(self._deserved[root])}
        for node in self._nodes:
            children = self._tree.children(node)
            parts = divide(fair[node], [self._claimant(child) for child in children])
            fair.update(zip(children, parts, strict=True))
            amounts = (self._deserved[node], self._used[node], self._asked[node])
            yield node, Portion(self._resource, *amounts, fair[node])

    def _add_up(self, node: TreeNode, waiting: Mapping[str, Mapping[str, int]]) -> None:
        """Add up a node, after all below it."""
        below = self._tree.children(node)
        own = sum(quota.nominal for quota in self._quotas(node))
        used = waits = 0
        if node.kind is NodeKind.QUEUE:
            used = sum(self._tree.usage(node, what) for what in self._kinds(node))
            waits = waiting.get(node.name, {}).get(self._resource, 0)
        self._deserved[node] = own + sum(self._deserved[each] for each in below)
        self._used[node] = used + sum(self._used[each] for each in below)
        self._asked[node] = used + waits + sum(self._asked[each] for each in below)

    def _claimant(self, node: TreeNode) -> Claimant:
        quotas = list(self._quotas(node))
        deserved = self._deserved[node]
        borrowing = [quota.borrowing_limit for quota in quotas]
        lending = [quota.lending_limit for quota in quotas]
        limit = None
        if borrowing and None not in borrowing:
            limit = Fraction(deserved + _total(borrowing))
        kept = 0
        if lending and None not in lending:
            kept = max(0, deserved - _total(lending))
        asked, weight = Fraction(self._asked[node]), self._tree.weight(node)
        return Claimant(asked, Fraction(deserved), weight, limit, Fraction(kept))

    def _quotas(self, node: TreeNode) -> Iterator[Quota]:
        quotas = (self._tree.quota(node, what) for what in self._kinds(node))
        return (quota for quota in quotas if quota is not None)

    def _kinds(self, node: TreeNode) -> Iterator[FlavorResource]:
        """The resource on each of its flavors."""
        whats = self._tree.flavor_resources(node)
        return (what for what in whats if what.resource == self._resource)


def _total(limits: Iterable[int | None]) -> int:
    return sum(limit or 0 for limit in limits)


def write_part(amount: Fraction | None) -> int | float | None:
    """An amount for people and JSON: whole, or with three places."""
    if amount is None:
        return None
    rounded = round(amount, 3)
    return int(rounded) if rounded.denominator == 1 else float(rounded)
