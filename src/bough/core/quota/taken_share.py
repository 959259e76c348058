"""How much of the common pot a node takes: its dominant-resource share, weighted.

For each resource, what the node uses beyond its own quota, in thousandths of what its parent could
lend at most; the largest such figure counts. Exact, so that equal shares are equal: fractions where
they are read, and integers where nodes beside each other are compared.

A share is derived from the accounts of its node whenever it is asked for: it follows what is added
and removed, and what is undone, and has nothing of its own to be kept in step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from math import ceil, lcm
from typing import NamedTuple

import msgspec

from bough.core.quota.account import Account
from bough.core.quota.tree import QuotaTree
from bough.model.quota import FlavorResource, TreeNode

#: What the shares of nodes beside each other are compared by; the larger takes more for its weight.
#: Nodes without weight come last; among themselves what they take counts.
ShareRank = tuple[bool, int]
#: The share of a node that borrows without weight.
INFINITE = "infinite"
_NONE: ShareRank = (False, 0)


class Share(msgspec.Struct, frozen=True):
    """The share of one node."""

    #: The resource that counts; empty where the share is 0.
    resource: str = ""
    #: Thousandths of what could be lent, before the weight.
    unweighted: Fraction = Fraction(0)
    weight: Fraction = Fraction(1)
    #: Whether anything at all is used beyond the node's own quota.
    borrowing: bool = False
    #: Whether it uses anything where nothing is due to it.
    undue: bool = False

    @property
    def weighted(self) -> Fraction | None:
        """The share for each unit of weight; `None` is infinite."""
        if not self.unweighted:
            return Fraction(0)
        return self.unweighted / self.weight if self.weight and not self.undue else None

    @property
    def text(self) -> str:
        """The weighted share for people: parts of what could be lent, rounded up, as in `0.334`."""
        weighted = self.weighted
        if weighted is None:
            return INFINITE
        whole, rest = divmod(ceil(weighted), 1000)
        return f"{whole}.{rest:03}".rstrip("0").rstrip(".")


def write_weight(weight: Fraction) -> str:
    """A weight as a file has it: `3`, `0.333`."""
    if weight.denominator == 1:
        return str(weight.numerator)
    return f"{Decimal(weight.numerator) / Decimal(weight.denominator):f}"


class _Part(NamedTuple):
    """What a node has of one resource."""

    resource: str
    #: Of each flavor.
    accounts: tuple[Account, ...]
    #: The most that anything below the parent could use of it.
    lendable: int
    #: What one unit counts, so that all resources and all nodes beside each other are comparable.
    unit: int


class _Pot(NamedTuple):
    """What is shared below one parent."""

    #: By resource: the most that anything below it could use.
    lendable: dict[str, int]
    #: A multiple of all these amounts, and of all weights.
    whole: int


class _Taker(NamedTuple):
    """A node with what its share is made of."""

    weight: Fraction
    weightless: bool
    #: By name of the resource.
    parts: tuple[_Part, ...]
    #: Its accounts, and how many there were then: more may come.
    accounts: Mapping[FlavorResource, Account]
    size: int


class Shares:
    """The shares of all nodes of a tree. What depends on declarations alone is worked out once."""

    def __init__(self, tree: QuotaTree) -> None:
        self._tree = tree
        self._takers: dict[TreeNode, _Taker] = {}
        #: By parent.
        self._pots: dict[TreeNode, _Pot] = {}

    def of(self, node: TreeNode) -> Share:
        """The node's share of what its parent could lend. A root borrows nothing: it has none."""
        taker = self._taker(node)
        largest = Share(weight=taker.weight)
        for part in taker.parts:
            borrowed = _borrowed(part)
            if not borrowed:
                continue
            ratio = Fraction(borrowed * 1000, part.lendable) if part.lendable > 0 else Fraction(0)
            if not largest.borrowing or ratio > largest.unweighted:
                name = part.resource if ratio else ""
                largest = Share(name, ratio, taker.weight, borrowing=True)
        return largest

    def rank(self, node: TreeNode) -> ShareRank:
        """The same, to be compared with nodes of the same parent."""
        taker = self._takers.get(node)
        if taker is None or taker.size != len(taker.accounts):
            taker = self._taker(node)
        largest = 0
        for _, accounts, _, unit in taker.parts:
            # As in `_borrowed`, which is not called: this is asked very often.
            counted = 0
            for account in accounts:
                excess = account.usage - account.subtree_quota
                if excess > 0:
                    counted += excess * unit
            largest = max(largest, counted)
        return (taker.weightless, largest) if largest else _NONE

    def is_borrowing(self, node: TreeNode) -> bool:
        """Whether the node uses anything beyond its own quota. A root cannot."""
        return any(map(_borrowed, self._taker(node).parts))

    def _taker(self, node: TreeNode) -> _Taker:
        taker = self._takers.get(node)
        if taker is None or taker.size != len(taker.accounts):
            taker = self._takers[node] = self._measure(node, self._tree.accounts(node))
        return taker

    def _measure(self, node: TreeNode, accounts: Mapping[FlavorResource, Account]) -> _Taker:
        tree = self._tree
        parent, weight = tree.parent(node), tree.weight(node)
        if parent is None or tree.cycle(node):
            return _Taker(weight, not weight, (), accounts, len(accounts))
        pot = self._pots.get(parent)
        if pot is None:
            pot = self._pots[parent] = _pot(tree, parent)
        whole = pot.whole
        if weight:
            whole = whole // weight.numerator * weight.denominator
        by_resource: dict[str, list[Account]] = {}
        for what in sorted(accounts):
            by_resource.setdefault(what.resource, []).append(accounts[what])
        parts = tuple(
            _Part(resource, tuple(rows), most, whole // most if most > 0 else 0)
            for resource, rows in sorted(by_resource.items())
            for most in (pot.lendable.get(resource, 0),)
        )
        return _Taker(weight, not weight, parts, accounts, len(accounts))


def share_of(tree: QuotaTree, node: TreeNode) -> Share:
    """The share of one node, where only that is asked for."""
    return Shares(tree).of(node)


def is_borrowing(tree: QuotaTree, node: TreeNode, whats: Iterable[FlavorResource]) -> bool:
    """Whether the node uses more than its own quota of any of these. A root cannot."""
    if tree.parent(node) is None:
        return False
    accounts = tree.accounts(node)
    for what in whats:
        account = accounts.get(what)
        if account is not None and account.usage > account.subtree_quota:
            return True
    return False


def _borrowed(part: _Part) -> int:
    """What is used of a resource beyond the node's quota, over all flavors."""
    borrowed = 0
    for account in part.accounts:
        excess = account.usage - account.subtree_quota
        if excess > 0:
            borrowed += excess
    return borrowed


def _pot(tree: QuotaTree, parent: TreeNode) -> _Pot:
    """The most that anything below the parent could use of each resource, over all flavors.

    Flavors count that exist anywhere in the tree, though nothing below the parent lists them.
    """
    lendable: dict[str, int] = {}
    for what in tree.flavor_resources(tree.path(parent)[-1]):
        lendable[what.resource] = lendable.get(what.resource, 0) + tree.potential(parent, what)
    weights = (tree.weight(child) for child in tree.children(parent))
    whole = lcm(*(amount for amount in lendable.values() if amount > 0))
    return _Pot(lendable, whole * lcm(*(weight.numerator for weight in weights if weight)))
