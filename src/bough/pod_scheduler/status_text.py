"""What the status of gangs says: conditions, counts and amounts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from bough.core.gang.sufficiency import is_complete
from bough.core.gang.tree import GangTree
from bough.formats.live.objects import LivePodGroupStatus
from bough.model.gang import Gang, Pod, PodState
from bough.model.reason import WaitReason
from bough.pod_scheduler.queue_totals import Total

#: The condition of a PodGroup that says whether it has what it needs.
SCHEDULED = "Scheduled"
#: The same for a native PodGroup, with its reasons, and the condition of a gang that is evicted for
#: others.
NATIVE_SCHEDULED = "PodGroupScheduled"
UNSCHEDULABLE, SCHEDULER_ERROR = "Unschedulable", "SchedulerError"
DISRUPTED, PREEMPTED = "DisruptionTarget", "PreemptionByScheduler"
#: Kubernetes accepts no longer texts in events.
LONGEST = 1000
#: The words that KAI uses for these reasons; all others are reported as errors of pods.
_KAI_REASONS = {
    WaitReason.QUEUE: "QueueDoesNotExist",
    WaitReason.QUOTA: "NonPreemptibleOverQuota",
    WaitReason.LIMIT: "OverLimit",
}
_POD_ERRORS = "PodSchedulingErrors"


class Telling(NamedTuple):
    """The state of a gang, in one word and one sentence."""

    #: In the form of a condition's reason: `Quota`, `Running`.
    reason: str
    message: str
    waits: bool


def telling(reason: str, message: str, *, waits: bool) -> Telling:
    """Make one; the reason becomes a word in camel case, as conditions and events have it."""
    word = "".join(part.capitalize() for part in reason.replace(" ", "_").split("_")) or "Waits"
    return Telling(word, message[:LONGEST], waits)


def no_group(group: str) -> Telling:
    """What to report of a pod whose PodGroup does not exist."""
    text = f"it waits: PodGroup {group}, to which it belongs, does not exist"
    return telling("pods", text, waits=True)


def group_status(
    gang: Gang | None, pods: Iterable[Pod], told: Telling, now: str, before: LivePodGroupStatus
) -> dict[str, Any]:
    """The status of a PodGroup; `gang` is `None` if it makes none."""
    pods = tuple(pods)
    counts = _counts(pods)
    said = next((each for each in before.conditions or () if each.type == SCHEDULED), None)
    condition = {
        "type": SCHEDULED,
        "status": "False" if told.waits else "True",
        "reason": told.reason,
        "message": told.message,
    }
    if said is None or said.status != condition["status"]:
        condition["lastTransitionTime"] = now
    held = [pod for pod in pods if pod.state is PodState.RUNNING]
    wanted = [pod for pod in pods if pod.state is PodState.PENDING]
    guaranteed = held if gang is not None and not gang.preemptible else []
    return {
        "phase": _phase(gang, counts),
        **counts,
        "conditions": [condition],
        "schedulingConditions": _kai_conditions(told, now),
        "resourcesStatus": {
            "allocated": amounts(held),
            "allocatedNonPreemptible": amounts(guaranteed),
            "requested": amounts([*held, *wanted]),
        },
    }


def native_status(
    told: Telling, now: str, before: LivePodGroupStatus, *, runs: bool
) -> dict[str, Any]:
    """The status of a native PodGroup: conditions, in the words of its API.

    runs:  whether any of its pods does; while they only end, it is still disrupted.
    """
    said = {each.type: each for each in before.conditions or ()}
    reason, message = told.reason, told.message
    if told.waits:
        reason = SCHEDULER_ERROR if told.reason == "Invalid" else UNSCHEDULABLE
        message = f"{told.reason}: {told.message}"
    found = [_condition(NATIVE_SCHEDULED, not told.waits, reason, message)]
    if runs and not told.waits and DISRUPTED in said and said[DISRUPTED].status == "True":
        found.append(_condition(DISRUPTED, False, told.reason, "it has what it needs again"))
    for each in found:
        if each["type"] not in said or said[each["type"]].status != each["status"]:
            each["lastTransitionTime"] = now
    return {"conditions": found}


def disrupted_status(why: str, now: str) -> dict[str, Any]:
    """The status of a native PodGroup when all of it is evicted for others."""
    condition = _condition(DISRUPTED, True, PREEMPTED, why[:LONGEST])
    return {"conditions": [{**condition, "lastTransitionTime": now}]}


def is_told(status: dict[str, Any], before: LivePodGroupStatus) -> bool:
    """Whether the apiserver has this status already, apart from amounts and times."""
    said = {each.type: each for each in before.conditions or ()}
    for wanted in status["conditions"]:
        found = said.get(wanted["type"])
        if found is None or (found.status, found.reason, found.message) != (
            wanted["status"],
            wanted["reason"],
            wanted["message"],
        ):
            return False
    counted = ("phase", "running", "pending", "succeeded", "failed")
    return all(getattr(before, name) == status[name] for name in counted if name in status)


def said_reason(before: LivePodGroupStatus) -> str:
    """The reason that was last reported."""
    for each in before.conditions or ():
        if each.type == SCHEDULED:
            return each.reason
        if each.type == NATIVE_SCHEDULED:
            return each.message.partition(": ")[0] if each.status == "False" else each.reason
    return ""


def _condition(kind: str, status: bool, reason: str, message: str) -> dict[str, Any]:
    return {"type": kind, "status": str(status), "reason": reason, "message": message}


def amounts(pods: Iterable[Pod]) -> dict[str, str]:
    """What pods ask for in total, as quantities."""
    return Total.of(pods).written()


def _counts(pods: Iterable[Pod]) -> dict[str, int]:
    states = [pod.state for pod in pods]
    return {
        "running": states.count(PodState.RUNNING),
        "pending": states.count(PodState.PENDING) + states.count(PodState.GATED),
        "succeeded": states.count(PodState.SUCCEEDED),
        "failed": states.count(PodState.FAILED),
    }


def _phase(gang: Gang | None, counts: dict[str, int]) -> str:
    if gang is not None and counts["running"]:
        return "Running" if is_complete(GangTree.of(gang)) else "Unknown"
    if counts["pending"] or not any(counts.values()):
        return "Pending"
    return "Failed" if counts["failed"] else "Succeeded"


def _kai_conditions(told: Telling, now: str) -> list[dict[str, Any]]:
    if not told.waits:
        return []
    known = {"".join(p.capitalize() for p in key.split("_")): r for key, r in _KAI_REASONS.items()}
    reason = {"reason": known.get(told.reason, _POD_ERRORS), "message": told.message}
    return [
        {
            "type": "UnschedulableOnNodePool",
            "nodePool": "default",
            "status": "True",
            "reason": reason["reason"],
            "message": told.message,
            "lastTransitionTime": now,
            "reasons": [reason],
        }
    ]
