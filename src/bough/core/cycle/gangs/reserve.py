"""What a gang that only lacks a place keeps from others.

If what has run longest ended first, the gang would one day fit: on the nodes where it would,
nothing may start that could not be evicted again. What may borrow goes on using them. Must not know
when anything will really end.
"""

from __future__ import annotations

from typing import NamedTuple

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.room import Room
from bough.core.cycle.gangs.world import World
from bough.core.cycle.victims import search
from bough.core.gang.demand import Demand
from bough.core.place.result import Placement
from bough.model.gang import Pod


class Holding(NamedTuple):
    """A gang that runs, with those of its pods that nobody has told to end."""

    claim: Claim
    pods: tuple[Pod, ...]


def reserve(world: World, claim: Claim, demand: Demand, nodes: int) -> int:
    """The nodes to keep for a gang; none where it would not fit even if all of them were empty."""
    mark = world.log.mark()
    room = Room(world, claim, demand, nodes)

    def take(holding: Holding) -> None:
        room.watch(*holding)
        for pod in holding.pods:
            world.placer.release(holding.claim.name, pod.name)
        room.recount(*holding)

    def put_back(holding: Holding) -> None:
        for pod in holding.pods:
            world.placer.keep(holding.claim.name, pod.name)
        room.recount(*holding)

    ended = search(
        (Holding(other, world.firm(other, other.running)) for other in _longest_running(world)),
        allowed=lambda holding: holding.claim is not claim,
        take=take,
        put_back=put_back,
        fits=room.suffices,
    )
    kept = 0
    if ended is not None:
        found = world.placer.place(claim.tree, demand, world.held(claim), later=True, within=nodes)
        if isinstance(found, Placement):
            position = world.placer.index.position
            for each in found.assignments:
                kept |= 1 << position[each.node]
    world.log.undo(mark)
    return kept


def _longest_running(world: World) -> list[Claim]:
    """Every gang that runs, the one that has run longest first."""
    running = [claim for claims in world.running.values() for claim in claims.values()]
    running.sort(key=lambda claim: (claim.gang.started_ms or 0, claim.line))
    return running
