"""What people send as a workflow, into a spec; or all that is wrong with it, as one error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from bough.control.fields import check_exit_actions
from bough.control.workflows.group_to_gang import make_up
from bough.errors import Invalid
from bough.formats.workflow.group import MAXIMUM_BYTES
from bough.formats.workflow.values import MAXIMUM_LABELS, label_fault, variable_fault
from bough.formats.workflow.workflow import (
    MAXIMUM_PROBLEMS,
    MAXIMUM_TASKS,
    WorkflowRead,
    read_workflow,
)
from bough.formats.yaml.composer import Unreadable, find_forbidden
from bough.formats.yaml.documents import locate
from bough.model.pool_data import read_data_url
from bough.model.problem import Problem, Severity
from bough.model.task_template import TaskTemplate
from bough.model.workflow import GroupSpec, TaskSpec, WorkflowSpec

#: Specs that are kept as they were read, and how large one of them may be: characters of its text
#: times its tasks, since a few lines can make a thousand tasks that each have all variables.
_KEPT = 200
_SMALL = 8 << 10

#: The text, how many tasks it may have, whether files may be missing, whether as strict as OSMO.
_SpecKey = tuple[str, int, bool, bool]
#: A workflow, and warnings about it.
_SpecRead = tuple[WorkflowSpec, tuple[str, ...]]


def read_spec(
    text: str,
    labels: Mapping[str, str] | None = None,
    *,
    template: str | None = None,
    maximum_tasks: int = MAXIMUM_TASKS,
    uploading: bool = False,
    strict_osmo: bool = False,
) -> WorkflowSpec:
    """Read a workflow; labels of the submission come on top of its own.

    With `uploading`, files may still be on the submitter's machine; with `strict_osmo`, what OSMO
    would refuse is refused too. Errors in a text that was
    rendered from a template quote the lines, which the submitter has not seen.
    """
    shown = None if template is None else text
    if template is not None:
        _check_template(template)
    if shown is None:
        spec, warnings = _KEPT_SPECS.read(text, maximum_tasks, uploading, strict_osmo)
    else:
        spec, warnings = _read_text(text, shown, maximum_tasks, uploading, strict_osmo)
    return msgspec.structs.replace(
        spec, labels=_labels(spec, labels or {}), template=template, warnings=warnings
    )


def recall_spec(
    text: str,
    labels: Mapping[str, str],
    *,
    maximum_tasks: int = MAXIMUM_TASKS,
    strict_osmo: bool = False,
) -> WorkflowSpec | None:
    """A workflow that is no template, if it was read before and is kept."""
    found = _KEPT_SPECS.recall((text, maximum_tasks, False, strict_osmo))
    if found is None:
        return None
    spec, warnings = found
    return msgspec.structs.replace(spec, labels=_labels(spec, labels), warnings=warnings)


def _read_text(
    text: str, shown: str | None, maximum_tasks: int, uploading: bool, strict_osmo: bool
) -> _SpecRead:
    """A workflow as its text alone says, and warnings about it."""
    try:
        read = read_workflow(
            text, maximum_tasks=maximum_tasks, uploading=uploading, strict_osmo=strict_osmo
        )
    except Unreadable as error:
        raise _unreadable(error, shown) from None
    if read.spec is None:
        raise _invalid(read.problems, shown)
    spec, problems = _made_up(read, read.spec)
    for group in spec.groups:
        for task in group.tasks:
            check_exit_actions(f"Task {task.name}: exitActions", task.exit_actions)
    _refuse_errors(problems, shown)
    warnings = tuple(f"{each.field}: {each.message}." for each in (*read.problems, *problems))
    return spec, warnings


class _KeptSpecs:
    """Small specs as they were read: the same workflow is often submitted many times in a row.

    Nothing changes a spec that was read. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The one that was asked for longest ago comes first.
        self._found: dict[_SpecKey, _SpecRead] = {}

    def recall(self, key: _SpecKey) -> _SpecRead | None:
        """A workflow that is kept."""
        with self._lock:
            found = self._found.pop(key, None)
            if found is not None:
                self._found[key] = found
        return found

    def read(self, text: str, maximum_tasks: int, uploading: bool, strict_osmo: bool) -> _SpecRead:
        """A workflow that was not rendered from a template."""
        key = (text, maximum_tasks, uploading, strict_osmo)
        found = self.recall(key)
        if found is not None:
            return found
        found = _read_text(text, None, maximum_tasks, uploading, strict_osmo)
        if len(text) * max(1, sum(len(each.tasks) for each in found[0].groups)) <= _SMALL:
            with self._lock:
                self._found[key] = found
                while len(self._found) > _KEPT:
                    del self._found[next(iter(self._found))]
        return found


_KEPT_SPECS = _KeptSpecs()


def with_environment(spec: WorkflowSpec, variables: Mapping[str, str]) -> WorkflowSpec:
    """The same workflow with variables that every task gets, whatever it says itself."""
    for name, value in variables.items():
        fault = variable_fault(name, value)
        if fault is not None:
            raise Invalid(f"The environment cannot have {name[:80]!r}: {fault}.")
    _check_environment(spec, variables)

    def add(task: TaskSpec) -> TaskSpec:
        task_template = task.launch or TaskTemplate()
        environment = {**task_template.environment, **variables}
        launch = msgspec.structs.replace(task_template, environment=environment)
        return msgspec.structs.replace(task, launch=launch)

    return _with_tasks(spec, add) if variables else spec


def with_retries(spec: WorkflowSpec, retries: int | None) -> WorkflowSpec:
    """The same workflow, with retries of tasks that say nothing about them."""
    if retries is None:
        return spec
    if retries < 0:
        raise Invalid(f"retries must not be negative, not {retries}.")
    return _with_tasks(
        spec,
        lambda task: (
            task if task.retries is not None else msgspec.structs.replace(task, retries=retries)
        ),
    )


def _check_environment(spec: WorkflowSpec, variables: Mapping[str, str]) -> None:
    """Every task keeps its own, so that few that are long become much."""
    tasks = sum(len(group.tasks) for group in spec.groups)
    size = tasks * sum(len(name) + len(value) for name, value in variables.items())
    if size > MAXIMUM_BYTES:
        raise Invalid(
            f"The environment that is added has {size:,} characters with all {tasks} tasks; at "
            f"most {MAXIMUM_BYTES:,} are possible."
        )


def with_environment_of(spec: WorkflowSpec, earlier: Iterable[GroupSpec]) -> WorkflowSpec:
    """The same workflow with what was added to the environments and folders of its tasks before."""
    known = {task.name: task.launch for each in earlier for task in each.tasks if task.launch}

    def add(task: TaskSpec) -> TaskSpec:
        task_template = task.launch or TaskTemplate()
        before = known.get(task.name, task_template)
        environment = {**task_template.environment, **before.environment}
        launch = msgspec.structs.replace(
            task_template, environment=environment, project=before.project
        )
        return msgspec.structs.replace(task, launch=launch)

    return _with_tasks(spec, add)


def with_project(spec: WorkflowSpec, url: str | None) -> WorkflowSpec:
    """The same workflow with a folder of a pool's data in the working folder of every task."""
    if url is None:
        return spec
    if read_data_url(url) is None:
        raise Invalid(
            f"upload: {url[:200]!r} is not a URL of a pool's data, like bough://POOL/path."
        )

    def add(task: TaskSpec) -> TaskSpec:
        launch = msgspec.structs.replace(task.launch or TaskTemplate(), project=url)
        return msgspec.structs.replace(task, launch=launch)

    return _with_tasks(spec, add)


def image_warnings(spec: WorkflowSpec, *, runs_images: bool) -> tuple[str, ...]:
    """A warning where images are named and no backend runs them."""
    named = [
        task.name
        for group in spec.groups
        for task in group.tasks
        if task.launch is not None and task.launch.image
    ]
    if runs_images or not named:
        return ()
    who = f"task {named[0]}" if len(named) == 1 else f"{named[0]} and {len(named) - 1} more tasks"
    return (f"The image of {who} is not used: this server runs commands on its own machine.",)


def _with_tasks(spec: WorkflowSpec, change: Callable[[TaskSpec], TaskSpec]) -> WorkflowSpec:
    groups = tuple(
        msgspec.structs.replace(group, tasks=tuple(map(change, group.tasks)))
        for group in spec.groups
    )
    return msgspec.structs.replace(spec, groups=groups)


def _check_template(template: str) -> None:
    """A template is shown to others as it is, and never read as YAML itself."""
    found = find_forbidden(template)
    if found is not None:
        line = template.count("\n", 0, found) + 1
        raise Invalid(
            f"The template is not valid: line {line}: the character U+{ord(template[found]):04X} "
            "must not stand in YAML."
        )


def _made_up(read: WorkflowRead, spec: WorkflowSpec) -> tuple[WorkflowSpec, list[Problem]]:
    """The spec with its gangs, and what is wrong with them."""
    groups: list[GroupSpec] = []
    problems: list[Problem] = []
    for group, written in zip(spec.groups, read.gangs, strict=True):
        made, found = make_up(group, written)
        groups.append(made)
        problems += (
            found if read.document is None else (locate(each, read.document) for each in found)
        )
    return msgspec.structs.replace(spec, groups=tuple(groups)), problems


def _labels(spec: WorkflowSpec, more: Mapping[str, str]) -> dict[str, str]:
    for key, value in more.items():
        fault = label_fault(key, value)
        if fault is not None:
            raise Invalid(f"The workflow cannot have this label: {fault}.")
    labels = {**spec.labels, **more}
    if len(labels) > MAXIMUM_LABELS:
        raise Invalid(
            f"The workflow has {len(labels)} labels; at most {MAXIMUM_LABELS} are possible."
        )
    return labels


def _refuse_errors(problems: Sequence[Problem], shown: str | None) -> None:
    if any(each.severity is Severity.ERROR for each in problems):
        raise _invalid(problems, shown)


def _unreadable(error: Unreadable, shown: str | None) -> Invalid:
    place = ", ".join(
        f"{what} {number}"
        for what, number in (("line", error.line), ("column", error.column))
        if number
    )
    row = _row(None if shown is None else shown.split("\n"), error.line)
    return Invalid(f"The workflow is not valid: {place}{': ' if place else ''}{error.reason}{row}")


def _row(rows: list[str] | None, line: int) -> str:
    """A line of a rendered text, which the submitter has not seen."""
    if rows is None or not 0 < line <= len(rows):
        return ""
    return f" (rendered: {rows[line - 1].strip()[:80]!r})"


def _invalid(problems: Sequence[Problem], shown: str | None) -> Invalid:
    """One error for all problems, with the lines of the text if these can be shown."""
    rows = None if shown is None else shown.split("\n")
    lines = [
        f"line {each.line}: {each.field or 'the document'}: {each.message}{_row(rows, each.line)}"
        for each in problems
        if each.severity is Severity.ERROR
    ]
    more = "" if len(lines) == 1 else f" (and {len(lines) - 1} more)"
    told = tuple(lines[:MAXIMUM_PROBLEMS])
    return Invalid(f"The workflow is not valid: {lines[0]}{more}", details=told)
