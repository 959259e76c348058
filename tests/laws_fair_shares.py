"""The laws of fair shares, each as a function of a source of choices.

The property tests ask them of few worlds, the soak of many.
"""

from __future__ import annotations

from random import Random

import msgspec

from bough.core.cycle.memo import Memo
from bough.core.quota.tree import QuotaTree
from bough.model.gang import PodState
from bough.model.plan import Bind, EvictionRule, Plan
from bough.model.quota import NodeKind, TreeNode
from bough.model.snapshot import Snapshot
from tests.oracles.cycle import (
    all_gangs,
    applied,
    check_complete,
    check_gangs,
    check_nodes,
    check_quota,
)
from tests.simulation import changes
from tests.worlds_fair import FairWorld

ROUNDS = 4
#: How long it may take until nothing happens any more.
MOST_CYCLES = 60
_RECLAIMS = (EvictionRule.RECLAIM, EvictionRule.FAIR_SHARE)


def check_rest(random: Random) -> int:
    """Every plan keeps the laws, nothing that moves is lost, and all comes to rest.

    How many pods were moved.
    """
    world = FairWorld(random)
    moved = 0
    for _ in range(ROUNDS):
        world.come(random.randint(1, 6))
        moved += _step(world)
        world.end_evicted()
        world.tick()
        _step(world)
        world.go()
    for _ in range(MOST_CYCLES):
        before = world.snapshot
        moved += _step(world)
        if world.snapshot.gangs == before.gangs and not world.ending:
            return moved
        world.end_evicted()
        world.tick()
    raise AssertionError("there is no end of it")


def check_shares_from_scratch(random: Random) -> None:
    """What is fair in a working copy that was kept in step is what is fair in a new one."""
    world = FairWorld(random)
    world.memo = Memo()
    for _ in range(ROUNDS):
        world.come(random.randint(1, 6))
        world.step()
        world.end_evicted()
        world.go()
        kept = world.memo.refresh(world.snapshot, world.policy)
        fresh = Memo().refresh(world.snapshot, world.policy)
        for node in fresh.ledgers.total:
            assert fresh.fair.fair(node) == kept.fair.fair(node)


def moves(decided: Plan) -> set[tuple[str, str]]:
    """The pods that are moved, with the nodes that they go to."""
    moved = {each.workload for each in decided.evictions if each.rule is EvictionRule.MOVE}
    places = {each.workload: each.pods for each in decided.nominations}
    return {(pod, node) for name in moved for pod, node in places[name].items()}


def _step(world: FairWorld) -> int:
    before, decided = world.snapshot, world.plan()
    after = applied(before, decided)
    check_complete(before, decided)
    check_gangs(before, decided, after)
    check_nodes(before, decided, after)
    check_quota(before, decided, after)
    _check_givers(before, decided, world)
    world.apply(decided)
    moved = moves(decided)
    if moved:
        ending = world.snapshot
        world.end_evicted()
        bound = {(each.pod, each.node) for each in world.plan().binds}
        assert moved <= bound, "moved, and lost"
        world.snapshot = ending
    assert changes(decided) or not moved
    return len(moved)


def _check_givers(before: Snapshot, decided: Plan, world: FairWorld) -> None:
    """No side gives anything back that is within what it deserves, with what it was just given."""
    reclaimed = [each for each in decided.evictions if each.rule in _RECLAIMS]
    if not reclaimed:
        return
    # What moves, or ends before it starts again, counts already.
    waiting = {
        pod.name
        for gang in all_gangs(before).values()
        for pod in gang.pods
        if pod.state is PodState.PENDING
    }
    promised = tuple(
        Bind(each.workload, pod, node)
        for each in decided.nominations
        for pod, node in each.pods.items()
        if pod in waiting
    )
    given = (*decided.binds, *promised)
    starts = msgspec.structs.replace(decided, binds=given, evictions=(), nominations=())
    tree = Memo().refresh(applied(before, starts), world.policy).ledgers.total
    for eviction in reclaimed:
        queue = all_gangs(before)[eviction.workload].queue
        path = tree.path(TreeNode(NodeKind.QUEUE, queue))
        side = path[path.index(eviction.level or path[-1]) - 1]
        assert _is_above(tree, side), f"{side} is within what it deserves"


def _is_above(tree: QuotaTree, node: TreeNode) -> bool:
    return any(tree.balance(node, what) < 0 for what in tree.flavor_resources(node))
