"""Workflows as people write them, into specs: the whole, and how its groups follow each other.

Every group is a gang, and a lone task is a group of its own.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.errors import Invalid
from bough.formats.workflow.array import read_array
from bough.formats.workflow.group import ReadGroup, WorkflowLimits, read_group, read_lone_task
from bough.formats.workflow.resources import read_resources
from bough.formats.workflow.strict_osmo import check_as_osmo
from bough.formats.workflow.values import (
    folded,
    read_duration_s,
    read_labels,
    read_name,
    workflow_fault,
)
from bough.formats.yaml.composer import LinedDict, LinedList, RepeatedKey, compose
from bough.formats.yaml.documents import Document
from bough.formats.yaml.fields import Enough, Fields, Reading, describe
from bough.model.pod_group import PodGroup
from bough.model.problem import FieldPath, Problem, Severity
from bough.model.words import suggest
from bough.model.workflow import GroupSpec, Predecessor, WorkflowSpec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from bough.formats.workflow.task import ReadTask
    from bough.formats.yaml.composer import Value

SOURCE = "workflow"
VERSION = 2
#: Mappings, lists and values of a workflow, aliases written out.
MAXIMUM_VALUES = 100_000
#: After this many problems the rest is not read.
MAXIMUM_PROBLEMS = 100
#: How many names are searched for the one that was probably meant.
SUGGESTED = 50
#: Regular expressions of its inputs, outputs and checkpoints.
MAXIMUM_REGEXES = 1_000
#: The limit on tasks, where none is given.
MAXIMUM_TASKS = 1_000


class WrittenGang(NamedTuple):
    """The gang of one group as it is written, and its place in the file."""

    path: FieldPath
    #: `None`: it is not described, and all of its tasks are needed.
    gang: PodGroup | None
    #: The place of each of the group's tasks.
    tasks: tuple[FieldPath, ...] = ()


class WorkflowRead(NamedTuple):
    """The spec, unless it is unusable, and everything that is wrong with it."""

    spec: WorkflowSpec | None
    problems: tuple[Problem, ...]
    #: For each group; what they mean is still to be added to the spec.
    gangs: tuple[WrittenGang, ...] = ()
    document: Document | None = None


def read_workflow(
    text: str,
    *,
    maximum_tasks: int = MAXIMUM_TASKS,
    uploading: bool = False,
    strict_osmo: bool = False,
) -> WorkflowRead:
    """Read one workflow; text that is no YAML raises Invalid, and so do too many tasks.

    With `uploading`, files may still be named by their place on the user's machine; with
    `strict_osmo`, what OSMO would refuse is refused too.
    """
    repeated: list[RepeatedKey] = []
    composed = compose(text, SOURCE, MAXIMUM_VALUES, repeated)
    documents = [value for value, _ in composed if value is not None]
    if len(documents) != 1:
        raise Invalid(f"A workflow is one YAML document, not {len(documents)}.")
    reading = Reading(Document(documents[0], SOURCE, 1), most=MAXIMUM_PROBLEMS)
    spec: WorkflowSpec | None = None
    groups: list[ReadGroup] = []
    with suppress(Enough):
        for each in repeated:
            reading.warn(each.path, each.message)
        if strict_osmo:
            check_as_osmo(reading)
        _check_values(reading)
        fields = reading.fields()
        fields.ignore("default-values")
        _check_version(fields)
        bounds = WorkflowLimits({}, maximum_tasks, uploading)
        spec, groups = _read(fields.child("workflow"), text, bounds)
        fields.finish()
    unusable = any(problem.severity is Severity.ERROR for problem in reading.problems)
    return WorkflowRead(
        spec=None if unusable else spec,
        problems=tuple(reading.problems),
        gangs=tuple(_written(each) for each in groups),
        document=reading.document,
    )


def _written(group: ReadGroup) -> WrittenGang:
    tasks = tuple(each.fields.path for each in group.members for _ in each.tasks)
    return WrittenGang(group.fields.path, group.gang, tasks)


def _check_version(fields: Fields) -> None:
    version = fields.scalar("version")
    # It may be written as text, and as 2.0.
    if version is not None and (isinstance(version, bool) or str(version) not in ("2", "2.0")):
        fields.error("version", f"is {describe(version)}, but must be {VERSION}")


def _read(
    fields: Fields, text: str, limits: WorkflowLimits
) -> tuple[WorkflowSpec, list[ReadGroup]]:
    # The pool is the one that it is submitted to.
    fields.ignore("pool", "backend")
    timeout = fields.optional_child("timeout") or fields.nothing("timeout")
    wanted = read_resources(fields.optional_child("resources"))
    groups = _read_groups(fields, limits._replace(wanted=wanted))
    _check_names(groups)
    order = _GroupOrder(groups)
    spec = WorkflowSpec(
        name=read_name(fields),
        groups=tuple(order.take(each) for each in groups),
        labels=read_labels(fields),
        exec_timeout_s=read_duration_s(timeout, "exec_timeout"),
        queue_timeout_s=read_duration_s(timeout, "queue_timeout"),
        after=_read_after(fields),
        array=read_array(fields),
        text=text,
    )
    return spec, groups


def _read_after(fields: Fields) -> tuple[Predecessor, ...]:
    """The workflows that it starts after: one, or a list of them."""
    found: dict[str, Predecessor] = {}
    for name, completed in (("after", False), ("afterok", True)):
        for workflow in fields.text_or_texts(name):
            fault = workflow_fault(workflow)
            if fault is not None:
                fields.error(name, fault)
            # The stricter of the two counts.
            found[workflow] = Predecessor(workflow, completed)
    return tuple(found.values())


def _read_groups(fields: Fields, limits: WorkflowLimits) -> list[ReadGroup]:
    if ("tasks" in fields) == ("groups" in fields):
        fields.ignore("tasks", "groups")
        fields.error("tasks", "a workflow has either tasks or groups")
        return []
    name, read = ("groups", read_group) if "groups" in fields else ("tasks", read_lone_task)
    fields.ignore("tasks", "groups")
    groups: list[ReadGroup] = []
    entries = fields.children(name)
    # Each has at least one task.
    count, written_bytes = len(entries), 0
    limits.check(count, written_bytes)
    for entry in entries:
        groups.append(read(entry, limits))
        tasks, more_bytes = groups[-1].size
        count, written_bytes = count + tasks - 1, written_bytes + more_bytes
        limits.check(count, written_bytes)
    if not groups:
        fields.error(name, "a workflow has at least one task")
    return groups


def _check_names(groups: Sequence[ReadGroup]) -> None:
    """Every name, of a task or a group, is used once."""
    taken: dict[str, str] = {}
    for group in groups:
        names = [(group.fields, group.spec.name)]
        names += [(each.fields, task.name) for each in group.members for task in each.tasks]
        for fields, name in names:
            first = taken.get(folded(name))
            if first is None:
                taken[folded(name)] = name
            elif name:
                why = "" if first == name else f", as {first!r}: case, '-' and '_' do not count"
                fields.error("name", f"{name!r} is the name of another task or group{why}")


# What waits for what


class _GroupOrder:
    """Which tasks can be read from, as groups are declared one after another."""

    def __init__(self, groups: Sequence[ReadGroup]) -> None:
        self._owners = {task.name: each.spec.name for each in groups for task in each.spec.tasks}
        self._replicated = {
            member.task.name for each in groups for member in each.members if member.replicas
        }
        self._earlier: set[str] = set()

    def take(self, group: ReadGroup) -> GroupSpec:
        """The next group, with those that it waits for."""
        before: dict[str, None] = {}
        for member in group.members:
            for index, name in _read_from(member):
                fault = self._fault(name, group.spec.name)
                if fault is None:
                    before[self._owners[name]] = None
                else:
                    path = (*member.fields.path, "inputs", index, "task")
                    member.fields.reading.error(path, fault)
        self._earlier.add(group.spec.name)
        return msgspec.structs.replace(group.spec, upstream=tuple(before))

    def _fault(self, name: str, group: str) -> str | None:
        owner = self._owners.get(name)
        if name in self._replicated:
            return f"{name!r} is there several times; name one of them, as {name}-0"
        if owner is None:
            return f"there is no task {name[:80]!r}{suggest(name, list(self._owners)[:SUGGESTED])}"
        if owner == group:
            return f"{name!r} is in the same group, whose tasks start together"
        if owner not in self._earlier:
            return f"{name!r} is declared later; what a task reads from comes before it"
        return None


def _read_from(member: ReadTask) -> Iterator[tuple[int, str]]:
    """The tasks of this workflow that a task reads from, each with its place among the inputs."""
    recipe = member.task.launch
    for index, each in enumerate(() if recipe is None else recipe.inputs):
        if each.task and each.workflow is None:
            yield index, each.task


def _check_values(reading: Reading) -> None:
    """No text may have the character NUL, which YAML can write as an escape; nor too many regexes.

    Checking one regex takes long enough that their number must be limited.
    """
    regexes = 0
    waiting: list[tuple[FieldPath, Value]] = [((), reading.document.value)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, LinedDict):
            for name in value:
                if "\0" in name:
                    reading.error(path, f"the name {name[:60]!r} contains the character NUL")
            regexes += "regex" in value
            waiting.extend(((*path, name), each) for name, each in value.items())
        elif isinstance(value, LinedList):
            waiting.extend(((*path, index), each) for index, each in enumerate(value))
        elif isinstance(value, str) and "\0" in value:
            reading.error(path, "contains the character NUL, which no text may have")
    if regexes > MAXIMUM_REGEXES:
        raise Invalid(
            f"The workflow has {regexes} regexes; at most {MAXIMUM_REGEXES} are possible."
        )
