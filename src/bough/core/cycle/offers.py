"""What a gang wants: the part it needs, and the ways in which it can get it.

It depends only on the gang, on what it holds and on what is declared; so it is worked out once and
kept for as long as the gang holds what it held.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import Demand, cheapest, first_choice, needed
from bough.core.gang.sufficiency import is_sufficient
from bough.core.gang.tree import GangNode, Held, counts_of
from bough.core.place.result import Placement
from bough.model.quota import FlavorResource


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One choice of flavors and candidates for a gang."""

    choice: int
    nodes: int
    demand: Demand
    #: How much its first candidates count.
    request: dict[FlavorResource, int]


class Wants(msgspec.Struct, frozen=True, gc=False):
    """What a gang wants."""

    #: Whether it has what it needs.
    satisfied: bool
    #: What it may get, the best first; empty where it is satisfied, or lacks pods.
    offers: tuple[Offer, ...]


def wants_of(copy: WorkingCopy, claim: Claim) -> Wants:
    """What a gang of a known queue wants now."""
    if copy.has_changed(claim):
        return _work_out(copy, claim, copy.held(claim))
    return wanted_at_first(copy, claim)


def wanted_at_first(copy: WorkingCopy, claim: Claim) -> Wants:
    """What a gang of a known queue wanted when the cycle began."""
    if claim.wants is None:
        known = None if claim.alike is None else claim.alike.wants
        tree = claim.tree
        if known is None or not known.offers or not tree.root.is_leaf:
            claim.wants = _work_out(copy, claim, tree.held)
        else:
            claim.wants = _with_pods_of(tree.root, known)
    return claim.wants


def wants_of_shape(copy: WorkingCopy, claim: Claim) -> Wants:
    """What a gang wants now; the pods may be those of another gang of its shape."""
    alike = claim.alike
    if alike is None or copy.has_changed(claim):
        return wants_of(copy, claim)
    if alike.wants is None:
        alike.wants = wanted_at_first(copy, claim)
    return alike.wants


def _with_pods_of(leaf: GangNode, wants: Wants) -> Wants:
    """What another gang of the same shape wants, in the pods of this one: all of them wait."""
    count = wants.offers[0].demand.count
    demand = Demand(leaf, count, leaf.pods, (), count)
    offers = [Offer(each.choice, each.nodes, demand, each.request) for each in wants.offers]
    return Wants(wants.satisfied, tuple(offers))


def _work_out(copy: WorkingCopy, claim: Claim, held: Held) -> Wants:
    demand = needed(claim.tree, held)
    if demand is None:
        return Wants(is_sufficient(claim.tree, counts_of(held)), ())
    return Wants(False, tuple(offers_of(copy, claim, demand)))


def offers_of(copy: WorkingCopy, claim: Claim, demand: Demand) -> Iterator[Offer]:
    """Flavors in order.

    For each the first candidates, then those that take the fewest pods, which may have quota where
    the first have none.
    """
    smaller = cheapest(demand)
    for offer in first_offers(copy, claim, demand):
        yield offer
        if smaller is not demand:
            least = copy.costs[claim.queue].total(first_choice(smaller), offer.choice)
            if least != offer.request:
                yield Offer(offer.choice, offer.nodes, smaller, least)


def first_offers(copy: WorkingCopy, claim: Claim, demand: Demand) -> Iterator[Offer]:
    """Flavors in order, each with the first candidates."""
    costs = copy.costs[claim.queue]
    pods = list(first_choice(demand))
    for choice in range(max(1, len(costs.choices))):
        yield Offer(choice, copy.nodes_for(claim.queue, choice), demand, costs.total(pods, choice))


def request_placed(
    copy: WorkingCopy, claim: Claim, placement: Placement, offer: Offer
) -> dict[FlavorResource, int]:
    """How much the pods that were really chosen count; candidates may differ in size."""
    demand = offer.demand
    if not demand.children and demand.count == len(demand.pods):
        return offer.request
    placed = {*placement.pods}
    pods = [pod for leaf in claim.tree.leaves for pod in leaf.pods if pod.name in placed]
    return copy.costs[claim.queue].total(pods, offer.choice)
