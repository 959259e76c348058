"""Translates the quota tree of the pools to Kueue's: names, amounts, and what cannot be said.

Nodes, quotas and limits are the same, so decisions that depend on these alone are the same. Pure.
"""

from __future__ import annotations

import msgspec

from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import DEFAULT_FLAVOR, GPU, QuotaForest
from bough.core.quota.references import validate
from bough.formats.kubernetes.pods import GPU as GPU_RESOURCE
from bough.model.admission_rules import AdmissionRules, Preemption
from bough.model.names import SHARED, QueueName, exported_name
from bough.model.organisation import Organisation
from bough.model.problem import problem_line
from bough.model.quota import Cohort, FlavorQuotas, Promise, Queue, ResourceGroup
from bough.model.subpool import SubpoolState
from bough.model.workload import Flavor, LocalQueue

_PRIORITIES = (
    "In Kueue work of every priority may borrow and be preempted; in Bough HIGH and NORMAL stay "
    "within the quota and are never preempted."
)


class KueueTree(msgspec.Struct, frozen=True):
    """The tree, and how it differs from Bough's."""

    organisation: Organisation
    #: The nodes' names in Bough, by kind and name: `Cohort/research---0123456789`.
    originals: dict[str, str]
    #: What the objects cannot say, in sentences.
    warnings: tuple[str, ...]


def kueue_tree(
    config: PoolSetup, forest: QuotaForest, root: QueueName, preemption: Preemption, namespace: str
) -> KueueTree:
    """The tree of a forest that was derived from these pools.

    preemption: the policy's setting, for queues without their own. namespace: for the LocalQueues.
    """
    return _Translation(config, forest, root).tree(preemption, namespace)


class _Translation:
    """State shared by the steps of the translation."""

    def __init__(self, config: PoolSetup, forest: QuotaForest, root: QueueName) -> None:
        self.config = config
        self.forest = forest
        self.names = _exported_names(config, root)
        alone = len(forest.flavors) == 1
        self.flavors = {
            each.name: DEFAULT_FLAVOR if alone else exported_name(f"nodes-of-{each.name}")
            for each in forest.flavors
        }
        self.warnings = [_PRIORITIES]
        self.originals: dict[str, str] = {}

    def tree(self, preemption: Preemption, namespace: str) -> KueueTree:
        rules = AdmissionRules(namespaces=(), preemption=preemption)
        organisation = Organisation(
            cohorts=tuple(map(self._cohort, self.forest.cohorts)),
            queues=tuple(self._queue(each, rules) for each in self.forest.queues),
            flavors=tuple(map(self._flavor, self.forest.flavors)),
            local_queues=tuple(
                self._door(name, leaf, namespace) for name, leaf in self.forest.leaves.items()
            ),
        )
        self._warn_of_pools()
        self.warnings += map(problem_line, validate(organisation))
        return KueueTree(organisation, self.originals, tuple(self.warnings))

    # Objects

    def _cohort(self, cohort: Cohort) -> Cohort:
        return msgspec.structs.replace(
            cohort,
            name=self._original("Cohort", self._name(cohort.name), cohort.name),
            parent=None if cohort.parent is None else self._name(cohort.parent),
            resource_groups=self._groups(cohort.name, cohort.resource_groups),
        )

    def _queue(self, queue: Queue, rules: AdmissionRules) -> Queue:
        return msgspec.structs.replace(
            queue,
            name=self._original("ClusterQueue", self._name(queue.name), queue.name),
            cohort=None if queue.cohort is None else self._name(queue.cohort),
            resource_groups=self._groups(queue.name, queue.resource_groups),
            rules=rules,
            promise=Promise.NONE,
        )

    def _flavor(self, flavor: Flavor) -> Flavor:
        name = self.flavors[flavor.name]
        if name != DEFAULT_FLAVOR:
            self.warnings.append(
                f"ResourceFlavor {name} names no nodes: write into its nodeLabels what the nodes "
                f"of pool {flavor.name} have and no others."
            )
        return Flavor(self._original("ResourceFlavor", name, flavor.name))

    def _door(self, pool: str, leaf: str, namespace: str) -> LocalQueue:
        name = self._original("LocalQueue", exported_name(pool), pool)
        return LocalQueue(name, namespace, self._name(leaf))

    def _groups(self, node: str, groups: tuple[ResourceGroup, ...]) -> tuple[ResourceGroup, ...]:
        return tuple(
            ResourceGroup(
                (GPU_RESOURCE,), tuple(self._quotas(node, flavor) for flavor in group.flavors)
            )
            for group in groups
        )

    def _quotas(self, node: str, flavor: FlavorQuotas) -> FlavorQuotas:
        quota, name = flavor.resources[GPU], self.flavors[flavor.name]
        if quota.nominal < 0:
            self.warnings.append(
                f"{self._name(node)} has {quota.nominal} GPUs of {name}: below it more is promised "
                "than there is. Kueue knows no debts, so 0 is written, and more can be admitted."
            )
            quota = msgspec.structs.replace(quota, nominal=0)
        return FlavorQuotas(name, {GPU_RESOURCE: quota})

    # Names

    def _name(self, text: str) -> str:
        """The name of a cohort, which may exist only because others name it."""
        return self.names.get(text) or exported_name(text)

    def _original(self, kind: str, name: str, original: str) -> str:
        self.originals[f"{kind}/{name}"] = original
        return name

    # What pools have beside their tree

    def _warn_of_pools(self) -> None:
        for pool in self.config.pools:
            name, nodes = pool.name, self.flavors[self.forest.flavor_of_pool[pool.name]]
            subpools = [each for each in self.config.subpools_of(name) if each.visible]
            active = any(each.state is SubpoolState.ACTIVE for each in subpools)
            told = {
                "has no quota of its own: written is what the other pools leave of "
                f"{nodes} now.": pool.gpu.guarantee is None,
                "lends what its subpools do not use to the work of the pool itself; Bough keeps it "
                "from HIGH and NORMAL.": active,
                "has a topology, which is not written.": bool(pool.topology_keys),
            }
            self.warnings += [f"Pool {name} {text}" for text, holds in told.items() if holds]
            self.warnings += [
                f"Subpool {each.name} is being deleted: it has no quota, and what it still runs, "
                "and what waits in it, is counted in the part of its pool that is shared."
                for each in subpools
                if each.state is SubpoolState.DELETING
            ]


def _exported_names(config: PoolSetup, root: QueueName) -> dict[str, str]:
    """By their names in Bough's tree, the names of all queues of pools as objects."""
    found = [root]
    for pool in config.pools:
        own = msgspec.structs.replace(root, pool=pool.name)
        leaves = (SHARED, *(each.subpool for each in config.subpools_of(pool.name)))
        found += (own, *(msgspec.structs.replace(own, leaf=each) for each in leaves))
    return {str(each): each.exported for each in found}
