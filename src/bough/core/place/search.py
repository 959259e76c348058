"""A place for a whole demand, or none: depth first, with backtracking.

What is still to be done is a list of goals. A goal is met in one of several ways, the best first;
each way changes the index and leaves other goals. When a goal cannot be met the latest choice is
taken back, by the undo log, and the next one is tried. Nothing recurses, however large the gang is.
The search is greedy about nodes, or exact; in both cases it gives up after a certain amount of
work.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from bough.core.place.bundle_filling import Filler, Taken
from bough.core.place.demand_parts import Part
from bough.core.place.domain_options import (
    Option,
    Spread,
    nearest_first,
    options,
    required_options,
)
from bough.core.place.node_bits import mask_of
from bough.core.place.node_choice import Chooser, Spot
from bough.core.place.node_index import Index
from bough.core.place.pod_bundles import PodBundle, Wanted, contents, in_order, selections
from bough.core.place.pruning import Kinds, Layout, hopeful

#: This many pods placed in vain, or nodes looked at in vain, count as much work as one choice.
_PODS_FOR_ONE = 8
_NODES_FOR_ONE = 64


class Limit(NamedTuple):
    """Some leaves of the gang are confined to some nodes."""

    leaves: frozenset[int]
    nodes: int
    spread: Spread | None


class Area(NamedTuple):
    """The area in which a part may be placed."""

    nodes: int
    spread: Spread | None = None
    limits: tuple[Limit, ...] = ()


class Enter(NamedTuple):
    """Find a domain for a part, then place it there."""

    part: Part
    area: Area


class Confine(NamedTuple):
    """Find a domain for each set of leaves, from this one on; then choose candidates."""

    part: Part
    area: Area
    number: int


class Choose(NamedTuple):
    """Take so many more of the children, from this one on."""

    part: Part
    area: Area
    first: int
    missing: int


class Fill(NamedTuple):
    """Place what is in the bundle; then go on with the bundle of what is around."""

    area: Area
    around: PodBundle | None


class Put(NamedTuple):
    """Place the pods from this one on, one by one."""

    wanted: tuple[Wanted, ...]
    nodes: int
    number: int
    placed: int
    #: Pods that are alike take nodes in ascending order, as their order means nothing.
    first_node: int


Goal = Enter | Confine | Choose | Fill | Put


class Todo(NamedTuple):
    """Goals in the order in which they are met."""

    goal: Goal
    rest: Todo | None


class State(NamedTuple):
    """What is still to be done, and what waits for a place in the current domain."""

    todo: Todo | None
    bundle: PodBundle | None


class PlaceSearch:
    """One search. What it found is taken from the index; what it tried in vain is not."""

    def __init__(
        self,
        root: Part,
        layout: Layout,
        index: Index,
        chooser: Chooser,
        *,
        later: bool,
        exact: bool,
    ) -> None:
        self._root = root
        self._index = index
        self._chooser = chooser
        self._later = later
        self._exact = exact
        self._layout = layout
        self._filler = Filler(index, chooser, later=later)
        self._kinds = Kinds(index, self._layout)
        self._work_left = index.policy.work
        #: What was found.
        self.taken: list[Taken] = []
        #: The search ended because it had worked enough, not because there is nothing.
        self.gave_up = False

    def run(self, nodes: int) -> bool:
        """Place the demand as a whole, or change nothing."""
        area = Area(nodes)
        goals = Todo(Enter(self._root, area), Todo(Fill(area, None), None))
        state: State | None = State(goals, None)
        choices: list[tuple[Iterator[State], int, int]] = []
        while state is not None:
            if state.todo is None:
                return True
            choices.append((self._ways(state), self._index.log.mark(), len(self.taken)))
            state = self._next_way(choices)
        return False

    def _next_way(self, choices: list[tuple[Iterator[State], int, int]]) -> State | None:
        """Take back the latest choice and make its next one; choices that have no more are gone."""
        while choices:
            ways, mark, taken = choices[-1]
            self._index.log.undo(mark)
            del self.taken[taken:]
            state = None if self.gave_up else next(ways, None)
            if state is not None:
                return state
            choices.pop()
            self._work(1)
        return None

    def _work(self, amount: int) -> None:
        self._work_left -= amount
        self.gave_up = self.gave_up or self._work_left < 0

    def _ways(self, state: State) -> Iterator[State]:
        """The ways to meet the next goal. Each is made good in the index when it is asked for."""
        todo, bundle = state
        if todo is None:
            return iter(())
        match todo.goal:
            case Enter():
                return self._enter(todo.goal, todo.rest, bundle)
            case Confine():
                return self._confine(todo.goal, todo.rest, bundle)
            case Choose():
                return self._choose(todo.goal, todo.rest, bundle)
            case Fill():
                return self._fill(todo.goal, todo.rest, bundle)
            case Put():
                return self._put(todo.goal, todo.rest, bundle)

    def _enter(self, goal: Enter, rest: Todo | None, bundle: PodBundle | None) -> Iterator[State]:
        part, area = goal
        if not part.children:
            narrow = _confined(part, area)
            if narrow is not area:
                area = narrow
                rest = Todo(Fill(area, bundle), rest)
                bundle = None
        if part.zone is None:
            yield from self._inside(part, area, rest, bundle)
            return
        if self._exact:
            found = required_options(self._index, part.zone, area.nodes)
        else:
            found = options(self._index, part.zone, area.nodes)
            if area.spread is not None:
                used = mask_of(spot.at for entry in self.taken for spot in entry.spots)
                found = nearest_first(found, area.spread, used & area.nodes)
        for option in self._distinct(found):
            chosen = Area(option.nodes, option.spread, area.limits)
            yield from self._inside(part, chosen, Todo(Fill(chosen, bundle), rest), None)

    def _inside(
        self, part: Part, area: Area, rest: Todo | None, bundle: PodBundle | None
    ) -> Iterator[State]:
        """A part whose domain is chosen."""
        if part.children:
            yield State(Todo(Confine(part, area, 0), rest), bundle)
            return
        for wanted in selections(part) if self._exact else self._selections(part, area):
            yield State(rest, PodBundle.of(wanted, bundle))

    def _selections(self, part: Part, area: Area) -> Iterator[tuple[Wanted, ...]]:
        """The first pods of a leaf; then the first of those whose shape fits at all."""
        first = in_order(part)
        if first is not None:
            yield first
        if len(part.runs) > 1:
            unfit = frozenset(
                number
                for number, run in enumerate(part.runs)
                if self._chooser.pick(run.shape, area.nodes, later=self._later) < 0
            )
            second = in_order(part, unfit)
            if second is not None and second != first:
                yield second

    def _confine(
        self, goal: Confine, rest: Todo | None, bundle: PodBundle | None
    ) -> Iterator[State]:
        part, area, number = goal
        if number == len(part.sets):
            yield State(Todo(Choose(part, area, 0, part.count), rest), bundle)
            return
        zone, leaves = part.sets[number]
        ways = required_options if self._exact else options
        found = False
        for option in ways(self._index, zone, area.nodes):
            found = True
            limits = (*area.limits, Limit(leaves, option.nodes, option.spread))
            chosen = Confine(part, area._replace(limits=limits), number + 1)
            yield State(Todo(chosen, rest), bundle)
        if not found and not zone.least.pods:
            # No domain at all, and no leaf of the set that every choice takes: the others may do.
            limits = (*area.limits, Limit(leaves, 0, None))
            yield State(Todo(Confine(part, area._replace(limits=limits), number + 1), rest), bundle)

    def _choose(self, goal: Choose, rest: Todo | None, bundle: PodBundle | None) -> Iterator[State]:
        part, area, first, missing = goal
        if not missing:
            yield State(rest, bundle)
            return
        children = part.children
        if not hopeful(self._index, part, first, missing, area.nodes, bundle):
            return
        taken = Choose(part, area, first + 1, missing - 1)
        yield State(Todo(Enter(children[first], area), Todo(taken, rest)), bundle)
        other = first + 1
        if not area.limits:
            # Where this child cannot be had, neither can those that are like it.
            while other < len(children) and children[other].signature == children[first].signature:
                other += 1
        if len(children) - other >= missing:
            yield State(Todo(Choose(part, area, other, missing), rest), bundle)

    def _fill(self, goal: Fill, rest: Todo | None, bundle: PodBundle | None) -> Iterator[State]:
        area, around = goal
        if self._exact:
            wanted = sorted(contents(bundle), key=lambda want: want.run.shape.request, reverse=True)
            yield State(Todo(Put(tuple(wanted), area.nodes, 0, 0, 0), rest), around)
            return
        taken = self._filler.fill(bundle, area.nodes, area.spread)
        if taken is None:
            self._work(bundle.pods // _PODS_FOR_ONE if bundle else 0)
            return
        self.taken.extend(taken)
        yield State(rest, around)

    def _put(self, goal: Put, rest: Todo | None, bundle: PodBundle | None) -> Iterator[State]:
        wanted, nodes, number, placed, first_node = goal
        if number == len(wanted):
            yield State(rest, bundle)
            return
        run, pods = wanted[number]
        for at in self._kinds.different(run.shape, nodes, first_node, later=self._later):
            waits = not self._index.fits(at, run.shape)
            self._index.take(at, run.shape.request, waits=waits)
            self.taken.append(Taken(run, (Spot(at, 1, waits),)))
            if placed + 1 < pods:
                following = Put(wanted, nodes, number, placed + 1, at)
            else:
                alike = number + 1 < len(wanted) and wanted[number + 1].run.shape is run.shape
                following = Put(wanted, nodes, number + 1, 0, at if alike else 0)
            yield State(Todo(following, rest), bundle)
        # To find nothing more is as much work as there are nodes to look at.
        self._work((run.shape.possible & nodes).bit_count() // _NODES_FOR_ONE)

    def _distinct(self, found: Iterator[Option]) -> Iterator[Option]:
        """Leave out domains that are like one that was tried, where that is all that matters."""
        if not self._layout.flat:
            yield from found
            return
        tried: set[Hashable] = set()
        latest: int | None = None
        for option in found:
            if latest is not None:
                # Only now, as mostly there is no second one; what was tried there is undone.
                tried.add(self._kinds.of_domain(latest))
                if self._kinds.of_domain(option.nodes) in tried:
                    continue
            latest = option.nodes
            yield option


def _confined(part: Part, area: Area) -> Area:
    """The area of a leaf that belongs to sets; the same area where it does not."""
    for limit in area.limits:
        if part.node.first_leaf in limit.leaves:
            area = Area(area.nodes & limit.nodes, limit.spread, area.limits)
    return area
