"""Every scenarios/schedule-*.yaml is lived through as it is written.

`pools` have `quota`, `maximum`, `weight`, `cohort`, `subpools`; `cohorts` stand above them; `nodes`
have `gpus` and `cpu` each. Workflows are of one group: `pods` of `gpus` and `cpu` each, of which
`minimum` are needed. `rules` are those of the policy about gangs.

A step says what happens: `submit` workflows, `end` some that run, let `seconds` go by, set the
`quota` of pools; what was evicted is `gone`. If it says what is decided, then a cycle is planned
and done: `starts`, `grows` (pods), `evicts`, `nominates` must be all there is; `waits` names
reasons, `line` the order of those that wait, `runs` pods after the cycle, `usage` GPUs of pools.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from bough.control.pools.pool_setup import PoolSetup
from bough.control.pools.quota_tree import QuotaForest, derive
from bough.core.cycle.memo import Memo
from bough.core.cycle.waits import Waits
from bough.core.gang.release import core_pods
from bough.core.gang.tree import GangTree
from bough.formats.yaml.fields import Fields
from bough.model.cluster import Node, Resources, Topology, TopologyLevel
from bough.model.gang import Gang, Pod, PodState, TopologyConstraint
from bough.model.gang_rules import GangRules
from bough.model.plan import Eviction, Plan
from bough.model.policy import OSMO, Policy
from bough.model.pool import GpuQuota, OfferedNode, Pool, PoolCohort
from bough.model.snapshot import Snapshot
from bough.model.subpool import Subpool, SubpoolState
from tests.oracles.cycle import check_plan
from tests.scenario_file import read_scenario
from tests.simulation import Simulation, pods_in, replace, started

FILES = sorted((Path(__file__).parents[2] / "scenarios").glob("schedule-*.yaml"))
PRIORITIES = {"HIGH": 125, "NORMAL": 100, "LOW": 50}
RACKS = Topology("racks", (TopologyLevel("rack"),))
DECIDED = {"starts", "grows", "evicts", "nominates", "waits", "line", "runs", "usage"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_schedule_scenario(path: Path) -> None:
    scenario = read_scenario(str(path))
    site = Site(scenario.fields)

    for step in scenario.steps:
        site.take(step)

    assert [] == scenario.finish()


def test_the_examples_of_the_design_are_all_there() -> None:
    designs = {read_scenario(str(path)).design for path in FILES}
    examples = {"priority queueing order", "preemption", "borrowing and reclaiming"}
    assert {f"scheduling, example: {example}" for example in examples} <= designs


class Site:
    """Pools on nodes, with the tree that the product makes of them."""

    def __init__(self, fields: Fields) -> None:
        nodes = tuple(read_nodes(fields.children("nodes")))
        pools = fields.children("pools")
        self.config = PoolSetup(
            pools=tuple(map(read_pool, pools)),
            subpools=tuple(subpool for pool in pools for subpool in read_subpools(pool)),
            cohorts=tuple(map(read_cohort, fields.children("cohorts"))),
            nodes=tuple(OfferedNode(node.name, gpus=node.capacity.gpus) for node in nodes),
        )
        self.forest: QuotaForest = derive(self.config, "site")
        self.simulation = Simulation(
            Snapshot(
                now_ms=1_000_000,
                cohorts=self.forest.cohorts,
                queues=self.forest.queues,
                nodes=nodes,
                topologies=(RACKS,),
                gangs={queue.name: () for queue in self.forest.queues},
            ),
            read_policy(fields),
        )

    def take(self, step: Fields) -> None:
        """What happens; then, if anything is said about it, a cycle."""
        simulation = self.simulation
        simulation.tick(1000 * (step.optional_integer("seconds") or 1))
        if "quota" in step:
            self.set_quotas(step.child("quota"))
        if "gone" in step:
            simulation.end_evicted(step.texts("gone"))
        for name in step.texts("end"):
            simulation.end(name)
        for at, workflow in enumerate(step.children("submit")):
            for gang in self.read_gangs(workflow, simulation.snapshot.now_ms + at):
                simulation.submit(gang)
        if DECIDED & {*step.names()}:
            self.expect_line(step)
            before = simulation.snapshot
            decided = simulation.step()
            check_plan(before, decided)
            self.expect(step, before, decided)

    def set_quotas(self, quotas: Fields) -> None:
        """Pools are given other quotas, while everything runs on."""
        pools = tuple(
            replace(pool, gpu=replace(pool.gpu, guarantee=quotas.integer(pool.name)))
            if pool.name in quotas
            else pool
            for pool in self.config.pools
        )
        self.config = replace(self.config, pools=pools)
        self.forest = derive(self.config, "site")
        self.simulation.declare(*self.forest.cohorts, *self.forest.queues)

    def read_gangs(self, fields: Fields, now_ms: int) -> list[Gang]:
        """One workflow, or with `copies` several that are alike."""
        name = fields.text("name")
        copies = fields.optional_integer("copies")
        priority = fields.optional_text("priority") or "NORMAL"
        pods = fields.optional_integer("pods") or 1
        together = fields.boolean("rack", default=False)
        requests = read_resources(fields, fields.optional_integer("gpus") or 1, pods=1)
        gang = Gang(
            name,
            self.forest.leaves[fields.text("pool")],
            tuple(Pod(f"{name}-{at}", None, requests) for at in range(pods)),
            minimum=fields.optional_integer("minimum") or pods,
            constraint=TopologyConstraint(required="rack") if together else None,
            priority=PRIORITIES[priority],
            preemptible=priority == "LOW",
            submitted_ms=now_ms,
        )
        if copies is None:
            return [gang]
        return [
            replace(gang, name=f"{name}-{at:04}", submitted_ms=now_ms + at) for at in range(copies)
        ]

    def expect_line(self, step: Fields) -> None:
        if "line" in step:
            copy = Memo().refresh(self.simulation.snapshot, self.simulation.policy)
            waiting = sorted(
                claim.standing
                for line in copy.lines.values()
                for kind in line.kinds()
                for claim in kind
            )
            assert step.texts("line") == tuple(standing.name for standing in waiting)

    def expect(self, step: Fields, before: Snapshot, decided: Plan) -> None:
        """Compare a plan, and what it makes of the cluster, with what a step says."""
        assert sorted(step.texts("starts")) == sorted(started(decided))
        grown = Counter(bind.workload for bind in decided.binds if bind.growth)
        assert numbers(step, "grows") == grown
        nominated = sorted(each.workload for each in decided.nominations)
        assert sorted(step.texts("nominates")) == nominated
        evicted = {each.workload: self.describe(each) for each in decided.evictions}
        assert texts(step, "evicts") == evicted
        every = Waits(before, OSMO, decided).every()
        reasons = {wait.workload: str(wait.reason) for wait in every}
        for name, reason in texts(step, "waits").items():
            assert reason == reasons.get(name), f"{name}: {reasons.get(name)}"
        gangs = self.simulation.gangs
        for name, pods in numbers(step, "runs").items():
            assert pods == len(pods_in(gangs[name], PodState.RUNNING)), name
        for pool, used in texts(step, "usage").items():
            assert used == self.usage(pool), pool

    def describe(self, eviction: Eviction) -> str:
        """An eviction in words."""
        level = eviction.level.name if eviction.level else ""
        level = level.removeprefix("osmo-pool-site-").replace("osmo-default-site", "all pools")
        pods = f"{len(eviction.pods)} pods " if eviction.pods else ""
        return f"{pods}by {eviction.preemptor}, {eviction.rule} at {level}"

    def usage(self, pool: str) -> str:
        """What a pool uses of its quota, and all that it uses."""
        guaranteed = total = 0
        for gang in self.simulation.snapshot.gangs[self.forest.leaves[pool]]:
            tree = GangTree.of(gang)
            core = () if gang.preemptible else core_pods(tree, tree.held)
            guaranteed += sum(pod.requests.gpus for pod in core)
            total += sum(pod.requests.gpus for pod in pods_in(gang, PodState.RUNNING))
        return f"{guaranteed} of quota, {total} in all"


def read_policy(fields: Fields) -> Policy:
    if "rules" not in fields:
        return OSMO
    said = fields.child("rules")
    rules = {
        name: said.text(name) if name == "share_idle_by" else said.integer(name)
        for name in said.names()
    }
    return replace(OSMO, gangs=msgspec.convert(rules, GangRules))


def read_nodes(fields: list[Fields]) -> list[Node]:
    nodes: list[Node] = []
    for each in fields:
        rack = each.optional_text("rack")
        capacity = read_resources(each, each.integer("gpus"), pods=1000)
        for _ in range(each.optional_integer("count") or 1):
            labels = {"rack": rack} if rack else {}
            nodes.append(Node(f"node-{len(nodes) + 1:03}", capacity, labels, flavor="default"))
    return nodes


def read_resources(fields: Fields, gpus: int, pods: int) -> Resources:
    return Resources(gpus, 1000 * (fields.optional_integer("cpu") or 0), pods=pods)


def read_pool(fields: Fields) -> Pool:
    return Pool(
        fields.text("name"),
        gpu=GpuQuota(
            fields.optional_integer("quota"),
            fields.optional_integer("maximum"),
            fields.optional_integer("weight") or 1,
        ),
        cohort=fields.optional_text("cohort"),
        borrowing_limit=fields.optional_integer("borrowing_limit"),
        lending_limit=fields.optional_integer("lending_limit"),
    )


def read_subpools(fields: Fields) -> list[Subpool]:
    pool = fields.text("name")
    quotas = numbers(fields, "subpools")
    return [Subpool(pool, name, SubpoolState.ACTIVE, quota) for name, quota in quotas.items()]


def read_cohort(fields: Fields) -> PoolCohort:
    return PoolCohort(
        fields.text("name"),
        fields.optional_text("parent"),
        fields.optional_integer("quota") or 0,
        fields.optional_integer("borrowing_limit"),
        fields.optional_integer("lending_limit"),
    )


def numbers(fields: Fields, name: str) -> dict[str, int]:
    if name not in fields:
        return {}
    child = fields.child(name)
    return {key: child.integer(key) for key in child.names()}


def texts(fields: Fields, name: str) -> dict[str, str]:
    return fields.text_map(name) if name in fields else {}
