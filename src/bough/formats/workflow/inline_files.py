"""Replaces the local files that a workflow names (`localpath`) by their contents."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, NamedTuple

from bough.errors import Invalid
from bough.formats.workflow.write_workflow import is_binary, write_workflow
from bough.formats.yaml.composer import (
    MAXIMUM_SCALAR,
    LinedDict,
    LinedList,
    RepeatedKey,
    compose,
)
from bough.model.problem import dotted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bough.formats.yaml.composer import Value

#: The name under which a file is sent.
LOCAL_PATH = "localpath"


class InlinedWorkflow(NamedTuple):
    """A workflow with the contents of its files."""

    text: str
    #: Of what the text does not show any more.
    warnings: tuple[str, ...] = ()


def inline_files(text: str, read: Callable[[str], bytes]) -> InlinedWorkflow:
    """The workflow with the contents of its files; without such files, the text as it is.

    What is no text becomes base64. A workflow that is not valid is left as it is, for the server to
    refuse.
    """
    repeated: list[RepeatedKey] = []
    documents = [value for value, _ in compose(text, "workflow", repeated=repeated)]
    entries = [entry for value in documents for entry in _entries(value)]
    if not entries:
        return InlinedWorkflow(text)
    for entry in entries:
        path = entry.pop(LOCAL_PATH, None)
        # An alias may stand for an entry that was met before.
        if isinstance(path, str):
            _fill(entry, path, read(path))
    return InlinedWorkflow(
        "---\n".join(write_workflow(value) for value in documents),
        tuple(f"{dotted(each.path)}: {each.message}." for each in repeated),
    )


def _entries(value: Value) -> Iterator[LinedDict]:
    """Everything under `files` that names a file by where it is."""
    workflow = value.get("workflow") if isinstance(value, LinedDict) else None
    for task in _tasks(workflow):
        for entry in _mappings(task.get("files")):
            if isinstance(entry.get(LOCAL_PATH), str) and entry.get("contents") is None:
                yield entry


def _tasks(workflow: Value) -> Iterator[LinedDict]:
    if isinstance(workflow, LinedDict):
        yield from _mappings(workflow.get("tasks"))
        for group in _mappings(workflow.get("groups")):
            yield from _mappings(group.get("tasks"))


def _mappings(value: Value) -> Iterator[LinedDict]:
    if isinstance(value, LinedList):
        yield from (each for each in value if isinstance(each, LinedDict))


def _fill(entry: LinedDict, path: str, content: bytes) -> None:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = None
    if text is None or is_binary(text):
        text = base64.b64encode(content).decode()
        entry["base64"] = True
    else:
        # What is encoded already would be decoded twice.
        entry.pop("base64", None)
    if len(text) > MAXIMUM_SCALAR:
        raise Invalid(
            f"The file {path[:200]} has {len(content):,} bytes; a workflow can hold about "
            f"{MAXIMUM_SCALAR * (3 if 'base64' in entry else 4) // 4:,} of one file."
        )
    entry["contents"] = text
