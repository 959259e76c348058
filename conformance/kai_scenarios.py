"""KAI's scenarios: a cluster, jobs and some cycles; how every task ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from bough.core.cycle.plan import plan as decide
from bough.model.gang import Gang, Pod, PodState
from bough.model.gangrules import GangRules, GrowthTurn, Line
from bough.model.placement import KAI_PLACEMENT
from bough.model.plan import Plan
from bough.model.policy import KAI
from bough.model.snapshot import Snapshot
from conformance.kai_objects import QueueTree, gang_of, nodes_of, topologies_of

NOW_MS = 1_000_000_000
#: How a pod that was not decided about is called.
WORDS = {
    PodState.PENDING: "pending",
    PodState.GATED: "gated",
    PodState.RUNNING: "running",
    PodState.RELEASING: "releasing",
    PodState.SUCCEEDED: "succeeded",
    PodState.FAILED: "failed",
}
UNSUPPORTED = {
    "pod_affinity": "affinity between pods",
    "custom_plugins": "another list of KAI's plugins",
    "min_runtime": "minimum runtimes by queue",
    "preemption_delay": "delayed preemption",
}

Tasks = dict[str, dict[str, Any]]


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """The state of every task at every check."""
    missing = _unsupported(case)
    if missing:
        return {"unsupported": missing}
    run = case["run"]
    rules = _rules(run)
    gangs = [gang_of(job, NOW_MS) for job in case["jobs"]]
    frozen = run["actions"] == ["stalegangeviction"] and run["mode"] == "single_cycle"
    staying = {job["name"] for job in case["jobs"] if job.get("releasing_pods_stay_releasing")}
    checks: list[dict[str, Any]] = []
    before = run.get("cycles_before_check", 1)
    total = before + run.get("extra_cycles_must_stay", 0) if run["mode"] == "multi_cycle" else 1
    for number in range(1, total + 1):
        considered = [_without_starts(gang) for gang in gangs] if frozen else gangs
        tasks = _tasks(gangs, _decide(case, considered, rules))
        gangs = [_next(gang, tasks, stays=gang.name in staying) for gang in gangs]
        if run["mode"] != "multi_cycle":
            checks.append({"tasks": tasks})
        elif number >= before:
            checks.append({"tasks": _settled(gangs)})
    return {"actual": {"checks": checks}}


def _unsupported(case: dict[str, Any]) -> str:
    if not case["whole_gpu_only"]:
        return "parts of a GPU"
    for feature in case["features"]:
        if feature in UNSUPPORTED:
            return UNSUPPORTED[feature]
    actions = set(case["run"]["actions"])
    own = "min_sub_group" in case["features"]
    if case["run"]["mode"] == "single_cycle" and actions & {"reclaim", "preempt"} and not own:
        return "reclaim and preemption by KAI's fair share"
    if actions == {"consolidation"}:
        return "consolidation"
    return ""


def _rules(run: dict[str, Any]) -> GangRules:
    actions = run["actions"]
    grace = run.get("staleness_grace_seconds")
    stale = "stalegangeviction" in actions
    return GangRules(
        placement=KAI_PLACEMENT,
        line=Line.BY_WEIGHT,
        growth=GrowthTurn.IN_LINE,
        growth_borrows=False,
        subgroups_by_name=True,
        reclaim="reclaim" in actions,
        preempt="preempt" in actions,
        preemptible_takes_victims=True,
        strict_within_rank=False,
        staleness_grace_ms=(60 if grace is None else grace) * 1000 if stale else None,
        reservations=0,
    )


def _decide(case: dict[str, Any], gangs: list[Gang], rules: GangRules) -> Plan:
    tree = QueueTree(case)
    by_queue: dict[str, list[Gang]] = {}
    for gang in gangs:
        by_queue.setdefault(gang.queue, []).append(gang)
    snapshot = Snapshot(
        now_ms=NOW_MS,
        cohorts=tree.cohorts(),
        queues=tree.queues(),
        nodes=nodes_of(case),
        topologies=topologies_of(case),
        gangs={queue: tuple(members) for queue, members in by_queue.items()},
    )
    return decide(snapshot, msgspec.structs.replace(KAI, gangs=rules))


def _tasks(gangs: list[Gang], plan: Plan) -> Tasks:
    tasks: Tasks = {
        pod.name: {"status": WORDS[pod.state], "node": pod.node}
        for gang in gangs
        for pod in gang.pods
    }
    for eviction in plan.evictions:
        gang = next(gang for gang in gangs if gang.name == eviction.workload)
        for pod in gang.pods:
            if pod.state is PodState.RUNNING and (not eviction.pods or pod.name in eviction.pods):
                tasks[pod.name]["status"] = "releasing"
    for bind in plan.binds:
        tasks[bind.pod] = {"status": "binding", "node": bind.node}
    for nomination in plan.nominations:
        for pod, node in nomination.pods.items():
            tasks[pod] = {"status": "pipelined", "node": node}
    return tasks


def _next(gang: Gang, tasks: Tasks, *, stays: bool) -> Gang:
    """What the world makes of a cycle: what was told to end has ended, what was bound runs."""

    def after(pod: Pod) -> Pod:
        task = tasks[pod.name]
        match task["status"]:
            case "binding":
                return msgspec.structs.replace(pod, state=PodState.RUNNING, node=task["node"])
            case "releasing" if not stays:
                return msgspec.structs.replace(pod, state=PodState.PENDING, node=None)
            case "releasing":
                return msgspec.structs.replace(pod, state=PodState.RELEASING)
            case _:
                return pod

    return msgspec.structs.replace(gang, pods=tuple(after(pod) for pod in gang.pods))


def _settled(gangs: list[Gang]) -> Tasks:
    return {
        pod.name: {"status": WORDS[pod.state], "node": pod.node}
        for gang in gangs
        for pod in gang.pods
    }


def _without_starts(gang: Gang) -> Gang:
    """Only stale gangs are looked for: nothing may start."""
    pods = tuple(
        msgspec.structs.replace(pod, state=PodState.GATED) if pod.state is PodState.PENDING else pod
        for pod in gang.pods
    )
    return msgspec.structs.replace(gang, pods=pods)


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = dict.fromkeys(
    (
        "allocate",
        "allocate_subgroups",
        "elastic",
        "gang",
        "gen_allocate",
        "gen_allocate_subgroups",
        "gen_allocate_topology",
        "seed_min_sub_group",
        "stale_gang",
        "topology",
        "up_min_sub_group",
    ),
    answer,
)
