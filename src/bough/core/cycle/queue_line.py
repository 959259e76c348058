"""The line of one queue: the gangs that wait in it, sorted, those of one shape together.

Kept from cycle to cycle. As all of one shape have the same priority, the first of a shape is the
only one of them that can be first in line; and what is decided about it holds for the others.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from operator import attrgetter

from bough.core.cycle.claim import Alike, Claim
from bough.core.cycle.queue_order import Standing
from bough.model.snapshot import Parked

#: What claims are sorted by; standings are never equal.
by_standing: Callable[[Claim], Standing] = attrgetter("standing")


class Line:
    """The gangs that wait in a queue."""

    __slots__ = ("_kinds", "_known")

    def __init__(self) -> None:
        self._known: dict[str, Claim] = {}
        #: By shape, each sorted.
        self._kinds: dict[bytes, list[Claim]] = {}

    def __len__(self) -> int:
        return len(self._known)

    def add(self, claim: Claim) -> None:
        """Let a gang wait."""
        self._known[claim.name] = claim
        shape = claim.shape
        kind = self._kinds.get(shape)
        if kind is None:
            claim.alike = Alike()
            self._kinds[shape] = [claim]
            return
        claim.alike = kind[0].alike
        if kind[-1].standing < claim.standing:
            kind.append(claim)
        else:
            insort(kind, claim, key=by_standing)

    def remove(self, claim: Claim) -> bool:
        """Take a gang out of the line; whether any is left."""
        del self._known[claim.name]
        shape = claim.shape
        kind = self._kinds[shape]
        # Most that leave were the first.
        first = kind[0] is claim
        del kind[0 if first else bisect_left(kind, claim.standing, key=by_standing)]
        if not kind:
            del self._kinds[shape]
        return bool(self._known)

    def kinds(self) -> Iterator[list[Claim]]:
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
            for each in sorted(active, key=by_standing):
                if each.name not in parked.workloads and is_ready(each):
                    return each
        best: Claim | None = None
        for kind in self._active_kinds(parked):
            for claim in kind:
                if best is not None and claim.standing > best.standing:
                    break
                if claim.name not in parked.workloads and is_ready(claim):
                    best = claim
                    break
        return best

    def everyone(
        self, parked: Parked, is_ready: Callable[[Claim], bool], favored: Sequence[str] = ()
    ) -> list[Claim]:
        """All that a cycle looks at, in order; the favored before all others."""
        ready = [
            claim
            for claim in sorted(chain.from_iterable(self._active_kinds(parked)), key=by_standing)
            if claim.name not in parked.workloads and is_ready(claim)
        ]
        ready.sort(key=lambda each: each.name not in favored)
        return ready

    def _active_kinds(self, parked: Parked) -> Iterable[list[Claim]]:
        if not parked.shapes:
            return self._kinds.values()
        return [kind for shape, kind in self._kinds.items() if shape not in parked.shapes]
