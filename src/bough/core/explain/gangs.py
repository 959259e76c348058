"""The certificate of a gang: the reason that its plan carries, and all that stands behind it.

Plays the cycle once and looks at the world that it leaves. Must not know remedies.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import NamedTuple

import msgspec

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.outcome import Outcome
from bough.core.cycle.gangs.passes import decide
from bough.core.cycle.gangs.wants import Offer, wants_of
from bough.core.cycle.gangs.world import World
from bough.core.cycle.memo import Memo
from bough.core.explain.holders import GangHolders
from bough.core.explain.judge import gang_verdict
from bough.core.explain.sentences import name_some, say_places, say_refusal, say_shortage
from bough.core.gang.predicate import shortages
from bough.core.place.reasons import explain
from bough.core.place.result import Refusal as NoPlace
from bough.core.place.result import Unresolved
from bough.model.certificate import Certificate, FlavorOption, Holder, Ledger, Missing, Verdict
from bough.model.plan import PodShortage, Wait
from bough.model.policy import Policy
from bough.model.reason import GangWait, RefusalKind
from bough.model.shortage import Cause, Explanation, Lack
from bough.model.snapshot import Snapshot

replace = msgspec.structs.replace


class Played(NamedTuple):
    """A cycle that was played, and the world as it leaves it."""

    world: World
    outcome: Outcome


def explain_gang(
    snapshot: Snapshot, policy: Policy, name: str, memo: Memo | None = None
) -> Certificate | None:
    """Why a gang is where it is; `None` where there is no such gang."""
    with _played(snapshot, policy, memo) as played:
        claim = played.world.claims.get(name)
        return None if claim is None else _explain(played, claim)


def explain_waiting(snapshot: Snapshot, policy: Policy) -> dict[str, Certificate]:
    """Why each gang waits that does, in the order of the plan, for the price of one cycle."""
    with _played(snapshot, policy, None) as played:
        claims = (played.world.claims[name] for name in played.outcome.waits)
        return {claim.name: _explain(played, claim) for claim in claims}


@contextmanager
def _played(snapshot: Snapshot, policy: Policy, memo: Memo | None) -> Generator[Played]:
    """Play a cycle, and undo it after somebody has looked, so that a memo can be used again."""
    world = (Memo() if memo is None else memo).gangs.refresh(snapshot, policy.gangs)
    mark = world.mark()
    try:
        yield Played(world, decide(world))
    finally:
        world.undo(mark)


def _explain(played: Played, claim: Claim) -> Certificate:
    name = claim.name
    wait = played.outcome.waits.get(name) or _wait_of_absent(claim)
    if wait is not None:
        return _explain_wait(played, claim, wait)
    verdict = gang_verdict(played.outcome.plan(0), name)
    if verdict is Verdict.NOMINATED:
        waits_for = played.outcome.nominations[name].waits_for
        return replace(_begin(claim, verdict, _say_nominated(waits_for)), waits_for=waits_for)
    if verdict is Verdict.STARTS:
        return _begin(claim, verdict, "it starts now")
    return _begin(claim, verdict, _say_runs(played.world, claim))


def _wait_of_absent(claim: Claim) -> Wait | None:
    """A gang that waits for its pods before any of them may be planned is in no line."""
    tree = claim.tree
    if claim.waiting or claim.running or tree.succeeded or not claim.gang.pods:
        return None
    found = tuple(
        PodShortage(each.node.name, each.needed, each.available, each.node.is_leaf)
        for each in shortages(tree)
    )
    return Wait(claim.name, GangWait.PODS, shortages=found) if found else None


def _explain_wait(played: Played, claim: Claim, wait: Wait) -> Certificate:
    if wait.refusal is not None and wait.refusal.kind is RefusalKind.OVER_QUOTA:
        return _over_quota(played, claim, wait)
    if wait.reason == GangWait.PLACE:
        return _no_place(played, claim, wait)
    sentence = wait.message
    if wait.shortages:
        sentence = say_shortage(wait.shortages[-1])
    return replace(
        _begin(claim, Verdict.WAITS, sentence, str(wait.reason)),
        refusal=wait.refusal,
        shortages=wait.shortages,
        head=wait.head,
        cycle=wait.cycle,
    )


def _over_quota(played: Played, claim: Claim, wait: Wait) -> Certificate:
    world, refusal = played.world, wait.refusal
    if refusal is None or refusal.node is None or refusal.flavor_resource is None:
        return _begin(claim, Verdict.WAITS, wait.message, str(wait.reason))
    what = refusal.flavor_resource
    ledger = Ledger.GUARANTEED if wait.reason == GangWait.QUOTA else Ledger.TOTAL
    sentence = say_refusal(refusal, ledger)
    if wait.note:
        sentence += f", and {wait.note}"
    below = {each.name for each in world.ledgers.total.subtree(refusal.node)}
    kept_for = tuple(name for name in _kept_for(played, claim) if world.claims[name].queue in below)
    if kept_for:
        sentence += f"; some is kept for {name_some(kept_for)}, ahead of it"
    holders = GangHolders(world, claim, {what: refusal.requested}).below(
        refusal.node, what, guaranteed=ledger is Ledger.GUARANTEED
    )
    return replace(
        _begin(claim, Verdict.WAITS, sentence, str(wait.reason)),
        refusal=refusal,
        ledger=ledger,
        options=_options(world, claim),
        kept_for=kept_for,
        missing=Missing(what.resource, refusal.deficit, what.flavor),
        holders=tuple(holders),
    )


def _options(world: World, claim: Claim) -> tuple[FlavorOption, ...]:
    """What stands against each choice of flavors, where there are several."""
    choices = world.tariffs[claim.queue].choices
    if len(choices) < 2:
        return ()
    guaranteed = not claim.gang.preemptible
    found: dict[int, FlavorOption] = {}
    for offer in wants_of(world, claim).offers:
        name = "+".join(dict.fromkeys(choices[offer.choice].values()))
        refusal = world.ledgers.refusal(claim.queue, offer.request, guaranteed=guaranteed)
        found.setdefault(offer.choice, FlavorOption(name, refusal=refusal))
    return tuple(found.values())


def _no_place(played: Played, claim: Claim, wait: Wait) -> Certificate:
    world = played.world
    offer = wants_of(world, claim).offers[0]
    unresolved = _unresolved(world, claim, offer)
    why = explain(
        world.placer, claim.tree, offer.demand, world.held(claim), later=True, within=offer.nodes
    )
    kept_for: tuple[str, ...] = ()
    if unresolved:
        sentence = unresolved[0]
    elif why.lacks or why.short:
        sentence = say_places(why)
    else:
        kept_for = _kept_for(played, claim)
        sentence = _say_kept(kept_for, wait)
    missing = _missing(why)
    return replace(
        _begin(claim, Verdict.WAITS, sentence, str(wait.reason)),
        lacks=why.lacks,
        short=why.short,
        unresolved=unresolved,
        kept_for=kept_for,
        missing=missing,
        holders=_holders_of_places(world, claim, offer, missing),
    )


def _holders_of_places(
    world: World, claim: Claim, offer: Offer, missing: Missing | None
) -> tuple[Holder, ...]:
    if missing is None:
        return ()
    possible = 0
    for pod in claim.gang.pods:
        possible |= world.placer.index.shapes.of(pod).possible
    holders = GangHolders(world, claim, offer.request)
    return tuple(holders.on(possible & offer.nodes, missing.resource))


def _missing(why: Explanation) -> Missing | None:
    """The resource that most nodes lack for the first subgroup that is short."""
    for lack in why.lacks:
        lacking = [each for each in lack.nodes if each.cause is Cause.RESOURCE and each.resource]
        if lacking:
            resource = max(lacking, key=lambda each: each.nodes).resource or ""
            return Missing(resource, lack.missing * _each(lack, resource))
    return None


def _each(lack: Lack, resource: str) -> int:
    requests = lack.requests
    amounts = {
        "gpus": requests.gpus,
        "cpu": requests.cpu_milli,
        "memory": requests.memory_bytes,
        "pods": 1,
        **dict(requests.other),
    }
    return amounts.get(resource, 0)


def _unresolved(world: World, claim: Claim, offer: Offer) -> tuple[str, ...]:
    part = world.placer.compile(claim.tree, offer.demand, world.held(claim))
    return tuple(map(_say_unresolved, part.unresolved)) if isinstance(part, NoPlace) else ()


def _say_unresolved(unresolved: Unresolved) -> str:
    problem = unresolved.problem
    known = ", ".join(problem.known) or "none"
    if problem.unknown is None:
        return f"{unresolved.subgroup} names no topology, and there is not just one: {known}"
    return f"{unresolved.subgroup} names {problem.unknown}, which there is not; known are {known}"


def _kept_for(played: Played, claim: Claim) -> tuple[str, ...]:
    """Those before it in line that only lack a place: quota and nodes are kept for the first."""
    if claim.gang.preemptible:
        return ()
    claims = (
        played.world.claims[name]
        for name, wait in played.outcome.waits.items()
        if wait.reason == GangWait.PLACE
    )
    before = sorted(
        each.line for each in claims if not each.gang.preemptible and each.line < claim.line
    )
    return tuple(line[-1] for line in before[: played.world.rules.reservations])


def _say_kept(kept_for: tuple[str, ...], wait: Wait) -> str:
    if kept_for:
        return f"the nodes that it could use are kept for {name_some(kept_for)}, ahead of it"
    return wait.message


def _say_nominated(waits_for: tuple[str, ...]) -> str:
    if waits_for:
        return f"it starts as soon as {name_some(waits_for)} made room for it"
    return "it starts as soon as those have ended who were told to"


def _say_runs(world: World, claim: Claim) -> str:
    if not claim.running:
        return "none of its pods waits or runs"
    if world.is_evicted(claim):
        return "it runs, and is told to end"
    return "it has what it needs"


def _begin(claim: Claim, verdict: Verdict, sentence: str, reason: str = "") -> Certificate:
    return Certificate(claim.name, claim.queue, verdict, sentence, reason, claim.gang.owner)
