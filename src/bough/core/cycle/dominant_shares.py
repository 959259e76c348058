"""What queues take of all that is shared, GPUs, CPU and memory alike, and the largest share of it.

Quotas limit what queues list; the pools of a server list GPUs alone. Where the largest of all
shares decides which queue gets idle capacity, this second tree counts CPU and memory beside them.
It limits nothing: a node owns as large a part of them as of the GPUs, and the rest is what is
shared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from bough.core.cycle.quota_cost import QuotaCost, amount_of, first_gpus, is_gpu
from bough.core.quota.account import charge, credit
from bough.core.quota.fair_tree import ANY_FLAVOR, CPU, MEMORY
from bough.core.quota.taken_share import Share, ShareRank, Shares
from bough.core.quota.tree import QuotaTree
from bough.core.undo import UndoLog
from bough.model.cluster import Node
from bough.model.gang import Pod
from bough.model.quota import (
    Amounts,
    Cohort,
    FlavorQuotas,
    FlavorResource,
    Queue,
    Quota,
    ResourceGroup,
    TreeNode,
    quotas_of,
)
from bough.model.snapshot import Snapshot

Declared = TypeVar("Declared", Cohort, Queue)
replace = msgspec.structs.replace
#: What is counted beside GPUs, unless a quota speaks of it.
_BESIDE = (CPU, MEMORY)


class DominantShares:
    """The tree, what pods count in it, and the share of each node."""

    def __init__(self, snapshot: Snapshot, log: UndoLog) -> None:
        declared = _Declared(snapshot)
        cohorts = tuple(declared.widened(each) for each in snapshot.cohorts)
        queues = tuple(declared.widened(each) for each in snapshot.queues)
        gpus = first_gpus((*cohorts, *queues))
        self.tree = QuotaTree.of(cohorts, queues, log)
        self._shares = Shares(self.tree)
        self._costs = {queue.name: QuotaCost(queue, gpus) for queue in queues}

    def amounts(self, queue: str, pods: Iterable[Pod], choice: int) -> dict[FlavorResource, int]:
        """How much pods count; choices of flavors have the same numbers as for quotas."""
        return self._costs[queue].total(pods, choice)

    def count(self, queue: str, amounts: Amounts, *, add: bool) -> None:
        """Count what is taken, or stop counting it."""
        (self.tree.add_usage if add else self.tree.remove_usage)(queue, amounts)

    def rank(self, node: TreeNode, queue: str, request: Amounts) -> ShareRank:
        """How a node compares with those beside it, if a queue at or below it had so much more."""
        # Counted at the queue: what nodes below keep to themselves does not show above them.
        leaf = self.tree.accounts(self.tree.node_of(queue))
        charges = [(leaf[what], amount) for what, amount in request.items() if what in leaf]
        charge(charges)
        found = self._shares.rank(node)
        credit(charges)
        return found

    def of(self, node: TreeNode) -> Share:
        """The share of a node."""
        return self._shares.of(node)


class _Declared:
    """What is declared for a tree, and what its nodes have of CPU and memory."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._gpus: dict[str, int] = {}
        listed: set[str] = set()
        for each in (*snapshot.cohorts, *snapshot.queues):
            for what, quota in quotas_of(each.resource_groups).items():
                listed.add(what.resource)
                if is_gpu(what.resource):
                    self._gpus[what.flavor] = self._gpus.get(what.flavor, 0) + quota.nominal
        self._more = tuple(name for name in _BESIDE if name not in listed)
        #: By flavor: what its nodes have; whether they take work now does not matter.
        self._there = {flavor: Counter[str]() for flavor in self._gpus}
        for node in snapshot.nodes:
            self._add(node)

    def _add(self, node: Node) -> None:
        # A pod on a node without a flavor counts against the first one.
        flavor = ANY_FLAVOR if ANY_FLAVOR in self._there else node.flavor
        flavor = min(self._there, default="") if flavor is None else flavor
        if flavor in self._there:
            self._there[flavor].update({name: amount_of(node.capacity, name) for name in _BESIDE})

    def widened(self, declared: Declared) -> Declared:
        """The same node, with as large a part of CPU and memory as it has of the GPUs."""
        is_root = isinstance(declared, Cohort) and declared.parent is None
        groups = tuple(self._widened(each, is_root=is_root) for each in declared.resource_groups)
        return replace(declared, resource_groups=groups)

    def _widened(self, group: ResourceGroup, *, is_root: bool) -> ResourceGroup:
        gpu = next((name for name in group.covered_resources if is_gpu(name)), None)
        if gpu is None or not self._more:
            return group
        flavors: list[FlavorQuotas] = []
        for each in group.flavors:
            own = each.resources.get(gpu, Quota()).nominal
            more = {name: self._part(each.name, name, own, is_root) for name in self._more}
            flavors.append(FlavorQuotas(each.name, {**each.resources, **more}))
        return ResourceGroup((*group.covered_resources, *self._more), tuple(flavors))

    def _part(self, flavor: str, resource: str, own: int, is_root: bool) -> Quota:
        there, gpus = self._there[flavor][resource], self._gpus[flavor]
        if gpus > 0:
            return Quota(there * own // gpus)
        # Without GPUs, all of it is shared.
        return Quota(there if is_root else 0)
