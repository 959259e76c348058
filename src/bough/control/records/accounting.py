"""GPU time of each user and pool: guaranteed, preemptible, and how much of that was borrowed. Pure.

One sweep over time for each pool. What a pool uses beyond its quota at a moment is borrowed, as far
as it is preemptible at all; it is borrowed by those who submitted last, who would have to give it
back first. Amounts are whole GPU-milliseconds.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from bough.model.usage_stretch import Stretch

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
    sweeps: dict[str, _Sweep] = {}
    sums: dict[tuple[str, str], list[int]] = {}
    for each in stretches:
        pool, user, gpus, guaranteed, submitted_ms, start_ms, end_ms, workflow = each
        start_ms, end_ms = max(start_ms, since_ms), min(end_ms, until_ms)
        if start_ms >= end_ms:
            continue
        amounts = sums.get((pool, user))
        if amounts is None:
            amounts = sums[pool, user] = [0, 0, 0]
        sweep = sweeps.get(pool)
        if sweep is None:
            sweep = sweeps[pool] = _Sweep(quotas.get(pool, ((0, None),)), since_ms)
        if guaranteed:
            amounts[0] += gpus * (end_ms - start_ms)
            sweep.add_guaranteed(gpus, start_ms, end_ms)
        else:
            amounts[1] += gpus * (end_ms - start_ms)
            line = (-submitted_ms, workflow, sweep.size)
            sweep.add_preemptible(_Holder(line, user, gpus), start_ms, end_ms)
    for pool, sweep in sweeps.items():
        for user, borrowed in sweep.run().items():
            sums[pool, user][2] += borrowed
    return {key: Amount(*sums[key]) for key in sorted(sums)}


class _Holder:
    """What is preemptible and held now."""

    __slots__ = ("borrowed", "gpus", "line", "since_ms", "user")

    def __init__(self, line: tuple[int, str, int], user: str, gpus: int) -> None:
        #: The newest submission first; the number tells apart what one workflow holds.
        self.line = line
        self.user = user
        self.gpus = gpus
        #: How many of its GPUs are borrowed, and since when so many.
        self.borrowed = 0
        self.since_ms = 0


class _Sweep:
    """One pool over time.

    Holders of something preemptible stand in a line, the newest first; a part of it from the
    front has borrowed all that it holds, the next one perhaps some, and the rest nothing. Only
    where that boundary moves is there anything to write down.
    """

    def __init__(self, quotas: Quotas, since_ms: int) -> None:
        self._quota = quotas[0][1]
        #: When, what (a quota, an end, a start), the number of it, and the quota or the holder.
        self._moments: list[tuple[int, int, int, Any]] = [
            (max(at_ms, since_ms), 0, number, quota) for number, (at_ms, quota) in enumerate(quotas)
        ]
        #: How much more is guaranteed from a moment on.
        self._guaranteed: dict[int, int] = {}
        self._line: list[_Holder] = []
        #: How many in the line have borrowed all that they hold.
        self._full = 0
        self._used = 0
        self._preemptible = 0
        self._borrowed = 0
        self._sums: dict[str, int] = {}

    @property
    def size(self) -> int:
        """How many moments there are so far."""
        return len(self._moments)

    def add_guaranteed(self, gpus: int, start_ms: int, end_ms: int) -> None:
        """Something that is not preemptible was held."""
        more = self._guaranteed
        more[start_ms] = more.get(start_ms, 0) + gpus
        more[end_ms] = more.get(end_ms, 0) - gpus

    def add_preemptible(self, holder: _Holder, start_ms: int, end_ms: int) -> None:
        """Something that is preemptible was held."""
        number = len(self._moments)
        self._moments += ((start_ms, 2, number, holder), (end_ms, 1, number, holder))

    def run(self) -> dict[str, int]:
        """What each user had borrowed."""
        self._moments.sort()
        # Only at a moment's end it is known what was borrowed from it on.
        waiting = iter(self._moments)
        what: Any
        at_ms, kind, _, what = next(waiting)
        end: tuple[int | None, int, int, Any] = (None, 0, 0, None)
        for now_ms in sorted(self._guaranteed.keys() | {each[0] for each in self._moments}):
            self._used += self._guaranteed.get(now_ms, 0)
            while at_ms == now_ms:
                if kind == 0:
                    self._quota = what
                elif kind == 1:
                    self._leave(what, now_ms)
                else:
                    self._enter(what, now_ms)
                at_ms, kind, _, what = next(waiting, end)
            self._settle(now_ms)
        return self._sums

    def _enter(self, holder: _Holder, at_ms: int) -> None:
        self._used += holder.gpus
        self._preemptible += holder.gpus
        at = bisect_left(self._line, holder.line, key=_line)
        self._line.insert(at, holder)
        behind_some = at == self._full and at + 1 < len(self._line) and self._line[at + 1].borrowed
        if at < self._full or behind_some:
            # Those behind it have borrowed something, so it has borrowed all that it has.
            self._change(holder, holder.gpus, at_ms)
            self._full += 1

    def _leave(self, holder: _Holder, at_ms: int) -> None:
        self._used -= holder.gpus
        self._preemptible -= holder.gpus
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


def _line(holder: _Holder) -> tuple[int, str, int]:
    return holder.line
