"""Optional units of elastic gangs, as long as there is room that nobody needs.

What a gang has beyond its minimum counts as borrowed, whatever the gang's own rank, and is given
back first. Must not know what is needed, which was served before, nor whose turn it is.
"""

from __future__ import annotations

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.outcome import Outcome
from bough.core.cycle.gangs.world import World
from bough.core.gang.demand import Demand, first_choice, growth
from bough.core.place.result import Placement
from bough.model.quota import FlavorResource


class Grower:
    """Lets gangs grow; remembers what did not fit, as room only shrinks from here on."""

    def __init__(self, world: World, outcome: Outcome) -> None:
        self.world = world
        self._outcome = outcome
        #: By gang: the nodes of its tree that cannot grow.
        self._closed: dict[str, set[int]] = {}

    def grow_once(self, claim: Claim) -> bool:
        """Start one optional unit; whether one fitted."""
        world = self.world
        if claim.queue not in world.tariffs or claim.name in self._outcome.evicted:
            return False
        closed = self._closed.setdefault(claim.name, set())
        for unit in growth(claim.tree, world.held(claim), closed):
            if self._start(claim, unit.demand):
                return True
            closed.add(unit.node.position)
        return False

    def _start(self, claim: Claim, demand: Demand) -> bool:
        tariff = self.world.tariffs[claim.queue]
        pods = list(first_choice(demand))
        return any(
            self._place(claim, demand, tariff.total(pods, choice), choice)
            for choice in range(max(1, len(tariff.choices)))
        )

    def _place(
        self, claim: Claim, demand: Demand, request: dict[FlavorResource, int], choice: int
    ) -> bool:
        world = self.world
        ledgers = world.ledgers
        guaranteed = not (claim.gang.preemptible or world.rules.growth_borrows)
        if not ledgers.admits(claim.queue, request, guaranteed=guaranteed):
            return False
        mark = world.mark()
        nominated = claim.name in self._outcome.nominations
        found = world.placer.place(
            claim.tree,
            demand,
            world.held(claim),
            later=True,
            within=world.nodes_for(claim.queue, choice),
            waits=nominated or ledgers.must_wait(claim.queue, request),
        )
        if isinstance(found, Placement):
            more = world.more_guaranteed(claim, found.pods)
            if ledgers.guaranteed.admits(claim.queue, more):
                ledgers.guaranteed.add_usage(claim.queue, more)
                world.start(claim, found, request, guaranteed=guaranteed)
                world.keep(mark)
                self._outcome.bind(world, claim, found, growth=True)
                return True
        world.undo(mark)
        return False
