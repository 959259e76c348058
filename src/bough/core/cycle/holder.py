"""A workload that holds quota, as a search for victims sees it, and the order in which they go.

Must not know who looks for victims.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bough.core.cycle.standing import Moment, holds_since, priority_of, waits_since
from bough.core.quota.account import Account, change_usage
from bough.core.quota.usage import usage_of
from bough.model.policy import Policy
from bough.model.quota import FlavorResource
from bough.model.workload import Workload


class VictimOrder(NamedTuple):
    """Whom to take first, among those that are not already on their way out."""

    priority: int
    #: Who got its quota later goes first; who got it only just now, before all.
    newest_first: tuple[int, int]
    uid: str
    key: str


class Holder:
    """A workload that holds quota in one queue."""

    __slots__ = ("charges", "evicted", "key", "order", "queue", "since", "usage", "workload")

    def __init__(
        self,
        workload: Workload,
        queue: str,
        policy: Policy,
        account_of: Callable[[FlavorResource], Account],
    ) -> None:
        self.workload = workload
        self.key = workload.key
        self.queue = queue
        self.usage = usage_of(workload)
        #: The same against the accounts of its queue.
        self.charges = [(account_of(what), amount) for what, amount in self.usage.items()]
        self.order = victim_order(workload, policy)
        self.since = waits_since(workload, policy)
        #: It was told to end; until it has ended it counts, and it goes before all others.
        self.evicted = workload.has("Evicted")

    @property
    def priority(self) -> int:
        """The priority that counts."""
        return self.order.priority

    def take(self) -> None:
        """Count the queue as if the workload had ended."""
        for account, amount in self.charges:
            change_usage(account, -amount, None)

    def put_back(self) -> None:
        """Undo `take`."""
        for account, amount in self.charges:
            change_usage(account, amount, None)


def victim_order(workload: Workload, policy: Policy) -> VictimOrder:
    """Lower priority first, then who holds its quota for the shorter time."""
    return VictimOrder(
        priority_of(workload, policy),
        _newest_first(holds_since(workload)),
        workload.uid or "",
        workload.key,
    )


def _newest_first(since: Moment | None) -> tuple[int, int]:
    if since is None:
        return 0, 0
    known, milliseconds = since
    return (1, -milliseconds) if known else (2, 0)
