"""Optional units of elastic gangs, as long as there is room that nobody needs.

What a gang has beyond its minimum counts as borrowed, whatever the gang's own rank, and is given
back first. Must not know what is needed, which was served before.
"""

from __future__ import annotations

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.outcome import Outcome
from bough.core.cycle.gangs.world import World
from bough.core.gang.demand import Demand, first_choice, growth
from bough.core.place.result import Placement


class Grower:
    """Lets gangs grow; remembers what did not fit, as room only shrinks from here on."""

    def __init__(self, world: World, outcome: Outcome) -> None:
        self._world = world
        self._outcome = outcome
        #: By gang: the nodes of its tree that cannot grow.
        self._closed: dict[str, set[int]] = {}

    def grow_all(self, claims: list[Claim]) -> None:
        """In rounds of one unit for each gang, in their order, until nothing fits."""
        open_claims = claims
        while open_claims:
            open_claims = [claim for claim in open_claims if self.grow_once(claim)]

    def grow_once(self, claim: Claim) -> bool:
        """Start one optional unit; whether one fitted."""
        world = self._world
        if claim.queue not in world.tariffs or claim.name in self._outcome.evicted:
            return False
        closed = self._closed.setdefault(claim.name, set())
        for unit in growth(claim.tree, world.held(claim), closed):
            if self._start(claim, unit.demand):
                return True
            closed.add(unit.node.position)
        return False

    def _start(self, claim: Claim, demand: Demand) -> bool:
        world = self._world
        tariff = world.tariffs[claim.queue]
        pods = list(first_choice(demand))
        nominated = claim.name in self._outcome.nominations
        guaranteed = not (claim.gang.preemptible or world.rules.growth_borrows)
        for choice in range(max(1, len(tariff.choices))):
            request = tariff.total(pods, choice)
            if world.ledgers.refusal(claim.queue, request, guaranteed=guaranteed) is not None:
                continue
            found = world.placer.place(
                claim.tree,
                demand,
                world.held(claim),
                later=True,
                within=world.nodes_for(claim.queue, choice),
                waits=nominated or world.ledgers.must_wait(claim.queue, request),
            )
            if isinstance(found, Placement):
                world.start(claim, found, request, guaranteed=guaranteed)
                self._outcome.bind(claim, found, growth=True)
                return True
        return False
