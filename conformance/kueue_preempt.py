"""Kueue's choice of victims: who, in what order, by which policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bough.core.cycle.candidates import Candidates
from bough.core.cycle.claim import Claim
from bough.core.cycle.giving_queues import Givers, Row
from bough.core.cycle.memo import Memo
from bough.core.cycle.preemption import PreemptionSearch
from bough.core.cycle.queue_order import Standing, standing_of
from bough.core.cycle.reclaim_tiers import Preemptor
from bough.core.cycle.victim import Victim
from bough.core.cycle.working_copy import WorkingCopy
from bough.core.gang.from_workload import gang_of_workload
from bough.model.admission_rules import (
    AdmissionRules,
    Preemption,
    PreemptionWithinQueue,
    ReclaimWithinCohort,
)
from bough.model.gang import LONG_AGO
from bough.model.plan import EvictionRule
from bough.model.policy import KUEUE_FAIR, Policy
from bough.model.quota import Cohort, FlavorQuotas, FlavorResource, Queue, Quota, ResourceGroup
from bough.model.snapshot import Snapshot
from bough.model.workload import Admission, Assignment, PodSet, Workload
from conformance.kueue_objects import cohort_of, queue_of
from conformance.kueue_schedule import REASONS
from conformance.kueue_workloads import UnsupportedError, policy_of, workload_of

#: Something that everyone has, where a case is only about order or policy.
UNIT = FlavorResource("any", "unit")


def answer_victims(case: dict[str, Any]) -> dict[str, Any]:
    """The victims of a newcomer whose flavors are given."""
    data = case["input"]
    try:
        policy = policy_of(case)
        incoming = workload_of(data["incoming"])
        running = [workload_of(each) for each in data["workloads"]]
    except UnsupportedError as reason:
        return {"unsupported": str(reason)}
    copy = _working_copy(
        [cohort_of(each) for each in data["cohorts"]],
        [queue_of(each) for each in data["cluster_queues"]],
        running,
        policy,
    )
    amounts, scarce = _request(incoming, data["assignment"])
    queue = data["incoming_cluster_queue"]
    standing = standing_of(gang_of_workload(incoming, queue), policy)
    preemptor = Preemptor(copy.forest.leaves[queue], standing, amounts, scarce)
    return {
        "actual": {
            "preempted": [
                {"workload": victim.claim.name, "reason": REASONS[victim.rule]}
                for victim in PreemptionSearch(copy, preemptor).victims()
            ]
        }
    }


def answer_order(case: dict[str, Any]) -> dict[str, Any]:
    """In what order a preemptor of the highest rank would take candidates."""
    data = case["input"]
    own = data["preemptor_cluster_queue"]
    try:
        if "admission-fair-sharing" in case["features"]:
            raise UnsupportedError("admission fair sharing")
        policy = policy_of(case)
        running = [workload_of(each) for each in data["candidates"]]
    except UnsupportedError as reason:
        return {"unsupported": str(reason)}
    highest = max(_standing(each, policy).priority for each in running) + 1
    rules = Preemption(PreemptionWithinQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)
    copy = _unit_world(running, own, rules, policy)
    standing = Standing(-highest, LONG_AGO, "", "")
    found = _everyone(copy, own, standing)
    return {"actual": {"order": [key.partition("/")[2] for key in found]}}


def answer_givers(case: dict[str, Any]) -> dict[str, Any]:
    """Which queues are asked to give, one after the other, where nothing that they give counts."""
    data = case["input"]
    own = data["preemptor_cluster_queue"]
    copy = _working_copy(
        [cohort_of(each) for each in data["cohorts"]],
        [queue_of(each) for each in data["cluster_queues"]],
        [workload_of(each) for each in data["workloads"]],
        KUEUE_FAIR,
    )
    givers = Givers(copy, Preemptor(copy.forest.leaves[own], Standing(0, LONG_AGO, "", ""), {}, ()))
    rows = {
        queue: Row(
            iter([_given(copy, queue, each) for _, each in copy.forest.leaves[queue].running])
        )
        for queue in data["candidate_cluster_queues"]
    }
    actions = iter(data["actions"] or ())
    visited: list[str] = []

    def visit(row: Row[Victim]) -> None:
        visited.extend(() if row.head is None else [row.head.claim.queue])
        if next(actions, "pop") == "drop":
            row.close()
        else:
            row.pop()

    for _ in givers.in_turn(rows, visit):
        raise AssertionError("nothing is taken")
    return {"actual": {"visit_order": visited}}


def _given(copy: WorkingCopy, queue: str, claim: Claim) -> Victim:
    root = copy.path(queue)[-1]
    return Victim(claim, (), None, EvictionRule.FAIR_SHARE, root, claim.charges)


def answer_policy(case: dict[str, Any]) -> dict[str, Any]:
    """Whether a policy lets one workload take another."""
    data = case["input"]
    policy = policy_of(case)
    candidate, word = workload_of(data["candidate"]), data["policy"]
    if word == "Any":
        rules = Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
        copy = _unit_world([_holding(candidate, "other")], "own", rules, policy)
    else:
        rules = Preemption(PreemptionWithinQueue(word))
        copy = _unit_world([_holding(candidate, "own")], "own", rules, policy)
    standing = _standing(workload_of(data["preemptor"]), policy)
    return {"actual": {"satisfied": bool(_everyone(copy, "own", standing))}}


def _standing(workload: Workload, policy: Policy) -> Standing:
    return standing_of(gang_of_workload(workload, ""), policy)


def _working_copy(
    cohorts: list[Cohort], queues: list[Queue], running: list[Workload], policy: Policy
) -> WorkingCopy:
    gangs = {
        queue.name: tuple(
            gang_of_workload(each, queue.name) for each in running if _queue(each) == queue.name
        )
        for queue in queues
    }
    snapshot = Snapshot(cohorts=tuple(cohorts), queues=tuple(queues), gangs=gangs)
    return Memo().refresh(snapshot, policy)


def _queue(workload: Workload) -> str | None:
    return None if workload.admission is None else workload.admission.queue


def _request(
    incoming: Workload, assignment: list[dict[str, Any]]
) -> tuple[dict[FlavorResource, int], tuple[FlavorResource, ...]]:
    """What the newcomer asks for, and what of it is scarce."""
    templates = {each.name: each.template.requests for each in incoming.pod_sets}
    amounts: dict[FlavorResource, int] = {}
    scarce: dict[FlavorResource, None] = {}
    for pod_set in assignment:
        for resource, chosen in pod_set["flavors"].items():
            what = FlavorResource(chosen["flavor"], resource)
            amount = templates[pod_set["name"]].get(resource, 0) * pod_set["count"]
            amounts[what] = amounts.get(what, 0) + amount
            if chosen["mode"] == "Preempt":
                scarce[what] = None
    return amounts, tuple(sorted(scarce))


def _unit_world(
    running: list[Workload], own: str, rules: Preemption, policy: Policy
) -> WorkingCopy:
    """A cohort of queues without quota, in which everyone holds one unit of the same."""
    groups = (
        ResourceGroup((UNIT.resource,), (FlavorQuotas(UNIT.flavor, {UNIT.resource: Quota()}),)),
    )
    held = [_holding(each, _queue(each) or "nowhere") for each in running]
    names = sorted({own, *(_queue(each) or "" for each in held)})
    queues = [
        Queue(name, "cohort", groups, rules=AdmissionRules(preemption=rules)) for name in names
    ]
    return _working_copy([], queues, held, policy)


def _holding(workload: Workload, queue: str) -> Workload:
    unit = Assignment("main", {UNIT.resource: UNIT.flavor}, {UNIT.resource: 1}, 1)
    return Workload(
        workload.name,
        workload.namespace,
        (PodSet("main", 1),),
        priority=workload.priority,
        uid=workload.uid,
        created_ms=workload.created_ms,
        annotations=workload.annotations,
        conditions=workload.conditions,
        admission=Admission(queue, (unit,)),
    )


def _everyone(copy: WorkingCopy, own: str, standing: Standing) -> list[str]:
    preemptor = Preemptor(copy.forest.leaves[own], standing, {UNIT: 1}, (UNIT,))
    candidates = Candidates(copy, preemptor)
    return [each.claim.name for each in candidates.in_order(borrowing=False)]


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "preempt_classic": answer_victims,
    "preempt_hier": answer_victims,
    "preempt_fair": answer_victims,
    "random_preempt_classic": answer_victims,
    "random_preempt_fair": answer_victims,
    "preempt_fair_order": answer_givers,
    "preempt_order": answer_order,
    "preempt_policy": answer_policy,
}
