"""GPU time of each user and pool: guaranteed, preemptible, and how much of that was borrowed. Pure.

One sweep over time for each pool. What a pool uses beyond its quota at a moment is borrowed, as far
as it is preemptible at all; it is borrowed by those who submitted last, who would have to give it
back first. Amounts are whole GPU-milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bough.model.usage import Stretch

#: Times with the quota from then on, in order; the first holds before that, too. `None`: no limit.
Quotas = Sequence[tuple[int, int | None]]


class Amount(NamedTuple):
    """GPU-milliseconds."""

    guaranteed: int = 0
    preemptible: int = 0
    #: The part of what is preemptible that was beyond the quota.
    borrowed: int = 0

    def __add__(self, other: object) -> Amount:
        """The sum."""
        if not isinstance(other, Amount):
            return NotImplemented
        return Amount(
            self.guaranteed + other.guaranteed,
            self.preemptible + other.preemptible,
            self.borrowed + other.borrowed,
        )


def account(
    stretches: Iterable[Stretch], quotas: Mapping[str, Quotas], since_ms: int, until_ms: int
) -> dict[tuple[str, str], Amount]:
    """What each user had in each pool in a window of time, whatever order the stretches come in."""
    by_pool: dict[str, list[Stretch]] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    for each in stretches:
        pool, user, gpus, guaranteed, _, start_ms, end_ms, _ = each
        held_ms = min(end_ms, until_ms) - max(start_ms, since_ms)
        if held_ms > 0:
            by_pool.setdefault(pool, []).append(each)
            amounts = sums.setdefault((pool, user), [0, 0, 0])
            amounts[0 if guaranteed else 1] += gpus * held_ms
    for pool, members in by_pool.items():
        sweep = _Sweep(quotas.get(pool, ((0, None),)))
        for user, borrowed in sweep.run(members, since_ms, until_ms).items():
            sums[pool, user][2] += borrowed
    return {key: Amount(*sums[key]) for key in sorted(sums)}


class _Holder:
    """What is preemptible and held now."""

    __slots__ = ("borrowed", "gpus", "line", "since_ms", "user")

    def __init__(self, stretch: Stretch) -> None:
        #: The newest submission first.
        self.line = (-stretch.submitted_ms, stretch.attempt)
        self.user = stretch.user
        self.gpus = stretch.gpus
        #: How many of its GPUs are borrowed, and since when so many.
        self.borrowed = 0
        self.since_ms = 0


class _Sweep:
    """One pool over time.

    Holders of something preemptible stand in a line, the newest first; a part of it from the
    front has borrowed all that it holds, the next one perhaps some, and the rest nothing. Only
    where that boundary moves is there anything to write down.
    """

    def __init__(self, quotas: Quotas) -> None:
        self._quotas = quotas
        self._quota = quotas[0][1]
        self._line: list[_Holder] = []
        #: How many in the line have borrowed all that they hold.
        self._full = 0
        self._used = 0
        self._preemptible = 0
        self._borrowed = 0
        self._sums: dict[str, int] = {}

    def run(self, stretches: Sequence[Stretch], since_ms: int, until_ms: int) -> dict[str, int]:
        """What each user had borrowed within a window of time."""
        holders = [None if each.guaranteed else _Holder(each) for each in stretches]
        #: When, what (a quota, an end, a start), and the number of the quota or of the stretch.
        moments = [(max(each[0], since_ms), 0, at) for at, each in enumerate(self._quotas)]
        moments += [(min(each.end_ms, until_ms), 1, at) for at, each in enumerate(stretches)]
        moments += [(max(each.start_ms, since_ms), 2, at) for at, each in enumerate(stretches)]
        moments.sort()
        before_ms = since_ms
        for at_ms, kind, at in moments:
            if at_ms != before_ms:
                self._settle(before_ms)
                before_ms = at_ms
            if kind == 0:
                self._quota = self._quotas[at][1]
            else:
                self._hold(stretches[at].gpus, holders[at], at_ms, more=kind == 2)
        self._settle(before_ms)
        return self._sums

    def _hold(self, gpus: int, holder: _Holder | None, at_ms: int, *, more: bool) -> None:
        change = gpus if more else -gpus
        self._used += change
        if holder is not None:
            self._preemptible += change
            (self._enter if more else self._leave)(holder, at_ms)

    def _enter(self, holder: _Holder, at_ms: int) -> None:
        at = bisect_left(self._line, holder.line, key=_line)
        self._line.insert(at, holder)
        behind_some = at == self._full and at + 1 < len(self._line) and self._line[at + 1].borrowed
        if at < self._full or behind_some:
            # Those behind it have borrowed something, so it has borrowed all that it has.
            self._change(holder, holder.gpus, at_ms)
            self._full += 1

    def _leave(self, holder: _Holder, at_ms: int) -> None:
        at = bisect_left(self._line, holder.line, key=_line)
        self._change(holder, 0, at_ms)
        del self._line[at]
        if at < self._full:
            self._full -= 1

    def _settle(self, at_ms: int) -> None:
        """Move the boundary to where it belongs."""
        wanted = 0
        if self._quota is not None:
            wanted = min(self._preemptible, max(0, self._used - self._quota))
        while self._borrowed < wanted:
            holder = self._line[self._full]
            more = min(holder.gpus - holder.borrowed, wanted - self._borrowed)
            self._change(holder, holder.borrowed + more, at_ms)
            if holder.borrowed == holder.gpus:
                self._full += 1
        while self._borrowed > wanted:
            partly = self._full < len(self._line) and self._line[self._full].borrowed
            if not partly:
                self._full -= 1
            holder = self._line[self._full]
            less = min(holder.borrowed, self._borrowed - wanted)
            self._change(holder, holder.borrowed - less, at_ms)

    def _change(self, holder: _Holder, borrowed: int, at_ms: int) -> None:
        if holder.borrowed:
            time = holder.borrowed * (at_ms - holder.since_ms)
            self._sums[holder.user] = self._sums.get(holder.user, 0) + time
        self._borrowed += borrowed - holder.borrowed
        holder.borrowed, holder.since_ms = borrowed, at_ms


def merge_quotas(total: Quotas, parts: Iterable[Quotas]) -> Quotas:
    """What is left of a quota that changes after parts that change, too."""
    steps = [total, *parts]
    moments: list[int] = []
    for step in steps:
        for at_ms, _ in step:
            if at_ms not in moments:
                insort(moments, at_ms)
    found: list[tuple[int, int | None]] = []
    for at_ms in moments:
        whole, *rest = (_quota_at(step, at_ms) for step in steps)
        left = None if whole is None else whole - sum(each or 0 for each in rest)
        found.append((at_ms, left))
    return found


def _quota_at(step: Quotas, at_ms: int) -> int | None:
    at = bisect_left(step, at_ms + 1, key=lambda each: each[0])
    return step[max(0, at - 1)][1]


def _line(holder: _Holder) -> tuple[int, str]:
    return holder.line
