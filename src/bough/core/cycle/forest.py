"""The quota tree as a cycle walks it: leaves with what they list and which gangs hold it.

Built once from the declarations, then kept in step with the gangs that hold quota. The arithmetic
is core.quota's; this keeps its accounts at hand.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.core.cycle.claim import Claim, counts_of
from bough.core.cycle.ledgers import Ledgers
from bough.core.cycle.queue_order import VictimOrder
from bough.core.quota.account import Account, Charge
from bough.core.quota.guarantee import GuaranteedTree
from bough.core.quota.tree import QuotaTree
from bough.core.quota.usage import usage_of
from bough.errors import Broken
from bough.model.admission_rules import BorrowWithinCohort, Preemption, ReclaimWithinCohort
from bough.model.gang import Gang
from bough.model.policy import Policy
from bough.model.quota import FlavorResource, NodeKind, Promise, Queue, TreeNode
from bough.model.workload import Admission, Flavor, PodSet

if TYPE_CHECKING:
    from bough.core.cycle.shape_needs import Needs

#: For how many admissions of a queue their charges are remembered.
MOST_ADMISSIONS = 256
#: A claim with what it is sorted by; orders are never equal, so claims are never compared.
Ranked = tuple[VictimOrder, Claim]


class Slot(NamedTuple):
    """One resource on one flavor, as a queue lists it."""

    what: FlavorResource
    account: Account


class FlavorGroup(NamedTuple):
    """A resource group of a queue."""

    resources: tuple[str, ...]
    #: In the order in which flavors are tried: the flavor, and its resources.
    flavors: tuple[tuple[str, dict[str, Slot]], ...]


class Counted(msgspec.Struct, frozen=True, gc=False):
    """How much an admission counts against a queue, and where."""

    #: The pod sets of the gangs for which this is known.
    pod_sets: tuple[PodSet, ...]
    admission: Admission
    usage: dict[FlavorResource, int]
    charges: tuple[Charge, ...]


class Inner:
    """A cohort."""

    __slots__ = ("_accounts", "_tree", "height", "inners", "leaves", "names", "node", "parent")

    def __init__(self, tree: QuotaTree, node: TreeNode, parent: Inner | None) -> None:
        self.node = node
        self.parent = parent
        self.inners: list[Inner] = []
        self.leaves: list[Leaf] = []
        #: The distance to the furthest leaf.
        self.height = 0
        #: The queues below it, at any depth.
        self.names: frozenset[str] = frozenset()
        self._tree = tree
        self._accounts: dict[FlavorResource, Account] = {}

    def is_within_nominal(self, whats: Iterable[FlavorResource]) -> bool:
        """Whether the subtree uses no more than its own quota of any of these."""
        for what in whats:
            account = self._accounts.get(what) or self._tree.account(self.node, what)
            if account is not None:
                self._accounts[what] = account
                if account.usage > account.subtree_quota:
                    return False
        return True


class Leaf:
    """A queue with the gangs that hold its quota and may have to give it back."""

    __slots__ = (
        "_counted",
        "_flavors",
        "_missing",
        "_users",
        "accounts",
        "cycle",
        "groups",
        "leaving",
        "needs",
        "node",
        "parent",
        "preemption",
        "preempts_while_borrowing",
        "promises",
        "queue",
        "running",
        "tree",
    )

    def __init__(
        self,
        tree: QuotaTree,
        queue: Queue,
        parent: Inner | None,
        preemption: Preemption,
        promises: GuaranteedTree | None = None,
        *,
        by_share: bool = False,
    ) -> None:
        self.tree = tree
        #: For a queue that takes what promises leave: says how much less than its quota it has.
        self.promises = promises if queue.promise is Promise.REST else None
        self.queue = queue
        self.node = TreeNode(NodeKind.QUEUE, queue.name)
        self.parent = parent
        #: What its gangs may take from others.
        self.preemption = preemption
        #: Whether they may take from other queues what they would borrow themselves.
        self.preempts_while_borrowing = _while_borrowing(preemption, by_share=by_share)
        #: The cohorts of the cycle that it hangs on; it then takes nothing new.
        self.cycle = tree.cycle(self.node)
        self.accounts: dict[FlavorResource, Account] = {}
        #: By resource; a resource that is missing is not listed.
        self.groups = _groups(self)
        #: What its gangs need of it, by their shape; see `flavors.needs_in`.
        self.needs: dict[bytes, Needs] = {}
        #: By the identity of admissions, which alike gangs share.
        self._counted: dict[int, Counted] = {}
        #: The first of its flavors that is not among those that it was last asked about.
        self._flavors: Mapping[str, Flavor] | None = None
        self._missing: str | None = None
        #: Sorted: what was not told to end, and what was.
        self.running: list[Ranked] = []
        self.leaving: list[Ranked] = []
        #: By what they use: those of them that were told to end, and the others.
        self._users: dict[tuple[FlavorResource, ...], tuple[list[Ranked], list[Ranked]]] = {}

    def account(self, what: FlavorResource) -> Account:
        """The account of a resource on a flavor, empty where the queue does not list it."""
        account = self.accounts.get(what)
        if account is None:
            self.tree.add_usage(self.queue.name, {what: 0})
            account = self.tree.account(self.node, what)
            if account is None:
                raise Broken(f"queue {self.queue.name} has no account of {what}")
            self.accounts[what] = account
        return account

    def missing_flavor(self, flavors: Mapping[str, Flavor]) -> str | None:
        """The first flavor that the queue lists and that does not exist."""
        if self._flavors is not flavors:
            self._flavors = flavors
            self._missing = missing_flavor(self.queue, flavors)
        return self._missing

    def counted(self, gang: Gang, admission: Admission) -> Counted:
        """How much the admission of a gang counts; worked out once for gangs that share it."""
        known = self._counted.get(id(admission))
        if known is not None and known.pod_sets == gang.pod_sets and not gang.reclaimable_pods:
            return known
        usage = usage_of(gang)
        charges = tuple([(self.account(what), amount) for what, amount in usage.items()])
        found = Counted(gang.pod_sets, admission, usage, charges)
        if not gang.reclaimable_pods:
            if len(self._counted) >= MOST_ADMISSIONS:
                self._counted.clear()
            self._counted[id(admission)] = found
        return found

    def first_choice(self, gang: Gang) -> dict[FlavorResource, int]:
        """What the pod sets of a gang ask for, on the first flavors of this queue."""
        request: dict[FlavorResource, int] = {}
        for pod_set, count in zip(gang.pod_sets, counts_of(gang), strict=True):
            for resource, amount in pod_set.template.requests.items():
                group = self.groups.get(resource)
                if group is not None and group.flavors:
                    what = FlavorResource(group.flavors[0][0], resource)
                    request[what] = request.get(what, 0) + amount * count
        return request

    def is_within_nominal(self, whats: Iterable[FlavorResource]) -> bool:
        """Whether the queue uses no more than its own quota of any of these.

        One that takes the rest has less of it while promises beside it are exceeded.
        """
        for what in whats:
            account = self.accounts.get(what) or self.tree.account(self.node, what)
            if account is None:
                continue
            less = 0 if self.promises is None else self.promises.withdrawn(self.node, what)
            if account.usage > account.subtree_quota - less:
                return False
        return True

    def add(self, claim: Claim) -> None:
        """Add a gang to those that may have to give something back."""
        if claim.victim_order is None:
            raise Broken(f"{claim.name} holds nothing that could be given back")
        self._users.clear()
        row = self.leaving if claim.evicted else self.running
        insort(row, (claim.victim_order, claim))

    def drop(self, claim: Claim) -> None:
        """Undo `add`."""
        self._users.clear()
        row = self.leaving if claim.evicted else self.running
        del row[bisect_left(row, (claim.victim_order,))]

    def users(self, whats: tuple[FlavorResource, ...]) -> tuple[list[Ranked], list[Ranked]]:
        """Those of its gangs that were assigned any of these: told to end, and not."""
        found = self._users.get(whats)
        if found is None:
            found = self._users[whats] = using(self.leaving, whats), using(self.running, whats)
        return found


class Forest:
    """All leaves and inner nodes, on the ledger of everything that is used."""

    def __init__(self, ledgers: Ledgers, queues: Sequence[Queue], policy: Policy) -> None:
        self.tree = ledgers.total
        self._promises = ledgers.guaranteed
        self.leaves: dict[str, Leaf] = {}
        self._inners: dict[TreeNode, Inner] = {}
        self._preemption = policy.preemption
        self._by_share = bool(policy.take_by_share)
        self._borrowers: dict[tuple[TreeNode, tuple[FlavorResource, ...]], list[Leaf]] = {}
        self._reclaimable: dict[
            tuple[TreeNode, tuple[FlavorResource, ...], bool], tuple[list[Ranked], list[Ranked]]
        ] = {}
        for node in self.tree:
            if node.kind is NodeKind.COHORT:
                self._inner(node)
        for queue in sorted(queues, key=lambda queue: queue.name):
            self._plant(queue)
        for inner in reversed(self._inners.values()):
            _measure(inner)

    def changed(self) -> None:
        """Forget what depends on usage."""
        if self._reclaimable:
            self._reclaimable.clear()
        if self._borrowers:
            self._borrowers.clear()

    def reclaimable(
        self, inner: Inner, whats: tuple[FlavorResource, ...], *, only_users: bool
    ) -> tuple[list[Ranked], list[Ranked]]:
        """What runs below a cohort in queues and cohorts above their quota of any of these.

        Two sorted lists: what was told to end, and what was not; `only_users`: without gangs that
        use none of these themselves.
        """
        key = (inner.node, whats, only_users)
        found = self._reclaimable.get(key)
        if found is None:
            leaving: list[Ranked] = []
            running: list[Ranked] = []
            for leaf in _borrowing_leaves(inner, whats):
                rows = leaf.users(whats) if only_users else (leaf.leaving, leaf.running)
                leaving += rows[0]
                running += rows[1]
            leaving.sort()
            running.sort()
            found = self._reclaimable[key] = (leaving, running)
        return found

    def borrowers(self, root: Inner, whats: tuple[FlavorResource, ...]) -> list[Leaf]:
        """All queues of a tree that use more than their quota of any of these, by name."""
        key = (root.node, whats)
        found = self._borrowers.get(key)
        if found is None:
            names = sorted(root.names)
            leaves = (self.leaves[name] for name in names)
            found = [leaf for leaf in leaves if not leaf.is_within_nominal(whats)]
            self._borrowers[key] = found
        return found

    def _plant(self, queue: Queue) -> None:
        above = None if queue.cohort is None else TreeNode(NodeKind.COHORT, queue.cohort)
        parent = None if above is None else self._inner(above)
        preemption = queue.rules.preemption or self._preemption
        leaf = Leaf(self.tree, queue, parent, preemption, self._promises, by_share=self._by_share)
        self.leaves[queue.name] = leaf
        if parent is not None:
            parent.leaves.append(leaf)

    def _inner(self, node: TreeNode) -> Inner | None:
        """The cohort, made after all those above it; `None` where they form a cycle."""
        if self.tree.cycle(node):
            return None
        parent = None
        for each in reversed(self.tree.path(node)):
            inner = self._inners.get(each)
            if inner is None:
                inner = self._inners[each] = Inner(self.tree, each, parent)
                if parent is not None:
                    parent.inners.append(inner)
            parent = inner
        return parent


class Reach(NamedTuple):
    """The lowest subtree whose own quota could hold a request on top of what it uses."""

    #: 0 is the queue itself; where no subtree could, the whole tree.
    height: int
    #: Whether that is less than the whole tree.
    partial: bool


def reach_of(leaf: Leaf, account: Account, amount: int) -> Reach:
    """From how far up the queue would have to borrow."""
    inner = leaf.parent
    if inner is None:
        return Reach(0, partial=False)
    if account.usage + amount <= account.subtree_quota:
        return Reach(0, partial=True)
    rest = amount - max(0, account.local_quota - account.usage)
    above = account.parent
    while above is not None:
        if above.usage + rest <= above.subtree_quota:
            return Reach(inner.height, partial=above.parent is not None)
        rest -= max(0, above.local_quota - above.usage)
        above = above.parent
        if inner.parent is not None:
            inner = inner.parent
    return Reach(inner.height, partial=False)


def missing_flavor(queue: Queue, flavors: Container[str]) -> str | None:
    """The first flavor that a queue lists and that does not exist."""
    listed = (each.name for group in queue.resource_groups for each in group.flavors)
    return next((name for name in listed if name not in flavors), None)


def using(ranked: list[Ranked], whats: tuple[FlavorResource, ...]) -> list[Ranked]:
    """Those that were assigned any of these."""
    if len(whats) == 1:
        (what,) = whats
        return [each for each in ranked if what in each[1].usage]
    return [each for each in ranked if any(what in each[1].usage for what in whats)]


def _borrowing_leaves(inner: Inner, whats: tuple[FlavorResource, ...]) -> Iterator[Leaf]:
    """The queues that use more than their quota; a cohort that does not is skipped as a whole."""
    waiting = [inner]
    while waiting:
        current = waiting.pop()
        waiting += (child for child in current.inners if not child.is_within_nominal(whats))
        for leaf in current.leaves:
            if not leaf.is_within_nominal(whats):
                yield leaf


def _while_borrowing(rules: Preemption, *, by_share: bool) -> bool:
    if by_share and rules.reclaim_within_cohort is not ReclaimWithinCohort.NEVER:
        return True
    return rules.borrow_within_cohort is not BorrowWithinCohort.NEVER


def _groups(leaf: Leaf) -> dict[str, FlavorGroup]:
    found: dict[str, FlavorGroup] = {}
    for declared in leaf.queue.resource_groups:
        flavors = tuple(
            (
                flavor.name,
                {
                    resource: Slot(what, leaf.account(what))
                    for resource in flavor.resources
                    for what in (FlavorResource(flavor.name, resource),)
                },
            )
            for flavor in declared.flavors
        )
        group = FlavorGroup(declared.covered_resources, flavors)
        for resource in declared.covered_resources:
            found.setdefault(resource, group)
    return found


def _measure(inner: Inner) -> None:
    """Fill in how high a cohort stands and which queues it has; those below it are done."""
    own = (leaf.queue.name for leaf in inner.leaves)
    inner.names = frozenset(own).union(*(child.names for child in inner.inners))
    inner.height = max((child.height + 1 for child in inner.inners), default=0)
    if inner.leaves:
        inner.height = max(inner.height, 1)
