"""The best victims: as few gangs as can be, of low priority, and no GPU more than is needed.

`victims.search` takes candidates in their order and finds a set of which no member is superfluous.
Another set may still break fewer gangs; and there may be a set where it finds none, because what
may still be taken depends on what was taken first. `improve` looks for such a set: among few
candidates by trying every set that could be better, the best first; among more, by replacing
several victims by one.

Two sets are compared by these figures in turn; the first difference decides:

1. The gangs that it breaks, compared from the highest priority down: one of a high priority is
   worse than any number of lower ones, and of the same priority fewer are better.
2. Fewer of these gangs are in the preemptor's own queue.
3. The GPUs that it takes, surplus and gangs alike, compared from the highest priority down in the
   same way; then fewer of them in the own queue.
4. Fewer units, and those that come first as candidates: the newest.

`fits` and `allowed` must be monotone: what fits with some units taken also fits with more of them
taken, and a unit that may be taken after some others may also be taken after fewer of them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Generic, NamedTuple, Protocol, TypeVar

#: With at most this many units, every set that could be better is tried. A few gangs on a few nodes
#: have about as many; with more, most sets would never be reached.
MOST_UNITS = 48
#: How many times that search may take a unit, about 0.1 s; after that the best set so far counts.
#: Six gangs on four nodes need at most 800.
MOST_TAKES = 2_000
#: With at most this many units, each is tried in place of several others, within the same bound.
MOST_TO_EXCHANGE = 256


class Takeable(Protocol):
    """What ends at once: a gang, or a part of it that it can do without."""

    @property
    def gang(self) -> str:
        """The name of the gang."""
        ...

    @property
    def parts(self) -> frozenset[str]:
        """What ends; units of one gang may overlap, but only by one being part of the other."""
        ...

    @property
    def whole(self) -> bool:
        """Whether the gang is broken: nothing of it is left."""
        ...

    @property
    def own(self) -> bool:
        """Whether it is of the preemptor's own queue."""
        ...

    @property
    def priority(self) -> int:
        """The priority of the gang."""
        ...

    @property
    def gpus(self) -> int:
        """How many GPUs end with it."""
        ...

    @property
    def core(self) -> int:
        """How many of these its gang cannot give back without being broken; for a part, all."""
        ...

    @property
    def alike(self) -> Hashable:
        """The same for units of which it does not matter which is taken."""
        ...


AnyUnit = TypeVar("AnyUnit", bound=Takeable)


class Actions(NamedTuple, Generic[AnyUnit]):
    """What the search can ask and do; it knows neither quota nor nodes."""

    allowed: Callable[[AnyUnit], bool]
    take: Callable[[AnyUnit], None]
    put_back: Callable[[AnyUnit], None]
    fits: Callable[[], bool]


class BrokenGangs(NamedTuple):
    """The gangs that a set breaks, comparable: smaller is better."""

    #: From the highest down; so fewer of one priority come before more of it.
    priorities: tuple[int, ...]
    own: int


class Cost(NamedTuple):
    """What a set of units costs, comparable: smaller is better. See above."""

    broken: BrokenGangs
    #: By priority, from the highest down.
    gpus: tuple[tuple[int, int], ...]
    own_gpus: int
    units: int
    places: tuple[int, ...]


def broken_by(units: Iterable[Takeable]) -> BrokenGangs:
    """What a set breaks."""
    whole = [unit for unit in units if unit.whole]
    priorities = tuple(sorted((unit.priority for unit in whole), reverse=True))
    return BrokenGangs(priorities, sum(unit.own for unit in whole))


def cost_of(units: Sequence[Takeable], places: Iterable[int]) -> Cost:
    """The cost of a set in which no unit is part of another; `places`: where its units stand."""
    gpus: dict[int, int] = {}
    for unit in units:
        if unit.gpus:
            gpus[unit.priority] = gpus.get(unit.priority, 0) + unit.gpus
    return Cost(
        broken_by(units),
        tuple(sorted(gpus.items(), reverse=True)),
        sum(unit.gpus for unit in units if unit.own),
        len(units),
        tuple(sorted(places)),
    )


def improve(
    found: list[AnyUnit] | None, units: Iterable[AnyUnit], actions: Actions[AnyUnit]
) -> list[AnyUnit] | None:
    """A better set of victims than `found`, or `found` itself; in the order of `units`, and taken.

    `found` is the result of another search, and is no longer taken. `units` are all that may be
    taken, in order of preference.
    """
    some = list(islice(units, MOST_TO_EXCHANGE + 1))
    if len(some) > MOST_TO_EXCHANGE:
        for unit in found or ():
            actions.take(unit)
        return found
    known = {(unit.gang, unit.parts): at for at, unit in enumerate(some)}
    best = None
    if found is not None:
        best = sorted({known[unit.gang, unit.parts] for unit in maximal(found)})
    row = _Row(some, actions)
    better = best if best is None else row.exchange(best)
    if len(some) <= MOST_UNITS:
        better = row.try_all(better)
    if better is None:
        return None
    row.take(better)
    return [some[at] for at in better]


def maximal(units: Sequence[AnyUnit]) -> Iterator[AnyUnit]:
    """A set without those that are part of another one in it."""
    for unit in units:
        if not any(_contains(other, unit) for other in units):
            yield unit


def _contains(one: Takeable, other: Takeable) -> bool:
    return one.gang == other.gang and one.parts > other.parts


class _Row(Generic[AnyUnit]):
    """Units, known by their places in a row, and what the search has found out about them."""

    def __init__(self, units: list[AnyUnit], actions: Actions[AnyUnit]) -> None:
        self._units = units
        self._actions = actions
        self._cores = [unit.core for unit in units]
        #: For each unit: the one before it that is just like it.
        self._before: list[int | None] = []
        last: dict[Hashable, int] = {}
        for at, unit in enumerate(units):
            self._before.append(last.get(unit.alike))
            last[unit.alike] = at
        self._best: list[int] | None = None
        self._cost: Cost | None = None
        #: Each has a unit in common with every set that is enough.
        self._needed_ones: list[frozenset[int]] = []
        self._takes = 0

    def try_all(self, best: list[int] | None) -> list[int] | None:
        """The best set, unless there are too many to ask about.

        Sets are tried in the order of their cost. Where one is not enough, it is filled up for as
        long as it is not: one of the units that are left out then is in every set that is enough.
        So sets grow only by such units.
        """
        self._start_with(best)
        waiting: list[tuple[Cost, tuple[int, ...]]] = [(self._cost_of(()), ())]
        seen: set[tuple[int, ...]] = {()}
        while waiting and self._takes < MOST_TAKES:
            cost, chosen = heappop(waiting)
            if self._cost is not None and cost >= self._cost:
                break
            if not self._could_be_better(chosen) or not self._is_allowed(chosen):
                continue
            needed = self._one_of(chosen)
            if needed is None:
                self._note(chosen)
                break
            for more in self._grown(chosen, needed):
                if more not in seen:
                    seen.add(more)
                    heappush(waiting, (self._cost_of(more), more))
        return self._best

    def _grown(self, chosen: tuple[int, ...], needed: Iterable[int]) -> Iterator[tuple[int, ...]]:
        """A set with each of these; where a unit just like it comes first, with that."""
        for at in needed:
            first = at
            while (before := self._before[first]) is not None and before not in chosen:
                first = before
            if not any(self._overlap(first, each) for each in chosen):
                yield tuple(sorted((*chosen, first)))

    def _could_be_better(self, chosen: tuple[int, ...]) -> bool:
        """Whether the set can be better than the best, with the gangs that it must still break.

        Where one of several units is needed, at least one of them goes; if all of them are whole
        gangs, that breaks one gang more.
        """
        if self._cost is None:
            return True
        broken = broken_by(self._units[at] for at in chosen)
        more: list[int] = []
        seen = {*chosen}
        for needed in self._needed_ones:
            if seen.isdisjoint(needed):
                seen |= needed
                if all(self._units[at].whole for at in needed):
                    more.append(min(self._units[at].priority for at in needed))
        priorities = tuple(sorted((*broken.priorities, *more), reverse=True))
        return BrokenGangs(priorities, broken.own) <= self._cost.broken

    def _one_of(self, chosen: tuple[int, ...]) -> tuple[int, ...] | None:
        """Units of which any set that is enough has one, this has none; `None`: it is enough."""
        for known in self._needed_ones:
            if known.isdisjoint(chosen):
                return tuple(sorted(known))
        take, put_back, fits = self._actions.take, self._actions.put_back, self._actions.fits
        for at in chosen:
            take(self._units[at])
        self._takes += len(chosen) + 1
        if fits():
            self._put_back(chosen)
            return None
        filled, left = list(chosen), set[int]()
        for at in reversed(range(len(self._units))):
            if at not in chosen:
                take(self._units[at])
                if fits():
                    put_back(self._units[at])
                    left.add(at)
                else:
                    filled.append(at)
        self._takes += len(self._units)
        self._put_back(filled)
        self._needed_ones.append(frozenset(left))
        return tuple(sorted(left))

    def exchange(self, best: list[int]) -> list[int]:
        """Try each unit together with those that were found, and then without most of them."""
        self._start_with(best)
        for at in range(len(self._units)):
            if at in best or self._is_anticipated(at, best) or self._takes >= MOST_TAKES:
                continue
            kept = [each for each in best if not self._overlap(at, each)]
            if self.take([*kept, at]):
                if self._actions.fits():
                    kept = self._needed(kept)
                    self._note([*kept, at])
                    best = self._best or best
                self._put_back([*kept, at])
        return best

    def take(self, places: Iterable[int]) -> bool:
        """Take units one after the other; if one of them may not be taken, take none.

        Only the last unit that is taken from a queue may bring it below its quota, not counting
        what its gang could give back instead: so units with a large core come last.
        """
        allowed, take = self._actions.allowed, self._actions.take
        taken: list[int] = []
        for at in sorted(places, key=lambda at: (self._cores[at], at)):
            unit = self._units[at]
            if not allowed(unit):
                self._put_back(taken)
                return False
            take(unit)
            taken.append(at)
        self._takes += len(taken)
        return True

    def _start_with(self, best: list[int] | None) -> None:
        self._best = best
        self._cost = None if best is None else self._cost_of(best)

    def _needed(self, taken: list[int]) -> list[int]:
        """Put back, last first, every unit without which it still fits; return the others."""
        needed: list[int] = []
        for at in reversed(taken):
            self._actions.put_back(self._units[at])
            if not self._actions.fits():
                self._actions.take(self._units[at])
                needed.append(at)
        self._takes += len(taken)
        return needed[::-1]

    def _note(self, chosen: Sequence[int]) -> None:
        cost = self._cost_of(chosen)
        if self._cost is None or cost < self._cost:
            self._best, self._cost = sorted(chosen), cost

    def _cost_of(self, chosen: Sequence[int]) -> Cost:
        return cost_of([self._units[at] for at in chosen], chosen)

    def _is_anticipated(self, at: int, chosen: Sequence[int]) -> bool:
        """Whether a unit just like it comes earlier in the row and was not chosen."""
        before = self._before[at]
        return before is not None and before not in chosen

    def _overlap(self, one: int, other: int) -> bool:
        unit, another = self._units[one], self._units[other]
        return unit.gang == another.gang and not unit.parts.isdisjoint(another.parts)

    def _is_allowed(self, chosen: Sequence[int]) -> bool:
        allowed = self.take(chosen)
        if allowed:
            self._put_back(chosen)
        return allowed

    def _put_back(self, chosen: Sequence[int]) -> None:
        for at in reversed(chosen):
            self._actions.put_back(self._units[at])
