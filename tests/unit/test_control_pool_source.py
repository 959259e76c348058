"""Remedies in the words of pools: what is raised is what people set, and it helps."""

from __future__ import annotations

import msgspec

from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import derive
from bough.control.scheduling.pool_remedies import PoolSource
from bough.core.explain.judge import Judge
from bough.core.explain.remedies import remedies
from bough.model.cluster import Node, Resources
from bough.model.gang import Gang, Pod, PodState
from bough.model.policy import OSMO
from bough.model.pool import GpuQuota, OfferedNode, Pool, PoolCohort
from bough.model.remedy import BePreemptible, Change
from bough.model.snapshot import Snapshot
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import Priority

TEAM = "osmo-pool-ns-team"


def config(quota: int, maximum: int | None = None, **subpools: int) -> PoolSetup:
    return PoolSetup(
        pools=(Pool("team", gpu=GpuQuota(quota, maximum)), Pool("other", gpu=GpuQuota(0))),
        subpools=tuple(
            Subpool("team", name, SubpoolState.ACTIVE, each) for name, each in subpools.items()
        ),
        nodes=(OfferedNode("n0", gpus=8),),
    )


def group(name: str, gpus: int, leaf: str, on: str | None = None) -> Gang:
    state = PodState.RUNNING if on else PodState.PENDING
    pod = Pod("task", requests=Resources(gpus=gpus, pods=1), state=state, node=on)
    return Gang(f"{name}/group", f"{TEAM}--{leaf}", (pod,), minimum=1, priority=100)


def told(declared: PoolSetup, *groups: Gang) -> list[str]:
    """What would help the last of some groups; each does."""
    forest = derive(declared, "ns")
    nodes = (Node("n0", Resources(gpus=8, pods=100), flavor="default"),)
    gangs: dict[str, tuple[Gang, ...]] = {}
    for each in groups:
        gangs[each.queue] = (*gangs.get(each.queue, ()), each)
    snapshot = Snapshot(cohorts=forest.cohorts, queues=forest.queues, nodes=nodes, gangs=gangs)
    source, name = PoolSource(snapshot, declared, "ns"), groups[-1].name
    judge = Judge(snapshot, OSMO, name)
    assert not judge.starts(snapshot)
    found = remedies(snapshot, OSMO, name, source=source).found
    assert all(judge.starts(source.apply(name, each.steps)) for each in found)
    return [each.sentence for each in found]


def test_the_quota_of_a_pool_is_raised_where_its_shared_part_is_full():
    found = told(config(2), group("old", 2, "_shared", "n0"), group("new", 2, "_shared"))

    assert [
        "wait until old/group ends",
        "run it as LOW (it may borrow, and be evicted)",
        "raise the quota of pool team from 2 to 4",
    ] == found


def test_the_quota_of_a_subpool_comes_from_the_rest_of_its_pool():
    found = told(config(4, a=1), group("new", 2, "a"))

    assert "raise the quota of subpool team--a from 1 to 2" in found
    assert "move it to pool team" in found


def test_a_pool_that_is_divided_to_the_last_is_raised_with_its_subpool():
    found = told(config(1, a=1), group("new", 2, "a"))

    raised = "raise the quota of subpool team--a from 1 to 2 and the quota of pool team from 1 to 2"
    assert raised in found


def test_the_maximum_rises_with_the_quota():
    found = told(config(1, 1, a=0), group("old", 1, "_shared", "n0"), group("new", 1, "_shared"))

    assert "raise the quota of pool team from 1 to 2 and its maximum from 1 to 2" in found


def test_where_the_machines_are_full_nodes_are_added():
    found = told(config(9), group("old", 8, "_shared", "n0"), group("new", 1, "_shared"))

    assert ["wait until old/group ends", "add 1 node like n0"] == found


def test_what_runs_as_low_has_the_rank_of_low():
    declared = config(0)
    forest = derive(declared, "ns")
    gang = group("new", 1, "_shared")
    snapshot = Snapshot(cohorts=forest.cohorts, queues=forest.queues, gangs={gang.queue: (gang,)})
    source = PoolSource(snapshot, declared, "ns")

    (changed,) = source.apply(gang.name, [BePreemptible()]).gangs[gang.queue]

    assert (True, Priority.LOW.rank) == (changed.preemptible, changed.priority)
    assert [Change("workflow", "new", "priority", "NORMAL", "LOW")] == list(
        source.tell(gang.name, BePreemptible())
    )


def test_a_group_is_not_told_to_run_as_low_while_another_of_its_workflow_holds_gpus():
    first = group("work", 2, "_shared", "n0")
    second = msgspec.structs.replace(group("work", 2, "_shared"), name="work/second")

    found = told(config(2), first, second)

    assert ["wait until work/group ends", "raise the quota of pool team from 2 to 4"] == found


def test_what_runs_without_a_gpu_does_not_keep_a_workflow_from_low():
    first = group("work", 0, "_shared", "n0")
    second = msgspec.structs.replace(group("work", 2, "_shared"), name="work/second")

    assert "run it as LOW (it may borrow, and be evicted)" in told(config(0), first, second)


def low(name: str, gpus: int) -> Gang:
    return msgspec.structs.replace(
        group(name, gpus, "_shared"), priority=Priority.LOW.rank, preemptible=True
    )


def test_a_pool_that_lends_too_little_may_lend_more():
    lender = Pool("lender", gpu=GpuQuota(8), lending_limit=1)
    declared = PoolSetup((Pool("team", gpu=GpuQuota(0)), lender), nodes=config(0).nodes)

    found = told(declared, low("new", 4))

    assert "raise the lending limit of pool lender from 1 to 4" in found


def test_a_cohort_that_lends_too_little_may_lend_more():
    cohort = PoolCohort("org", lending_limit=2)
    lender = Pool("lender", gpu=GpuQuota(8), cohort="org")
    pools = (Pool("team", gpu=GpuQuota(0)), lender)
    declared = PoolSetup(pools, cohorts=(cohort,), nodes=config(0).nodes)

    found = told(declared, low("new", 4))

    assert "raise the lending limit of cohort org from 2 to 4" in found


def test_the_weight_of_a_pool_is_raised_where_another_goes_first_for_its_own():
    """One GPU is left of eight; team has borrowed five of them and other two."""

    def low(name: str, gpus: int, pool: str, on: str | None = None) -> Gang:
        gang = group(name, gpus, "_shared", on)
        queue = f"osmo-pool-ns-{pool}--_shared"
        return msgspec.structs.replace(gang, queue=queue, priority=50, preemptible=True)

    found = told(
        config(0),
        low("old", 5, "team", "n0"),
        low("others", 2, "other", "n0"),
        low("rival", 1, "other"),
        low("new", 1, "team"),
    )

    # For its weight team would then have 6/2, as much as other has; of equals the name decides.
    assert "raise the weight of pool team from 1 to 2" in found
