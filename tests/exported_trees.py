"""Random pools, subpools and cohorts, and their trees as objects, written and read again."""

from __future__ import annotations

from hypothesis import strategies as st

from bough.control.pools.kueue_tree import KueueTree, kueue_tree
from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import QuotaForest, derive
from bough.control.scheduling.tree_export import KaiTrees, kai_trees
from bough.model.names import QueueName, exported_name
from bough.model.policy import OSMO
from bough.model.pool import GpuQuota, OfferedNode, Pool, PoolCohort
from bough.model.quota import TreeNode
from bough.model.subpool import Subpool, SubpoolState
from bough.pod_scheduler.install import write_objects
from bough.server.routes.cluster_queues import kai_objects, kueue_objects

ROOT = QueueName("ns")
SITE = "5172"
#: Some are not valid in Kubernetes, and some would meet if they were merely made so.
POOLS = ("team", "Team", "te_am", "te.am", "a-b", "a_b", "x" * 40)
COHORTS = ("org", "Org", "or_g", "o.rg", "c" * 120)
SUBPOOLS = ("a", "A", "b_c", "b-c")
_LIMITS = st.none() | st.integers(0, 12)


@st.composite
def cohorts(draw: st.DrawFn) -> tuple[PoolCohort, ...]:
    """Cohorts below each other, or below one that was deleted."""
    found: list[PoolCohort] = []
    for name in draw(st.lists(st.sampled_from(COHORTS), unique=True, max_size=4)):
        above = [None, "Gone", *(each.name for each in found)]
        found.append(
            PoolCohort(
                name,
                draw(st.sampled_from(above)),
                draw(st.integers(0, 4)),
                draw(_LIMITS),
                draw(_LIMITS),
                draw(st.integers(0, 3)),
            )
        )
    return tuple(found)


@st.composite
def setups(
    draw: st.DrawFn, *, plain: bool = False, pool_names: tuple[str, ...] = POOLS
) -> PoolSetup:
    """Pools with all that a tree is made of; `plain`: as far as KAI can say it."""
    above = () if plain else draw(cohorts())
    names = draw(st.lists(st.sampled_from(pool_names), unique=True, min_size=1, max_size=4))
    pools: list[Pool] = []
    subpools: list[Subpool] = []
    for name in names:
        guarantees = st.integers(0, 12) if plain else st.none() | st.integers(0, 12)
        guarantee = draw(guarantees)
        beyond = draw(_LIMITS)
        maximum = None if beyond is None else (guarantee or 0) + beyond
        gpu = GpuQuota(guarantee, maximum, draw(st.integers(0, 3)))
        more = {
            "cohort": draw(st.sampled_from([None, *(each.name for each in above)])),
            "borrowing_limit": None if plain else draw(_LIMITS),
            "lending_limit": None if plain else draw(_LIMITS),
        }
        pools.append(Pool(name, gpu=gpu, **more))  # type: ignore[arg-type]
        subpools += [] if guarantee is None else draw(_divided(name, guarantee))
    nodes = [OfferedNode("all", gpus=draw(st.integers(0, 60)), pools=None)]
    if not plain and draw(st.booleans()):
        nodes = [
            OfferedNode(f"n{number}", gpus=draw(st.integers(0, 30)), pools=(name,))
            for number, name in enumerate(names)
        ]
    order = sorted(pools, key=lambda each: each.name)
    return PoolSetup(tuple(order), tuple(subpools), above, tuple(nodes))


@st.composite
def _divided(draw: st.DrawFn, pool: str, left: int) -> list[Subpool]:
    found: list[Subpool] = []
    for name in draw(st.lists(st.sampled_from(SUBPOOLS), unique=True, max_size=3)):
        given = draw(st.integers(0, left))
        state = draw(st.sampled_from(SubpoolState))
        found.append(Subpool(pool, name, state, given))
        left -= found[-1].counted
    return found


def as_kueue(config: PoolSetup) -> tuple[QuotaForest, KueueTree, str]:
    """The site's tree, its export, and that as YAML."""
    forest = derive(config, ROOT.namespace)
    tree = kueue_tree(config, forest, ROOT, OSMO.preemption, "ml")
    return forest, tree, write_objects(kueue_objects(SITE, tree))


def as_kai(config: PoolSetup) -> tuple[QuotaForest, KaiTrees, str]:
    """The same for KAI."""
    forest = derive(config, ROOT.namespace)
    trees = kai_trees(config, forest, ROOT)
    return forest, trees, write_objects(kai_objects(SITE, trees))


def names_of(config: PoolSetup) -> dict[str, str]:
    """By the names of Bough, the names that nodes must have as objects."""
    queues = [ROOT]
    for pool in config.pools:
        leaves = ["_shared", *(each.subpool for each in config.subpools_of(pool.name))]
        queues += [QueueName("ns", pool.name, leaf) for leaf in (None, *leaves)]
    found = {str(each): each.exported for each in queues}
    return found | {name: exported_name(name) for name in (*COHORTS, "Gone")}


def renamed(node: TreeNode, names: dict[str, str]) -> TreeNode:
    """A node of the site's tree as it is called in the other one."""
    return TreeNode(node.kind, names[node.name])
