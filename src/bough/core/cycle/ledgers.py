"""The ledgers on one quota tree: guaranteed use, total use to come, and present use.

Guaranteed use may exceed no quota, neither the queue's own nor that of any node above it, and takes
nothing that is promised to others (`core.quota.guarantee`). Total use obeys the limits as they are
declared. It is counted twice: as it will be once everything that was told to end has ended, and as
it is at present; what starts at once must fit into both. Ledgers are given amounts and do not know
gangs.
"""

from __future__ import annotations

from collections.abc import Iterable

from bough.core.quota.account import Charge, charge, credit
from bough.core.quota.guarantee import GuaranteedTree
from bough.core.quota.tree import QuotaTree
from bough.core.undo import UndoLog
from bough.model.quota import Amounts, Cohort, Queue
from bough.model.reason import Refusal


class Ledgers:
    """The use of one quota tree."""

    def __init__(
        self,
        cohorts: Iterable[Cohort],
        queues: Iterable[Queue],
        log: UndoLog | None = None,
        *,
        apart: bool = True,
    ) -> None:
        """`apart`: the present is counted in a tree of its own.

        Otherwise it differs from `total` only by what this cycle decides, and is derived from that
        on request: what was told to end earlier counts until it has ended. All trees note old usage
        in one log, so that a what-if can be undone in all of them.
        """
        self.log = UndoLog() if log is None else log
        #: Everything, without what was told to end.
        self.total = QuotaTree.of(cohorts, queues, self.log)
        #: Everything that holds something now, and not what waits for others to end.
        self.present = QuotaTree.like(self.total) if apart else self.total
        self.apart = apart
        #: Where the present has no tree, in order: a queue, and what it has more than in `total`,
        #: or less.
        self._differs: dict[int, tuple[str, Amounts, bool]] = {}
        #: How many things keep the present from being what `total` says; in a list, so that the log
        #: can set it.
        self._apart_by = [0]
        #: What is guaranteed; also held to what cohorts have promised.
        self.guaranteed = GuaranteedTree.like(self.total)

    def refusal(self, queue: str, request: Amounts, *, guaranteed: bool) -> Refusal | None:
        """Why a queue cannot take a request, once what was told to end has ended.

        A reason that would hold even if nothing ran comes before what others use.
        """
        refused = self.guaranteed.refusal(queue, request) if guaranteed else None
        if refused is not None and refused.never:
            return refused
        limited = self.total.refusal(queue, request)
        return limited if refused is None or (limited and limited.never) else refused

    def admits(self, queue: str, request: Amounts, *, guaranteed: bool) -> bool:
        """Whether a queue can take a request: `refusal` without the reason."""
        if guaranteed and not self.guaranteed.admits(queue, request):
            return False
        return self.total.admits(queue, request)

    def is_entitled(self, queue: str, request: Amounts) -> bool:
        """Whether a guarantee covers a request, whatever others use beyond theirs."""
        return self.guaranteed.admits(queue, request)

    def must_wait(self, queue: str, request: Amounts) -> bool:
        """Whether a request that is not refused has room only once others have ended."""
        if not self._apart_by[0]:
            return False
        if self.apart:
            return not self.present.admits(queue, request)
        mark = self.log.mark()
        for each, amounts, more in self._differs.values():
            (self.total.add_usage if more else self.total.remove_usage)(each, amounts)
        admits = self.total.admits(queue, request)
        self.log.undo(mark)
        return not admits

    def add(
        self,
        queue: str,
        amounts: Amounts,
        charges: Iterable[Charge] | None = None,
        *,
        guaranteed: bool,
        waits: bool = False,
    ) -> None:
        """Count what is taken, now or when others have ended.

        `charges`: the same amounts with their accounts in `total`, where these are at hand.
        """
        if charges is None:
            self.total.add_usage(queue, amounts)
        else:
            charge(charges, self.log)
        if waits:
            self._note(queue, amounts, more=False)
        elif self.apart:
            self.present.add_usage(queue, amounts)
        if guaranteed:
            self.guaranteed.add_usage(queue, amounts)

    def end(self, queue: str, amounts: Amounts, charges: Iterable[Charge] | None = None) -> None:
        """Stop counting what is told to end; it holds what it has until it has ended."""
        if charges is None:
            self.total.remove_usage(queue, amounts)
        else:
            credit(charges, self.log)
        self._note(queue, amounts, more=True)

    def spare(self, queue: str, amounts: Amounts) -> None:
        """Take `end` back."""
        self.total.add_usage(queue, amounts)
        self._note(queue, amounts, more=False)

    def remove(
        self,
        queue: str,
        amounts: Amounts,
        charges: Iterable[Charge] | None = None,
        *,
        guaranteed: bool,
    ) -> None:
        """Stop counting what is gone."""
        if charges is None:
            self.total.remove_usage(queue, amounts)
        else:
            credit(charges, self.log)
        if self.apart:
            self.present.remove_usage(queue, amounts)
        if guaranteed:
            self.guaranteed.remove_usage(queue, amounts)

    def hold_on(self, queue: str, amounts: Amounts, *, add: bool) -> None:
        """Count, or stop counting, what was told to end before and holds its quota until it has."""
        (self.present.add_usage if add else self.present.remove_usage)(queue, amounts)
        self._apart_by[0] += 1 if add else -1

    def _note(self, queue: str, amounts: Amounts, *, more: bool) -> None:
        self.log.put(self._apart_by, 0, self._apart_by[0] + 1)
        if not self.apart:
            self.log.put_key(self._differs, len(self._differs), (queue, amounts, more))
