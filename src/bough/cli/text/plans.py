"""A plan as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bough.cli.output import count, printable

if TYPE_CHECKING:
    from bough.api.file_answers import (
        AssignedPodSet,
        PlanAnswer,
        PlannedEviction,
        PlannedNomination,
        PlannedStart,
        PlannedWait,
        PodNode,
        StartedPod,
    )

#: How many nodes are listed; JSON has them all.
MAXIMUM_LISTED = 10


def render_plan(answer: PlanAnswer) -> str:
    """What starts, what ends, what will start then, what waits."""
    sections = (
        ("starts", [_start_line(each) for each in answer.starts]),
        ("ends", [_eviction_line(each) for each in answer.evictions]),
        ("starts when others have ended", [_nominated(each) for each in answer.nominations]),
        ("waits", [_wait_line(each) for each in answer.waits]),
    )
    lines: list[str] = []
    for title, entries in sections:
        if entries:
            lines += [title, *(f"  {entry}" for entry in entries)]
    return "\n".join(lines) or "nothing waits and nothing changes"


def _start_line(each: PlannedStart) -> str:
    if each.assignments:
        parts = [_assignment(one) for one in each.assignments]
        return f"{_who(each)}: {'; '.join(parts)}"
    pods = each.pods
    optional = sum(pod.optional for pod in pods)
    extra = f", {optional} of them beyond its minimum" if optional else ""
    return f"{_who(each)}: {count(len(pods), 'pod')} on {_nodes(pods)}{extra}"


def _assignment(one: AssignedPodSet) -> str:
    flavors = ", ".join(printable(name) for name in dict.fromkeys(one.flavors.values()))
    pods = count(one.count or 0, "pod")
    return f"{printable(one.pod_set)}, {pods} on {flavors or 'no flavor'}"


def _nominated(each: PlannedNomination) -> str:
    holders = ", ".join(printable(name) for name in each.waits_for) or "others"
    on = f" on {_nodes(each.pods)}" if each.pods else ""
    return f"{_who(each)}: waits for {holders}{on}"


def _nodes(pods: Sequence[StartedPod | PodNode]) -> str:
    numbers: dict[str, int] = {}
    for pod in pods:
        numbers[pod.node] = numbers.get(pod.node, 0) + 1
    listed = [f"{printable(node)} ({number})" for node, number in numbers.items()]
    more = len(listed) - MAXIMUM_LISTED
    return ", ".join(listed[:MAXIMUM_LISTED]) + (f" and {more} more nodes" if more > 0 else "")


def _eviction_line(each: PlannedEviction) -> str:
    return f"{_who(each)}: {each.rule}: {printable(each.sentence)}"


def _wait_line(each: PlannedWait) -> str:
    return f"{_who(each)}: {printable(each.reason)}: {printable(each.sentence)}"


def _who(each: PlannedStart | PlannedEviction | PlannedNomination | PlannedWait) -> str:
    return f"{printable(each.workload)} (queue {printable(each.queue)})"
