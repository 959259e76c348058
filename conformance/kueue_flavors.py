"""Kueue's choice of flavors, order of entries, reservations and partial admission, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from bough.core.cycle.applicant import Applicant
from bough.core.cycle.decision import room_to_keep
from bough.core.cycle.entries import Entry, Outcome, entry_order
from bough.core.cycle.flavors import FlavorQuestion, Mode, assign_flavors
from bough.core.cycle.forest import Forest, Leaf, Slot
from bough.core.cycle.heads import Head
from bough.core.cycle.memo import Memo
from bough.core.cycle.partial import largest_that_fits
from bough.core.cycle.work import Work
from bough.model.policy import KUEUE
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
    entries: list[Entry] = []
    for data in case["input"]["entries"]:
        applicant = Applicant(workload_of(data), policy)
        entry = Entry(Head(leaf, applicant), nominated=data["is_preemptor"])
        entry.assignment.height = data["borrowing_height"]
        entries.append(entry)
    entries.sort(key=lambda entry: entry_order(entry, policy))
    return {"actual": {"order": [entry.applicant.workload.name for entry in entries]}}


def answer_reserve(case: dict[str, Any]) -> dict[str, Any]:
    """What is kept for a workload that cannot be admitted now."""
    data = case["input"]
    snapshot = Snapshot(queues=tuple(queue_of(each) for each in data["cluster_queues"]))
    with Work(snapshot, KUEUE, Memo()) as work:
        (leaf,) = work.forest.leaves.values()
        work.add_usage(leaf, amounts_of(data["usage"][leaf.queue.name]))
        entry = Entry(Head(leaf, Applicant(Workload("w", "", ()), KUEUE)), nominated=False)
        entry.outcome = Outcome.AFTER_VICTIMS
        if data["assignment_mode"] != "Preempt":
            entry.outcome = Outcome.AT_ONCE
        entry.assignment.height = data["borrowing_height"]
        entry.assignment.usage = amounts_of(data["assignment_usage"])
        kept = room_to_keep(work, entry)
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
    if data.get("fair_sharing"):
        raise UnsupportedError("fair sharing")
    if data.get("replaces_slice"):
        raise UnsupportedError("elastic workload slices")
    if data.get("topologies"):
        raise UnsupportedError("placement by topology")
    policy = policy_of(case)
    forest = Forest(
        [cohort_of(each) for each in data["cohorts"]],
        [queue_of(each) for each in data["cluster_queues"]],
        policy,
    )
    for queue, usage in data["usage"].items():
        forest.add_usage(forest.leaves[queue], amounts_of(usage))
    # Where finished pods are not counted off, the case is as if there were none.
    counted = (case.get("feature_gates") or {}).get("ReclaimablePods", True)
    workload = Workload(
        "w",
        "",
        tuple(pod_set_of(each) for each in data["pod_sets"]),
        reclaimable_pods=(data.get("reclaimable_pods") or {}) if counted else {},
    )
    return FlavorQuestion(
        forest.leaves[data["cluster_queue"]],
        Applicant(workload, policy),
        {each["name"]: flavor_of(each) for each in data["resource_flavors"]},
        _oracle(data.get("preemption_oracle") or ()),
    )


def _oracle(entries: Iterable[dict[str, Any]]) -> Callable[[Slot, int], tuple[Mode, int]]:
    """What preemption could do, as the case says it."""
    known = {(each["flavor"], each["resource"]): each for each in entries}

    def simulate(slot: Slot, _amount: int) -> tuple[Mode, int]:
        found = known.get((slot.what.flavor, slot.what.resource))
        if found is None:
            # The recorded oracle finds somebody wherever it was told nothing else.
            return Mode.PREEMPT, 0
        return POSSIBILITIES[found["result"]], found["borrowing_height_after"]

    return simulate


def _leaf_of(queue: Queue) -> Leaf:
    return Forest([], [queue], KUEUE).leaves[queue.name]


ANSWERS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "flavor_assign": answer_flavors,
    "entry_order": answer_entry_order,
    "reserve": answer_reserve,
    "partial_search": answer_partial,
}
