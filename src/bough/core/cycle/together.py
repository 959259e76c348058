"""Gangs that are judged together, against one state, then put in order and decided."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide import decide
from bough.core.cycle.flavors import FlavorAssignment
from bough.core.cycle.forest import Leaf, reach_of
from bough.core.cycle.gates import bar, hold_up, is_strict
from bough.core.cycle.judge import Judgement, judge
from bough.core.cycle.offers import wants_of
from bough.core.cycle.start import serve_pods
from bough.core.cycle.turns import heads
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.policy import OrderKey, Policy
from bough.model.reason import WaitReason


def line_up(cycle: Cycle) -> list[Judgement]:
    """Every gang that the cycle looks at and nothing bars, in the order of their decisions."""
    copy = cycle.copy
    judgements: list[Judgement] = []
    for claim in heads(copy):
        barred = bar(copy, claim)
        if barred is not None or claim.leaf is None:
            if barred is not None:
                cycle.outcome.wait(barred)
                hold_up(cycle, claim)
            continue
        progress = copy.progress(claim.name)
        judgement = Judgement(claim.leaf, claim, nominated=progress.nominated)
        if claim.counted:
            judge(copy, judgement, tried=progress.tried)
        else:
            judgement.assignment = FlavorAssignment(_height(copy, claim.leaf, claim))
        judgements.append(judgement)
    judgements.sort(key=decision_order(copy.policy))
    return judgements


def serve_judged(cycle: Cycle, judgement: Judgement) -> None:
    """Decide about a gang in its turn. Places are looked for only now: they are not shared out."""
    claim = judgement.claim
    if claim.counted:
        served = decide(cycle, judgement)
    else:
        served = serve_pods(cycle, claim)
        if not served:
            wait = cycle.outcome.waits[claim.name]
            parked = wait.reason == WaitReason.PODS or not is_strict(judgement.leaf)
            cycle.outcome.wait(msgspec.structs.replace(wait, parked=parked))
    if not served:
        hold_up(cycle, claim)


def decision_order(policy: Policy) -> Callable[[Judgement], list[object]]:
    """What judgements are sorted by; what is equal stays in the order of queues and their lines."""
    criteria = [*(_CRITERIA[key] for key in policy.order), _uid]
    return lambda judgement: [criterion(judgement) for criterion in criteria]


def _uid(judgement: Judgement) -> object:
    return judgement.claim.gang.uid


def _height(copy: WorkingCopy, leaf: Leaf, claim: Claim) -> int:
    """From how far up the tree the queue would borrow for what a gang wants most."""
    offers = wants_of(copy, claim).offers
    request = offers[0].request if offers else {}
    return max(
        (reach_of(leaf, leaf.account(what), n).height for what, n in request.items()), default=0
    )


#: What each criterion sorts by; the smaller goes first.
_CRITERIA: dict[OrderKey, Callable[[Judgement], object]] = {
    OrderKey.HOLDS_QUOTA: lambda each: not each.claim.gang.has("QuotaReserved"),
    OrderKey.NOMINATED: lambda each: not each.nominated,
    OrderKey.BORROWING_HEIGHT: lambda each: each.assignment.height,
    OrderKey.PRIORITY: lambda each: each.claim.standing.negative_priority,
    OrderKey.TIMESTAMP: lambda each: each.claim.standing.since_ms,
}
