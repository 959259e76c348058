"""The line of one queue: the gangs that wait in it, sorted, those of one shape together.

Kept from cycle to cycle. As all of one shape have the same priority, the first of a shape is the
only one of them that can be first in line; and what is decided about it holds for the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from bough.core.cycle.claim import Alike, Claim
from bough.core.cycle.queue_order import Standing
from bough.model.snapshot import Parked

#: A claim with what it is sorted by; standings are never equal.
Placed = tuple[Standing, Claim]


class Line:
    """The gangs that wait in a queue."""

    __slots__ = ("_kinds", "_known")

    def __init__(self) -> None:
        self._known: dict[str, Claim] = {}
        #: By shape, each sorted.
        self._kinds: dict[bytes, list[Placed]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, claim: Claim) -> None:
        """Let a gang wait."""
        self._known[claim.name] = claim
        shape = claim.shape
        kind = self._kinds.get(shape)
        if kind is None:
            claim.alike = Alike()
            self._kinds[shape] = [(claim.standing, claim)]
            return
        claim.alike = kind[0][1].alike
        if kind[-1][0] < claim.standing:
            kind.append((claim.standing, claim))
        else:
            insort(kind, (claim.standing, claim))

    def remove(self, claim: Claim) -> None:
        """Take a gang out of the line."""
        del self._known[claim.name]
        kind = self._kinds[claim.shape]
        # Most that leave were the first.
        del kind[0 if kind[0][1] is claim else bisect_left(kind, (claim.standing,))]
        if not kind:
            del self._kinds[claim.shape]

    def kinds(self) -> Iterator[list[Placed]]:
        """The gangs of each shape, sorted."""
        return iter(self._kinds.values())

    def first(
        self,
        parked: Parked,
        is_ready: Callable[[Claim], bool],
        favored: Sequence[str] = (),
    ) -> Claim | None:
        """Which to look at first: not parked, and ready; the favored before all others."""
        if favored:
            own = [self._known[name] for name in favored if name in self._known]
            active = [each for each in own if each.shape not in parked.shapes]
            for each in sorted(active, key=_standing):
                if each.name not in parked.workloads and is_ready(each):
                    return each
        best: Placed | None = None
        for kind in self._active_kinds(parked):
            for placed in kind:
                if best is not None and placed[0] > best[0]:
                    break
                claim = placed[1]
                if claim.name not in parked.workloads and is_ready(claim):
                    best = placed
                    break
        return None if best is None else best[1]

    def everyone(
        self, parked: Parked, is_ready: Callable[[Claim], bool], favored: Sequence[str] = ()
    ) -> list[Claim]:
        """All that are to be looked at, in order; the favored before all others."""
        ready = [
            claim
            for _, claim in sorted(chain.from_iterable(self._active_kinds(parked)))
            if claim.name not in parked.workloads and is_ready(claim)
        ]
        ready.sort(key=lambda each: each.name not in favored)
        return ready

    def _active_kinds(self, parked: Parked) -> Iterable[list[Placed]]:
        if not parked.shapes:
            return self._kinds.values()
        return [kind for shape, kind in self._kinds.items() if shape not in parked.shapes]


def _standing(claim: Claim) -> Standing:
    return claim.standing
