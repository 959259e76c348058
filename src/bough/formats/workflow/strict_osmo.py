"""What OSMO would refuse of a workflow that Bough accepts: `validate --strict-osmo`.

Bough is the wider of the two: it has fields of its own, needs no image where nothing runs in one,
and takes `null` for absent. A file that passes here as well can be taken to an OSMO server.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.workflow.resources import DEFAULT_RESOURCE
from bough.formats.workflow.values import folded
from bough.formats.yaml.composer import LinedDict, LinedList
from bough.formats.yaml.fields import describe

if TYPE_CHECKING:
    from bough.formats.yaml.composer import Value
    from bough.formats.yaml.fields import Reading
    from bough.model.problem import FieldPath

#: Looks at a value, and records what is wrong with it.
Check = Callable[["Reading", "FieldPath", "Value"], None]

_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:(?:[TGMK](?:i|iB)?)|B|m)?\Z", re.ASCII)
_DURATION = re.compile(
    r"(?:[-+]?[0-9]+(?:d|h|m|s|ms|us)"
    r"|P(?=[0-9T])(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)\Z",
    re.ASCII,
)
_WORDS_FOR_BOOLEANS = ("true", "false", "yes", "no", "on", "off", "y", "n", "t", "f", "1", "0")
#: The name of a container that OSMO adds to every task.
_TAKEN_NAME = "osmo-ctrl"
#: The folder in which OSMO has its own files.
_OWN_FOLDER = "osmo"


class Field(NamedTuple):
    """A field of a mapping that OSMO knows."""

    check: Check
    required: bool = False
    #: Whether it may be `null`.
    nullable: bool = False


def check_as_osmo(reading: Reading) -> None:
    """Record everything in a document that OSMO would refuse and Bough would not."""
    _document(reading, (), reading.document.value)
    value = reading.document.value
    workflow = value.get("workflow") if isinstance(value, LinedDict) else None
    if isinstance(workflow, LinedDict):
        _check_default_resource(reading, workflow)


def _refuse(reading: Reading, path: FieldPath, message: str) -> None:
    reading.error(path, f"{message} (OSMO)")


# Single values


def _anything(_: Reading, __: FieldPath, ___: Value) -> None:
    """What a template is given."""


def _text(reading: Reading, path: FieldPath, value: Value) -> None:
    if not isinstance(value, str):
        _refuse(reading, path, f"must be text, not {describe(value)}")


def _written(reading: Reading, path: FieldPath, value: Value) -> None:
    """A text, or a number that becomes one."""
    if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
        _refuse(reading, path, f"must be text or a number, not {describe(value)}")


def _scalar(reading: Reading, path: FieldPath, value: Value) -> None:
    if value is None or isinstance(value, (LinedDict, LinedList)):
        _refuse(reading, path, f"must be text, a number, true or false, not {describe(value)}")


def _integer(reading: Reading, path: FieldPath, value: Value) -> None:
    whole = isinstance(value, int) or (isinstance(value, Decimal) and value == int(value))
    if not whole and not (isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]+", value)):
        _refuse(reading, path, f"must be a whole number, not {describe(value)}")


def _boolean(reading: Reading, path: FieldPath, value: Value) -> None:
    if str(value).lower() not in _WORDS_FOR_BOOLEANS:
        _refuse(reading, path, f"must be true or false, not {describe(value)}")


def _amount(reading: Reading, path: FieldPath, value: Value) -> None:
    _written(reading, path, value)
    if isinstance(value, (str, int, Decimal)) and not _AMOUNT.match(str(value)):
        _refuse(reading, path, f"{str(value)[:60]!r} is not an amount such as 16Gi")


def _duration(reading: Reading, path: FieldPath, value: Value) -> None:
    if isinstance(value, (int, Decimal)):
        return
    if not isinstance(value, str) or not _DURATION.match(value):
        _refuse(reading, path, f"must be one number with d, h, m or s, not {describe(value)}")


def _task_name(reading: Reading, path: FieldPath, value: Value) -> None:
    _text(reading, path, value)
    if isinstance(value, str) and folded(value) == _TAKEN_NAME:
        _refuse(reading, path, f"a task cannot be named {_TAKEN_NAME}")


def _file_path(reading: Reading, path: FieldPath, value: Value) -> None:
    _written(reading, path, value)
    parts = [each for each in str(value).split("/") if each]
    inside = str(value).startswith("/osmo/data/output/")
    if not inside and (not parts or parts[0] == _OWN_FOLDER):
        _refuse(reading, path, f"no file can be in /{_OWN_FOLDER}")


# Lists and mappings


def _list_of(check: Check) -> Check:
    def check_list(reading: Reading, path: FieldPath, value: Value) -> None:
        if not isinstance(value, LinedList):
            _refuse(reading, path, f"must be a list, not {describe(value)}")
            return
        for index, each in enumerate(value):
            check(reading, (*path, index), each)

    return check_list


def _mapping_of(check: Check) -> Check:
    def check_mapping(reading: Reading, path: FieldPath, value: Value) -> None:
        if not isinstance(value, LinedDict):
            _refuse(reading, path, f"must be a mapping, not {describe(value)}")
            return
        for name, each in value.items():
            check(reading, (*path, name), each)

    return check_mapping


def _object(**fields: Field) -> Check:
    def check_object(reading: Reading, path: FieldPath, value: Value) -> None:
        if not isinstance(value, LinedDict):
            _refuse(reading, path, f"must be a mapping, not {describe(value)}")
            return
        for name, each in value.items():
            field = fields.get(name)
            if field is None:
                _refuse(reading, (*path, name), "is not known")
            elif each is not None or not field.nullable:
                field.check(reading, (*path, name), each)
        for name, field in fields.items():
            if field.required and name not in value:
                _refuse(reading, (*path, name), "is missing")

    return check_object


def _label(reading: Reading, path: FieldPath, value: Value) -> None:
    if not isinstance(value, str) or not value:
        _refuse(reading, path, f"must be text that is not empty, not {describe(value)}")


def _credential(reading: Reading, path: FieldPath, value: Value) -> None:
    if isinstance(value, LinedDict):
        _mapping_of(_scalar)(reading, path, value)
    else:
        _scalar(reading, path, value)


def _input(reading: Reading, path: FieldPath, value: Value) -> None:
    of_url = isinstance(value, LinedDict) and "url" in value
    (_url if of_url else _of_task)(reading, path, value)


# What OSMO knows of each mapping


_url = _object(url=Field(_text, required=True), regex=Field(_text))
_of_task = _object(task=Field(_text, required=True), regex=Field(_text))
_checkpoint = _object(
    path=Field(_text, required=True),
    url=Field(_text, required=True),
    frequency=Field(_duration, required=True),
    regex=Field(_text),
)
_file = _object(
    path=Field(_file_path, required=True),
    contents=Field(_written),
    # A client replaces it by the contents.
    localpath=Field(_text),
    base64=Field(_boolean),
)
_kpi = _object(index=Field(_written, required=True), path=Field(_written, required=True))
_level = _object(key=Field(_text, required=True), group=Field(_text), requirementType=Field(_text))
_resources = _object(
    cpu=Field(_integer, nullable=True),
    gpu=Field(_integer, nullable=True),
    memory=Field(_amount, nullable=True),
    storage=Field(_amount, nullable=True),
    platform=Field(_written, nullable=True),
    nodesExcluded=Field(_list_of(_written)),
    topology=Field(_list_of(_level)),
)
_task = _object(
    name=Field(_task_name, required=True),
    image=Field(_written, required=True),
    command=Field(_list_of(_written), required=True),
    args=Field(_list_of(_written)),
    inputs=Field(_list_of(_input)),
    outputs=Field(_list_of(_url)),
    kpis=Field(_list_of(_kpi)),
    lead=Field(_boolean),
    environment=Field(_mapping_of(_scalar)),
    files=Field(_list_of(_file)),
    privileged=Field(_boolean),
    hostNetwork=Field(_boolean),
    volumeMounts=Field(_list_of(_written)),
    credentials=Field(_mapping_of(_credential)),
    downloadType=Field(_text, nullable=True),
    cacheSize=Field(_written, nullable=True),
    exitActions=Field(_mapping_of(_scalar)),
    checkpoint=Field(_list_of(_checkpoint)),
    resource=Field(_written),
    backend=Field(_written),
)
_group = _object(
    name=Field(_text, required=True),
    barrier=Field(_boolean),
    ignoreNonleadStatus=Field(_boolean),
    tasks=Field(_list_of(_task), required=True),
)
_workflow = _object(
    name=Field(_text, required=True),
    labels=Field(_mapping_of(_label)),
    pool=Field(_text),
    backend=Field(_text),
    timeout=Field(
        _object(
            exec_timeout=Field(_duration, nullable=True),
            queue_timeout=Field(_duration, nullable=True),
        )
    ),
    resources=Field(_mapping_of(_resources)),
    tasks=Field(_list_of(_task)),
    groups=Field(_list_of(_group)),
)
_document = _object(
    workflow=Field(_workflow, required=True),
    version=Field(_scalar),
    **{"default-values": Field(_anything, nullable=True)},
)


def _check_default_resource(reading: Reading, workflow: LinedDict) -> None:
    """A task that names no resource has `default`, which must be there if any resource is."""
    resources = workflow.get("resources")
    if not isinstance(resources, LinedDict) or DEFAULT_RESOURCE in resources:
        return
    places: list[tuple[FieldPath, Value]] = [(("workflow", "tasks"), workflow.get("tasks"))]
    groups = workflow.get("groups")
    for index, group in enumerate(groups if isinstance(groups, LinedList) else ()):
        if isinstance(group, LinedDict):
            places.append((("workflow", "groups", index, "tasks"), group.get("tasks")))
    for path, tasks in places:
        for index, task in enumerate(tasks if isinstance(tasks, LinedList) else ()):
            if isinstance(task, LinedDict) and "resource" not in task:
                message = f"is missing, and the workflow has no resource {DEFAULT_RESOURCE!r}"
                _refuse(reading, (*path, index, "resource"), message)
