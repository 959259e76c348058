"""Which gangs gave way to which others: kept by callers of `plan` between cycles."""

from __future__ import annotations

from collections.abc import Iterator

from bough.model.plan import EvictionRule, Plan


class GaveWay:
    """Which gangs were evicted for which: what `Progress.gave_way_to` is made of."""

    def __init__(self) -> None:
        #: By gang that was evicted: for which others.
        self._for: dict[str, dict[str, None]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._for)

    def note(self, plan: Plan) -> None:
        """Remember what a plan evicts for which gang."""
        for eviction in plan.evictions:
            self.add(eviction.workload, eviction.preemptor, eviction.rule)

    def add(self, gang: str, preemptor: str | None, rule: str) -> None:
        """Remember that a gang was evicted for another; what only moves loses nothing."""
        if preemptor is not None and rule != EvictionRule.MOVE:
            self._for.setdefault(gang, {})[preemptor] = None

    def forget(self, gang: str) -> None:
        """A gang has ended, and will not wait again."""
        self._for.pop(gang, None)

    def to(self, gang: str) -> tuple[str, ...]:
        """The gangs for which a gang was evicted, and those for which these were, in turn."""
        found: set[str] = set()
        reached = [*self._for.get(gang, ())]
        while reached:
            other = reached.pop()
            if other not in found:
                found.add(other)
                reached += self._for.get(other, ())
        return tuple(sorted(found))
