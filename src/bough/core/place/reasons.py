"""Why a demand has no place: which subgroup is short, by how many pods, where, and of what.

Worked out only on request; a search itself does not collect reasons. Places everything that can
be placed, as far as it goes, looks at what is left, and undoes it all.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bough.core.gang.demand import Demand
from bough.core.gang.tree import GangTree, Held
from bough.core.place.demand_parts import Part, Zone
from bough.core.place.node_bits import positions
from bough.core.place.placer import Placer
from bough.core.place.pod_bundles import in_order
from bough.core.place.pod_shapes import Shape
from bough.core.place.result import NoPlace
from bough.model.shortage import (
    Cause,
    DomainRoom,
    Explanation,
    Lack,
    NodeCount,
    Short,
    Together,
)

#: How many domains are named, the best first.
MAXIMUM_DOMAINS = 5


def explain(
    placer: Placer,
    tree: GangTree,
    demand: Demand,
    held: Held,
    *,
    later: bool = False,
    within: int | None = None,
) -> Explanation:
    """Why a demand has no place; empty where it has a constraint that cannot be looked up."""
    part = placer.compile(tree, demand, held)
    if isinstance(part, NoPlace):
        return Explanation()
    mark = placer.mark()
    nodes = placer.index.everything if within is None else within
    inquiry = _Inquiry(placer, nodes, later=later)
    inquiry.visit(part, nodes, None)
    placer.undo(mark)
    return Explanation(tuple(inquiry.lacks), tuple(inquiry.short))


class _Inquiry:
    """Places what it can and writes down what it cannot."""

    def __init__(self, placer: Placer, everywhere: int, *, later: bool) -> None:
        self.lacks: list[Lack] = []
        self.short: list[Short] = []
        self._placer = placer
        self._index = placer.index
        self._everywhere = everywhere
        self._later = later
        #: Leaves that are confined by a set.
        self._confined: dict[int, tuple[int, Together]] = {}

    def visit(self, part: Part, nodes: int, together: Together | None) -> bool:
        """Place a part; or find out what it lacks, and leave its room to the next."""
        nodes, together = self._confine(part, nodes, together)
        if not isinstance(self._placer.find(part, nodes, later=self._later), NoPlace):
            return True
        if part.zone is not None and part.zone.scope.required is not None:
            nodes, together = self._best_domain([part], part.zone, nodes)
        elif part.zone is not None and not self._index.policy.outside:
            nodes &= part.zone.scope.domains.inside
        for zone, leaves in part.sets:
            if zone.scope.required is not None:
                members = [leaf for leaf in _leaves(part) if leaf.node.first_leaf in leaves]
                found = self._best_domain(members, zone, nodes)
                self._confined |= dict.fromkeys(leaves, found)
        if part.children:
            return self._visit_children(part, nodes, together)
        self._lack(part, nodes, together)
        return False

    def _visit_children(self, part: Part, nodes: int, together: Together | None) -> bool:
        """As many as are needed, in order; once they are there, what others lack is no reason."""
        before = len(self.lacks)
        mark = self._placer.mark()
        missing = part.count
        for child in part.children:
            if missing and self.visit(child, nodes, together):
                missing -= 1
        if not missing:
            del self.lacks[before:]
            return True
        self._placer.undo(mark)
        if part.count < len(part.children):
            found = part.count - missing
            self.short.append(Short(part.node.name, part.count, found, len(part.children)))
        return False

    def _confine(
        self, part: Part, nodes: int, together: Together | None
    ) -> tuple[int, Together | None]:
        if part.children or part.node.first_leaf not in self._confined:
            return nodes, together
        domain, why = self._confined[part.node.first_leaf]
        return nodes & domain, why

    def _best_domain(self, parts: list[Part], zone: Zone, nodes: int) -> tuple[int, Together]:
        """The domain that holds most of some parts, and how many the others hold."""
        domains, required = zone.scope.domains, zone.scope.required or 0
        level = domains.levels[required]
        allowed = nodes if zone.pin is None else nodes & zone.pin
        rooms: list[tuple[int, int]] = []
        for number, mask in enumerate(level.masks):
            if mask & allowed:
                held = sum(self._hold(leaf, mask & allowed) for leaf in _all_leaves(parts))
                rooms.append((-held, number))
        rooms.sort()
        together = Together(
            topology=domains.name,
            level=level.name,
            needed=zone.least.pods,
            best=tuple(
                DomainRoom(level.ids[number], -room) for room, number in rooms[:MAXIMUM_DOMAINS]
            ),
            domains=len(rooms),
            pinned=zone.pin is not None,
        )
        return (level.masks[rooms[0][1]] & allowed if rooms else 0), together

    def _hold(self, leaf: Part, nodes: int) -> int:
        """How many pods of a leaf fit, each shape on its own; no more than are needed."""
        wanted = in_order(leaf) or ()
        counts = (
            min(pods, self._index.count(run.shape, nodes, later=self._later))
            for run, pods in wanted
        )
        return sum(counts)

    def _lack(self, part: Part, nodes: int, together: Together | None) -> None:
        """Try how many pods of a leaf fit, and say what the first of the others lacks."""
        mark = self._placer.mark()
        found = 0
        short: Shape | None = None
        for run, pods in in_order(part) or ():
            spots = self._placer.chooser.fill(run.shape, nodes, pods, later=self._later)
            placed = sum(spot.pods for spot in spots)
            found += placed
            if placed < pods and short is None:
                short = run.shape
        self._placer.undo(mark)
        shape = short or part.runs[0].shape
        inside = nodes
        if together is not None:
            inside = self._everywhere & self._placer.topologies.inside(together.topology)
            if together.needed < part.count:
                # Of a set that a choice can do without: this leaf alone needs so many.
                together = msgspec.structs.replace(together, needed=part.count)
        self.lacks.append(
            Lack(
                subgroup=part.node.name,
                needed=part.count,
                found=min(found, part.count),
                requests=shape.key[0],
                nodes=tuple(self._count_nodes(shape, inside)),
                together=together,
                absent=shape.unknown,
                unsupported=shape.key[1].unsupported,
            )
        )

    def _count_nodes(self, shape: Shape, inside: int) -> Iterator[NodeCount]:
        """Sort all nodes by why they do not take one more pod of a shape."""
        if shape.key[1].unsupported:
            return  # It is not the nodes' fault.
        index = self._index
        left = self._everywhere
        if not left and index.everything:
            # Others are of interest only where there is none that it could be on.
            yield NodeCount(Cause.FLAVOR, index.everything.bit_count())
        rules = (
            (Cause.OUTSIDE, ~inside),
            (Cause.CORDONED, index.matcher.cordoned),
            (Cause.SELECTOR, ~shape.eligible.matched),
            (Cause.TAINT, ~shape.eligible.tolerated),
        )
        for cause, nodes in rules:
            if left & nodes:
                yield NodeCount(cause, (left & nodes).bit_count())
            left &= ~nodes
        if shape.unknown and left:
            yield NodeCount(Cause.RESOURCE, left.bit_count(), shape.unknown[0])
            return
        counts: dict[str | None, int] = {}
        for at in positions(left):
            lacking = self._lacking(at, shape)
            counts[lacking] = counts.get(lacking, 0) + 1
        for name in (*index.columns.names, None):
            if name in counts:
                cause = Cause.NONE if name is None else Cause.RESOURCE
                yield NodeCount(cause, counts[name], name)

    def _lacking(self, at: int, shape: Shape) -> str | None:
        later, idle = self._index.later[at], self._index.idle[at]
        for column, amount in shape.wants:
            if later[column] < amount or (not self._later and idle[column] < amount):
                return self._index.columns.names[column]
        return None


def _all_leaves(parts: list[Part]) -> Iterator[Part]:
    for part in parts:
        yield from _leaves(part)


def _leaves(part: Part) -> Iterator[Part]:
    if not part.children:
        yield part
    for child in part.children:
        yield from _leaves(child)
