"""Which shares keep a gang from what it wants: the two sides of the tree that were compared.

Either another gang had its turn first, as its side would have less; or what others borrow may not
be taken, as the gang's own side would have more than theirs. Gangs that are judged together are
compared as things were when the cycle began, those that have turns as the cycle left them.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

from bough.core.cycle.claim import Claim, counts_of
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.forest import Leaf
from bough.core.cycle.offers import wants_of
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.quota_cost import is_gpu
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.explain.standings import share_of_side
from bough.core.gang.demand import first_choice
from bough.core.quota.share import Share
from bough.model.admission import ReclaimWithinCohort
from bough.model.certificate import NodeShare
from bough.model.plan import Admit
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode

#: How places call GPUs.
GPUS = "gpus"
#: The gang's own side of the tree, and the other.
Sides = tuple[TreeNode, TreeNode]


class Compared(NamedTuple):
    """What the gang's side would have, and what the other side has."""

    own: NodeShare
    other: NodeShare
    #: The gang that went first; empty: none did, but nothing may be taken from the other side.
    first: str = ""


def compared_shares(
    copy: WorkingCopy, claim: Claim, what: FlavorResource, admits: list[Admit]
) -> Compared | None:
    """Why a gang of pod sets does not get what is scarce, where shares are the reason.

    copy:  as it was when the cycle began; `admits`: what the cycle gave to others.
    """
    leaf = claim.leaf
    if leaf is None or leaf.cycle or copy.policy.works_out_shares:
        return None
    amounts = _asked(copy, claim, leaf, what.flavor)
    if copy.policy.orders_by_level:
        for admit in admits:
            found = _went_first(copy, claim, amounts, admit)
            if found is not None:
                return found
    if not copy.policy.take_by_share:
        return None
    if leaf.preemption.reclaim_within_cohort is ReclaimWithinCohort.NEVER:
        return None
    return _may_not_take(copy, claim, amounts, what)


def compared_in_turn(cycle: Cycle, claim: Claim, scarce: str, flavor: str = "") -> Compared | None:
    """The same where gangs have turns by shares that the cycle works out.

    cycle:  as it ended; `flavor`: as which pod sets are counted. Only those that have some of the
    scarce resource stand against it, and where its side would have as much as they, or more.
    """
    copy = cycle.copy
    policy = copy.policy
    if not policy.works_out_shares or not policy.weighs(claim.gang):
        return None
    if claim.leaf is None or claim.leaf.cycle:
        return None
    started = _started(cycle)
    queues = [each for each in sorted({*copy.running, *started}) if each != claim.queue]
    having = (each for each in queues if copy.takes_gangs(each) and _has(copy, each, scarce))
    found = (_sides(copy, claim.queue, each) for each in having)
    others = [sides for sides in found if sides is not None]
    mark = copy.mark()
    _count(copy, claim, flavor)
    shares = [(share_of_side(copy, sides[1]), sides) for sides in others]
    most = max(shares, key=lambda each: _weight_of(each[0]), default=None)
    compared: Compared | None = None
    if most is not None:
        own, other = most[1]
        if _weight_of(most[0]) <= _weight_of(share_of_side(copy, own)):
            below = copy.ledgers.total.subtree(other)
            firsts = [started[node.name] for node in below if node.name in started]
            first = min(firsts, key=_standing).name if firsts else ""
            compared = Compared(_told(copy, own), _told(copy, other), first)
    copy.undo(mark)
    return compared


def _has(copy: WorkingCopy, queue: str, resource: str) -> bool:
    """Whether a queue uses some of a resource, as far as that is counted."""
    tree = copy.ledgers.total if copy.dominant is None else copy.dominant.tree
    gpus = resource == GPUS or is_gpu(resource)
    return any(
        account.usage > 0 and (is_gpu(what.resource) if gpus else what.resource == resource)
        for what, account in tree.accounts(TreeNode(NodeKind.QUEUE, queue)).items()
    )


def _started(cycle: Cycle) -> dict[str, Claim]:
    """By queue, the first gang that was served in a cycle."""
    served = sorted((cycle.copy.claims[name] for name in cycle.outcome.served), key=_standing)
    return {claim.queue: claim for claim in reversed(served)}


def _standing(claim: Claim) -> Standing:
    return claim.standing


def _count(copy: WorkingCopy, claim: Claim, flavor: str) -> None:
    """Count what a gang asks for, wherever its shares are reckoned from."""
    if claim.counted and claim.leaf is not None:
        copy.use(claim, _asked(copy, claim, claim.leaf, flavor))
        return
    offers = wants_of(copy, claim).offers
    if not offers:
        return
    copy.ledgers.total.add_usage(claim.queue, offers[0].request)
    if copy.dominant is not None:
        pods = first_choice(offers[0].demand)
        amounts = copy.dominant.amounts(claim.queue, pods, offers[0].choice)
        copy.dominant.count(claim.queue, amounts, add=True)


def _weight_of(share: Share) -> tuple[bool, Fraction]:
    """What shares are compared by; the one beyond all numbers is the largest."""
    weighted = share.weighted
    return weighted is None, Fraction(0) if weighted is None else weighted


def _went_first(copy: WorkingCopy, claim: Claim, amounts: Amounts, admit: Admit) -> Compared | None:
    """The comparison that another gang has won, if its share was the smaller one."""
    sides = _sides(copy, claim.queue, admit.admission.queue)
    if sides is None:
        return None
    given: dict[FlavorResource, int] = {}
    for each in admit.admission.assignments:
        for resource, flavor in each.flavors.items():
            which = FlavorResource(flavor, resource)
            given[which] = given.get(which, 0) + each.usage.get(resource, 0)
    mark = copy.mark()
    copy.ledgers.total.add_usage(claim.queue, amounts)
    copy.ledgers.total.add_usage(admit.admission.queue, given)
    less = copy.shares.rank(sides[1]) < copy.shares.rank(sides[0])
    found = Compared(_told(copy, sides[0]), _told(copy, sides[1]), admit.workload)
    copy.undo(mark)
    return found if less else None


def _may_not_take(
    copy: WorkingCopy, claim: Claim, amounts: Amounts, what: FlavorResource
) -> Compared | None:
    """Of all that borrow what is scarce, the first of which too little may be taken."""
    root = None if claim.leaf is None else claim.leaf.parent
    if root is None:
        return None
    while root.parent is not None:
        root = root.parent
    others = list(copy.forest.borrowers(root, (what,)))
    mark = copy.mark()
    copy.ledgers.total.add_usage(claim.queue, amounts)
    found: Compared | None = None
    for other in others:
        sides = _sides(copy, claim.queue, other.queue.name)
        if found is None and sides is not None:
            found = _refused(copy, claim, other, sides)
    copy.undo(mark)
    return found


def _refused(copy: WorkingCopy, claim: Claim, other: Leaf, sides: Sides) -> Compared | None:
    """The comparison by which the next gang of a queue is safe, after those that are not."""
    own, beside = sides
    for _, victim in (*other.leaving, *other.running):
        if not _may_be_candidate(claim, victim):
            continue
        before = copy.shares.rank(beside)
        copy.ledgers.total.remove_usage(victim.queue, victim.usage)
        wanted = copy.shares.rank(own)
        if wanted > copy.shares.rank(beside) and wanted >= before:
            return Compared(_told(copy, own), _told(copy, beside))
    return None


def _may_be_candidate(claim: Claim, victim: Claim) -> bool:
    leaf = claim.leaf
    rule = ReclaimWithinCohort.NEVER if leaf is None else leaf.preemption.reclaim_within_cohort
    lower = victim.standing.priority < claim.standing.priority
    return rule is ReclaimWithinCohort.ANY or lower


def _sides(copy: WorkingCopy, queue: str, other: str) -> Sides | None:
    """The nodes below the lowest one that two queues are both below."""
    own, beside = copy.path(queue), copy.path(other)
    common = next((node for node in own if node in beside), None)
    if common is None or common.kind is NodeKind.QUEUE:
        return None
    return own[own.index(common) - 1], beside[beside.index(common) - 1]


def _asked(copy: WorkingCopy, claim: Claim, leaf: Leaf, flavor: str) -> dict[FlavorResource, int]:
    """All that a gang asks for, on one flavor as far as the queue has that."""
    found: dict[FlavorResource, int] = {}
    for resource, amount in _requests(claim):
        what = FlavorResource(flavor, resource)
        if copy.ledgers.total.account(leaf.node, what) is not None:
            found[what] = found.get(what, 0) + amount
    return found


def _requests(claim: Claim) -> Iterator[tuple[str, int]]:
    for pod_set, count in zip(claim.gang.pod_sets, counts_of(claim.gang), strict=True):
        for resource, each in pod_set.template.requests.items():
            yield resource, count * each


def _told(copy: WorkingCopy, node: TreeNode) -> NodeShare:
    share = share_of_side(copy, node)
    return NodeShare(node, share.text, str(share.weight), share.resource)
