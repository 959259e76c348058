"""Why each flavor of a queue cannot be had by a gang of pod sets."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from bough.core.cycle.claim import Claim, counts_of
from bough.core.cycle.flavor_eligibility import why_unsuitable
from bough.core.cycle.memo import Memo
from bough.core.cycle.needs import asks_of
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.quota.usage import PODS
from bough.model.certificate import FlavorOption
from bough.model.plan import Plan
from bough.model.policy import Policy
from bough.model.quota import FlavorResource, Queue
from bough.model.reason import Refusal, RefusalKind
from bough.model.snapshot import Snapshot


def flavor_options(copy: WorkingCopy, claim: Claim) -> list[list[FlavorOption]]:
    """For every resource group of the queue that is asked for, its flavors, as usage is now."""
    return list(_groups(copy, claim))


def dominant_refusal(groups: list[list[FlavorOption]]) -> Refusal | None:
    """Of each group the flavor that lacks least, as one is enough; of these what lacks most.

    A group with a flavor that can be had is no reason to wait.
    """
    worst: list[Refusal] = []
    for group in groups:
        refusals = [each.refusal for each in group if each.refusal is not None]
        over = [each for each in refusals if each.kind is RefusalKind.OVER_QUOTA]
        if over and all(each.unsuitable or each.refusal for each in group):
            worst.append(min(over, key=_part_lacking))
    return max(worst, key=_part_lacking, default=None)


def refusal_of(snapshot: Snapshot, policy: Policy, plan: Plan, name: str) -> Refusal | None:
    """Why a gang of pod sets does not fit at the start of a cycle or, else, after its starts."""
    copy = Memo().refresh(snapshot, policy)
    claim = copy.claims.get(name)
    if claim is None:
        return None
    found = dominant_refusal(flavor_options(copy, claim))
    if found is not None:
        return found
    for admit in plan.admits:
        for each in admit.admission.assignments:
            usage = {FlavorResource(each.flavors[name], name): n for name, n in each.usage.items()}
            copy.ledgers.total.add_usage(admit.admission.queue, usage)
    return dominant_refusal(flavor_options(copy, claim))


def _groups(copy: WorkingCopy, claim: Claim) -> Iterator[list[FlavorOption]]:
    if claim.leaf is None:
        return
    queue = claim.leaf.queue
    amounts = _amounts(copy, claim, queue)
    for group in queue.resource_groups:
        asked = {name: amounts[name] for name in group.covered_resources if name in amounts}
        if asked:
            yield [_option(copy, claim, queue, each.name, asked) for each in group.flavors]


def _option(
    copy: WorkingCopy, claim: Claim, queue: Queue, name: str, asked: dict[str, int]
) -> FlavorOption:
    flavor = copy.flavors.get(name)
    if flavor is None:
        return FlavorOption(name, f"there is no flavor {name}")
    faults = (why_unsuitable(flavor, pod_set) for pod_set in claim.gang.pod_sets)
    fault = next((fault for fault in faults if fault is not None), None)
    if fault is not None:
        return FlavorOption(name, fault)
    request = {FlavorResource(name, resource): amount for resource, amount in asked.items()}
    return FlavorOption(name, refusal=copy.ledgers.total.refusal(queue.name, request))


def _amounts(copy: WorkingCopy, claim: Claim, queue: Queue) -> dict[str, int]:
    """What all pods together ask for; as few of them as would do."""
    covered = {name for group in queue.resource_groups for name in group.covered_resources}
    counts = counts_of(claim.gang)
    if copy.policy.partial_admission:
        counts = tuple(
            count if each.min_count is None else min(count, each.min_count)
            for count, each in zip(counts, claim.gang.pod_sets, strict=True)
        )
    total: dict[str, int] = {}
    for asks in asks_of(claim.gang, counts, with_pods=PODS in covered):
        for ask in asks:
            for name, amount in ask.requests.items():
                total[name] = total.get(name, 0) + amount
    return total


def _part_lacking(refusal: Refusal) -> Fraction:
    """Comparable between resources, whose units are not."""
    return Fraction(refusal.deficit, refusal.requested)
