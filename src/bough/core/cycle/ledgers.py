"""Two ledgers on one quota tree: what is guaranteed, and everything.

Guaranteed use may exceed no quota, neither the queue's own nor that of any node above it; so that
ledger is the same tree with nothing borrowed and everything shared. Total use obeys the limits as
they are declared. Must not know who uses what: it is given amounts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from bough.core.quota.tree import QuotaTree
from bough.model.quota import Amounts, Cohort, FlavorQuotas, Queue, Quota, ResourceGroup
from bough.model.reason import Refusal

Declared = TypeVar("Declared", Cohort, Queue)


class Ledgers:
    """The use of one quota tree, counted twice."""

    def __init__(self, cohorts: Iterable[Cohort], queues: Iterable[Queue]) -> None:
        cohorts, queues = tuple(cohorts), tuple(queues)
        self.total = QuotaTree.of(cohorts, queues)
        self.guaranteed = QuotaTree.of(map(_guaranteed, cohorts), map(_guaranteed, queues))

    def refusal(self, queue: str, request: Amounts, *, guaranteed: bool) -> Refusal | None:
        """Why a queue cannot take a request; what is guaranteed must pass both ledgers."""
        if guaranteed:
            refused = self.guaranteed.refusal(queue, request)
            if refused is not None:
                return refused
        return self.total.refusal(queue, request)

    def add(self, queue: str, amounts: Amounts, *, guaranteed: bool) -> None:
        """Count what is taken."""
        self.total.add_usage(queue, amounts)
        if guaranteed:
            self.guaranteed.add_usage(queue, amounts)

    def remove(self, queue: str, amounts: Amounts, *, guaranteed: bool) -> None:
        """Count what is given back."""
        self.total.remove_usage(queue, amounts)
        if guaranteed:
            self.guaranteed.remove_usage(queue, amounts)

    def mark(self) -> tuple[int, int]:
        """Begin a what-if; it ends with `undo` or `keep`."""
        return self.total.mark(), self.guaranteed.mark()

    def undo(self, mark: tuple[int, int]) -> None:
        """All is counted again as at the mark."""
        self.total.undo(mark[0])
        self.guaranteed.undo(mark[1])

    def keep(self, mark: tuple[int, int]) -> None:
        """What was counted since the mark stays, unless an outer what-if is undone."""
        self.total.keep(mark[0])
        self.guaranteed.keep(mark[1])


def _guaranteed(node: Declared) -> Declared:
    groups = tuple(
        ResourceGroup(
            group.covered_resources,
            tuple(
                FlavorQuotas(
                    flavor.name,
                    {name: Quota(quota.nominal, 0) for name, quota in flavor.resources.items()},
                )
                for flavor in group.flavors
            ),
        )
        for group in node.resource_groups
    )
    return msgspec.structs.replace(node, resource_groups=groups)
