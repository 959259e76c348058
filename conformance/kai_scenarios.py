"""KAI's scenarios: a cluster, jobs and some cycles; how every task ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from bough.core.cycle.plan import plan
from bough.model.gang import Gang, Pod, PodState
from bough.model.plan import Plan
from bough.model.policy import KAI_FAIR, Policy
from bough.model.snapshot import Progress, Snapshot
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
}

Tasks = dict[str, dict[str, Any]]


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """The state of every task at every check."""
    missing = _unsupported(case)
    if missing:
        return {"unsupported": missing}
    run = case["run"]
    policy = _policy(run)
    gangs = [gang_of(job, NOW_MS) for job in case["jobs"]]
    staying = {job["name"] for job in case["jobs"] if job.get("releasing_pods_stay_releasing")}
    checks: list[dict[str, Any]] = []
    before = run.get("cycles_before_check", 1)
    total = before + run.get("extra_cycles_must_stay", 0) if run["mode"] == "multi_cycle" else 1
    decided = Plan()
    for number in range(1, total + 1):
        decided = _decide(case, gangs, policy, decided)
        tasks = _tasks(gangs, decided)
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
    return ""


def _policy(run: dict[str, Any]) -> Policy:
    """The preset, without the actions that the case leaves out."""
    actions = run["actions"]
    grace = run.get("staleness_grace_seconds")
    changes: dict[str, object] = {
        "allocate": "allocate" in actions,
        "reclaim": "reclaim" in actions,
        "preempt": "preempt" in actions,
    }
    if "consolidation" not in actions:
        changes["consolidation"] = 0
    if "stalegangeviction" not in actions:
        changes["staleness_grace_ms"] = None
    elif grace is not None:
        changes["staleness_grace_ms"] = grace * 1000
    return replace(KAI_FAIR, gangs=replace(KAI_FAIR.gangs, **changes))


def _decide(case: dict[str, Any], gangs: list[Gang], policy: Policy, before: Plan) -> Plan:
    """One cycle; the one before it has told who waits for others to end."""
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
        progress={
            each.workload: Progress(nominated=True, places=each.pods) for each in before.nominations
        },
    )
    return plan(snapshot, policy)


def _tasks(gangs: list[Gang], decided: Plan) -> Tasks:
    tasks: Tasks = {
        pod.name: {"status": WORDS[pod.state], "node": pod.node}
        for gang in gangs
        for pod in gang.pods
    }
    for eviction in decided.evictions:
        gang = next(gang for gang in gangs if gang.name == eviction.workload)
        for pod in gang.pods:
            if pod.state is PodState.RUNNING and (not eviction.pods or pod.name in eviction.pods):
                tasks[pod.name]["status"] = "releasing"
    for bind in decided.binds:
        tasks[bind.pod] = {"status": "binding", "node": bind.node}
    for nomination in decided.nominations:
        for pod, node in nomination.pods.items():
            tasks[pod] = {"status": "pipelined", "node": node}
    return tasks


def _next(gang: Gang, tasks: Tasks, *, stays: bool) -> Gang:
    """What the world makes of a cycle: what was told to end has ended, what was bound runs."""

    def after(pod: Pod) -> Pod:
        task = tasks[pod.name]
        match task["status"]:
            case "binding":
                return replace(pod, state=PodState.RUNNING, node=task["node"])
            case "releasing" if not stays:
                return replace(pod, state=PodState.PENDING, node=None)
            case "releasing":
                return replace(pod, state=PodState.RELEASING)
            case "pipelined":
                return replace(pod, state=PodState.PENDING, node=None)
            case _:
                return pod

    return replace(gang, pods=tuple(after(pod) for pod in gang.pods))


def _settled(gangs: list[Gang]) -> Tasks:
    return {
        pod.name: {"status": WORDS[pod.state], "node": pod.node}
        for gang in gangs
        for pod in gang.pods
    }


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = dict.fromkeys(
    (
        "allocate",
        "allocate_subgroups",
        "consolidation",
        "elastic",
        "gang",
        "gen_allocate",
        "gen_allocate_subgroups",
        "gen_allocate_topology",
        "gen_consolidation",
        "gen_cycle",
        "gen_preempt",
        "gen_reclaim",
        "other",
        "preempt",
        "reclaim",
        "reclaim_subgroups",
        "seed_min_sub_group",
        "stale_gang",
        "topology",
        "up_min_sub_group",
    ),
    answer,
)
