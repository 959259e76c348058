"""Workflows as people write them, into specs: tasks or groups, resources, timeouts, exit actions.

Every group is a gang, and a lone task is a group of its own. Must not know templates, pools, nor
what becomes of a workflow.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.errors import Invalid
from bough.formats.composer import compose
from bough.formats.documents import Document
from bough.formats.durations import parse_duration_s
from bough.formats.fields import Fields, Reading
from bough.model.cluster import Resources
from bough.model.gang import TopologyConstraint
from bough.model.problem import Problem
from bough.model.recipe import Recipe
from bough.model.workflow import GroupSpec, TaskSpec, WorkflowSpec

if TYPE_CHECKING:
    from collections.abc import Iterable

SOURCE = "workflow"
DEFAULT_RESOURCE = "default"
MAXIMUM_LABELS = 16

_NAME = re.compile(r"[a-zA-Z](?:[a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?\Z")
_DAYS = re.compile(r"([0-9]{1,6})d\Z")
_SLEEP = re.compile(r"(?:\A|[\s;&])sleep\s+([0-9]{1,9})\s*\Z")
#: Read by backends that run something; here they are only known.
_TASK_FIELDS_WITHOUT_MEANING = (
    "files",
    "credentials",
    "outputs",
    "checkpoint",
    "volumeMounts",
    "privileged",
    "hostNetwork",
    "downloadType",
    "cacheSize",
    "kpis",
)


class _Requirement(StrEnum):
    """Whether a topology level must hold, or only should."""

    REQUIRED = "required"
    PREFERRED = "preferred"


class WorkflowRead(NamedTuple):
    """The spec, unless it is unusable, and everything that is wrong with it."""

    spec: WorkflowSpec | None
    problems: tuple[Problem, ...]


class _Wanted(NamedTuple):
    """What a named entry of `resources` asks for."""

    requests: Resources = Resources()
    storage_bytes: int = 0
    platform: str | None = None
    constraint: TopologyConstraint | None = None


def read_workflow(text: str) -> WorkflowRead:
    """Read one workflow; text that is no YAML raises Invalid."""
    documents = [value for value, _ in compose(text, SOURCE) if value is not None]
    if len(documents) != 1:
        raise Invalid(f"A workflow is one YAML document, not {len(documents)}.")
    reading = Reading(Document(documents[0], SOURCE, 1))
    fields = reading.fields()
    fields.ignore("version", "default-values")
    spec = _read(fields.child("workflow"), text)
    fields.finish()
    unusable = any(problem.severity == "error" for problem in reading.problems)
    return WorkflowRead(None if unusable else spec, tuple(reading.problems))


def _read(fields: Fields, text: str) -> WorkflowSpec:
    # The pool is the one that it is submitted to.
    fields.ignore("pool", "backend")
    timeout = fields.optional_child("timeout") or fields.nothing("timeout")
    wanted = _read_resources(fields.optional_child("resources"))
    groups = _read_groups(fields, wanted)
    labels = fields.text_map("labels")
    if len(labels) > MAXIMUM_LABELS:
        fields.error("labels", f"has {len(labels)} labels; at most {MAXIMUM_LABELS} are possible")
    return WorkflowSpec(
        name=_name(fields),
        groups=tuple(_with_upstream(groups)),
        labels=labels,
        exec_timeout_s=_duration_s(timeout, "exec_timeout"),
        queue_timeout_s=_duration_s(timeout, "queue_timeout"),
        text=text,
    )


# Resources


def _read_resources(fields: Fields | None) -> dict[str, _Wanted]:
    if fields is None:
        return {}
    return {name: _read_wanted(fields.child(name)) for name in fields.names()}


def _read_wanted(fields: Fields) -> _Wanted:
    fields.ignore("nodesExcluded")
    amounts = {
        name: _positive(fields, name, resource)
        for name, resource in (
            ("gpu", "gpu"),
            ("cpu", "cpu"),
            ("memory", "memory"),
            ("storage", "storage"),
        )
    }
    requests = Resources(amounts["gpu"], amounts["cpu"], amounts["memory"])
    platform = fields.optional_text("platform")
    return _Wanted(requests, amounts["storage"], platform, _read_topology(fields))


def _positive(fields: Fields, name: str, resource: str) -> int:
    amount = fields.optional_quantity(name, resource) or 0
    if amount < 0:
        fields.error(name, f"is {amount}, but must not be negative")
    return max(amount, 0)


def _read_topology(fields: Fields) -> TopologyConstraint | None:
    """The narrowest level of each kind; levels are written widest first."""
    found: dict[_Requirement, str] = {}
    for each in fields.children("topology"):
        each.ignore("group")
        kind = each.choice("requirementType", _Requirement, _Requirement.REQUIRED)
        found[kind] = each.text("key")
    if not found:
        return None
    return TopologyConstraint(
        required=found.get(_Requirement.REQUIRED), preferred=found.get(_Requirement.PREFERRED)
    )


# Groups and tasks


def _read_groups(
    fields: Fields, wanted: dict[str, _Wanted]
) -> list[tuple[GroupSpec, dict[str, tuple[str, ...]]]]:
    """Groups, each with the tasks that its tasks read from."""
    if ("tasks" in fields) == ("groups" in fields):
        fields.ignore("tasks", "groups")
        fields.error("tasks", "a workflow has either tasks or groups")
        return []
    if "groups" in fields:
        fields.ignore("tasks")
        return [_read_group(each, wanted) for each in fields.children("groups")]
    fields.ignore("groups")
    groups: list[tuple[GroupSpec, dict[str, tuple[str, ...]]]] = []
    for each in fields.children("tasks"):
        task, inputs, constraint = _read_task(each, wanted, lone=True)
        group = GroupSpec(f"{task.name}-group", (task,), constraint=constraint)
        groups.append((group, {task.name: inputs}))
    return groups


def _read_group(
    fields: Fields, wanted: dict[str, _Wanted]
) -> tuple[GroupSpec, dict[str, tuple[str, ...]]]:
    fields.ignore("barrier")
    members = fields.children("tasks")
    read = [_read_task(each, wanted, lone=len(members) == 1) for each in members]
    tasks = tuple(task for task, _, _ in read)
    leads = sum(task.lead for task in tasks)
    if tasks and leads != 1:
        fields.error("tasks", f"exactly one task is the lead of a group, not {leads}")
    if not tasks:
        fields.error("tasks", "a group has at least one task")
    constraints = [constraint for _, _, constraint in read]
    if len(set(constraints)) > 1:
        fields.error("tasks", "the tasks of a group have the same topology, or none")
    group = GroupSpec(
        _name(fields),
        tasks,
        ignore_nonlead_status=fields.boolean("ignoreNonleadStatus", default=True),
        constraint=constraints[0] if constraints else None,
    )
    return group, {task.name: inputs for task, inputs, _ in read}


def _read_task(
    fields: Fields, wanted: dict[str, _Wanted], *, lone: bool
) -> tuple[TaskSpec, tuple[str, ...], TopologyConstraint | None]:
    fields.ignore(*_TASK_FIELDS_WITHOUT_MEANING)
    resource = fields.optional_text("resource")
    if resource is not None and resource not in wanted:
        fields.error("resource", f"{resource!r} is not among the resources of the workflow")
    asked = wanted.get(resource or DEFAULT_RESOURCE, _Wanted())
    launch = _read_launch(fields)
    task = TaskSpec(
        name=_name(fields),
        requests=asked.requests,
        storage_bytes=asked.storage_bytes,
        lead=fields.boolean("lead", default=lone),
        platform=asked.platform,
        exit_actions=_read_exit_actions(fields),
        hold_s=_hold_s(launch),
        launch=launch,
    )
    return task, _read_inputs(fields), asked.constraint


def _read_launch(fields: Fields) -> Recipe:
    environment = fields.optional_child("environment")
    names = () if environment is None else environment.names()
    return Recipe(
        image=fields.optional_text("image"),
        command=tuple(fields.texts("command")),
        args=tuple(fields.texts("args")),
        environment={
            name: environment.written(name) or "" for name in names if environment is not None
        },
    )


def _read_exit_actions(fields: Fields) -> dict[str, str]:
    actions = fields.optional_child("exitActions")
    if actions is None:
        return {}
    return {name: actions.written(name) or "" for name in actions.names()}


def _read_inputs(fields: Fields) -> tuple[str, ...]:
    """The tasks that are read from; data from elsewhere does not order anything."""
    found: list[str] = []
    for each in fields.children("inputs"):
        each.ignore("url", "regex", "dataset")
        task = each.optional_text("task")
        if task is not None:
            found.append(task)
    return tuple(found)


def _with_upstream(
    groups: Iterable[tuple[GroupSpec, dict[str, tuple[str, ...]]]],
) -> Iterable[GroupSpec]:
    """Let each group wait for those that its tasks read from."""
    groups = list(groups)
    owner = {task.name: group.name for group, _ in groups for task in group.tasks}
    for group, inputs in groups:
        before = dict.fromkeys(
            owner.get(name, name)
            for names in inputs.values()
            for name in names
            if owner.get(name) != group.name
        )
        yield msgspec.structs.replace(group, upstream=tuple(before))


# Small things


def _name(fields: Fields) -> str:
    name = fields.text("name")
    if name and not _NAME.match(name):
        fields.error(
            "name",
            f"{name[:60]!r} is not valid: up to 63 letters, digits, dashes and underscores, "
            "beginning with a letter and ending with none of the last two",
        )
    return name


def _duration_s(fields: Fields, name: str) -> int | None:
    text = fields.optional_text(name)
    if text is None:
        return None
    days = _DAYS.match(text)
    if days:
        return int(days[1]) * 86_400
    try:
        return parse_duration_s(text)
    except Invalid as error:
        fields.error(name, error.message)
        return None


def _hold_s(launch: Recipe) -> int | None:
    """How long a task runs that only sleeps, for backends where nothing really runs."""
    found = _SLEEP.search(" ".join((*launch.command, *launch.args)))
    return int(found[1]) if found else None
