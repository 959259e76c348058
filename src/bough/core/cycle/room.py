"""Whether there would be room for a demand, asked again and again while victims come and go.

Where pods are alike and nothing constrains them, room is a number that is kept up to date node by
node, beside the placer. Elsewhere pods are really told to end, and the number of free GPUs tells
when a search for places is worth while.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import add, sub

from bough.core.cycle.claim import Claim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import Demand
from bough.core.place.columns import GPUS, Row
from bough.core.place.pod_shapes import Shape
from bough.core.place.result import Placement
from bough.model.gang import Pod


def room_for(
    copy: WorkingCopy, claim: Claim, demand: Demand, nodes: int
) -> CountedRoom | SearchedRoom:
    """The room for one demand, once everything that is told to end has ended."""
    shapes = _shapes(copy, demand)
    if len(shapes) == 1 and is_open(claim):
        return CountedRoom(copy, shapes[0], demand.smallest, nodes)
    possible = 0
    for shape in shapes:
        possible |= shape.possible & nodes
    return SearchedRoom(copy, claim, demand, nodes, possible)


class CountedRoom:
    """Room for pods that are alike and may be anywhere: how many of them, exactly."""

    def __init__(self, copy: WorkingCopy, shape: Shape, needed: int, nodes: int) -> None:
        self._placer = copy.placer
        self._wants = shape.wants
        self._possible = shape.possible & nodes
        self._needed = needed
        self._count = copy.placer.index.count(shape, nodes, later=True)
        #: Where pods were told to end: what is free then, and for how many that is room.
        self._free: dict[int, tuple[Row, int]] = {}
        #: For how many there is room in what is free on a node: as victims come and go, the same
        #: is asked again and again.
        self._known: dict[Row, int] = {}

    def release(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Let pods end."""
        self._change(claim, pods, add)

    def keep(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Let pods stay that were told to end."""
        self._change(claim, pods, sub)

    def suffices(self) -> bool:
        """Whether the demand would have a place."""
        return self._count >= self._needed

    def _change(self, claim: Claim, pods: Iterable[Pod], change: Callable[[int, int], int]) -> None:
        for pod in pods:
            holding = self._placer.holding(claim.name, pod.name)
            if holding is None:
                continue
            free = self._free.get(holding.at)
            if free is None:
                if not self._possible >> holding.at & 1:
                    continue
                free = self._as_it_is(holding.at)
            row, before = free
            row = tuple(map(change, row, holding.row))
            after = self._known.get(row)
            if after is None:
                after = self._copies(row)
            self._free[holding.at] = (row, after)
            self._count += after - before

    def _as_it_is(self, at: int) -> tuple[Row, int]:
        row = self._placer.index.later[at]
        return row, self._copies(row)

    def _copies(self, row: Row) -> int:
        count = min([row[column] // amount for column, amount in self._wants])
        found = self._known[row] = max(count, 0)
        return found


class SearchedRoom:
    """Room for pods that differ, or must be together: free GPUs, then a search for places."""

    def __init__(
        self, copy: WorkingCopy, claim: Claim, demand: Demand, nodes: int, possible: int
    ) -> None:
        self._copy = copy
        self._claim = claim
        self._demand = demand
        self._nodes = nodes
        self._possible = possible
        self._needed = least_gpus(demand)
        by_gpus = copy.placer.index.by_gpus
        #: The GPUs that are free where its pods may be.
        self._gpus = sum(
            gpus * (nodes & possible).bit_count() for gpus, nodes in enumerate(by_gpus)
        )

    def release(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Let pods end."""
        self._change(claim, pods, self._copy.placer.release)

    def keep(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Let pods stay that were told to end."""
        self._change(claim, pods, self._copy.placer.keep)

    def suffices(self) -> bool:
        """Whether the demand would have a place."""
        return self._gpus >= self._needed and self._search()

    def _change(
        self, claim: Claim, pods: Iterable[Pod], change: Callable[[str, str], None]
    ) -> None:
        later = self._copy.placer.index.later
        for pod in pods:
            holding = self._copy.placer.holding(claim.name, pod.name)
            if holding is None:
                continue
            before = max(0, later[holding.at][GPUS])
            change(claim.name, pod.name)
            if self._possible >> holding.at & 1:
                self._gpus += max(0, later[holding.at][GPUS]) - before

    def _search(self) -> bool:
        copy, claim = self._copy, self._claim
        mark = copy.log.mark()
        found = copy.placer.place(
            claim.tree, self._demand, copy.held(claim), later=True, within=self._nodes
        )
        copy.log.undo(mark)
        return isinstance(found, Placement)


def _shapes(copy: WorkingCopy, demand: Demand) -> list[Shape]:
    found: dict[Shape, None] = {}
    waiting = [demand]
    while waiting:
        part = waiting.pop()
        found.update((copy.placer.index.shapes.of(pod), None) for pod in part.pods)
        waiting.extend(part.children)
    return list(found)


def is_open(claim: Claim) -> bool:
    """Whether nothing says that pods must be together."""
    return all(node.constraint is None and not node.sets for node in claim.tree.nodes)


def least_gpus(demand: Demand) -> int:
    """The fewest GPUs that a demand takes."""
    if demand.children:
        parts = sorted(least_gpus(child) for child in demand.children)
    else:
        parts = sorted(pod.requests.gpus for pod in demand.pods)
    return sum(parts[: demand.count])
