"""How many GPUs of HIGH and NORMAL can really start in each pool and subpool now.

What a quota leaves may be more than that: parts of it may be promised to others, used by work of
subpools that are being deleted, or exceed the nodes. The scheduler's own ledger decides. LOW counts
as free, since it gives way to what is within its quota.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from bough.control.pools.pool_setup import PoolSetup, node_sets
from bough.control.pools.pool_words import EVERYTHING
from bough.control.pools.quota_tree import GPU, derive
from bough.control.site import Site
from bough.core.quota.guarantee import GuaranteedTree
from bough.model.names import SHARED, NodeId, QueueName
from bough.model.pool import OfferedNode, Pool
from bough.model.quota import FlavorResource, NodeKind, TreeNode
from bough.model.reason import Refusal
from bough.store.tasks import Use

_NO_QUOTA = "it has no quota, but what the quotas of other pools leave"


class CanStart(msgspec.Struct, frozen=True):
    """What can start in one pool or subpool."""

    gpus: int
    #: Why it is not more.
    note: str = ""


def startable(
    site: Site, config: PoolSetup, uses: Iterable[Use], held: Mapping[NodeId, int]
) -> dict[str, CanStart]:
    """By pool and visible subpool; `held` is all that is used on each node."""
    forest = derive(config, site.namespace, site.prefix)
    tree = GuaranteedTree.of(forest.cohorts, forest.queues)
    uses = tuple(uses)
    parents = {each.name: each.parent for each in config.subpools}
    for use in uses:
        leaf = forest.leaves.get(use.pool)
        if leaf is not None and use.guaranteed:
            tree.add_usage(leaf, forest.amount(parents.get(use.pool, use.pool), use.gpus))
    found: dict[str, CanStart] = {}
    for members, nodes in node_sets(config):
        names = _names(config, members)
        low = sum(use.gpus for use in uses if use.pool in names and not use.guaranteed)
        there = _there(filter(config.takes_work, nodes), held, low)
        for name, pool in names.items():
            what = FlavorResource(forest.flavor_of_pool[pool.name], GPU)
            can = _can_start(site, tree, forest.leaves[name], what, there)
            if pool.gpu.guarantee is None:
                can = msgspec.structs.replace(can, note=_NO_QUOTA)
            found[name] = can
    return found


def _can_start(
    site: Site, tree: GuaranteedTree, leaf: str, what: FlavorResource, there: int
) -> CanStart:
    left = tree.available(TreeNode(NodeKind.QUEUE, leaf), what)
    if there < left:
        return CanStart(max(0, there), "the nodes that take work have no more")
    refusal = tree.refusal(leaf, {what: max(0, left) + 1})
    note = "" if refusal is None else _note(site, refusal)
    return CanStart(max(0, left), note)


def _note(site: Site, refusal: Refusal) -> str:
    """Which part of the tree has no more."""
    node = refusal.node
    queue = None if node is None else QueueName.parse(node.name, site.namespace, site.prefix)
    if queue is None:
        return "" if node is None else f"cohort {node.name} has no more"
    if queue.pool is None:
        return f"{EVERYTHING} has no more beside what other pools use"
    if refusal.promised:
        return f"{refusal.promised} GPUs of pool {queue.pool} are kept for its subpools"
    if queue.leaf == SHARED:
        return "work of subpools that are being deleted counts here"
    return f"pool {queue.pool} as a whole has no more" if queue.leaf is None else ""


def _there(nodes: Iterable[OfferedNode], held: Mapping[NodeId, int], low: int) -> int:
    """GPUs that are idle, or would be without LOW, on nodes that take work."""
    idle = sum(max(0, each.gpus - held.get(each.id, 0)) for each in nodes)
    return idle + low


def _names(config: PoolSetup, members: Iterable[Pool]) -> dict[str, Pool]:
    """The pools and visible subpools of a node set, each with its top-level pool."""
    found = {pool.name: pool for pool in members}
    for each in config.subpools:
        if each.visible and each.parent in found:
            found[each.name] = found[each.parent]
    return found
