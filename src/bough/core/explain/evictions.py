"""`eviction_certificate()`: for which gang a gang is evicted, at which level, by which rule.

The inequality behind a reclaim is that the victim's queue, and all above it up to that level, use
more than their quota. It is told as it was when the cycle began; where it holds only with what
started in the same cycle, with that.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from bough.core.cycle.claim import Claim
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.explain.flavor_options import dominant_refusal, flavor_options
from bough.core.explain.node_shares import told_share
from bough.core.explain.sentences import say_excess, say_shares
from bough.model.certificate import EvictionCertificate, Excess, NodeShare
from bough.model.plan import Eviction, EvictionRule, Plan
from bough.model.policy import Policy
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal
from bough.model.snapshot import Snapshot
from bough.model.words import OBJECT_WORDS, Words

_RECLAIMS = (EvictionRule.RECLAIM, EvictionRule.RECLAIM_WHILE_BORROWING)


def eviction_certificate(
    snapshot: Snapshot,
    policy: Policy,
    workload: str,
    decided: Plan | None = None,
    words: Words = OBJECT_WORDS,
    *,
    eviction: Eviction | None = None,
) -> EvictionCertificate | None:
    """Why a plan, the one for this snapshot, ends a workload; `None` where it does not.

    eviction:  which one, where parts of a gang end for several others; else the first.
    """
    decided = plan(snapshot, policy) if decided is None else decided
    eviction = eviction or next(
        (each for each in decided.evictions if each.workload == workload), None
    )
    if eviction is None:
        return None
    copy = Memo().refresh(snapshot, policy)
    victim = copy.claims[workload]
    preemptor = copy.claims.get(eviction.preemptor or "")
    amounts = _starting(copy, decided)
    need = None if preemptor is None else _need(copy, preemptor, amounts)
    excesses = _excesses(copy, eviction, amounts)
    shares = _shares(copy, eviction)
    certificate = EvictionCertificate(
        workload=workload,
        queue=victim.queue,
        rule=eviction.rule,
        sentence="",
        owner=victim.gang.owner,
        pods=eviction.pods,
        preemptor=eviction.preemptor,
        preemptor_queue=None if preemptor is None else preemptor.queue,
        preemptor_owner="" if preemptor is None else preemptor.gang.owner,
        priority=victim.standing.priority,
        preemptor_priority=None if preemptor is None else preemptor.standing.priority,
        level=eviction.level,
        excesses=excesses,
        shares=shares,
        need=need,
    )
    return msgspec.structs.replace(certificate, sentence=_say(certificate, words))


def excess_texts(memo: Memo, decided: Plan, words: Words) -> dict[str, str]:
    """By gang that a plan ends for others that reclaim: which of its nodes exceeded its quota.

    Where shares decided, what these were.

    memo:  the one that the plan was just made with, which has the state before it.
    """
    copy = memo.copy
    if copy is None:
        return {}
    shares = ((each.workload, _shares(copy, each)) for each in decided.evictions)
    texts = {name: say_shares(each, words) for name, each in shares if each}
    reclaims = [each for each in decided.evictions if each.rule in _RECLAIMS]
    if not reclaims:
        return texts
    amounts = _starting(copy, decided)
    found = {each.workload: _excesses(copy, each, amounts) for each in reclaims}
    return texts | {name: say_excess(each[0], words) for name, each in found.items() if each}


def _starting(copy: WorkingCopy, decided: Plan) -> dict[str, dict[FlavorResource, int]]:
    """How much each gang counts that a plan starts, now or when others have ended."""
    amounts: dict[str, dict[FlavorResource, int]] = {}
    for admit in decided.admits:
        total = amounts.setdefault(admit.workload, {})
        for each in admit.admission.assignments:
            for resource, flavor in each.flavors.items():
                what = FlavorResource(flavor, resource)
                total[what] = total.get(what, 0) + each.usage.get(resource, 0)
    places: dict[str, dict[str, str]] = {}
    for bind in decided.binds:
        places.setdefault(bind.workload, {})[bind.pod] = bind.node
    for nomination in decided.nominations:
        places.setdefault(nomination.workload, {}).update(nomination.pods)
    flavors = {node.name: node.flavor for node in copy.snapshot.nodes}
    for name, pods in places.items():
        claim = copy.claims[name]
        costs = copy.costs[claim.queue]
        total = amounts.setdefault(name, {})
        for pod in claim.gang.pods:
            if pod.name in pods and costs.choices:
                choice = costs.choice_of(flavors.get(pods[pod.name]))
                for what, amount in costs.price(pod.requests, choice).items():
                    total[what] = total.get(what, 0) + amount
    return amounts


def _need(
    copy: WorkingCopy, preemptor: Claim, amounts: dict[str, dict[FlavorResource, int]]
) -> Refusal | None:
    """Why a preemptor could not start."""
    if preemptor.counted:
        return dominant_refusal(flavor_options(copy, preemptor))
    return copy.ledgers.total.refusal(preemptor.queue, amounts.get(preemptor.name, {}))


def _excesses(
    copy: WorkingCopy, eviction: Eviction, amounts: dict[str, dict[FlavorResource, int]]
) -> tuple[Excess, ...]:
    """What the victim's queue and those above it use beyond their quota, up to the level."""
    queue = copy.claims[eviction.workload].queue
    found = tuple(_present_excesses(copy, queue, eviction.level))
    if found:
        return found
    mark = copy.mark()
    for name, total in amounts.items():
        copy.ledgers.total.add_usage(copy.claims[name].queue, total)
    found = tuple(_present_excesses(copy, queue, eviction.level))
    copy.undo(mark)
    return found


def _present_excesses(copy: WorkingCopy, queue: str, level: TreeNode | None) -> Iterator[Excess]:
    """Everything of which a node from the queue up to the level uses more than its quota.

    A part of it may be withdrawn: what others beside it use above what is promised to them.
    """
    tree, promises = copy.ledgers.total, copy.ledgers.guaranteed
    node = TreeNode(NodeKind.QUEUE, queue)
    if node not in tree or tree.cycle(node):
        return
    for each in tree.path(node):
        if each == level:
            return
        for what in tree.flavor_resources(each):
            account = tree.account(each, what)
            less = promises.withdrawn(each, what)
            if account is not None and account.balance < less:
                yield Excess(each, what, account.subtree_quota, account.usage, less)


def _shares(copy: WorkingCopy, eviction: Eviction) -> tuple[NodeShare, ...]:
    """What was compared where shares decided, as it was when the cycle began."""
    if eviction.rule is not EvictionRule.FAIR_SHARE or eviction.preemptor is None:
        return ()
    found: list[NodeShare] = []
    for name in (eviction.workload, eviction.preemptor):
        path = copy.path(copy.claims[name].queue)
        node = path[0]
        for above in path:
            if above == eviction.level:
                break
            node = above
        found.append(told_share(copy, node))
    return tuple(found)


def _say(certificate: EvictionCertificate, words: Words) -> str:
    """The preemptor, the rule, the level and the inequality, in one sentence."""
    gone = "it ends"
    if certificate.pods:
        count = len(certificate.pods)
        gone = f"{count} of its pods, beyond its minimum, {'ends' if count == 1 else 'end'}"
    cause = f"for {certificate.preemptor} of {words.queue(certificate.preemptor_queue or '')}"
    match certificate.rule:
        case EvictionRule.STALE:
            return "it ends: it has run with less than its minimum for too long"
        case EvictionRule.DRAIN:
            return f"it ends: {words.queue(certificate.queue)} is stopped and drained"
        case EvictionRule.PREEMPT if certificate.pods:
            return f"{gone} {cause}, which needs the room"
        case EvictionRule.PREEMPT:
            ranks = f"{certificate.priority} < {certificate.preemptor_priority}"
            equal = certificate.priority == certificate.preemptor_priority
            why = "is newer" if equal else f"has the lower priority, {ranks}"
            return f"{gone} {cause}: of the two it {why}"
        case EvictionRule.RECLAIM | EvictionRule.RECLAIM_WHILE_BORROWING:
            excess = "; ".join(say_excess(each, words) for each in certificate.excesses[:1])
            because = f": {excess}" if excess else ""
            return f"{gone} {cause}, which reclaims at {words.node(certificate.level)}{because}"
        case EvictionRule.FAIR_SHARE:
            return f"{gone} {cause}, which has less: {say_shares(certificate.shares, words)}"
        case EvictionRule.MOVE:
            what = f"{len(certificate.pods)} of its pods move" if certificate.pods else "it moves"
            return f"{what} to another place {cause}, which fits then"
