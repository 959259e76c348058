"""The gang of a group: which tasks are needed and which may be given up, checked by the core.

Whatever a group gives up or starts without, its lead is there: it is put into a part of the gang
that is always needed, or the group is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from bough.core.gang.from_pod_group import normalise
from bough.core.gang.outline import Outline, outline
from bough.core.gang.tree import MAX_DEPTH
from bough.core.gang.validation import check_pod_group, check_pods
from bough.formats.workflow.workflow import WrittenGang
from bough.model.gang import Gang, Pod, SubGroup
from bough.model.pod_group import PodGroup
from bough.model.problem import FieldPath, Problem, Severity
from bough.model.workflow import GroupSpec, TaskSpec


def make_up(spec: GroupSpec, written: WrittenGang) -> tuple[GroupSpec, tuple[Problem, ...]]:
    """A group with its gang as it is written, and everything that is wrong with that."""
    if written.gang is None or not spec.tasks:
        return spec, ()
    pods = [Pod(task.name, task.subgroup) for task in spec.tasks]
    pod_group = _filled(written.gang, spec.tasks)
    shape = outline(pod_group)
    problems = [
        *(_placed(each, written) for each in check_pod_group(pod_group)),
        *_stray(pod_group, pods, written),
        *_short(shape, spec.tasks, written),
    ]
    if any(each.severity is Severity.ERROR for each in problems):
        return spec, tuple(problems)
    made = _with_gang(spec, normalise(pod_group, pods))
    made, fault = _Lead(made, shape, written).secure()
    return made, tuple(problems) if fault is None else (*problems, fault)


def _with_gang(spec: GroupSpec, gang: Gang) -> GroupSpec:
    everything = not gang.subgroups and gang.minimum == len(spec.tasks)
    return msgspec.structs.replace(
        spec,
        minimum=None if everything else gang.minimum,
        subgroups=gang.subgroups,
        constraint=gang.constraint,
        sets=gang.sets,
    )


def _filled(pod_group: PodGroup, tasks: Sequence[TaskSpec]) -> PodGroup:
    """Where a leaf does not say how many of its tasks it needs, it needs all of them."""
    leaves = {entry.name for entry in outline(pod_group).leaves}
    counts = _counts(tasks)
    subgroups = tuple(
        msgspec.structs.replace(each, min_member=counts[each.name])
        if each.name in leaves
        and each.name in counts
        and each.min_member is None
        and each.min_sub_group is None
        else each
        for each in pod_group.subgroups
    )
    minimum = pod_group.min_member
    if not subgroups and minimum is None and pod_group.min_sub_group is None:
        minimum = len(tasks)
    return msgspec.structs.replace(pod_group, subgroups=subgroups, min_member=minimum)


def _counts(tasks: Sequence[TaskSpec]) -> dict[str | None, int]:
    counts: dict[str | None, int] = {}
    for task in tasks:
        counts[task.subgroup] = counts.get(task.subgroup, 0) + 1
    return counts


def _placed(problem: Problem, written: WrittenGang) -> Problem:
    """A problem of a PodGroup, where the group stands."""
    return msgspec.structs.replace(problem, path=(*written.path, *problem.path[1:]), subject="")


def _stray(pod_group: PodGroup, pods: list[Pod], written: WrittenGang) -> Iterator[Problem]:
    """Tasks that are in none of the subgroups; each place is named once."""
    places = {f"Pod/{pod.name}": path for pod, path in zip(pods, written.tasks, strict=True)}
    found = {places[each.subject]: each for each in check_pods(pod_group, pods)}
    for path, problem in found.items():
        yield Problem((*path, "subGroup"), problem.message)


def _short(shape: Outline, tasks: Sequence[TaskSpec], written: WrittenGang) -> Iterator[Problem]:
    """Leaves that need more tasks than they have, and so would wait for ever."""
    counts = _counts(tasks)
    for leaf in shape.leaves:
        count = counts.get(leaf.name, 0)
        path = (*written.path, *leaf.path[1:])
        if not count and leaf.name is not None:
            yield Problem(path, f"no task is in the subgroup {leaf.name!r}")
        elif leaf.min_member is not None and leaf.min_member > count:
            tasks_text = "1 task" if count == 1 else f"{count} tasks"
            message = (
                f"is {leaf.min_member}, but there {'is' if count == 1 else 'are'} {tasks_text}"
            )
            yield Problem((*path, "minMember"), message)


class _Lead:
    """Sees to it that a group never runs without its lead."""

    def __init__(self, spec: GroupSpec, shape: Outline, written: WrittenGang) -> None:
        self._spec = spec
        self._shape = shape
        self._written = written
        index = next((i for i, task in enumerate(spec.tasks) if task.lead), 0)
        self._lead = spec.tasks[index]
        self._place: FieldPath = written.tasks[index]
        self._nodes = {each.name: each for each in spec.subgroups}

    def secure(self) -> tuple[GroupSpec, Problem | None]:
        """The group with its lead among what is always needed, or why that cannot be."""
        optional = self._optional()
        if optional is not None:
            return self._spec, optional
        leaf = self._lead.subgroup
        members = [task for task in self._spec.tasks if task.subgroup == leaf]
        minimum = self._spec.minimum if leaf is None else self._nodes[leaf].minimum
        if minimum is None or minimum >= len(members):
            return self._spec, None
        if minimum > 1:
            return self._divided(leaf, minimum)
        # Any one is enough, and the lead is tried first: so it is the one, if all are alike.
        if len({_shape_of(task) for task in members}) == 1:
            return self._spec, None
        return self._spec, Problem(
            (*self._leaf_path(leaf), "minMember"),
            f"is 1, so that the group could run without its lead {self._lead.name}, which asks for "
            "something else than the others; use at least 2, or let all of them ask for the same",
        )

    def _optional(self) -> Problem | None:
        """What is above the lead and not always needed."""
        name = self._lead.subgroup
        while name is not None:
            parent = self._nodes[name].parent
            minimum = self._spec.minimum if parent is None else self._nodes[parent].minimum
            children = sum(each.parent == parent for each in self._spec.subgroups)
            if minimum is not None and minimum < children:
                return Problem(
                    (*self._place, "subGroup"),
                    f"the lead {self._lead.name} is in {name!r}, one of {children} subgroups of "
                    f"which {minimum} are enough, so that the group could run without it; put the "
                    "lead into a subgroup that is always needed",
                )
            name = parent
        return None

    def _divided(self, leaf: str | None, minimum: int) -> tuple[GroupSpec, Problem | None]:
        """Split a leaf into its lead, which is needed, and so many of the others."""
        if leaf is not None and self._shape.depths[leaf] >= MAX_DEPTH:
            return self._spec, Problem(self._leaf_path(leaf), "is nested too deep for a lead")
        taken = set(self._nodes)
        lead, others = (_free_name(leaf, word, taken) for word in ("lead", "others"))
        subgroups = [
            msgspec.structs.replace(each, minimum=None) if each.name == leaf else each
            for each in self._spec.subgroups
        ]
        subgroups += [SubGroup(lead, leaf, 1), SubGroup(others, leaf, minimum - 1)]
        tasks = tuple(
            msgspec.structs.replace(task, subgroup=lead if task.lead else others)
            if task.subgroup == leaf
            else task
            for task in self._spec.tasks
        )
        made = msgspec.structs.replace(self._spec, tasks=tasks, subgroups=tuple(subgroups))
        return (msgspec.structs.replace(made, minimum=None) if leaf is None else made), None

    def _leaf_path(self, leaf: str | None) -> FieldPath:
        for entry in self._shape.entries:
            if entry.name == leaf:
                return (*self._written.path, *entry.path[1:])
        return self._written.path


def _free_name(leaf: str | None, word: str, taken: set[str]) -> str:
    start = word if leaf is None else f"{leaf[:40]}-{word}"
    name, number = start, 2
    while name in taken:
        name, number = f"{start}-{number}", number + 1
    taken.add(name)
    return name


def _shape_of(task: TaskSpec) -> tuple[object, ...]:
    """What decides where a task can be placed."""
    return (task.requests, task.platform, task.nodes_excluded)
