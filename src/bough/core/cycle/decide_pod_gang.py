"""Serve one gang of pods: let it start, free room for it, or say why it waits.

First it tries every offer as things are; then, where the gang may take victims, every offer that it
could have without them.
"""

from __future__ import annotations

from bough.core.cycle.claim import Claim
from bough.core.cycle.consolidation import Lifted, consolidate, move_victims
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_sets import end_victims
from bough.core.cycle.gates import bar_offer, count_owner
from bough.core.cycle.judge import never_fits
from bough.core.cycle.offers import Offer, offers_of, request_placed, wants_of, wants_of_shape
from bough.core.cycle.preemption import PreemptionSearch, Seeker
from bough.core.cycle.reasons import (
    wait_for_place,
    wait_for_pods,
    wait_for_quota,
    wait_for_victims,
    wanted_of,
)
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.victim import Victim
from bough.core.gang.demand import growth
from bough.core.place.result import Placement
from bough.model.quota import FlavorResource
from bough.model.reason import Refusal


class _Tried:
    """What came of each offer to a gang."""

    __slots__ = ("entitled", "placeless", "refusals")

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []
        #: Offers that have quota, or would have it without the gangs that may be evicted.
        self.entitled: list[Offer] = []
        #: Offers that have quota, or would have it in this way, but no place.
        self.placeless: list[Offer] = []


def serve_pods(cycle: Cycle, claim: Claim, *, takes: bool = True) -> bool:
    """Whether the gang has got what it needs, now or once room is free.

    `takes`: whether others may end, or be moved, for it.
    """
    wants = wants_of(cycle.copy, claim)
    if wants.satisfied:
        return True
    if not wants.offers:
        cycle.outcome.wait(wait_for_pods(claim))
        return False
    barred = bar_offer(cycle, claim, wants.offers[0])
    if barred is not None:
        cycle.outcome.wait(barred)
        return False
    return _try(cycle, claim, wants.offers, takes=takes)


def free_growth(cycle: Cycle, claim: Claim) -> bool:
    """Take victims for one optional unit, where that has the gang's rank; one in a cycle."""
    copy, outcome = cycle.copy, cycle.outcome
    if copy.rules.growth_borrows or not takes_victims(cycle, claim):
        return False
    if claim.name in outcome.evicted or claim.name in outcome.nominations:
        return False
    for unit in growth(claim.tree, copy.held(claim)):
        for offer in offers_of(copy, claim, unit.demand):
            admitted = _admits(cycle, claim, offer.request)
            if admitted and _move_others(cycle, claim, offer):
                return True
            if _may_take(cycle, claim, offer) and _free_room(cycle, claim, offer, _Tried()):
                return True
    return False


def is_hopeless(cycle: Cycle, claim: Claim, *, takes: bool = True) -> bool:
    """Whether it cannot start in this cycle, even if it were the first to be served.

    Such a gang has no turn: it would only keep its queue, which takes gangs, behind the others.
    """
    copy = cycle.copy
    if not copy.rules.hopeless_aside:
        return False
    if claim.counted:
        return never_fits(copy, claim)
    wants = wants_of_shape(copy, claim)
    if wants.satisfied or not wants.offers:
        return False
    if not has_nodes(cycle, claim, wants.offers):
        return True
    for offer in wants.offers:
        if _admits(cycle, claim, offer.request):
            return False
    return not (takes and takes_victims(cycle, claim)) or all(
        _is_never(cycle, claim, offer.request) for offer in wants.offers
    )


def takes_victims(cycle: Cycle, claim: Claim) -> bool:
    """Whether others may be evicted for a gang."""
    return not claim.preemptible or cycle.copy.rules.preemptible_takes_victims


def has_nodes(cycle: Cycle, claim: Claim, offers: tuple[Offer, ...]) -> bool:
    """Whether the nodes would be large enough for its pods if they were empty."""
    copy = cycle.copy
    alike = None if copy.has_changed(claim) else claim.alike
    known = None if alike is None else alike.has_nodes
    if known is not None and known[0] == copy.nodes_seen:
        return known[1]
    found = any(copy.placer.could_take(offer.demand, offer.nodes) for offer in offers)
    if alike is not None:
        alike.has_nodes = (copy.nodes_seen, found)
    return found


def _try(cycle: Cycle, claim: Claim, offers: tuple[Offer, ...], *, takes: bool) -> bool:
    tried = _Tried()
    for offer in offers:
        refusal = cycle.copy.ledgers.refusal(
            claim.queue, offer.request, guaranteed=not claim.preemptible
        )
        if refusal is not None:
            tried.refusals.append(refusal)
        elif cycle.copy.rules.allocate and _place(cycle, claim, offer):
            return True
        else:
            tried.placeless.append(offer)
        if refusal is None or _may_take(cycle, claim, offer):
            tried.entitled.append(offer)
    for offer in tried.placeless if takes else ():
        if _move_others(cycle, claim, offer):
            return True
    for offer in tried.entitled if takes and takes_victims(cycle, claim) else ():
        if offer in tried.placeless and not has_nodes(cycle, claim, offers):
            # It has quota, and no end of others would make a node larger.
            continue
        if _free_room(cycle, claim, offer, tried):
            return True
    _wait(cycle, claim, offers, tried)
    return False


def _wait(cycle: Cycle, claim: Claim, offers: tuple[Offer, ...], tried: _Tried) -> None:
    """Say why it waits, and keep its turn.

    A gang that only lacks a place may be passed, if its room is kept; one that waits for quota may
    not, unless no node is large enough for it: whatever quota it had, all others would wait in
    vain.
    """
    outcome = cycle.outcome
    blocks = not tried.placeless and _is_first(cycle, claim, tried.refusals)
    if blocks and not has_nodes(cycle, claim, offers):
        outcome.wait(wait_for_place(cycle.copy, claim, offers[0].demand))
        return
    if len(tried.refusals) < len(offers):
        outcome.wait(wait_for_place(cycle.copy, claim, tried.placeless[0].demand))
    elif tried.entitled:
        outcome.wait(wait_for_victims(claim, tried.refusals[0], blocks=blocks))
    else:
        outcome.wait(wait_for_quota(cycle.copy, claim, tried.refusals, blocks=blocks))
    if blocks:
        cycle.block(claim, wanted_of(tried.refusals))
    elif tried.placeless and not claim.preemptible:
        cycle.unplaced[claim.name] = tried.placeless[0]


def _admits(cycle: Cycle, claim: Claim, request: dict[FlavorResource, int]) -> bool:
    return cycle.copy.ledgers.admits(claim.queue, request, guaranteed=not claim.preemptible)


def _is_never(cycle: Cycle, claim: Claim, request: dict[FlavorResource, int]) -> bool:
    """Whether there would be no quota for a request even if nothing ran."""
    guaranteed = not claim.preemptible
    refusal = cycle.copy.ledgers.refusal(claim.queue, request, guaranteed=guaranteed)
    return refusal is not None and refusal.never


def _may_take(cycle: Cycle, claim: Claim, offer: Offer) -> bool:
    """Whether it is refused only because of what others use, and might have to give back."""
    if claim.preemptible:
        return cycle.copy.rules.preemptible_takes_victims
    return cycle.copy.ledgers.is_entitled(claim.queue, offer.request)


def _is_first(cycle: Cycle, claim: Claim, refusals: list[Refusal]) -> bool:
    """Whether it waits for quota that it will have one day; what is behind it waits, too."""
    if not cycle.copy.rules.strict_within_rank:
        return False
    if claim.preemptible:
        # Where the tree as a whole is full, idle parts of it go to those that can borrow them.
        tree = cycle.copy.ledgers.total
        for refusal in refusals:
            if refusal.node is not None and tree.parent(refusal.node) is None:
                return False
    return not all(refusal.never for refusal in refusals)


def _place(cycle: Cycle, claim: Claim, offer: Offer, *, waits: bool = False) -> bool:
    """Start a gang on what is free, or being freed; `waits`: when others have ended."""
    copy = cycle.copy
    mark = copy.mark()
    waits = waits or copy.ledgers.must_wait(claim.queue, offer.request)
    again = copy.place_again(claim, offer.demand, within=offer.nodes, waits=waits)
    found = again or copy.placer.place(
        claim.tree,
        offer.demand,
        copy.held(claim),
        later=True,
        within=offer.nodes,
        waits=waits,
    )
    if not isinstance(found, Placement):
        copy.undo(mark)
        return False
    return _take(cycle, claim, offer, found, mark)


def _take(cycle: Cycle, claim: Claim, offer: Offer, found: Placement, mark: int) -> bool:
    """Let a gang have the places that were found for it, if what it then counts has quota."""
    copy = cycle.copy
    request = request_placed(copy, claim, found, offer)
    other = request is not offer.request
    too_early = other and not found.waits and copy.ledgers.must_wait(claim.queue, request)
    if too_early or (other and not _admits(cycle, claim, request)):
        copy.undo(mark)
        return too_early and _place(cycle, claim, offer, waits=True)
    copy.start(claim, found, request, guaranteed=not claim.preemptible)
    copy.keep(mark)
    cycle.outcome.bind(copy, claim, found, growth=False)
    if cycle.owned is not None:
        count_owner(cycle, claim, found.pods)
    return True


def _free_room(cycle: Cycle, claim: Claim, offer: Offer, tried: _Tried) -> bool:
    """Take what is needed from others, and nothing that is not."""
    copy, leaf = cycle.copy, claim.leaf
    if leaf is None:
        return False
    preemptor = Preemptor(
        leaf,
        claim.standing,
        offer.request,
        tuple(offer.request),
        excluded=cycle.no_victims_of(claim.name),
        guaranteed=not claim.preemptible,
        within_quota=claim.preemptible and copy.rules.reclaim_within_quota,
        needs_room=True,
    )
    preemption = PreemptionSearch(copy, preemptor, Seeker(copy, claim, offer))
    victims = preemption.victims()
    if preemption.found_quota:
        tried.placeless.append(offer)
    limit = copy.rules.eviction_limit
    if not victims or (limit is not None and _too_many(cycle, victims, limit)):
        return False
    mark = copy.mark()
    firm = ((each.claim, copy.firm(each.claim, each.pods)) for each in victims)
    lifted = [Lifted(victim, pods) for victim, pods in firm if pods and not victim.counted]
    end_victims(cycle, victims)
    if not _place(cycle, claim, offer, waits=True):
        copy.undo(mark)
        return False
    copy.keep(mark)
    cycle.outcome.nominate(claim, {}, {victim.claim.name for victim in victims})
    if copy.rules.move_victims:
        victims = _move_victims(cycle, claim, victims, lifted)
    cycle.outcome.evict(claim, victims)
    return True


def _move_others(cycle: Cycle, claim: Claim, offer: Offer) -> bool:
    """Place a gang by moving others, each of which has another place."""
    mark = cycle.copy.mark()
    found = consolidate(cycle, claim, offer)
    if found is None or not _take(cycle, claim, offer, found.placement, mark):
        return False
    cycle.outcome.move(cycle.copy, claim, found.moves)
    moved = {move.claim.name for move in found.moves if move.places}
    cycle.outcome.nominate(claim, {}, moved)
    return True


def _move_victims(
    cycle: Cycle, claim: Claim, victims: list[Victim], lifted: list[Lifted]
) -> list[Victim]:
    """Move victims that have a place elsewhere; return those that have to end."""
    moves = move_victims(cycle.copy, lifted)
    cycle.outcome.move(cycle.copy, claim, moves)
    kept = {move.claim.name for move in moves}
    return [victim for victim in victims if victim.claim.name not in kept]


def _too_many(cycle: Cycle, victims: list[Victim], limit: int) -> bool:
    """Whether more would be evicted than a cycle may."""
    return len(cycle.outcome.evicted | {victim.claim.name for victim in victims}) > limit
