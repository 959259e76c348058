"""The fair share of every node of a quota tree: what it may have of what all ask for.

A root has all its quota; each node's share is divided among its children (`division`). What counts
is what was asked for when the cycle began, and the result holds for the whole cycle: what starts,
ends or is undone within it changes what nodes use, not what is fair. Where the same is asked for,
and by the same nodes, the last division is used again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bough.core.quota.account import Account
from bough.core.quota.division import Amount, Taker, divide
from bough.core.quota.fairness import Entitlement, Entitlements, entitlement
from bough.core.quota.tree import QuotaTree
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode

#: What a node uses that it does not list.
_UNUSED = Account(TreeNode(NodeKind.QUEUE, ""))
#: What one parent divides of one resource: how much, and among which.
_Asked = tuple[Amount, tuple[Taker, ...]]


class FairShares:
    """What the nodes of a tree have a right to, as things were asked for when a cycle began."""

    def __init__(self, tree: QuotaTree) -> None:
        self._tree = tree
        #: By queue: what its gangs wait for.
        self._waiting: dict[str, Counter[FlavorResource]] = {}
        self._entitled: dict[TreeNode, Entitlements] = {}
        #: By parent and resource: what was asked for last, and what came of it.
        self._divided: dict[tuple[TreeNode, FlavorResource], tuple[_Asked, dict[str, Amount]]] = {}

    def wait(self, queue: str, amounts: Amounts, sign: int = 1) -> None:
        """Something of a queue waits for this; or, with sign -1, no longer does."""
        waiting = self._waiting.setdefault(queue, Counter())
        for what, amount in amounts.items():
            waiting[what] += sign * amount

    def begin(self) -> None:
        """Divide anew: what is used and asked for now is what counts."""
        self._entitled.clear()
        tree = self._tree
        for root in tree.roots():
            if not tree.cycle(root):
                self._enter(root)

    def of(self, node: TreeNode) -> Entitlements:
        """What a node has a right to; nothing, where it hangs on a cycle."""
        return self._entitled.get(node, ())

    def fair(self, node: TreeNode) -> dict[FlavorResource, Amount]:
        """The fair share of a node."""
        return {each.what: each.fair for each in self.of(node)}

    def _enter(self, root: TreeNode) -> None:
        tree = self._tree
        asked = self.asked(root)
        accounts = tree.accounts(root)
        whats = tree.flavor_resources(root)
        totals: dict[FlavorResource, Amount] = {}
        for what in whats:
            totals[what] = accounts[what].subtree_quota
        self._entitled[root] = _entitlements(accounts, totals, totals)
        waiting = [root]
        while waiting:
            parent = waiting.pop()
            children = tree.children(parent)
            if not children:
                continue
            waiting += children
            fair: dict[TreeNode, dict[FlavorResource, Amount]] = {each: {} for each in children}
            for above in self._entitled[parent]:
                shares = self._divide(parent, above, children, asked, totals)
                for child in children:
                    fair[child][above.what] = shares[_key(child)]
            for child in children:
                self._entitled[child] = _entitlements(tree.accounts(child), fair[child], totals)

    def _divide(
        self,
        parent: TreeNode,
        above: Entitlement,
        children: list[TreeNode],
        asked: Mapping[TreeNode, Counter[FlavorResource]],
        totals: Mapping[FlavorResource, Amount],
    ) -> Mapping[str, Amount]:
        tree, what = self._tree, above.what
        takers = tuple(
            _taker(tree, child, what, asked[child][what], totals[what]) for child in children
        )
        key = (parent, what)
        known = self._divided.get(key)
        if known is None or known[0] != (above.fair, takers):
            shares = divide(above.fair, takers).shares
            known = self._divided[key] = ((above.fair, takers), shares)
        return known[1]

    def asked(self, root: TreeNode) -> dict[TreeNode, Counter[FlavorResource]]:
        """What every node below a root uses and waits for."""
        tree = self._tree
        nodes = [root]
        for node in nodes:
            nodes += tree.children(node)
        asked: dict[TreeNode, Counter[FlavorResource]] = {node: Counter() for node in nodes}
        for node in reversed(nodes):
            own = asked[node]
            if node.kind is NodeKind.QUEUE:
                own.update({what: each.usage for what, each in tree.accounts(node).items()})
                own.update(self._waiting.get(node.name, ()))
            parent = tree.parent(node)
            if parent is not None:
                asked[parent].update(own)
        return asked


def _taker(
    tree: QuotaTree, node: TreeNode, what: FlavorResource, asked: int, total: Amount
) -> Taker:
    account, quota = tree.account(node, what), tree.quota(node, what)
    weight = None if quota is None else quota.weight
    deserved = 0 if account is None else account.subtree_quota
    return Taker(
        name=_key(node),
        # What deserves all there is deserves all that its parent has.
        deserved=None if deserved >= total else deserved,
        limit=_limit(account),
        asked=asked,
        weight=tree.weight(node) if weight is None else weight,
        priority=tree.priority(node),
        created_ms=tree.created_ms(node),
    )


def _entitlements(
    accounts: Mapping[FlavorResource, Account],
    fair: Mapping[FlavorResource, Amount],
    totals: Mapping[FlavorResource, Amount],
) -> Entitlements:
    found = ((what, accounts.get(what), total) for what, total in totals.items())
    return tuple(
        entitlement(
            what,
            _UNUSED if account is None else account,
            0 if account is None else account.subtree_quota,
            _limit(account),
            fair[what],
            total,
        )
        for what, account, total in found
    )


def _key(node: TreeNode) -> str:
    """Cohorts and queues may have the same name; among equals the name decides."""
    return f"{node.name}\0{node.kind}"


def _limit(account: Account | None) -> int | None:
    if account is None:
        return 0
    limit = account.borrowing_limit
    return None if limit is None else account.subtree_quota + limit
