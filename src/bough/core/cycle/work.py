"""The working copy of a cycle: usage as it is after what was decided so far, and the decisions.

Everything that is done to usage is undone when the cycle is over, so that the memo below can be
used again. Must not know by which rules is decided.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Self

from bough.core.cycle.forest import Leaf
from bough.core.cycle.holder import Holder
from bough.core.cycle.memo import Memo
from bough.core.cycle.preemption import Victim
from bough.model.plan import Admit, Eviction, Nomination, Plan, Wait
from bough.model.policy import Policy
from bough.model.quota import Amounts, FlavorResource
from bough.model.snapshot import Progress, Snapshot

_NO_PROGRESS = Progress()


class Work:
    """One cycle's state, to be used as a context: leaving it undoes what was tried."""

    def __init__(self, snapshot: Snapshot, policy: Policy, memo: Memo) -> None:
        memo.refresh(snapshot, policy)
        self.snapshot = snapshot
        self.policy = policy
        self.memo = memo
        self.forest = memo.forest
        self.admits: list[Admit] = []
        self.evictions: list[Eviction] = []
        self.nominations: list[Nomination] = []
        self.waits: list[Wait] = []
        #: Whom this cycle tells to end.
        self._told: set[str] = set()
        #: Whose quota somebody counts on, by key.
        self._taken: dict[str, Holder] = {}
        self._mark = 0

    def __enter__(self) -> Self:
        self._mark = self.forest.tree.mark()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.forest.tree.undo(self._mark)
        self.forest.changed()

    @property
    def taken(self) -> frozenset[str]:
        """The keys of all victims so far."""
        return frozenset(self._taken)

    def overlaps(self, victims: Iterable[Victim]) -> bool:
        """Whether any of these was taken before."""
        return any(victim.holder.key in self._taken for victim in victims)

    def progress(self, key: str) -> Progress:
        """What an earlier cycle found out about a workload."""
        return self.snapshot.progress.get(key, _NO_PROGRESS)

    def add_usage(self, leaf: Leaf, amounts: Amounts) -> None:
        """Count what somebody gets, or what is kept for it."""
        self.forest.add_usage(leaf, amounts)

    def evict(self, eviction: Eviction) -> None:
        """Tell a workload to end, once."""
        if eviction.workload not in self._told:
            self._told.add(eviction.workload)
            self.evictions.append(eviction)

    def take(self, holder: Holder) -> None:
        """Count a victim's quota as free."""
        self._taken[holder.key] = holder
        self.forest.remove(holder)

    def usage_with_victims(self, leaf: Leaf, what: FlavorResource) -> int:
        """What a queue uses as long as the victims have not ended."""
        ending = (each for each in self._taken.values() if each.queue == leaf.queue.name)
        return leaf.account(what).usage + sum(each.usage.get(what, 0) for each in ending)

    def plan(self) -> Plan:
        """The decisions."""
        return Plan(
            version=self.snapshot.version,
            admits=tuple(self.admits),
            evictions=tuple(self.evictions),
            nominations=tuple(self.nominations),
            waits=tuple(self.waits),
        )
