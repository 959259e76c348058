"""The reasons why a gang waits, as the plan carries them: one word, one sentence.

Must not decide anything: what is asked here was decided elsewhere.
"""

from __future__ import annotations

from bough.core.cycle.gangs.claim import Claim
from bough.core.cycle.gangs.world import World
from bough.core.gang.demand import Demand
from bough.core.gang.predicate import shortages
from bough.model.plan import PodShortage, Wait
from bough.model.quota import NodeKind, TreeNode
from bough.model.reason import GangWait, Refusal, cycle_text


def wait_for_queue(world: World, claim: Claim) -> Wait:
    """The queue takes no gangs."""
    tree = world.ledgers.total
    node = world.queue_node(claim.queue)
    if node in tree:
        cycle = tree.cycle(node)
        message = f"queue {claim.queue} is stopped: {cycle_text(cycle)}"
        return Wait(claim.name, GangWait.TANGLED, message, cycle=cycle)
    if not claim.queue:
        return Wait(claim.name, GangWait.QUEUE, "it names no queue")
    if TreeNode(NodeKind.COHORT, claim.queue) in tree:
        message = f"{claim.queue} is a cohort: gangs go to the queues below it"
        return Wait(claim.name, GangWait.QUEUE, message)
    return Wait(claim.name, GangWait.QUEUE, f"queue {claim.queue} does not exist")


def wait_for_pods(claim: Claim) -> Wait:
    """The pods that it needs do not exist yet."""
    lacking = shortages(claim.tree)
    deepest = lacking[-1]
    what = "pods" if deepest.node.is_leaf else "subgroups that can start"
    message = f"{deepest.node.name} needs {deepest.needed} {what} and there are {deepest.available}"
    found = (
        PodShortage(each.node.name, each.needed, each.available, each.node.is_leaf)
        for each in lacking
    )
    return Wait(claim.name, GangWait.PODS, message, shortages=tuple(found))


def wait_behind(claim: Claim, head: Claim) -> Wait:
    """Somebody of the same queue and rank is first in line, and waits for quota."""
    message = f"{head.name} is first in queue {claim.queue} and waits for quota"
    return Wait(claim.name, GangWait.BEHIND, message, head=head.name)


def wait_for_quota(world: World, claim: Claim, refusals: list[Refusal]) -> Wait:
    """No flavor of the queue can take it; the last that was tried is named if all are alike."""
    refusal = refusals[0]
    if len(refusals) > 1:
        refusal = min(refusals, key=lambda each: each.deficit)
    guaranteed = not claim.gang.preemptible
    request = {refusal.flavor_resource: refusal.requested} if refusal.flavor_resource else {}
    over_quota = guaranteed and not world.ledgers.guaranteed.admits(claim.queue, request)
    reason = GangWait.QUOTA if over_quota else GangWait.LIMIT
    return Wait(claim.name, reason, refusal=refusal)


def wait_for_place(claim: Claim, demand: Demand, refusal: Refusal | None) -> Wait:
    """Quota is there, but no nodes that are free, or can be freed for it."""
    pods = demand.smallest
    gpus = sum(pod.requests.gpus for pod in demand.pods[:1])
    each = f" of {gpus} GPUs" if gpus else ""
    if refusal is not None:
        note = "nothing that may be evicted is enough"
        return Wait(claim.name, GangWait.LIMIT, note, refusal=refusal)
    return Wait(claim.name, GangWait.PLACE, f"no nodes have room for {pods} pods{each} together")
