"""Exports the tree of the pools for Kueue and KAI, with what these cannot express."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from bough.control.config.policy import PolicyReader
from bough.control.people.access import authorise
from bough.control.pools.kueue_tree import KueueTree, kueue_tree
from bough.control.pools.pool_setup import PoolSetup, read_pool_setup, unallocated
from bough.control.pools.quota_tree import QuotaForest, derive
from bough.control.scheduling.cluster_queues import queue_tree
from bough.control.site import Site, site_identity
from bough.core.names import label_fault
from bough.errors import Invalid
from bough.model.access import Action, Actor
from bough.model.names import QueueName
from bough.model.policy import Policy
from bough.model.pool import Pool
from bough.model.queue_tree import QueueTree

#: The label of the root if there are no pools.
_NO_BACKEND = "default"


class KaiTrees(msgspec.Struct, frozen=True):
    """The trees of all backends; their names do not collide below the root."""

    #: By backend.
    trees: dict[str, QueueTree]
    #: What the objects cannot say, in sentences.
    warnings: tuple[str, ...]


def export_kai(site: Site, actor: Actor) -> tuple[str, KaiTrees]:
    """The tree as Queues of KAI, and the identity of the site, which the objects carry."""
    config, _ = _read(site, actor)
    forest = derive(config, site.namespace, site.prefix)
    return site_identity(site), kai_trees(config, forest, _root(site))


def export_kueue(site: Site, actor: Actor, namespace: str) -> tuple[str, KueueTree]:
    """The tree as Cohorts and ClusterQueues of Kueue, with LocalQueues in a namespace."""
    fault = label_fault(namespace)
    if fault is not None:
        raise Invalid(f"namespace: {fault}.")
    config, policy = _read(site, actor)
    forest = derive(config, site.namespace, site.prefix)
    found = kueue_tree(config, forest, _root(site), policy.preemption, namespace)
    warnings = (*found.warnings, *_site_warnings(config))
    return site_identity(site), msgspec.structs.replace(found, warnings=warnings)


def kai_trees(config: PoolSetup, forest: QuotaForest, root: QueueName) -> KaiTrees:
    """The trees of all backends. Pure."""
    backends = sorted({pool.backend for pool in config.pools}) or [_NO_BACKEND]
    return KaiTrees(
        {backend: queue_tree(config, root, backend) for backend in backends},
        (*_kai_warnings(config, forest), *_site_warnings(config)),
    )


def _read(site: Site, actor: Actor) -> tuple[PoolSetup, Policy]:
    authorise(actor, Action.QUEUE_LIST, names=site.role_names)
    with site.store.read() as connection:
        return read_pool_setup(connection), PolicyReader().read(connection)


def _root(site: Site) -> QueueName:
    return QueueName(site.namespace, prefix=site.prefix)


def _kai_warnings(config: PoolSetup, forest: QuotaForest) -> Iterator[str]:
    for cohort in config.cohorts:
        yield f"Cohort {cohort.name} is not written: in KAI pools stand side by side."
    for pool in config.pools:
        yield from _pool_warnings(pool)
        visible = [each for each in config.subpools_of(pool.name) if each.visible]
        if (unallocated(pool, visible) or 0) < 0:
            yield f"Pool {pool.name} has less than its subpools; 0 is written for what is left."
    if len(forest.flavors) > 1:
        yield "KAI counts over all nodes: that pools have nodes of their own is not written."


def _pool_warnings(pool: Pool) -> Iterator[str]:
    for field, amount in (
        ("cohort", pool.cohort),
        ("borrowing_limit", pool.borrowing_limit),
        ("lending_limit", pool.lending_limit),
    ):
        if amount is not None:
            yield f"Pool {pool.name}: {field} {amount} is not written; KAI has no such field."
    if pool.gpu.guarantee is None:
        yield (
            f"Pool {pool.name} has no quota of its own: in KAI it deserves as much as there is, in "
            "Bough what the other pools leave."
        )


def _site_warnings(config: PoolSetup) -> Iterable[str]:
    """What neither of them can express."""
    for pool in config.pools:
        if pool.user_gpu_limit is not None:
            limit = f"user_gpu_limit {pool.user_gpu_limit}"
            yield f"Pool {pool.name}: {limit} is not written; queues know no users."
        if pool.enable_maintenance:
            yield f"Pool {pool.name} is in maintenance, which is not written: it takes work."
    backends = sorted({pool.backend for pool in config.pools})
    if len(backends) > 1:
        yield f"Pools of several backends stand in one tree: {', '.join(backends)}."
