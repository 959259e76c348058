"""Running gangs are moved so that another one fits: evictions with a place, never a loss.

Movable gangs are lifted in the order in which they would be victims, those of one node together; so
gangs that were moved for one gang are the first to be lifted for the next. The gang takes its
place, and what was lifted finds another: in free room, else where it was, pod by pod where nothing
keeps its pods together. If any of them finds none, nothing is moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.fair_giving_queues import in_giving_order
from bough.core.cycle.fair_order import rank_of
from bough.core.cycle.offers import Offer
from bough.core.cycle.outcome import Move, Outcome
from bough.core.cycle.room import is_open, least_gpus
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.release import surplus_in_turn
from bough.core.gang.tree import GangTree
from bough.core.place.result import GangPlacement, Placement
from bough.core.quota.fairness import is_within_share
from bough.model.gang import Pod, PodState

replace = msgspec.structs.replace
#: How many gangs may be moved for one that reclaims.
MOST_MOVES = 17


class Lifted(NamedTuple):
    """A gang, or some of its pods, whose room is given to another for a moment."""

    claim: Claim
    pods: tuple[Pod, ...]


class Consolidation(NamedTuple):
    """Where a gang fits, and what is moved for it."""

    placement: Placement
    moves: list[Move]


def consolidate(cycle: Cycle, claim: Claim, offer: Offer) -> Consolidation | None:
    """Find a place for a gang that has quota by moving others.

    If there is one, it is taken; if not, everything is as before. Where idle room is given away,
    nothing is moved for a gang that fits as things are; else others are lifted first.
    """
    copy = cycle.copy
    most = copy.rules.consolidation if claim.preemptible else 0
    others_only = not most
    if others_only:
        most = _reclaims(copy, claim, offer)
    if not most or not _has_gpus(copy, offer):
        return None
    found = _move(copy, claim, offer, ()) if copy.rules.allocate else None
    if found is not None:
        return found
    lifted: list[Lifted] = []
    tried: set[frozenset[str]] = set()
    for each in islice(_movable(cycle, claim, others_only=others_only), most):
        lifted.append(each)
        for group in _groups(lifted):
            names = frozenset(pod.name for one in group for pod in one.pods)
            if names not in tried:
                tried.add(names)
                found = _move(copy, claim, offer, group)
                if found is not None:
                    return found
    return None if copy.rules.allocate else _move(copy, claim, offer, ())


def move_victims(copy: WorkingCopy, lifted: Sequence[Lifted]) -> list[Move]:
    """Move victims, or let them stay, instead of ending them, if they have quota and a place."""
    moves: list[Move] = []
    for each in _whole(list(lifted)):
        claim = each.claim
        mark = copy.mark()
        found = relocate(copy, [each])
        if found is None:
            copy.undo(mark)
            continue
        copy.hold(claim, claim.tree.with_pods(copy.held(claim), (pod.name for pod in each.pods)))
        moves += found
    return moves


def keep_places(cycle: Cycle) -> None:
    """Keep, for gangs that move and have not ended yet where they were, the places they go to.

    Their quota is kept as well, as far as they still have any. Whatever else such a gang was
    promised, for growth, is decided anew.
    """
    copy = cycle.copy
    for claim in copy.ending.values():
        known = copy.progress(claim.name)
        moved = [pod for pod in claim.ending if known.nominated and pod.name in known.places]
        if not moved or claim.leaf is None:
            continue
        usage = copy.costs_of(claim, moved)
        if not copy.ledgers.total.admits(claim.queue, usage):
            continue
        copy.use(claim, usage, waits=True)
        for pod in moved:
            copy.placer.take(_moved(claim), pod, known.places[pod.name], waits=True)
        places = {pod.name: known.places[pod.name] for pod in moved}
        cycle.outcome.nominate(claim, places, (claim.name,))
        copy.hold(claim, claim.tree.with_pods(copy.held(claim), places))
        # It is told one thing at a time: until it has moved, nothing more is taken from it.
        cycle.outcome.served.add(claim.name)


def relocate(copy: WorkingCopy, lifted: Sequence[Lifted]) -> list[Move] | None:
    """Find places for all that was lifted, in order; `None` if one of them has none."""
    moves: list[Move] = []
    for each in lifted:
        usage = copy.costs_of(each.claim, each.pods)
        if not copy.ledgers.total.admits(each.claim.queue, usage):
            return None
        places = _elsewhere(copy, each.claim, each.pods)
        if places is None:
            return None
        copy.ledgers.total.add_usage(each.claim.queue, usage)
        away = {pod.name: places[pod.name] for pod in each.pods if places[pod.name] != pod.node}
        for pod in each.pods:
            if pod.name not in away:
                _put_back(copy, each.claim, pod)
        moves.append(Move(each.claim, away, each.pods))
    return moves


def _put_back(copy: WorkingCopy, claim: Claim, pod: Pod) -> None:
    """Let a pod stay, as the place that was found for it is its own."""
    copy.placer.release(_moved(claim), pod.name, gone=True)
    copy.placer.keep(claim.name, pod.name)


def _reclaims(copy: WorkingCopy, claim: Claim, offer: Offer) -> int:
    """How many gangs of other queues it may move for what its queue has a right to."""
    rules = copy.rules
    if not rules.move_victims or not rules.reclaim or not copy.divides:
        return 0
    own = copy.fair.of(copy.path(claim.queue)[0])
    return MOST_MOVES if is_within_share(own, offer.request) else 0


def _movable(cycle: Cycle, claim: Claim, *, others_only: bool) -> Iterator[Lifted]:
    """What may be moved, in the order of victims: preemptible, and nothing was decided about it."""
    copy, outcome = cycle.copy, cycle.outcome
    lines: dict[str, Iterator[Lifted]] = {}
    for queue, leaf in copy.forest.leaves.items():
        if others_only and queue == claim.queue:
            continue
        found = [
            each
            for _, each in leaf.running
            if each is not claim
            and each.preemptible
            and not each.counted
            and (each.name in outcome.moved or _is_undecided(outcome, each))
        ]
        if found:
            lines[queue] = _units(cycle, found)
    return in_giving_order(copy, lines)


def _is_undecided(outcome: Outcome, claim: Claim) -> bool:
    return claim.name not in outcome.served and claim.name not in outcome.evicted


def _units(cycle: Cycle, claims: Sequence[Claim]) -> Iterator[Lifted]:
    """At each priority first surplus, pod by pod, then whole gangs."""
    for claim, pods in _parts(cycle.copy, claims):
        lasting = _lasting(cycle, claim, pods)
        if lasting:
            # Pods whose node is gone hold no place that could be left.
            yield Lifted(claim, lasting)


def _parts(copy: WorkingCopy, claims: Sequence[Claim]) -> Iterator[tuple[Claim, tuple[Pod, ...]]]:
    for _, group in groupby(claims, key=lambda claim: claim.standing.priority):
        together = list(group)
        for claim in together:
            if claim.elastic and is_open(claim):
                turns, _ = surplus_in_turn(claim.tree, copy.held(claim))
                yield from ((claim, unit.pods) for unit in turns)
        yield from ((claim, claim.running) for claim in together)


def _lasting(cycle: Cycle, claim: Claim, pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """Those of a gang's pods that go on running, where they are or where they were moved to."""
    moved = cycle.outcome.moved.get(claim.name, {})
    if not moved:
        return cycle.copy.firm(claim, pods)
    firm = {pod.name for pod in cycle.copy.firm(claim, pods)}
    return tuple(pod for pod in pods if pod.name in moved or pod.name in firm)


def _groups(lifted: list[Lifted]) -> Iterator[list[Lifted]]:
    """Those on each node of the last one, then all; what was lifted last comes first."""
    for node in sorted({pod.node or "" for pod in lifted[-1].pods}):
        on = {each.claim for each in lifted if any(pod.node == node for pod in each.pods)}
        yield _whole([each for each in lifted if each.claim in on])
    yield _whole(lifted)
    yield from _by_node(lifted)


def _by_node(lifted: list[Lifted]) -> Iterator[list[Lifted]]:
    """Only the pods on one node, of gangs whose pods need not be together; fewest first."""
    found: list[tuple[int, str, list[Lifted]]] = []
    for node in {pod.node or "" for pod in lifted[-1].pods}:
        parts = [
            Lifted(each.claim, tuple(pod for pod in each.pods if pod.node == node))
            for each in _whole(lifted)
            if is_open(each.claim)
        ]
        gpus = sum(pod.requests.gpus for each in parts for pod in each.pods)
        found.append((gpus, node, [each for each in parts if each.pods]))
    yield from (parts for _, _, parts in sorted(found, key=lambda each: each[:2]))


def _whole(lifted: list[Lifted]) -> list[Lifted]:
    """The pods of each gang together."""
    pods: dict[Claim, dict[str, Pod]] = {}
    for each in reversed(lifted):
        pods.setdefault(each.claim, {}).update((pod.name, pod) for pod in each.pods)
    return [Lifted(claim, tuple(found.values())) for claim, found in pods.items()]


def _move(
    copy: WorkingCopy, claim: Claim, offer: Offer, lifted: Sequence[Lifted]
) -> Consolidation | None:
    mark = copy.mark()
    for each in lifted:
        copy.ledgers.total.remove_usage(each.claim.queue, copy.costs_of(each.claim, each.pods))
        for pod in each.pods:
            # A gang that is moving already is lifted from where it was to go.
            copy.placer.release(_moved(each.claim), pod.name, gone=True)
            copy.placer.release(each.claim.name, pod.name)
    early = [each for each in lifted if _goes_before(copy, each, claim, offer)]
    moves = relocate(copy, early)
    if moves is not None:
        found = copy.placer.place(
            claim.tree, offer.demand, copy.held(claim), later=True, within=offer.nodes, waits=True
        )
        late = [each for each in lifted if each not in early]
        others = relocate(copy, late) if isinstance(found, Placement) else None
        if isinstance(found, Placement) and others is not None:
            return Consolidation(found, [*moves, *others])
    copy.undo(mark)
    return None


def _goes_before(copy: WorkingCopy, lifted: Lifted, claim: Claim, offer: Offer) -> bool:
    """Whether what was lifted would be served before the gang, if both waited."""
    if lifted.claim.queue == claim.queue:
        whole = len(lifted.pods) == len(lifted.claim.running)
        return whole and lifted.claim.standing < claim.standing
    path, other = copy.path(claim.queue), copy.path(lifted.claim.queue)
    common = next((node for node in path if node in other), None)
    if common is None:
        return False
    own, theirs = path[path.index(common) - 1], other[other.index(common) - 1]
    usage = copy.costs_of(lifted.claim, lifted.pods)
    return rank_of(copy, theirs, usage) < rank_of(copy, own, offer.request)


def _elsewhere(copy: WorkingCopy, claim: Claim, pods: tuple[Pod, ...]) -> dict[str, str] | None:
    """Where pods of a gang could go, all of them, by name; their room counts as taken."""
    waiting = tuple(replace(pod, state=PodState.PENDING, node=None) for pod in pods)
    # Under a name of its own, because they hold their present places until they have moved.
    gang = replace(claim.gang, name=_moved(claim), pods=waiting)
    if is_open(claim) or len(pods) < len(claim.running):
        plain = tuple(replace(pod, subgroup=None) for pod in waiting)
        gang = replace(gang, pods=plain, subgroups=(), sets=(), minimum=len(waiting))
    tree = GangTree.of(gang, claim.tree.order)
    choice = copy.choice_of(claim, pods[0])
    found = copy.placer.start(
        tree, tree.held, later=True, within=copy.nodes_for(claim.queue, choice)
    )
    if not isinstance(found, GangPlacement):
        return None
    placed: Iterable[Placement] = (found.core, *found.growth)
    places = {each.pod: each.node for part in placed for each in part.assignments}
    return places if len(places) == len(pods) else None


def _moved(claim: Claim) -> str:
    """Under which name its new places are taken."""
    return f"{claim.name}\0moved"


def _has_gpus(copy: WorkingCopy, offer: Offer) -> bool:
    """Whether so many GPUs are free, wherever they are."""
    by_gpus = copy.placer.index.by_gpus
    free = sum(gpus * nodes.bit_count() for gpus, nodes in enumerate(by_gpus))
    return free >= least_gpus(offer.demand)
