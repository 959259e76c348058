"""A change of pools, made or only planned, and what it does to the quota tree: debts, old and new.

A pool's quota stands in several nodes of the tree, so the trees before and after are compared as a
whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sa

from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import QuotaForest, derive
from bough.control.site import Site
from bough.core.quota.change_effects import Debt, Effects
from bough.core.quota.tree import QuotaTree
from bough.store import tasks

__all__ = ["Debt", "Effects", "PoolSetup", "compare", "of_change"]


class _PlanOnly(Exception):
    """Roll the transaction back."""


@contextmanager
def changing(site: Site, *, plan: bool = False) -> Iterator[sa.Connection]:
    """A transaction whose end wakes the scheduler; one that is only planned is rolled back."""
    try:
        with site.store.write() as connection:
            yield connection
            if plan:
                raise _PlanOnly
    except _PlanOnly:
        return
    site.wake()


def of_change(
    site: Site, connection: sa.Connection, before: PoolSetup, after: PoolSetup
) -> Effects:
    """The effects of a change, of which both sides were read within the same transaction."""
    uses: dict[str, int] = {}
    for use in tasks.uses(connection):
        uses[use.pool] = uses.get(use.pool, 0) + use.gpus
    return compare(site, before, after, uses)


def compare(site: Site, before: PoolSetup, after: PoolSetup, uses: dict[str, int]) -> Effects:
    """Compare two configurations with the same usage, by pool and subpool."""
    old, new = _tree(site, before, uses), _tree(site, after, uses)
    nodes = sorted({*old, *new})
    keys = sorted(
        {
            (node, what)
            for node in nodes
            for tree in (old, new)
            if node in tree
            for what in tree.flavor_resources(node)
        }
    )
    debts = [
        Debt(
            node,
            what,
            old.debt(node, what) if node in old else 0,
            new.debt(node, what) if node in new else 0,
        )
        for node, what in keys
    ]
    was = {node for node in nodes if node in old and old.cycle(node)}
    now = {node for node in nodes if node in new and new.cycle(node)}
    return Effects(
        debts=tuple(each for each in debts if each.after > each.before),
        relieved=tuple(each for each in debts if each.after < each.before),
        tangled=tuple(sorted(now - was)),
        untangled=tuple(sorted(was - now)),
    )


def _tree(site: Site, config: PoolSetup, uses: dict[str, int]) -> QuotaTree:
    forest = derive(config, site.namespace, site.prefix)
    tree = QuotaTree.of(forest.cohorts, forest.queues)
    for name, gpus in sorted(uses.items()):
        leaf = forest.leaves.get(name)
        if leaf is not None:
            tree.add_usage(leaf, forest.amount(_pool_of(config, forest, name), gpus))
    return tree


def _pool_of(config: PoolSetup, forest: QuotaForest, name: str) -> str:
    if name in forest.flavor_of_pool:
        return name
    return next(each.parent for each in config.subpools if each.name == name)
