"""The certificate of a gang that waits: the reason of its plan, and the facts behind it."""

from __future__ import annotations

from functools import cached_property

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.memo import Memo
from bough.core.cycle.offers import Offer, wants_of
from bough.core.cycle.waits import Waits
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.explain.compared_shares import compared_in_turn, compared_shares
from bough.core.explain.flavor_options import dominant_refusal, flavor_options
from bough.core.explain.holders import Holders
from bough.core.explain.sentences import (
    name_some,
    say_places,
    say_refusal,
    say_shortage,
)
from bough.core.place.reasons import explain
from bough.core.place.result import NoPlace, Unresolved
from bough.model.certificate import Certificate, FlavorOption, Holder, Ledger, Missing, Verdict
from bough.model.plan import Wait
from bough.model.reason import RefusalKind, WaitReason
from bough.model.shortage import Cause, Explanation, Lack
from bough.model.words import Words

replace = msgspec.structs.replace

_QUOTA = (WaitReason.LIMIT, WaitReason.TOO_LARGE)


class Played:
    """A cycle that was played, with its working copy as it left it, and as it found it.

    words:  in which it is told.
    """

    def __init__(self, cycle: Cycle, words: Words) -> None:
        self.cycle = cycle
        self.words = words

    @cached_property
    def before(self) -> WorkingCopy:
        """A working copy as it was when the cycle began."""
        copy = self.cycle.copy
        return Memo().refresh(copy.snapshot, copy.policy)


def begin(claim: Claim, verdict: Verdict, sentence: str, reason: str = "") -> Certificate:
    """What every certificate has."""
    return Certificate(claim.name, claim.queue, verdict, sentence, reason, claim.gang.owner)


def explain_wait(played: Played, wait: Wait, waits: Waits) -> Certificate:
    """Why a gang waits, after the cycle that says so."""
    cycle = played.cycle
    claim = cycle.copy.claims[wait.workload]
    if wait.reason == WaitReason.BEHIND:
        return _behind(played, claim, waits)
    if claim.counted and wait.refusal is None:
        return _no_flavor(played, claim, wait)
    if wait.refusal is not None and wait.refusal.kind is RefusalKind.OVER_QUOTA:
        return _over_quota(played, claim, wait)
    if wait.reason == WaitReason.PLACE:
        return _no_place(played, claim, wait)
    sentence = wait.say(played.words)
    if wait.shortages:
        sentence = say_shortage(wait.shortages[-1])
    return replace(
        begin(claim, Verdict.WAITS, sentence, str(wait.reason)),
        refusal=wait.refusal,
        shortages=wait.shortages,
        cycle=wait.cycle,
    )


def _behind(played: Played, claim: Claim, waits: Waits) -> Certificate:
    head = waits.first_in_line(claim.gang)
    queue = played.words.queue(claim.queue)
    sentence = f"behind, in the line of {queue}"
    if head is not None:
        sentence = f"{head} is first in {queue} and waits for quota"
        if claim.counted:
            sentence = f"{head} is first in {queue} and goes first"
    return replace(begin(claim, Verdict.WAITS, sentence, str(WaitReason.BEHIND)), head=head)


def _no_flavor(played: Played, claim: Claim, wait: Wait) -> Certificate:
    """A gang of pod sets, for which no flavor of its queue can be had."""
    copy = played.before
    cycle_above = () if claim.leaf is None else claim.leaf.cycle
    begun = begin(claim, Verdict.WAITS, wait.say(played.words), str(wait.reason))
    begun = replace(begun, cycle=cycle_above)
    if wait.reason in (WaitReason.STOPPED, WaitReason.INACTIVE):
        return begun
    groups = flavor_options(copy, copy.claims[claim.name])
    refusal = dominant_refusal(groups)
    if refusal is None:
        # It would have fitted when the cycle began: others of the same cycle were first.
        copy = played.cycle.copy
        groups = flavor_options(copy, claim)
        refusal = dominant_refusal(groups)
    begun = replace(begun, options=tuple(option for group in groups for option in group))
    if cycle_above or wait.reason not in _QUOTA or refusal is None:
        return begun
    what = refusal.flavor_resource
    if what is None or refusal.node is None:
        return begun
    holders = Holders(copy, copy.claims[claim.name], {what: refusal.requested})
    compared = compared_shares(played.cycle, lambda: played.before, claim.name, what)
    sentence = say_refusal(refusal, Ledger.TOTAL, played.words)
    if compared is not None:
        sentence += f"; {compared.say(played.words)}"
    return replace(
        begun,
        sentence=sentence,
        shares=() if compared is None else compared.shares,
        refusal=refusal,
        ledger=Ledger.TOTAL,
        missing=Missing(what.resource, refusal.deficit, what.flavor),
        holders=tuple(holders.below(refusal.node, what, guaranteed=False)),
    )


def _over_quota(played: Played, claim: Claim, wait: Wait) -> Certificate:
    cycle, words = played.cycle, played.words
    copy, refusal = cycle.copy, wait.refusal
    if refusal is None or refusal.node is None or refusal.flavor_resource is None:
        return begin(claim, Verdict.WAITS, wait.say(words), str(wait.reason))
    what = refusal.flavor_resource
    ledger = Ledger.GUARANTEED if wait.reason == WaitReason.QUOTA else Ledger.TOTAL
    sentence = say_refusal(refusal, ledger, words)
    if wait.note:
        sentence += f", and {wait.note}"
    below = {each.name for each in copy.ledgers.total.subtree(refusal.node)}
    kept_for = tuple(name for name in _kept_for(cycle, claim) if copy.claims[name].queue in below)
    if kept_for:
        sentence += f"; some is kept for {name_some(kept_for)}, ahead of it"
    compared = None
    if ledger is Ledger.TOTAL:
        compared = compared_shares(cycle, lambda: played.before, claim.name, what)
    if compared is not None:
        sentence += f"; {compared.say(words)}"
    holders = Holders(copy, claim, {what: refusal.requested}).below(
        refusal.node, what, guaranteed=ledger is Ledger.GUARANTEED
    )
    return replace(
        begin(claim, Verdict.WAITS, sentence, str(wait.reason)),
        shares=() if compared is None else compared.shares,
        refusal=refusal,
        ledger=ledger,
        options=_options(copy, claim),
        kept_for=kept_for,
        missing=Missing(what.resource, refusal.deficit, what.flavor),
        holders=tuple(holders),
    )


def _options(copy: WorkingCopy, claim: Claim) -> tuple[FlavorOption, ...]:
    """Why each choice of flavors cannot be had, where there are several."""
    choices = copy.costs[claim.queue].choices
    if len(choices) < 2:
        return ()
    found: dict[int, FlavorOption] = {}
    for offer in wants_of(copy, claim).offers:
        name = "+".join(dict.fromkeys(choices[offer.choice].values()))
        refusal = copy.ledgers.refusal(claim.queue, offer.request, guaranteed=not claim.preemptible)
        found.setdefault(offer.choice, FlavorOption(name, refusal=refusal))
    return tuple(found.values())


def _no_place(played: Played, claim: Claim, wait: Wait) -> Certificate:
    cycle, copy = played.cycle, played.cycle.copy
    offer = wants_of(copy, claim).offers[0]
    unresolved = _unresolved(copy, claim, offer)
    why = explain(
        copy.placer, claim.tree, offer.demand, copy.held(claim), later=True, within=offer.nodes
    )
    kept_for: tuple[str, ...] = ()
    if unresolved:
        sentence = unresolved[0]
    elif why.lacks or why.short:
        sentence = say_places(why)
    else:
        kept_for = _kept_for(cycle, claim)
        sentence = _say_kept(kept_for) if kept_for else wait.say(played.words)
    missing = _missing(why)
    compared = None if missing is None else compared_in_turn(cycle, claim, missing.resource)
    if compared is not None:
        sentence += f"; {compared.say(played.words)}"
    return replace(
        begin(claim, Verdict.WAITS, sentence, str(wait.reason)),
        shares=() if compared is None else compared.shares,
        lacks=why.lacks,
        short=why.short,
        unresolved=unresolved,
        kept_for=kept_for,
        missing=missing,
        holders=_holders_of_places(copy, claim, offer, missing),
    )


def _holders_of_places(
    copy: WorkingCopy, claim: Claim, offer: Offer, missing: Missing | None
) -> tuple[Holder, ...]:
    if missing is None:
        return ()
    possible = 0
    for pod in claim.gang.pods:
        possible |= copy.placer.index.shapes.of(pod).possible
    holders = Holders(copy, claim, offer.request)
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


def _unresolved(copy: WorkingCopy, claim: Claim, offer: Offer) -> tuple[str, ...]:
    part = copy.placer.compile(claim.tree, offer.demand, copy.held(claim))
    return tuple(map(_say_unresolved, part.unresolved)) if isinstance(part, NoPlace) else ()


def _say_unresolved(unresolved: Unresolved) -> str:
    problem = unresolved.problem
    known = ", ".join(problem.known) or "none"
    if problem.unknown is None:
        return f"{unresolved.subgroup} names no topology, and there is not just one: {known}"
    return f"{unresolved.subgroup} names {problem.unknown}, which there is not; known are {known}"


def _kept_for(cycle: Cycle, claim: Claim) -> tuple[str, ...]:
    """Those before it in line that only lack a place: quota and nodes are kept for the first."""
    if claim.preemptible:
        return ()
    claims = (cycle.copy.claims[name] for name in cycle.unplaced)
    before = sorted(each.standing for each in claims if each.standing < claim.standing)
    return tuple(standing.name for standing in before[: cycle.copy.rules.reservations])


def _say_kept(kept_for: tuple[str, ...]) -> str:
    return f"the nodes that it could use are kept for {name_some(kept_for)}, ahead of it"
