"""`eviction_certificate()`: who preempted a workload, at which level of the tree, by which rule.

The inequality behind a reclaim is that the victim's queue, and all above it up to that level, use
more than their quota. It is told as it was when the cycle began; where it holds only with what
started in the same cycle, with that. Must not know remedies.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.explain.judge import Decision
from bough.core.explain.sentences import say_excess
from bough.core.explain.turns import carried_out
from bough.core.explain.workloads import dominant_refusal, tree_of
from bough.core.quota.tree import QuotaTree
from bough.model.certificate import EvictionCertificate, Excess, Verdict
from bough.model.plan import Eviction, EvictionRule, Plan
from bough.model.policy import Policy
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal
from bough.model.snapshot import Snapshot


class _Party(NamedTuple):
    """Somebody who is evicted, or for whom."""

    queue: str
    owner: str
    priority: int


class _Scene(NamedTuple):
    """What an eviction is judged by."""

    parties: dict[str, _Party]
    #: Use as it was when the cycle began, and with all that it starts.
    before: QuotaTree
    after: QuotaTree
    #: What stood against the preemptor.
    need: Refusal | None


def eviction_certificate(
    snapshot: Snapshot, policy: Policy, workload: str, decided: Plan | None = None
) -> EvictionCertificate | None:
    """Why a plan, the one for this snapshot, ends a workload; `None` where it does not."""
    decided = plan(snapshot, policy) if decided is None else decided
    eviction = next((each for each in decided.evictions if each.workload == workload), None)
    if eviction is None:
        return None
    set_scene = _scene_of_gangs if snapshot.gangs else _scene_of_workloads
    scene = set_scene(snapshot, policy, decided, eviction)
    victim = scene.parties[workload]
    preemptor = scene.parties.get(eviction.preemptor or "")
    excesses = tuple(_excesses(scene.before, victim.queue, eviction.level))
    excesses = excesses or tuple(_excesses(scene.after, victim.queue, eviction.level))
    certificate = EvictionCertificate(
        workload=workload,
        queue=victim.queue,
        rule=eviction.rule,
        sentence="",
        owner=victim.owner,
        pods=eviction.pods,
        preemptor=eviction.preemptor,
        preemptor_queue=None if preemptor is None else preemptor.queue,
        preemptor_owner="" if preemptor is None else preemptor.owner,
        priority=victim.priority,
        preemptor_priority=None if preemptor is None else preemptor.priority,
        level=eviction.level,
        excesses=excesses,
        need=scene.need,
    )
    return msgspec.structs.replace(certificate, sentence=_say(certificate))


def _scene_of_gangs(
    snapshot: Snapshot, policy: Policy, decided: Plan, eviction: Eviction
) -> _Scene:
    world = Memo().gangs.refresh(snapshot, policy.gangs)
    flavors = {node.name: node.flavor for node in snapshot.nodes}
    places: dict[str, dict[str, str]] = {}
    for bind in decided.binds:
        places.setdefault(bind.workload, {})[bind.pod] = bind.node
    for nomination in decided.nominations:
        places.setdefault(nomination.workload, {}).update(nomination.pods)
    amounts: dict[str, dict[FlavorResource, int]] = {}
    for name, pods in places.items():
        claim = world.claims[name]
        tariff = world.tariffs[claim.queue]
        total = amounts.setdefault(name, {})
        for pod in claim.gang.pods:
            if pod.name in pods and tariff.choices:
                choice = tariff.choice_of(flavors.get(pods[pod.name]))
                for what, amount in tariff.price(pod.requests, choice).items():
                    total[what] = total.get(what, 0) + amount
    need = None
    preemptor = world.claims.get(eviction.preemptor or "")
    if preemptor is not None:
        need = world.ledgers.total.refusal(preemptor.queue, amounts.get(preemptor.name, {}))
    # `present` is the same use in another tree, to which what starts can be added.
    for name, total in amounts.items():
        world.ledgers.present.add_usage(world.claims[name].queue, total)
    parties = {
        name: _Party(claim.queue, claim.gang.owner, claim.gang.priority)
        for name, claim in world.claims.items()
    }
    return _Scene(parties, world.ledgers.total, world.ledgers.present, need)


def _scene_of_workloads(
    snapshot: Snapshot, policy: Policy, decided: Plan, eviction: Eviction
) -> _Scene:
    parties = {
        each.key: _Party(queue, each.namespace, each.priority or 0)
        for table in (snapshot.waiting, snapshot.admitted)
        for queue, row in table.items()
        for each in row
    }
    need = None
    preemptor = parties.get(eviction.preemptor or "")
    if preemptor is not None and eviction.preemptor is not None:
        decision = Decision(Verdict.NOMINATED, decided, snapshot)
        need = dominant_refusal(decision, policy, preemptor.queue, eviction.preemptor)
    after = tree_of(carried_out(snapshot, decided))
    return _Scene(parties, tree_of(snapshot), after, need)


def _excesses(tree: QuotaTree, queue: str, level: TreeNode | None) -> Iterator[Excess]:
    """Everything of which a node from the queue up to the level uses more than its quota."""
    node = TreeNode(NodeKind.QUEUE, queue)
    if node not in tree or tree.cycle(node):
        return
    for each in tree.path(node):
        if each == level:
            return
        for what in tree.flavor_resources(each):
            account = tree.account(each, what)
            if account is not None and account.balance < 0:
                yield Excess(each, what, account.subtree_quota, account.usage)


def _say(certificate: EvictionCertificate) -> str:
    """Who, by which rule, at which level, and the inequality, in one sentence."""
    gone = "it ends"
    if certificate.pods:
        count = len(certificate.pods)
        gone = f"{count} of its pods, beyond its minimum, {'ends' if count == 1 else 'end'}"
    whom = f"for {certificate.preemptor} of queue {certificate.preemptor_queue}"
    match certificate.rule:
        case EvictionRule.STALE:
            return "it ends: it has run with less than its minimum for too long"
        case EvictionRule.DRAIN:
            return f"it ends: queue {certificate.queue} is stopped and drained"
        case EvictionRule.PREEMPT if certificate.pods:
            return f"{gone} {whom}, which needs the room"
        case EvictionRule.PREEMPT:
            ranks = f"{certificate.priority} < {certificate.preemptor_priority}"
            equal = certificate.priority == certificate.preemptor_priority
            why = "is newer" if equal else f"has the lower priority, {ranks}"
            return f"{gone} {whom}: of the two it {why}"
        case EvictionRule.RECLAIM | EvictionRule.RECLAIM_WHILE_BORROWING:
            excess = "; ".join(say_excess(each) for each in certificate.excesses[:1])
            because = f": {excess}" if excess else ""
            return f"{gone} {whom}, which reclaims at {certificate.level}{because}"
