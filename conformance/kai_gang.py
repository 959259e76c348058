"""KAI's recorded answers about single gangs: validation, order, what to start, what to give back.

Translates the inputs to the core's types and back; every rule is the core's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from bough.core.gang.demand import first_choice, growth, needed
from bough.core.gang.order import NAME_ORDER, Precedence, precedence
from bough.core.gang.release import next_unit
from bough.core.gang.tree import GangTree
from bough.core.gang.validation import check_pod_group
from bough.model.gang import Gang, Pod, PodState, SubGroup
from bough.model.pod_group import PodGroup, SubGroupSpec
from bough.model.problem import Severity

Case = dict[str, Any]

#: KAI tells more states apart; what holds a place counts as running.
_STATES = {
    "Pending": PodState.PENDING,
    "Gated": PodState.GATED,
    "Allocated": PodState.RUNNING,
    "Pipelined": PodState.RUNNING,
    "Binding": PodState.RUNNING,
    "Bound": PodState.RUNNING,
    "Running": PodState.RUNNING,
    "Releasing": PodState.RELEASING,
    "Succeeded": PodState.SUCCEEDED,
    "Failed": PodState.FAILED,
}
#: KAI makes this pod set for every job, also for one whose subgroups hold all its pods.
_DEFAULT = "default"


def validate_subgroups(case: Case) -> Case:
    """The first error of a list of subgroups, or null."""
    subgroups = case["in"]["sub_groups"]
    return _out(next(_errors(PodGroup("case", subgroups=_subgroups(subgroups))), None))


def validate_pod_group_spec(case: Case) -> Case:
    """Whether a PodGroup may be created."""
    spec = case["in"]
    pod_group = PodGroup(
        name="case",
        min_member=spec.get("minMember"),
        min_sub_group=spec.get("minSubGroup"),
        subgroups=_subgroups(spec["subGroups"]),
    )
    errors = list(_errors(pod_group))
    return _out({"rejected_on_create": bool(errors), "min_definition_errors": errors})


def subgroup_order(case: Case) -> Case:
    """Which of two members of a group comes first: -1 the left, 1 the right, 0 neither."""
    return _compare(case, "threshold")


def pod_set_order(case: Case) -> Case:
    """The same for two leaves."""
    return _compare(case, "min_available")


def tasks_to_allocate(case: Case) -> Case:
    """What is started next: all that is needed, or the first unit beyond that."""
    tree = _tree(case)
    if tree is None:
        return _out([])
    demand = needed(tree, tree.held)
    if demand is None:
        unit = next(growth(tree, tree.held), None)
        demand = None if unit is None else unit.demand
    return _out([] if demand is None else [pod.name for pod in first_choice(demand)])


def tasks_to_evict(case: Case) -> Case:
    """What is given back next, and whether anything remains."""
    tree = _tree(case)
    unit = None if tree is None else next_unit(tree, tree.held)
    if tree is None or unit is None:
        return _out({"tasks": [], "job_has_more_tasks": False})
    names = [pod.name for pod in unit.pods]
    remaining = any(tree.without_pods(tree.held, names))
    return _out({"tasks": names, "job_has_more_tasks": remaining})


#: From the name of a file of cases to what answers them.
ANSWERS: dict[str, Callable[[Case], Case]] = {
    "unit_validate_subgroups": validate_subgroups,
    "unit_validate_pod_group_spec": validate_pod_group_spec,
    "unit_subgroup_order": subgroup_order,
    "unit_pod_set_order": pod_set_order,
    "unit_tasks_to_allocate": tasks_to_allocate,
    "unit_tasks_to_evict": tasks_to_evict,
}


def _out(value: Any) -> Case:
    return {"actual": {"out": value}}


def _subgroups(subgroups: list[Case]) -> tuple[SubGroupSpec, ...]:
    return tuple(
        SubGroupSpec(
            name=each["name"],
            parent=each.get("parent"),
            min_member=each.get("minMember"),
            min_sub_group=each.get("minSubGroup"),
        )
        for each in subgroups
    )


def _errors(pod_group: PodGroup) -> Iterator[str]:
    for problem in check_pod_group(pod_group):
        if problem.severity is Severity.ERROR:
            yield f"{problem.field}: {problem.message}"


def _compare(case: Case, threshold: str) -> Case:
    left, right = (_rank(case["in"][side], threshold) for side in ("left", "right"))
    return _out((left > right) - (left < right))


def _rank(side: Case, threshold: str) -> Precedence:
    allocated = side["allocated"]
    return precedence(allocated, side[threshold], started=allocated > 0, order=NAME_ORDER)


def _tree(case: Case) -> GangTree | None:
    """A job as a gang of one leaf for each pod set; without pod sets there is none."""
    sets = case["in"]["pod_sets"]
    used = [each for each in sets if each["tasks"] or each["name"] != _DEFAULT] or sets
    if not used:
        return None
    pods = [
        Pod(
            name=task["uid"],
            subgroup=each["name"],
            state=_STATES[task["status"]],
            rank=int(task["task_priority_label"]) if task["task_priority_label"] else None,
        )
        for each in used
        for task in sorted(each["tasks"], key=lambda task: task["uid"])
    ]
    subgroups = [SubGroup(each["name"], minimum=each["min_available"]) for each in used]
    return GangTree.of(Gang("case", "queue", tuple(pods), tuple(subgroups)), NAME_ORDER)
