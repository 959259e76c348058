"""Which node a pod gets: the best of those that fit.

The order is that of the policy: by free GPUs, or by free CPU for pods without GPUs. Nodes whose
taints advise against the pod come last; what is free now comes before what will be free later.
"""

from __future__ import annotations

from fractions import Fraction

import msgspec

from bough.core.place.columns import CPU, GPUS
from bough.core.place.node_bits import positions
from bough.core.place.node_index import Index
from bough.core.place.pod_shapes import Shape
from bough.model.place_policy import Packing

#: No node.
NOWHERE = -1


class Spot(msgspec.Struct, frozen=True, gc=False):
    """Room for some pods of one shape on one node; it is taken."""

    at: int
    pods: int
    #: The room is not free yet.
    waits: bool


class Chooser:
    """Finds places in an index, by its policy."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._spreads = index.policy.packing is Packing.SPREAD
        self._tiers = _spread_tiers(index) if self._spreads else ()
        #: Nodes that have no GPUs at all.
        self._plain = index.everything
        for at, row in enumerate(index.capacity):
            if row[GPUS]:
                self._plain &= ~(1 << at)

    def fill(self, shape: Shape, within: int, count: int, *, later: bool) -> list[Spot]:
        """Take places for up to `count` pods of a shape, one after the other."""
        index = self._index
        spots: list[Spot] = []
        while count:
            waits = False
            at = self.pick(shape, within)
            if at < 0 and later:
                waits = True
                at = self.pick(shape, within, later=True)
            if at < 0:
                break
            # Best fit stays on a node as long as it can: no other is fuller.
            several = 1
            if count > 1 and not self._spreads:
                several = min(count, index.copies(at, shape, later=waits))
            index.take(at, shape.times(several), waits=waits)
            spots.append(Spot(at, several, waits))
            count -= several
        return spots

    def pick(self, shape: Shape, within: int, *, later: bool = False) -> int:
        """The best node for one more pod of a shape, or `NOWHERE`."""
        nodes = self._index.may_fit(shape, within, later=later)
        avoided = shape.eligible.avoided & nodes
        if not avoided:
            return self._best(shape, nodes, later=later)
        best = self._best(shape, nodes & ~avoided, later=later)
        return best if best >= 0 else self._best(shape, avoided, later=later)

    def _best(self, shape: Shape, nodes: int, *, later: bool) -> int:
        if not nodes:
            return NOWHERE
        if self._spreads:
            if shape.gpus:
                return self._first(shape, self._emptiest_first(shape.gpus), nodes, later=later)
            return self._by_cpu(shape, nodes, later=later)
        if shape.gpus or not self._index.policy.cpu_pods_by_cpu:
            return self._first(shape, self._index.by_gpus[shape.gpus :], nodes, later=later)
        return self._by_cpu(shape, nodes, later=later)

    def _first(self, shape: Shape, tiers: list[int], nodes: int, *, later: bool) -> int:
        """The first node of the first tier that fits; those before it are known as unfit now."""
        fits = self._index.fits
        unfit = 0
        found = NOWHERE
        for tier in tiers:
            candidates = tier & nodes
            while candidates:
                bit = candidates & -candidates
                at = bit.bit_length() - 1
                if fits(at, shape, later=later):
                    found = at
                    break
                candidates ^= bit
                unfit |= bit
            if found >= 0:
                break
        if unfit:
            self._index.unfit(shape, unfit, later=later)
        return found

    def _emptiest_first(self, gpus: int) -> list[int]:
        tiers: list[int] = []
        for parts in self._tiers:
            tier = 0
            for free, nodes in parts:
                if free >= gpus:
                    tier |= self._index.by_gpus[free] & nodes
            tiers.append(tier)
        return tiers

    def _by_cpu(self, shape: Shape, nodes: int, *, later: bool) -> int:
        """Nodes without GPUs first, then by free CPU; looks at every candidate."""
        index = self._index
        for part in (nodes & self._plain, nodes & ~self._plain):
            fitting = [at for at in positions(part) if index.fits(at, shape, later=later)]
            if fitting and self._spreads:
                return max(fitting, key=self._free_part_of_cpu)
            if fitting:
                return min(fitting, key=lambda at: index.later[at][CPU])
        return NOWHERE

    def _free_part_of_cpu(self, at: int) -> Fraction:
        capacity = self._index.capacity[at][CPU]
        return Fraction(self._index.later[at][CPU], capacity) if capacity else Fraction(0)


def _spread_tiers(index: Index) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Numbers of free GPUs, with the nodes whose emptiness they stand for, the emptiest first."""
    nodes: dict[int, int] = {}
    for at, row in enumerate(index.capacity):
        nodes[row[GPUS]] = nodes.get(row[GPUS], 0) | 1 << at
    tiers: dict[Fraction, list[tuple[int, int]]] = {}
    for capacity, mask in sorted(nodes.items()):
        for free in range(1, capacity + 1):
            tiers.setdefault(Fraction(free, capacity), []).append((free, mask))
    return tuple(tuple(tiers[part]) for part in sorted(tiers, reverse=True))
