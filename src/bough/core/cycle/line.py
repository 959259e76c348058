"""The line of one queue within a cycle: who waits, sorted, those of one shape together.

Kept from cycle to cycle and brought in step with what the snapshot says. As all of one shape have
the same priority, whoever stands first among those of a shape is the only one of them who can be
first in line. Must not know quota.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from itertools import chain

from bough.core.cycle.applicant import Applicant
from bough.core.cycle.standing import Standing
from bough.errors import Broken
from bough.model.policy import Policy
from bough.model.snapshot import Parked
from bough.model.workload import Workload

#: An applicant with what it is sorted by; standings are never equal.
Placed = tuple[Standing, Applicant]


class Line:
    """Who waits in a queue."""

    __slots__ = ("_kinds", "_known", "_places", "_policy", "_queue", "_workloads")

    def __init__(self, queue: str, policy: Policy, places: dict[str, str]) -> None:
        self._queue = queue
        self._policy = policy
        #: Shared by all lines: by workload, in which queue it waits.
        self._places = places
        self._workloads: Sequence[Workload] = ()
        self._known: dict[str, Applicant] = {}
        #: By shape, each sorted.
        self._kinds: dict[bytes, list[Placed]] = {}

    def refresh(self, workloads: Sequence[Workload]) -> None:
        """Make the line these, touching only what differs from before."""
        before = self._workloads
        if before is workloads:
            return
        self._workloads = workloads
        start = _common_start(before, workloads)
        old, new = before[start:], workloads[start:]
        end = _common_start(old[::-1], new[::-1])
        for workload in old[: len(old) - end]:
            self._remove(workload.key)
        for workload in new[: len(new) - end]:
            self._add(Applicant(workload, self._policy))

    def first(
        self, parked: Parked, is_ready: Callable[[Workload], bool], favored: Sequence[str] = ()
    ) -> Applicant | None:
        """Who is to be looked at first: not parked, and ready; the favored before all others."""
        if favored:
            own = [self._known[key] for key in favored if key in self._known]
            active = [each for each in own if each.shape not in parked.shapes]
            for each in sorted(active, key=_standing):
                if each.key not in parked.workloads and is_ready(each.workload):
                    return each
        best: Placed | None = None
        for kind in self._active_kinds(parked):
            for placed in kind:
                if best is not None and placed[0] > best[0]:
                    break
                applicant = placed[1]
                if applicant.key not in parked.workloads and is_ready(applicant.workload):
                    best = placed
                    break
        return None if best is None else best[1]

    def everyone(
        self, parked: Parked, is_ready: Callable[[Workload], bool], favored: Sequence[str] = ()
    ) -> list[Applicant]:
        """All who are to be looked at, in order; the favored before all others."""
        ready = [
            applicant
            for _, applicant in sorted(chain.from_iterable(self._active_kinds(parked)))
            if applicant.key not in parked.workloads and is_ready(applicant.workload)
        ]
        ready.sort(key=lambda each: each.key not in favored)
        return ready

    def _active_kinds(self, parked: Parked) -> list[list[Placed]]:
        return [kind for shape, kind in self._kinds.items() if shape not in parked.shapes]

    def _add(self, applicant: Applicant) -> None:
        if applicant.key in self._known:
            raise Broken(f"workload {applicant.key} waits twice in one queue")
        self._known[applicant.key] = applicant
        self._places[applicant.key] = self._queue
        insort(self._kinds.setdefault(applicant.shape, []), (applicant.standing, applicant))

    def _remove(self, key: str) -> None:
        applicant = self._known.pop(key)
        self._places.pop(key, None)
        kind = self._kinds[applicant.shape]
        del kind[bisect_left(kind, (applicant.standing,))]
        if not kind:
            del self._kinds[applicant.shape]


def _standing(applicant: Applicant) -> Standing:
    return applicant.standing


def _common_start(left: Sequence[Workload], right: Sequence[Workload]) -> int:
    """How many workloads both begin with, found by halving: equal slices are compared fast."""
    start, end = 0, min(len(left), len(right))
    while start < end:
        middle = (start + end + 1) // 2
        if left[start:middle] == right[start:middle]:
            start = middle
        else:
            end = middle - 1
    return start
