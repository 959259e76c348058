"""The passes over gangs, in order: what is guaranteed, what may borrow, growth, stale gangs.

Must not know how one gang is served.
"""

from __future__ import annotations

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.contest import Contest
from bough.core.cycle.gangs.grow import Grower
from bough.core.cycle.gangs.lines import Lines, standing, surplus
from bough.core.cycle.gangs.memo import GangMemo
from bough.core.cycle.gangs.outcome import Outcome
from bough.core.cycle.gangs.reserve import Reservation
from bough.core.cycle.gangs.start import Server
from bough.core.cycle.gangs.wants import wants_of
from bough.core.cycle.gangs.world import World
from bough.core.gang.predicate import is_sufficient
from bough.core.gang.tree import counts_of
from bough.model.gangrules import GangRules, GrowthTurn, Line
from bough.model.plan import Plan
from bough.model.snapshot import Snapshot


def plan_gangs(snapshot: Snapshot, rules: GangRules, memo: GangMemo | None = None) -> Plan:
    """Decide what starts, what ends and what waits, and why."""
    memo = GangMemo() if memo is None else memo
    known = memo.recall(snapshot, rules)
    if known is not None:
        return known
    world = memo.refresh(snapshot, rules)
    mark = world.mark()
    outcome = decide(world)
    world.undo(mark)
    return memo.remember(outcome.plan(snapshot.version))


def decide(world: World) -> Outcome:
    """Decide about every gang. The world is left as the decisions make it."""
    outcome = Outcome()
    server = Server(world, outcome)
    grower = Grower(world, outcome)
    waiting = list(world.waiting)
    if world.rules.line is Line.GUARANTEED_FIRST:
        guaranteed = [claim for claim in waiting if not claim.gang.preemptible]
        # For whom others were told to end, nobody takes that room away: neither one that came
        # later with a higher priority nor one that keeps nodes for itself.
        guaranteed.sort(key=lambda claim: claim.name not in world.nominated)
        serve_guaranteed(server, guaranteed)
        share_idle(server, [claim for claim in waiting if claim.gang.preemptible], grower)
    else:
        share_idle(server, waiting, grower)
    share_rest(grower, [claim for claim in waiting if claim.running or world.has_changed(claim)])
    end_stale(world, outcome)
    return outcome


def serve_guaranteed(server: Server, claims: list[Claim]) -> None:
    """By priority and submit time. Who only lacks a place keeps room from those behind it."""
    world = server.world
    reserved: list[Reservation] = []
    for claim in claims:
        server.serve(claim)
        offer = server.unplaced.get(claim.name)
        if offer is not None and len(reserved) < world.rules.reservations:
            reserved.append(Reservation(world, claim, offer))
    for reservation in reserved:
        reservation.release()


def share_idle(server: Server, claims: list[Claim], grower: Grower) -> None:
    """By weight between the queues, by priority and submit time within each."""
    world = server.world
    lines = Lines(world, standing)
    for claim in claims:
        if server.is_hopeless(claim) or not lines.enter(claim):
            server.serve(claim)
    contest = Contest(world.ledgers.total, lines.queues, lines.head)
    while (queue := contest.next()) is not None:
        claim = lines.leave(queue)
        had = wants_of(world, claim).satisfied
        served = server.serve(claim) and world.rules.growth is GrowthTurn.IN_LINE
        if served and (not had or grower.grow_once(claim)):
            lines.enter(claim)
        contest.settle(queue)


def share_rest(grower: Grower, claims: list[Claim]) -> None:
    """What is left goes to growth: by weight between the queues, within each to who grew least."""
    world = grower.world
    lines = Lines(world, surplus)
    for claim in claims:
        if any(claim.tree.waiting(world.held(claim))):
            lines.enter(claim)
    contest = Contest(world.ledgers.total, lines.queues, lines.head)
    while (queue := contest.next()) is not None:
        claim = lines.leave(queue)
        if grower.grow_once(claim):
            lines.enter(claim)
        contest.settle(queue)


def end_stale(world: World, outcome: Outcome) -> None:
    """Evict gangs that have run with less than they need for too long."""
    grace = world.rules.staleness_grace_ms
    if grace is None:
        return
    for claim in sorted(world.stale.values(), key=lambda claim: claim.line):
        since = claim.gang.stale_since_ms
        due = grace == 0 or (since is not None and since + grace <= world.now_ms)
        if claim.name in outcome.evicted or not due:
            continue
        if not is_sufficient(claim.tree, counts_of(world.held(claim))):
            outcome.evict_stale(claim)
