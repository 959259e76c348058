"""The arithmetic of shared quota: one account for each node and (flavor, resource).

The design (hierarchical cohorts, Design Details) defines the balance

    T(x) = quota(x) - usage(x)                                      for a queue
    T(x) = quota(x) + sum over children c of min(lendingLimit(c), T(c))   for a cohort

and admits what keeps `T(x) >= -borrowingLimit(x)` everywhere, the root's limit being 0. An account
splits T into two running totals, `subtree_quota - usage`, so that a change costs a step for each
ancestor, and fewer where a node keeps the change to itself. Amounts are integers, `None` is no
limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bough.core.undo import Attribute, UndoLog
from bough.model.quota import Quota, TreeNode

_USAGE: Final = Attribute("usage")


class Account:
    """What a node has and uses of one resource on one flavor."""

    __slots__ = (
        "borrowing_limit",
        "lending_limit",
        "local_quota",
        "node",
        "nominal",
        "parent",
        "subtree_quota",
        "usage",
    )

    def __init__(self, node: TreeNode) -> None:
        self.node = node
        #: `None` for a root, and while the node hangs on a cycle.
        self.parent: Account | None = None
        self.nominal = 0
        self.borrowing_limit: int | None = None
        self.lending_limit: int | None = None
        #: Own quota plus what the children put at the disposal of the tree.
        self.subtree_quota = 0
        #: The part of subtree_quota that the rest of the tree can never have.
        self.local_quota = 0
        #: Of a queue: what its workloads use.
        #: Of a cohort: what its children use beyond their local quota.
        self.usage = 0

    @property
    def balance(self) -> int:
        """`T(x)`: what the subtree has left over, negative where it borrows."""
        return self.subtree_quota - self.usage

    @property
    def floor(self) -> int | None:
        """The lowest balance that is allowed; `None` where there is no limit."""
        if self.parent is None:
            return 0
        return None if self.borrowing_limit is None else -self.borrowing_limit

    @property
    def debt(self) -> int:
        """By how much the balance is below what is allowed."""
        floor = self.floor
        return 0 if floor is None else max(0, floor - self.balance)

    @property
    def exported_quota(self) -> int:
        """What the subtree offers to the rest of the tree."""
        return self.subtree_quota - self.local_quota

    @property
    def exported_usage(self) -> int:
        """What the subtree takes from what the tree shares."""
        return max(0, self.usage - self.local_quota)


#: What is counted, and where.
Charge = tuple[Account, int]


def available(account: Account) -> tuple[int, Account, int]:
    """How much more the node may use: the amount, the node that limits it, what stays below that.

    On the way up, each node serves a request from the local quota it has left and passes the rest
    on. So with `kept` the sum of what the nodes below x serve, x allows `kept + T(x) + limit(x)`,
    and the smallest such number counts. It is negative where an ancestor is in debt: that debt eats
    what the nodes below keep for themselves.
    """
    kept = kept_below = 0
    amount: int | None = None
    limiting = account
    parent = account.parent
    while parent is not None:
        if account.borrowing_limit is not None:
            allowed = kept + account.subtree_quota - account.usage + account.borrowing_limit
            if amount is None or allowed < amount:
                amount, limiting, kept_below = allowed, account, kept
        if account.local_quota > account.usage:
            kept += account.local_quota - account.usage
        account, parent = parent, parent.parent
    allowed = kept + account.subtree_quota - account.usage
    if amount is None or allowed < amount:
        return allowed, account, kept
    return amount, limiting, kept_below


def potential(account: Account) -> int:
    """How much the node could use if nothing ran anywhere in the tree."""
    kept = 0
    amount: int | None = None
    parent = account.parent
    while parent is not None:
        if account.borrowing_limit is not None:
            allowed = kept + account.subtree_quota + account.borrowing_limit
            amount = allowed if amount is None else min(amount, allowed)
        kept += account.local_quota
        account, parent = parent, parent.parent
    allowed = kept + account.subtree_quota
    return allowed if amount is None else min(amount, allowed)


def change_usage(account: Account | None, amount: int, log: UndoLog | None) -> None:
    """Add to (or, with a negative amount, take from) the usage, here and as far up as it shows."""
    noted = None if log is None else log.noted
    while account is not None and amount:
        before = account.usage
        if noted is not None:
            noted += (account, _USAGE, before)
        after = before + amount
        account.usage = after
        local = account.local_quota
        if local:
            amount = (after - local if after > local else 0) - (
                before - local if before > local else 0
            )
        account = account.parent


def charge(charges: Iterable[Charge], log: UndoLog | None = None) -> None:
    """Count amounts, each in its account."""
    for account, amount in charges:
        change_usage(account, amount, log)


def credit(charges: Iterable[Charge], log: UndoLog | None = None) -> None:
    """Stop counting them."""
    for account, amount in charges:
        change_usage(account, -amount, log)


def charge_here(charges: Iterable[Charge], sign: int = 1) -> None:
    """Count amounts in their accounts and nowhere above, to ask about these nodes alone.

    The caller takes it back, with the other sign, before anything else is asked.
    """
    for account, amount in charges:
        account.usage += sign * amount


def declare(account: Account, quota: Quota) -> None:
    """Replace what the node itself has; totals above follow."""
    quota_before, usage_before = account.exported_quota, account.exported_usage
    account.subtree_quota += quota.nominal - account.nominal
    account.nominal = quota.nominal
    account.borrowing_limit = quota.borrowing_limit
    account.lending_limit = quota.lending_limit
    _settle(account)
    _shift(
        account.parent,
        account.exported_quota - quota_before,
        account.exported_usage - usage_before,
    )


def twin_of(account: Account) -> Account:
    """A second account of the same node with the same quota and nothing used, as a root."""
    twin = Account(account.node)
    twin.nominal = account.nominal
    twin.borrowing_limit = account.borrowing_limit
    twin.lending_limit = account.lending_limit
    twin.subtree_quota = account.subtree_quota
    twin.local_quota = account.local_quota
    return twin


def share_everything(accounts: Iterable[Account]) -> None:
    """Let the accounts of a tree, in which nothing is used, keep nothing from each other."""
    accounts = tuple(accounts)
    for account in accounts:
        account.lending_limit = None
        account.local_quota = 0
        account.subtree_quota = account.nominal
    for account in accounts:
        above = account.parent
        while above is not None:
            above.subtree_quota += account.nominal
            above = above.parent


def link(account: Account, parent: Account) -> None:
    """Hang an account below another."""
    account.parent = parent
    _shift(parent, account.exported_quota, account.exported_usage)


def unlink(account: Account) -> None:
    """Make an account a root."""
    parent, account.parent = account.parent, None
    _shift(parent, -account.exported_quota, -account.exported_usage)


def _shift(account: Account | None, quota: int, usage: int) -> None:
    """Carry a change of the totals upwards until it no longer shows."""
    while account is not None and (quota or usage):
        quota_before, usage_before = account.exported_quota, account.exported_usage
        account.subtree_quota += quota
        account.usage += usage
        _settle(account)
        quota = account.exported_quota - quota_before
        usage = account.exported_usage - usage_before
        account = account.parent


def _settle(account: Account) -> None:
    limit = account.lending_limit
    account.local_quota = 0 if limit is None else max(0, account.subtree_quota - limit)
