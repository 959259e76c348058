"""Whether there would be room for a demand, asked again and again while victims come and go.

Where pods are alike and nothing constrains them, room is a number that is kept up to date node by
node. Elsewhere the number of free GPUs tells when a real search is worth while.
"""

from __future__ import annotations

from collections.abc import Iterable

from bough.core.cycle.claim import Claim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import Demand
from bough.core.place.columns import GPUS
from bough.core.place.result import Placement
from bough.core.place.shapes import Shape
from bough.model.gang import Pod


class Room:
    """The room for one demand, once everything that is told to end has ended."""

    def __init__(self, copy: WorkingCopy, claim: Claim, demand: Demand, nodes: int) -> None:
        self._copy = copy
        self._claim = claim
        self._demand = demand
        shapes = _shapes(copy, demand)
        self._nodes = nodes
        possible = 0
        for shape in shapes:
            possible |= shape.possible & nodes
        self._possible = possible
        #: Set where counting is exact.
        self._shape = shapes[0] if len(shapes) == 1 and _is_open(claim) else None
        self._needed = demand.smallest if self._shape else _least_gpus(demand)
        #: What a node adds to the count, where that is not what it was in the beginning.
        self._parts: dict[int, int] = {}
        self._count = self._whole()

    def watch(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Remember what nodes add to the count before something happens to their pods."""
        for pod in pods:
            holding = self._copy.placer.holding(claim.name, pod.name)
            if holding is not None and holding.at not in self._parts:
                self._parts[holding.at] = self._part(holding.at)

    def recount(self, claim: Claim, pods: Iterable[Pod]) -> None:
        """Count again where pods were told to end, or to stay; they were watched before."""
        for pod in pods:
            holding = self._copy.placer.holding(claim.name, pod.name)
            if holding is not None:
                part = self._part(holding.at)
                self._count += part - self._parts[holding.at]
                self._parts[holding.at] = part

    def suffices(self) -> bool:
        """Whether the demand would have a place."""
        if self._count < self._needed:
            return False
        return self._shape is not None or self._search()

    def _whole(self) -> int:
        index = self._copy.placer.index
        if self._shape is not None:
            return index.count(self._shape, self._nodes, later=True)
        return sum(
            gpus * (nodes & self._possible).bit_count() for gpus, nodes in enumerate(index.by_gpus)
        )

    def _part(self, at: int) -> int:
        if not self._possible >> at & 1:
            return 0
        index = self._copy.placer.index
        if self._shape is not None:
            return index.copies(at, self._shape, later=True)
        return max(0, index.later[at][GPUS])

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


def _is_open(claim: Claim) -> bool:
    """Whether nothing says that pods must be together."""
    return all(node.constraint is None and not node.sets for node in claim.tree.nodes)


def _least_gpus(demand: Demand) -> int:
    if demand.children:
        parts = sorted(_least_gpus(child) for child in demand.children)
    else:
        parts = sorted(pod.requests.gpus for pod in demand.pods)
    return sum(parts[: demand.count])
