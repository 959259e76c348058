"""Which shares keep a gang from what it wants: the two sides of the tree that were compared.

Either another gang had its turn first, as its side would have less; or what others borrow may not
be taken, as the gang's own side would have more than theirs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from bough.core.cycle.claim import Claim, counts_of
from bough.core.cycle.forest import Leaf
from bough.core.cycle.working_copy import WorkingCopy
from bough.model.admission import ReclaimWithinCohort
from bough.model.certificate import NodeShare
from bough.model.plan import Admit
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode

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
    if leaf is None or leaf.cycle:
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
    share = copy.shares.of(node)
    return NodeShare(node, share.text, str(share.weight), share.resource)
