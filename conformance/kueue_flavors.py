"""Kueue's choice of flavors, order of entries, reservations and partial admission, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bough.core.cycle.claim import Claim
from bough.core.cycle.cycle import Cycle
from bough.core.cycle.decide_pod_sets import room_to_keep
from bough.core.cycle.flavors import FlavorAssignment, FlavorQuestion, Mode, assign_flavors
from bough.core.cycle.forest import Leaf, Slot
from bough.core.cycle.judge import Judgement, Outlook
from bough.core.cycle.memo import Memo
from bough.core.cycle.partial_admission import largest_that_fits
from bough.core.cycle.together import decision_order
from bough.core.gang.from_workload import gang_of_workload
from bough.core.gang.order import SPEC_ORDER
from bough.model.policy import KUEUE, Policy
from bough.model.quota import Queue
from bough.model.snapshot import Snapshot
from bough.model.workload import Workload
from conformance.kueue_objects import amounts_of, cohort_of, queue_of, written
from conformance.kueue_workloads import (
    UnsupportedError,
    flavor_of,
    pod_set_of,
    policy_of,
    workload_of,
)

#: What a simulated preemption may say.
POSSIBILITIES = {
    "NoCandidates": Mode.NO_CANDIDATES,
    "Preempt": Mode.PREEMPT,
    "Reclaim": Mode.RECLAIM,
}
#: How an assignment is called that is neither a fit nor impossible.
MODES = {Mode.FIT: "Fit", Mode.NO_FIT: "NoFit"}


def answer_flavors(case: dict[str, Any]) -> dict[str, Any]:
    """Which flavors the pod sets get; what preemption could do is given."""
    try:
        question = _question(case)
    except UnsupportedError as reason:
        return {"unsupported": str(reason)}
    found = assign_flavors(question)
    return {
        "actual": {
            "mode": MODES.get(found.mode, "Preempt"),
            "pod_sets": [
                {
                    "name": each.ask.pod_set.name,
                    "count": each.ask.pods,
                    "requests": {name: written(n) for name, n in each.ask.requests.items()},
                    "flavors": {
                        resource: {
                            "flavor": choice.flavor,
                            "mode": MODES.get(choice.mode, "Preempt"),
                            "borrowing_height": choice.height,
                            "tried_flavor_index": each.tried.get(resource, -1),
                        }
                        for resource, choice in each.choices.items()
                    },
                }
                for each in found.pod_sets
            ],
        }
    }


def answer_entry_order(case: dict[str, Any]) -> dict[str, Any]:
    """In which order entries are decided."""
    policy = policy_of(case)
    leaf = _leaf_of(Queue("queue"))
    entries: list[Judgement] = []
    for data in case["input"]["entries"]:
        claim = _claim(workload_of(data), policy)
        entry = Judgement(leaf, claim, nominated=data["is_preemptor"])
        entry.assignment = FlavorAssignment(data["borrowing_height"])
        entries.append(entry)
    entries.sort(key=decision_order(policy))
    return {"actual": {"order": [entry.claim.name.partition("/")[2] for entry in entries]}}


def answer_reserve(case: dict[str, Any]) -> dict[str, Any]:
    """What is kept for a workload that cannot be admitted now."""
    data = case["input"]
    snapshot = Snapshot(queues=tuple(queue_of(each) for each in data["cluster_queues"]))
    copy = Memo().refresh(snapshot, KUEUE)
    (leaf,) = copy.forest.leaves.values()
    copy.ledgers.total.add_usage(leaf.queue.name, amounts_of(data["usage"][leaf.queue.name]))
    entry = Judgement(leaf, _claim(Workload("w", "", ()), KUEUE))
    entry.outlook = Outlook.AFTER_VICTIMS
    if data["assignment_mode"] != "Preempt":
        entry.outlook = Outlook.AT_ONCE
    entry.assignment = FlavorAssignment(data["borrowing_height"])
    entry.assignment.usage = amounts_of(data["assignment_usage"])
    kept = room_to_keep(Cycle(copy), entry)
    reserved: dict[str, dict[str, int | str]] = {}
    for what, amount in kept.items():
        reserved.setdefault(what.flavor, {})[what.resource] = written(amount)
    return {"actual": {"reserved": reserved}}


def answer_partial(case: dict[str, Any]) -> dict[str, Any]:
    """The largest counts that fit below a given total."""
    data = case["input"]
    limit = data["total_count_limit"]
    pod_sets = [pod_set_of(each) for each in data["pod_sets"]]
    found = largest_that_fits(pod_sets, lambda counts: counts if sum(counts) <= limit else None)
    return {"actual": {"found": found is not None, "total_count": sum(found or ())}}


def _question(case: dict[str, Any]) -> FlavorQuestion:
    data = case["input"]
    if data.get("replaces_slice"):
        raise UnsupportedError("elastic workload slices")
    if data.get("topologies"):
        raise UnsupportedError("placement by topology")
    policy = policy_of(case)
    snapshot = Snapshot(
        cohorts=tuple(cohort_of(each) for each in data["cohorts"]),
        queues=tuple(queue_of(each) for each in data["cluster_queues"]),
    )
    copy = Memo().refresh(snapshot, policy)
    for queue, usage in data["usage"].items():
        copy.ledgers.total.add_usage(queue, amounts_of(usage))
    # Where finished pods are not counted off, the case is as if there were none.
    counted = (case.get("feature_gates") or {}).get("ReclaimablePods", True)
    workload = Workload(
        "w",
        "",
        tuple(pod_set_of(each) for each in data["pod_sets"]),
        reclaimable_pods=(data.get("reclaimable_pods") or {}) if counted else {},
    )
    return FlavorQuestion(
        copy.forest.leaves[data["cluster_queue"]],
        gang_of_workload(workload, data["cluster_queue"]),
        {each["name"]: flavor_of(each) for each in data["resource_flavors"]},
        _oracle(data.get("preemption_oracle") or ()),
    )


def _oracle(entries: Iterable[dict[str, Any]]) -> Callable[[Slot, int], tuple[Mode, int]]:
    """What preemption could do, as the case says it."""
    known = {(each["flavor"], each["resource"]): each for each in entries}

    def simulate(slot: Slot, _amount: int) -> tuple[Mode, int]:
        found = known.get((slot.what.flavor, slot.what.resource))
        if found is None:
            # The recorded oracle finds victims wherever it was told nothing else.
            return Mode.PREEMPT, 0
        return POSSIBILITIES[found["result"]], found["borrowing_height_after"]

    return simulate


def _leaf_of(queue: Queue) -> Leaf:
    return Memo().refresh(Snapshot(queues=(queue,)), KUEUE).forest.leaves[queue.name]


def _claim(workload: Workload, policy: Policy) -> Claim:
    return Claim(gang_of_workload(workload, ""), policy, SPEC_ORDER)


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "flavor_assign": answer_flavors,
    "entry_order": answer_entry_order,
    "reserve": answer_reserve,
    "partial_search": answer_partial,
}
