"""Which shares keep a gang from what it wants: the two sides of the tree that were compared.

Either another gang had its turn first, as its side would have less; or what others borrow may not
be taken, as the gang's own side would have more than theirs, or more than its fair share. Gangs
that are judged together are compared as things were when the cycle began, those that have turns as
the cycle left them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import NamedTuple

from bough.core.cycle.claim import Claim, counts_of
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.forest import Leaf
from bough.core.cycle.offers import wants_of
from bough.core.cycle.queue_order import Standing
from bough.core.cycle.quota_cost import is_gpu
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.explain.node_shares import share_of_side, told_share
from bough.core.explain.sentences import say_shares
from bough.core.gang.demand import first_choice
from bough.core.quota.fairness import is_within_share
from bough.core.quota.taken_share import Share
from bough.model.admission_rules import ReclaimWithinCohort
from bough.model.certificate import NodeShare
from bough.model.policy import DIVIDING
from bough.model.quota import Amounts, FlavorResource, NodeKind, TreeNode
from bough.model.words import Words

#: How places call GPUs.
GPUS = "gpus"
#: The gang's own side of the tree, and the other.
Sides = tuple[TreeNode, TreeNode]


class Compared(NamedTuple):
    """What the gang's side would have, and what the other side has."""

    own: NodeShare
    #: `None`: it would have more than its fair share, whatever others have.
    other: NodeShare | None = None
    #: The gang that went first; empty: none did.
    first: str = ""
    #: Whether it would take from others that run, if its share were smaller.
    takes: bool = True

    @property
    def shares(self) -> tuple[NodeShare, ...]:
        """What was compared, its own side first."""
        return (self.own,) if self.other is None else (self.own, self.other)

    def say(self, words: Words) -> str:
        """Why another went first, or why nothing is taken from it."""
        told = f"with it {say_shares(self.shares, words)}"
        if self.other is None:
            return f"it may take nothing from others: {told}, more than is fair"
        if self.first:
            return f"{self.first} went first: {told}"
        other = words.node(self.other.node)
        if self.takes:
            return f"it may take no more from {other}: {told}"
        return f"{other} has {'as much' if self._equal else 'less'}: {told}"

    @property
    def _equal(self) -> bool:
        return self.other is not None and self.own.share == self.other.share


def compared_shares(
    cycle: Cycle, begun: Callable[[], WorkingCopy], name: str, what: FlavorResource
) -> Compared | None:
    """Why a gang does not get what is scarce, where shares are the reason.

    cycle:  as it ended; `begun`: makes a copy as it was when the cycle began, which costs much.
    """
    policy = cycle.copy.policy
    found = compared_in_turn(cycle, cycle.copy.claims[name], what.resource, what.flavor)
    if found is not None or policy.works_out_shares:
        return found
    if not policy.orders_by_level and not policy.take_by_share:
        return None
    before = begun()
    claim = before.claims[name]
    leaf = claim.leaf
    if leaf is None or leaf.cycle:
        return None
    amounts = _asked(before, claim, leaf, what.flavor)
    if policy.orders_by_level:
        for queue, given, first in _given(cycle, before):
            found = _went_first(before, claim, amounts, queue, given, first)
            if found is not None:
                return found
    if not policy.take_by_share or not _may_take(before, claim):
        return None
    if leaf.preemption.reclaim_within_cohort is ReclaimWithinCohort.NEVER:
        return None
    return _may_not_take(before, claim, amounts, what)


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
    if not others:
        return None
    mark = copy.mark()
    _count(copy, claim, flavor)
    shares = [(share_of_side(copy, sides[1]), sides) for sides in others]
    most, (own, other) = max(shares, key=lambda each: _weight_of(each[0]))
    compared: Compared | None = None
    if _weight_of(most) <= _weight_of(share_of_side(copy, own)):
        below = copy.ledgers.total.subtree(other)
        firsts = [started[node.name] for node in below if node.name in started]
        first = min(firsts, key=_standing).name if firsts else ""
        takes = _may_take(copy, claim)
        compared = Compared(told_share(copy, own), told_share(copy, other), first, takes)
    elif _exceeds_fair_share(copy, claim):
        compared = Compared(told_share(copy, claim.leaf.node))
    copy.undo(mark)
    return compared


def _exceeds_fair_share(copy: WorkingCopy, claim: Claim) -> bool:
    """Whether a gang that is counted may reclaim nothing, as its queue exceeds its fair share."""
    if not copy.divides or not _may_take(copy, claim) or claim.leaf is None:
        return False
    by_division = any(rule in DIVIDING for rule in copy.policy.take_by_share)
    return by_division and not is_within_share(copy.fair.of(claim.leaf.node))


def _may_take(copy: WorkingCopy, claim: Claim) -> bool:
    """Whether a gang takes from other queues at all."""
    rules = copy.rules
    return rules.reclaim and (not claim.preemptible or rules.preemptible_takes_victims)


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
    """What shares are compared by; an infinite one is the largest."""
    weighted = share.weighted
    return weighted is None, Fraction(0) if weighted is None else weighted


def _given(cycle: Cycle, before: WorkingCopy) -> Iterator[tuple[str, Amounts, str]]:
    """What the cycle gave to each gang that starts: its queue, the amounts, its name."""
    for admit in cycle.outcome.admits:
        given: dict[FlavorResource, int] = {}
        for each in admit.admission.assignments:
            for resource, flavor in each.flavors.items():
                which = FlavorResource(flavor, resource)
                given[which] = given.get(which, 0) + each.usage.get(resource, 0)
        yield admit.admission.queue, given, admit.workload
    for name, claim in cycle.outcome.bound.items():
        offers = wants_of(before, before.claims[name]).offers
        if offers:
            yield claim.queue, offers[0].request, name


def _went_first(
    copy: WorkingCopy, claim: Claim, amounts: Amounts, queue: str, given: Amounts, first: str
) -> Compared | None:
    """The comparison that another gang has won, if its share was the smaller one."""
    sides = _sides(copy, claim.queue, queue)
    if sides is None:
        return None
    mark = copy.mark()
    copy.ledgers.total.add_usage(claim.queue, amounts)
    copy.ledgers.total.add_usage(queue, given)
    less = copy.shares.rank(sides[1]) < copy.shares.rank(sides[0])
    found = Compared(told_share(copy, sides[0]), told_share(copy, sides[1]), first)
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
            return Compared(told_share(copy, own), told_share(copy, beside))
    return None


def _may_be_candidate(claim: Claim, victim: Claim) -> bool:
    leaf = claim.leaf
    rule = ReclaimWithinCohort.NEVER if leaf is None else leaf.preemption.reclaim_within_cohort
    lower = victim.standing.priority < claim.standing.priority
    return victim.preemptible and (rule is ReclaimWithinCohort.ANY or lower)


def _sides(copy: WorkingCopy, queue: str, other: str) -> Sides | None:
    """For two queues, the two nodes just below the lowest node that is above both."""
    own, beside = copy.path(queue), copy.path(other)
    common = next((node for node in own if node in beside), None)
    if common is None or common.kind is NodeKind.QUEUE:
        return None
    return own[own.index(common) - 1], beside[beside.index(common) - 1]


def _asked(copy: WorkingCopy, claim: Claim, leaf: Leaf, flavor: str) -> dict[FlavorResource, int]:
    """All that a gang asks for, on one flavor as far as the queue has that."""
    if not claim.counted:
        offers = wants_of(copy, claim).offers
        return dict(offers[0].request) if offers else {}
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
