"""The ledgers on one quota tree: what is guaranteed, what everything takes, what still holds.

Guaranteed use may exceed no quota, neither the queue's own nor that of any node above it, and takes
nothing that is promised to others (`core.quota.guarantee`). Total use obeys the limits as they are
declared. It is counted as it will be once what was told to end has ended, and as it is at present;
what starts at once must fit into both. Ledgers are given amounts and do not know gangs.
"""

from __future__ import annotations

from collections.abc import Iterable

from bough.core.quota.guarantee import GuaranteedTree
from bough.core.quota.tree import QuotaTree
from bough.model.quota import Amounts, Cohort, Queue
from bough.model.reason import Refusal

Mark = tuple[int, int, int]


class Ledgers:
    """The use of one quota tree."""

    def __init__(
        self,
        cohorts: Iterable[Cohort],
        queues: Iterable[Queue],
        *,
        apart: bool = True,
    ) -> None:
        """`apart`: what was told to end counts no more, but for what would start at once."""
        cohorts, queues = tuple(cohorts), tuple(queues)
        #: Everything, without what was told to end.
        self.total = QuotaTree.of(cohorts, queues)
        #: Everything that holds something now, and not what waits for others to end.
        self.present = QuotaTree.of(cohorts, queues) if apart else self.total
        self.apart = apart
        #: What is guaranteed; also held to what cohorts have promised.
        self.guaranteed = GuaranteedTree.of(cohorts, queues)

    def refusal(self, queue: str, request: Amounts, *, guaranteed: bool) -> Refusal | None:
        """Why a queue cannot take a request, once what was told to end has ended."""
        if guaranteed:
            refused = self.guaranteed.refusal(queue, request)
            if refused is not None:
                return refused
        return self.total.refusal(queue, request)

    def admits(self, queue: str, request: Amounts, *, guaranteed: bool) -> bool:
        """Whether there is no refusal."""
        if guaranteed and not self.guaranteed.admits(queue, request):
            return False
        return self.total.admits(queue, request)

    def is_entitled(self, queue: str, request: Amounts) -> bool:
        """Whether a guarantee covers a request, whatever others use beyond theirs."""
        return self.guaranteed.admits(queue, request)

    def must_wait(self, queue: str, request: Amounts) -> bool:
        """Whether a request has room only once what was told to end has ended."""
        return self.apart and not self.present.admits(queue, request)

    def add(self, queue: str, amounts: Amounts, *, guaranteed: bool, waits: bool = False) -> None:
        """Count what is taken, now or when others have ended."""
        self.total.add_usage(queue, amounts)
        if self.apart and not waits:
            self.present.add_usage(queue, amounts)
        if guaranteed:
            self.guaranteed.add_usage(queue, amounts)

    def remove(self, queue: str, amounts: Amounts, *, guaranteed: bool) -> None:
        """Count what is gone."""
        self.total.remove_usage(queue, amounts)
        if self.apart:
            self.present.remove_usage(queue, amounts)
        if guaranteed:
            self.guaranteed.remove_usage(queue, amounts)

    def mark(self) -> Mark:
        """Begin a what-if; it ends with `undo` or `keep`."""
        return self.total.mark(), self.present.mark(), self.guaranteed.mark()

    def undo(self, mark: Mark) -> None:
        """All is counted again as at the mark."""
        self.total.undo(mark[0])
        self.present.undo(mark[1])
        self.guaranteed.undo(mark[2])

    def keep(self, mark: Mark) -> None:
        """What was counted since the mark stays, unless an outer what-if is undone."""
        self.total.keep(mark[0])
        self.present.keep(mark[1])
        self.guaranteed.keep(mark[2])
