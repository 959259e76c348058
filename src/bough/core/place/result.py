"""What comes out of a search for places, as data."""

from __future__ import annotations

import msgspec

from bough.core.place.domains import UnknownTopology


class PlacedPod(msgspec.Struct, frozen=True, gc=False):
    """One pod has a place."""

    pod: str
    node: str
    #: The place is not free yet: other pods must end first.
    waits: bool = False


class Placement(msgspec.Struct, frozen=True, gc=False):
    """Everything that was asked for has a place."""

    assignments: tuple[PlacedPod, ...]

    @property
    def pods(self) -> tuple[str, ...]:
        """The names of the pods."""
        return tuple([assignment.pod for assignment in self.assignments])

    @property
    def waits(self) -> bool:
        """Whether its pods wait for others to end: where one does, all of them do."""
        return bool(self.assignments) and self.assignments[0].waits


class GangPlacement(msgspec.Struct, frozen=True, gc=False):
    """A gang has what it needs, and perhaps more."""

    #: What it lacked; nothing where it had what it needs.
    core: Placement
    #: Optional units, in the order in which they were placed.
    growth: tuple[Placement, ...] = ()

    @property
    def assignments(self) -> tuple[PlacedPod, ...]:
        """Every pod that was placed."""
        return sum((unit.assignments for unit in self.growth), self.core.assignments)


class Unresolved(msgspec.Struct, frozen=True, gc=False):
    """A subgroup whose constraint names a topology, or a level, that there is not."""

    subgroup: str
    problem: UnknownTopology


class NoPlace(msgspec.Struct, frozen=True, gc=False):
    """There is no place for all of it, so nothing has one. `reasons.explain` says why."""

    #: What is missing cannot be had from the pods that there are.
    lacks_pods: bool = False
    #: The search was given up for its length: there may be a place.
    gave_up: bool = False
    unresolved: tuple[Unresolved, ...] = ()
