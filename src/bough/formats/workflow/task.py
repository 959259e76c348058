"""One task of a workflow: its template, its resources, and how many replicas it has."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.formats.workflow.resources import DEFAULT_RESOURCE, DomainRequest, NamedResources
from bough.formats.workflow.values import (
    read_arguments,
    read_credential_name,
    read_duration_s,
    read_environment,
    read_name,
    read_path,
    read_regex,
    read_url,
    read_word,
    variable_fault,
)
from bough.model.task_template import (
    CheckpointSpec,
    CredentialUse,
    FileSpec,
    InputSpec,
    OutputSpec,
    TaskTemplate,
)
from bough.model.workflow import TaskSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bough.formats.yaml.fields import Fields

#: Variables of a replica: its number, and the largest number of replicas.
REPLICA_VARIABLE = "BOUGH_REPLICA"
REPLICAS_VARIABLE = "BOUGH_REPLICAS"

_MOUNT = re.compile(r"[^:]+(?::[^:]+)?\Z")
_SLEEP = re.compile(r"(?:\A|[\s;&])sleep\s+([0-9]{1,9})\s*\Z")
#: `<workflow>-<number>:<task>`.
_OF_ANOTHER = re.compile(r"([a-zA-Z][a-zA-Z0-9_-]*-[0-9]{1,18}):([a-zA-Z][a-zA-Z0-9_-]*)\Z")
#: For other places than this one; here they change nothing.
_WITHOUT_MEANING = ("backend", "cacheSize", "kpis")
#: How inputs come to a task; there is one way.
DOWNLOAD = "download"


class Replicas(NamedTuple):
    """How often a task is there: from `least` to `most` times."""

    least: int
    most: int

    @property
    def elastic(self) -> bool:
        """Whether some of them come and go."""
        return self.least < self.most


class ReadTask(NamedTuple):
    """A task as it is written, with all its replicas."""

    fields: Fields
    task: TaskSpec
    levels: tuple[DomainRequest, ...]
    #: `None`: it is there once, under its own name.
    replicas: Replicas | None

    @property
    def times(self) -> int:
        """How many tasks it gives."""
        return 1 if self.replicas is None else self.replicas.most

    @property
    def written_bytes(self) -> int:
        """What all of them take where they are kept, each with everything that it says."""
        return self.times * len(msgspec.json.encode(self.task))

    @property
    def tasks(self) -> tuple[TaskSpec, ...]:
        """All tasks that it gives. Of replicas, the first is the lead."""
        if self.replicas is None:
            return (self.task,)
        return tuple(self._replica(number) for number in range(self.replicas.most))

    def _replica(self, number: int) -> TaskSpec:
        task_template = self.task.launch or TaskTemplate()
        count = self.replicas.most if self.replicas is not None else 1
        own = {REPLICA_VARIABLE: str(number), REPLICAS_VARIABLE: str(count)}
        launch = msgspec.structs.replace(
            task_template, environment={**own, **task_template.environment}
        )
        return msgspec.structs.replace(
            self.task,
            name=f"{self.task.name}-{number}",
            lead=self.task.lead and number == 0,
            launch=launch,
        )


def read_task(
    fields: Fields, wanted: dict[str, NamedResources], *, lone: bool, uploading: bool, maximum: int
) -> ReadTask:
    """Read a task. If uploading, files may still be on the user's machine."""
    resource = fields.optional_text("resource")
    if resource is not None and resource not in wanted:
        fields.error("resource", f"{resource[:60]!r} is not among the resources of the workflow")
    asked = wanted.get(resource or DEFAULT_RESOURCE, NamedResources())
    launch = _read_task_template(fields, uploading=uploading)
    _warn_about(fields)
    task = TaskSpec(
        name=read_name(fields),
        requests=asked.requests,
        storage_bytes=asked.storage_bytes,
        subgroup=fields.optional_text("subGroup"),
        lead=fields.boolean("lead", default=lone),
        platform=asked.platform,
        nodes_excluded=asked.nodes_excluded,
        exit_actions=_read_exit_actions(fields),
        retries=fields.optional_integer("retries", minimum=0),
        hold_s=_hold_s(launch),
        launch=launch,
    )
    return ReadTask(fields, task, asked.levels, _read_replicas(fields, maximum))


def _read_task_template(fields: Fields, *, uploading: bool) -> TaskTemplate:
    environment = read_environment(fields)
    return TaskTemplate(
        image=read_word(fields, "image"),
        command=_read_command(fields),
        args=read_arguments(fields, "args"),
        environment=environment,
        files=tuple(_read_files(fields, uploading=uploading)),
        inputs=tuple(_read_input(each) for each in fields.children("inputs")),
        outputs=tuple(_read_output(each) for each in fields.children("outputs")),
        checkpoints=tuple(_read_checkpoint(each) for each in fields.children("checkpoint")),
        credentials=tuple(_read_credentials(fields, environment)),
        mounts=tuple(_read_mounts(fields)),
    )


def _read_command(fields: Fields) -> tuple[str, ...]:
    if fields.is_empty("command"):
        fields.error("command", "is empty; a task has a program to run")
    return read_arguments(fields, "command")


def _read_files(fields: Fields, *, uploading: bool) -> Iterator[FileSpec]:
    paths: set[str] = set()
    for each in fields.children("files"):
        path = read_path(each, "path")
        if path.endswith("/"):
            each.error("path", f"{path[:80]!r} is a folder; a file has a name")
        if path in paths:
            each.error("path", f"{path[:80]!r} is the path of another file of this task")
        paths.add(path)
        encoded = each.boolean("base64", default=False)
        contents = each.written("contents")
        local = each.optional_text("localpath")
        if (contents is None) == (local is None):
            each.error("contents", "a file has either contents or a localpath")
        elif contents is None and not uploading:
            each.error("localpath", f"{(local or '')[:80]!r} was not sent along; send its contents")
        if encoded and contents is not None and not _is_base64(contents):
            each.error("contents", "is not valid base64")
        yield FileSpec(path, contents or "", encoded)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _read_input(fields: Fields) -> InputSpec:
    regex = read_regex(fields)
    if "dataset" in fields:
        fields.ignore("dataset")
        fields.error("dataset", "there are no datasets on this server; name a url")
    elif ("task" in fields) == ("url" in fields):
        fields.error("task", "an input is either a task or a url")
    if "url" in fields:
        fields.ignore("task")
        return InputSpec(url=read_url(fields), regex=regex)
    fields.ignore("url")
    name = fields.optional_text("task") or ""
    other = _OF_ANOTHER.match(name)
    if other:
        return InputSpec(task=other[2], workflow=other[1], regex=regex)
    return InputSpec(task=name, regex=regex)


def _read_output(fields: Fields) -> OutputSpec:
    if "dataset" in fields:
        fields.ignore("dataset")
        fields.error("dataset", "there are no datasets on this server; name a url")
    return OutputSpec(read_url(fields), read_regex(fields))


def _read_checkpoint(fields: Fields) -> CheckpointSpec:
    if "frequency" not in fields:
        fields.error("frequency", "is missing; say how often, as 10m")
    return CheckpointSpec(
        path=read_path(fields, "path"),
        url=read_url(fields),
        frequency_s=read_duration_s(fields, "frequency") or 1,
        regex=read_regex(fields),
    )


def _read_credentials(fields: Fields, environment: dict[str, str]) -> Iterator[CredentialUse]:
    nested = fields.optional_child("credentials") or fields.nothing("credentials")
    taken = dict.fromkeys(environment, "the environment")
    for name in nested.names():
        read_credential_name(nested, name)
        if not nested.is_mapping(name):
            yield CredentialUse(name, mount=read_path(nested, name))
            continue
        keys = nested.child(name)
        variables = {each: keys.text(each) for each in keys.names()}
        for variable in variables:
            fault = variable_fault(variable, "")
            if fault is None and variable in taken:
                fault = f"{variable} is set by {taken[variable]} already"
            if fault is not None:
                keys.error(variable, fault)
            taken[variable] = f"the credential {name}"
        yield CredentialUse(name, variables=variables)


def _read_mounts(fields: Fields) -> Iterator[str]:
    for index, mount in enumerate(fields.texts("volumeMounts")):
        if _MOUNT.match(mount):
            yield mount.partition(":")[0]
        else:
            path = (*fields.path, "volumeMounts", index)
            fields.reading.error(
                path, f"{mount[:80]!r} is not a mount; write SOURCE or SOURCE:TARGET"
            )


def _read_exit_actions(fields: Fields) -> dict[str, str]:
    actions = fields.optional_child("exitActions")
    if actions is None:
        return {}
    return {name: actions.written(name) or "" for name in actions.names()}


def _read_replicas(fields: Fields, maximum: int) -> Replicas | None:
    if "replicas" not in fields:
        fields.ignore("replicas")
        return None
    if fields.is_mapping("replicas"):
        nested = fields.child("replicas")
        least = nested.integer("min", minimum=1)
        most = nested.integer("max", minimum=1)
        if most < least:
            nested.error("max", f"is {most}, but must be at least min, which is {least}")
    else:
        least = most = fields.integer("replicas", minimum=1)
    if most > maximum:
        fields.error("replicas", f"are {most}; a workflow has at most {maximum} tasks")
        most = 1
    return Replicas(min(least, most), most)


def _warn_about(fields: Fields) -> None:
    """What is known from other places, and would do something there."""
    fields.ignore(*_WITHOUT_MEANING)
    download = fields.optional_text("downloadType")
    if download not in (None, DOWNLOAD):
        fields.error("downloadType", f"is {download[:60]!r}, but must be {DOWNLOAD}")
    if "volumeMounts" in fields:
        fields.warn("volumeMounts", "has no effect on this server; tasks see what it shows them")
    for name in ("privileged", "hostNetwork"):
        if fields.boolean(name, default=False):
            fields.warn(name, "has no effect on this server")


def _hold_s(launch: TaskTemplate) -> int | None:
    """How long a task runs that only sleeps, for backends where nothing really runs."""
    found = _SLEEP.search(" ".join((*launch.command, *launch.args)))
    return int(found[1]) if found else None
