"""The reasons why a gang waits, as the plan carries them: one word, one sentence."""

from __future__ import annotations

from bough.core.cycle.claim import Claim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.demand import Demand
from bough.core.gang.sufficiency import shortages
from bough.model.plan import PodShortage, Wait
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal, WaitReason, cycle_text
from bough.model.words import counted


def wait_for_queue(copy: WorkingCopy, claim: Claim) -> Wait:
    """The queue takes no gangs."""
    tree = copy.ledgers.total
    node, cohort = (TreeNode(kind, claim.queue) for kind in (NodeKind.QUEUE, NodeKind.COHORT))
    known = next((each for each in (node, cohort) if each in tree), None)
    cycle = () if known is None else tree.cycle(known)
    if known == node or claim.queue in cycle:
        message = f"{{}} is stopped: {cycle_text(cycle)}"
        return Wait(claim.name, WaitReason.TANGLED, message, cycle=cycle, about=known)
    if not claim.queue:
        return Wait(claim.name, WaitReason.QUEUE, "it names no queue")
    if known is not None:
        message = f"{claim.queue} is a cohort: gangs go to the queues below it"
        return Wait(claim.name, WaitReason.QUEUE, message)
    closed = copy.snapshot.closed.get(claim.queue)
    if closed is not None:
        return Wait(claim.name, WaitReason.QUEUE, closed, parked=True)
    return Wait(claim.name, WaitReason.QUEUE, "{} does not exist", parked=True, about=node)


def wait_for_pods(claim: Claim) -> Wait:
    """The pods that it needs do not exist yet."""
    lacking = shortages(claim.tree)
    deepest = lacking[-1]
    what = counted(deepest.needed, "pod" if deepest.node.is_leaf else "subgroup")
    can = "" if deepest.node.is_leaf else " that can start"
    there = "is" if deepest.available == 1 else "are"
    message = f"{deepest.node.name} needs {what}{can} and there {there} {deepest.available}"
    return Wait(claim.name, WaitReason.PODS, message, shortages=pod_shortages(claim))


def pod_shortages(claim: Claim) -> tuple[PodShortage, ...]:
    """Every node of a gang that cannot get what it needs from the pods that there are."""
    return tuple(
        PodShortage(each.node.name, each.needed, each.available, each.node.is_leaf)
        for each in shortages(claim.tree)
    )


def wait_behind(name: str, queue: str, *, alike: bool = True) -> Wait:
    """Another one of the same queue and rank waits for quota; which one is looked up on reading."""
    about = TreeNode(NodeKind.QUEUE, queue)
    note = "behind, in the line of {}"
    return Wait(name, WaitReason.BEHIND, note, alike=alike, about=about)


def wait_for_quota(
    copy: WorkingCopy, claim: Claim, refusals: list[Refusal], *, blocks: bool
) -> Wait:
    """No flavor of the queue can take it; the one that lacks least is named."""
    refusal = refusals[0]
    if len(refusals) > 1:
        refusal = min(refusals, key=lambda each: each.deficit)
    request = {refusal.flavor_resource: refusal.requested} if refusal.flavor_resource else {}
    over_quota = not claim.preemptible and not copy.ledgers.guaranteed.admits(claim.queue, request)
    reason = WaitReason.QUOTA if over_quota else WaitReason.LIMIT
    return Wait(claim.name, reason, refusal=refusal, blocks=blocks, alike=True)


def wait_for_victims(claim: Claim, refusal: Refusal, *, blocks: bool) -> Wait:
    """It may have quota back from others, but nothing that could be evicted is enough."""
    note = "nothing that may be evicted is enough"
    return Wait(claim.name, WaitReason.LIMIT, note, refusal=refusal, blocks=blocks, alike=True)


def wait_for_place(copy: WorkingCopy, claim: Claim, demand: Demand) -> Wait:
    """Quota is there, but no nodes that are free, or can be freed for it."""
    pods = demand.smallest
    gpus = sum(pod.requests.gpus for pod in demand.pods[:1])
    each = f" of {counted(gpus, 'GPU')}" if gpus else ""
    note = f"no nodes have room for {pods} pods{each} together"
    if pods == 1:
        note = f"no node has room for a pod{each}"
    if not copy.rules.allocate:
        room = f"room for {counted(pods, 'pod')}{each}"
        note = f"the policy gives no free room away (gangs.allocate), and no others make {room}"
    return Wait(claim.name, WaitReason.PLACE, note, alike=True)


def wanted_of(refusals: list[Refusal]) -> frozenset[FlavorResource]:
    """What there is not enough of."""
    return frozenset(each.flavor_resource for each in refusals if each.flavor_resource is not None)
