"""What gangs of one shape need of a queue, and which flavors they were found to get of it.

The search itself is in `flavors`; here it is answered without one where the first flavors that suit
have room, or where the same was asked when usage was the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import NamedTuple

from bough.core.cycle.claim import Claim
from bough.core.cycle.flavors import Choice, FlavorAssignment, Mode
from bough.core.cycle.forest import Leaf, reach_of
from bough.core.cycle.needs import Need, needs_of
from bough.core.quota.account import Account, Charge, available
from bough.model.admission_rules import FlavorSearch
from bough.model.gang import Gang
from bough.model.quota import FlavorResource
from bough.model.workload import Flavor

#: For how many shapes of a queue their needs are remembered.
MOST_SHAPES = 256
#: For how many states the result of a search is remembered for each shape.
MOST_KNOWN = 64


class Known(NamedTuple):
    """What a search found; holds while usage is the same and there is still nothing to take."""

    assignment: FlavorAssignment
    #: What it looked for victims for, and found no candidates.
    scarce: tuple[tuple[FlavorResource, ...], ...]


class Needs:
    """What all gangs of one shape need of a queue, and what they were found to get of it.

    Depends on the shape and the queue alone, so it is worked out once. Assignments are shared
    between gangs, and never changed.
    """

    __slots__ = (
        "_accounts",
        "_firsts",
        "_flavors",
        "_given",
        "_known",
        "_leaf",
        "_places",
        "parts",
    )

    def __init__(self, leaf: Leaf, gang: Gang) -> None:
        self._leaf = leaf
        self.parts = needs_of(leaf, gang)
        self._flavors: Mapping[str, Flavor] | None = None
        #: What is wanted of the first flavors that suit, each on top of those before it, and their
        #: places; `None`: no flavor of some group suits.
        self._firsts: list[Charge] | None = None
        self._places: list[int] = []
        #: By the heights from which these are borrowed: what is given.
        self._given: dict[tuple[int, ...], FlavorAssignment] = {}
        #: All whose usage a search may look at, and by that usage what it found.
        self._accounts = tuple(_paths(self.parts))
        self._known: dict[tuple[int, ...], Known] = {}

    def recall(self, flavors: Mapping[str, Flavor]) -> Known | None:
        """What was found when usage was what it is now."""
        self._look_at(flavors)
        return self._known.get(self._usage())

    def remember(self, known: Known) -> None:
        """Keep what was found for when usage is the same again."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[self._usage()] = known

    def _usage(self) -> tuple[int, ...]:
        return tuple([account.usage for account in self._accounts])

    def at_once(self, flavors: Mapping[str, Flavor]) -> FlavorAssignment | None:
        """What they get if the first flavors that suit them have room and are good enough.

        The search would find the same; `None` where it has to look further.
        """
        self._look_at(flavors)
        if self._firsts is None:
            return None
        leaf = self._leaf
        heights: list[int] = []
        for account, amount in self._firsts:
            if amount > 0 and amount > available(account)[0]:
                return None
            within = account.usage + amount <= account.subtree_quota
            heights.append(0 if within else reach_of(leaf, account, amount).height)
        goes_on = leaf.queue.rules.fungibility.when_can_borrow is FlavorSearch.TRY_NEXT_FLAVOR
        if goes_on and any(heights):
            return None
        key = tuple(heights)
        given = self._given.get(key)
        if given is None:
            given = self._given[key] = self._give(heights)
        return given

    def _look_at(self, flavors: Mapping[str, Flavor]) -> None:
        """Forget what was found of other flavors, and see which of these suit first."""
        if self._flavors is flavors:
            return
        self._flavors = flavors
        self._known.clear()
        self._given.clear()
        firsts: list[Charge] = []
        usage: dict[FlavorResource, int] = {}
        self._places.clear()
        self._firsts = None
        for need in self.parts:
            for scan in need.scans:
                position, slots = need.first_suitable(scan, flavors)
                if not slots or any(resource not in slots for resource in scan.wanted):
                    return
                self._places.append(position)
                for resource in scan.wanted:
                    what, account = slots[resource]
                    usage[what] = usage.get(what, 0) + need.requests[resource]
                    firsts.append((account, usage[what]))
        self._firsts = firsts

    def _give(self, heights: Iterable[int]) -> FlavorAssignment:
        """The first flavors that suit, each resource borrowed from so far up."""
        assignment = FlavorAssignment()
        places, following = iter(self._places), iter(heights)
        for need in self.parts:
            choices: dict[str, Choice] = {}
            tried: dict[str, int] = {}
            for scan in need.scans:
                flavors = () if scan.group is None else scan.group.flavors
                position = next(places)
                for resource in scan.wanted:
                    choices[resource] = Choice(flavors[position][0], Mode.FIT, next(following))
                    if position + 1 < len(flavors):
                        tried[resource] = position
            assignment.give(need, choices, tried)
        return assignment


def _paths(needs: Iterable[Need]) -> Iterable[Account]:
    """The accounts of all that is wanted, on all flavors, and all accounts above them."""
    found: dict[Account, None] = {}
    for scan in chain.from_iterable(need.scans for need in needs):
        for _, slots in () if scan.group is None else scan.group.flavors:
            for resource in scan.wanted:
                account = slots[resource].account if resource in slots else None
                while account is not None:
                    found[account] = None
                    account = account.parent
    return found


def needs_in(leaf: Leaf, claim: Claim) -> Needs:
    """What gangs of a claim's shape need of its queue."""
    found = leaf.needs.get(claim.shape)
    if found is None:
        if len(leaf.needs) >= MOST_SHAPES:
            leaf.needs.clear()
        found = leaf.needs[claim.shape] = Needs(leaf, claim.gang)
    return found
