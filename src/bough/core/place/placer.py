"""Finds places for gangs in a cluster: what is needed all or nothing, then growth.

This is the object that a scheduling cycle works with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import msgspec

from bough.core.gang.demand import Demand, growth, needed
from bough.core.gang.sufficiency import is_sufficient
from bough.core.gang.tree import GangTree, Held, counts_of
from bough.core.place.bundle_filling import Taken
from bough.core.place.cluster import Cluster, Hold, Holding
from bough.core.place.demand_parts import Compiler, Part, Run, leaf_part
from bough.core.place.node_choice import Chooser, Spot
from bough.core.place.pod_shapes import Shape, is_alike
from bough.core.place.pruning import Layout
from bough.core.place.result import GangPlacement, NoPlace, PlacedPod, Placement, Unresolved
from bough.core.place.search import PlaceSearch
from bough.core.undo import UndoLog
from bough.model.cluster import Node, Topology
from bough.model.gang import Pod
from bough.model.place_policy import PlacePolicy


class Placer(Cluster):
    """A cluster in which places are found."""

    def __init__(
        self,
        nodes: Iterable[Node],
        topologies: Iterable[Topology] = (),
        policy: PlacePolicy | None = None,
        log: UndoLog | None = None,
    ) -> None:
        super().__init__(nodes, topologies, policy, log)
        self.chooser = Chooser(self.index)

    def start(
        self, tree: GangTree, held: Held, *, later: bool = False, within: int | None = None
    ) -> GangPlacement | NoPlace:
        """Take places for what a gang lacks to run, and then for all growth that fits.

        A gang that lacks nothing only grows.
        """
        demand = needed(tree, held)
        core = Placement(())
        if demand is None and not is_sufficient(tree, counts_of(held)):
            return NoPlace(lacks_pods=True)
        if demand is not None:
            found = self.place(tree, demand, held, later=later, within=within)
            if isinstance(found, NoPlace):
                return found
            core = found
            held = tree.with_pods(held, core.pods)
        return GangPlacement(
            core, self._grow(tree, held, later=later, within=within, waits=core.waits)
        )

    def place(
        self,
        tree: GangTree,
        demand: Demand,
        held: Held,
        *,
        later: bool = False,
        within: int | None = None,
        waits: bool = False,
    ) -> Placement | NoPlace:
        """Take places for one demand of a gang that holds some pods already: all, or nothing.

        later:   room that is being freed may be used, where there is no other.
        within:  the mask of the nodes to use; `None`: every one.
        waits: the pods wait even where their room is free, because the gang does.
        """
        nodes = self._nodes(within)
        times = (False, True) if later and self.index.anything_ends else (False,)
        alike = self._alike(demand)
        if alike is not None:
            return self._place_alike(tree.root.name, alike, demand, nodes, times, waits=waits)
        part = self.compile(tree, demand, held)
        if isinstance(part, NoPlace):
            return part
        gave_up = False
        for with_ending in times:
            mark = self.log.mark()
            found = self.find(part, nodes, later=with_ending)
            if not isinstance(found, NoPlace):
                return self._settle(tree.root.name, _seats(found), mark, waits=waits)
            gave_up = gave_up or found.gave_up
        return NoPlace(gave_up=gave_up)

    def place_at(
        self, gang: str, pods: Iterable[Pod], places: Mapping[str, str], *, within: int, waits: bool
    ) -> Placement | None:
        """Take the places that were chosen before, if all of them can still be had."""
        mark = self.log.mark()
        seats: list[_Seat] = []
        for pod in pods:
            shape = self.index.shapes.of(pod)
            at = self.index.position.get(places.get(pod.name, ""))
            allowed = within & shape.possible
            if at is None or not allowed >> at & 1 or not self.index.fits(at, shape, later=True):
                self.log.undo(mark)
                return None
            late = not self.index.fits(at, shape)
            self.index.take(at, shape.request, waits=late)
            seats.append(_Seat(shape, (pod,), Spot(at, 1, late)))
        return self._settle(gang, seats, mark, waits=waits)

    def could_take(self, demand: Demand, within: int) -> bool:
        """Whether enough pods of each of its leaves would have room if all nodes were empty.

        Each leaf is tried as if it had the nodes to itself. A demand that fails this has no place
        until there are other nodes.
        """
        if demand.children:
            able = sum(self.could_take(child, within) for child in demand.children)
            return able >= demand.count
        able = first = 0
        pods = demand.pods
        while first < len(pods) and able < demand.count:
            last = first + 1
            while last < len(pods) and is_alike(pods[first], pods[last]):
                last += 1
            most = min(last - first, demand.count - able)
            able += self.index.could_hold(self.index.shapes.of(pods[first]), within, most)
            first = last
        return able >= demand.count

    def compile(self, tree: GangTree, demand: Demand, held: Held) -> Part | NoPlace:
        """Prepare a demand for the search; constraints that cannot be looked up are refused."""
        self.index.shapes.forget_some()
        node = demand.node
        if node.is_leaf and node.constraint is None and not node.sets:
            return leaf_part(demand, self.index.shapes)

        def position(pod: Pod) -> int | None:
            holding = self._holdings.get((tree.root.name, pod.name))
            return None if holding is None else holding.at

        compiler = Compiler(
            tree,
            held,
            position,
            self.index.shapes,
            self.topologies,
            policy=self.index.policy,
        )
        part = compiler.part(demand)
        if not compiler.unknown:
            return part
        return NoPlace(
            unresolved=tuple(Unresolved(node.name, why) for node, why in compiler.unknown)
        )

    def find(self, part: Part, nodes: int, *, later: bool) -> list[Taken] | NoPlace:
        """Take room for a part: search greedily, then exactly where that may find more."""
        if part.open and len(part.runs) == 1:
            run = part.runs[0]
            spots = self._fill_anywhere(run.shape, part.count, nodes, later=later)
            return NoPlace() if spots is None else [Taken(run, tuple(spots))]
        key = (part.signature, nodes, later)
        gave_up = self._refused[0].get(key)
        if gave_up is not None:
            return NoPlace(gave_up=gave_up)
        gave_up = False
        layout = Layout.of(part)
        for exact in (False,) if layout.countable else (False, True):
            search = PlaceSearch(part, layout, self.index, self.chooser, later=later, exact=exact)
            if search.run(nodes):
                return search.taken
            gave_up = search.gave_up
        # Giving up proves nothing, but the search would take as long the next time.
        if gave_up or self.index.policy.remember:
            self.log.put_key(self._refused[0], key, gave_up)
        return NoPlace(gave_up=gave_up)

    def _alike(self, demand: Demand) -> Shape | None:
        """The shape of pods that are all alike, and that nothing keeps together."""
        node, pods = demand.node, demand.pods
        if not pods or node.constraint is not None or node.sets:
            return None
        self.index.shapes.forget_some()
        first = pods[0]
        for pod in pods[1:]:
            if not is_alike(first, pod):
                return None
        return self.index.shapes.of(first)

    def _place_alike(
        self,
        gang: str,
        shape: Shape,
        demand: Demand,
        nodes: int,
        times: tuple[bool, ...],
        *,
        waits: bool,
    ) -> Placement | NoPlace:
        """Take places for such pods: there is nothing to search for."""
        for later in times:
            mark = self.log.mark()
            spots = self._fill_anywhere(shape, demand.count, nodes, later=later)
            if spots is not None:
                return self._settle(gang, _seated(shape, demand.pods, spots), mark, waits=waits)
        return NoPlace()

    def _fill_anywhere(
        self, shape: Shape, count: int, nodes: int, *, later: bool
    ) -> list[Spot] | None:
        """Take room for so many pods of a shape, wherever it is."""
        key = (shape, count, nodes, later)
        if key in self._refused[0]:
            return None
        if count == 1 or self.index.has_room(shape, nodes, count):
            mark = self.log.mark()
            spots = self.chooser.fill(shape, nodes, count, later=later)
            if sum([spot.pods for spot in spots]) == count:
                return spots
            self.log.undo(mark)
        if self.index.policy.remember:
            self.log.put_key(self._refused[0], key, value=False)
        return None

    def _grow(
        self, tree: GangTree, held: Held, *, later: bool, within: int | None, waits: bool
    ) -> tuple[Placement, ...]:
        """Place optional units, in order, as long as any fits."""
        if tree.root.is_leaf and tree.root.constraint is None:
            return self._grow_alone(tree, held, later=later, within=within, waits=waits)
        found: list[Placement] = []
        #: Units that did not fit: they will not, as room only shrinks.
        closed: set[int] = set()
        grows = True
        while grows:
            grows = False
            for unit in growth(tree, held, closed):
                placed = self.place(
                    tree, unit.demand, held, later=later, within=within, waits=waits
                )
                if isinstance(placed, Placement):
                    found.append(placed)
                    held = tree.with_pods(held, placed.pods)
                    grows = True
                    break
                closed.add(unit.node.position)
        return tuple(found)

    def _grow_alone(
        self, tree: GangTree, held: Held, *, later: bool, within: int | None, waits: bool
    ) -> tuple[Placement, ...]:
        """The same for a gang that is but one leaf, anywhere: all of its pods in one go."""
        unit = next(growth(tree, held), None)
        if unit is None:
            return ()
        part = self.compile(tree, unit.demand, held)
        if isinstance(part, NoPlace):
            return ()
        runs = part.run_of_pod or (0,) * len(unit.demand.pods)
        assigned: list[PlacedPod] = []
        full: set[int] = set()
        for number, together in groupby(zip(runs, unit.demand.pods, strict=True), key=_run_of):
            if number in full:
                continue
            run = Run(part.runs[number].shape, tuple(pod for _, pod in together))
            mark = self.log.mark()
            spots = self.chooser.fill(run.shape, self._nodes(within), len(run.pods), later=later)
            if sum(spot.pods for spot in spots) < len(run.pods):
                full.add(number)
            seats = _seats([Taken(run, tuple(spots))])
            # Each pod is a unit of its own: one whose room is free does not wait for the others.
            for unit_seats in [seats] if waits else [[seat] for seat in seats]:
                placed = self._settle(tree.root.name, unit_seats, mark, waits=waits)
                assigned.extend(placed.assignments)
        return tuple(Placement((assignment,)) for assignment in assigned)

    def _settle(self, gang: str, seats: list[_Seat], mark: int, *, waits: bool) -> Placement:
        """Remember which pod is where. Where one pod waits, all of them do."""
        waiting = sum([seat.spot.waits for seat in seats])
        waits = waits or waiting > 0
        if waits and waiting < len(seats):
            self.log.undo(mark)
            for seat in seats:
                spot = seat.spot
                self.index.take(spot.at, seat.shape.times(spot.pods), waits=True)
        assigned: list[PlacedPod] = []
        for seat in seats:
            at = seat.spot.at
            node = self.index.nodes[at].name
            holding = Holding(at, seat.shape.request, Hold.WAITS if waits else Hold.FIRM)
            for pod in seat.pods:
                self._hold((gang, pod.name), holding)
                assigned.append(PlacedPod(pod.name, node, waits))
        return Placement(tuple(assigned))

    def _nodes(self, within: int | None) -> int:
        return self.index.everything if within is None else within


class _Seat(msgspec.Struct, frozen=True, gc=False):
    """Pods of one shape that share one spot."""

    shape: Shape
    pods: tuple[Pod, ...]
    spot: Spot


def _seats(taken: Iterable[Taken]) -> list[_Seat]:
    """Give the spots of each run to its first pods, in order."""
    seats: list[_Seat] = []
    seated: dict[int, int] = {}
    for each in taken:
        run = each.run
        first = seated.get(id(run), 0)
        more = _seated(run.shape, run.pods[first:], each.spots)
        seated[id(run)] = first + sum([len(seat.pods) for seat in more])
        seats += more
    return seats


def _seated(shape: Shape, pods: tuple[Pod, ...], spots: Sequence[Spot]) -> list[_Seat]:
    """Give spots to the first of pods of one shape, in order."""
    seats: list[_Seat] = []
    first = 0
    for spot in spots:
        seats.append(_Seat(shape, pods[first : first + spot.pods], spot))
        first += spot.pods
    return seats


def _run_of(pair: tuple[int, Pod]) -> int:
    return pair[0]
