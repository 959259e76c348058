"""Replaces the local files that a workflow names (`localpath`) by their contents."""

from __future__ import annotations

import base64
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import yaml

from bough.errors import Invalid
from bough.formats.yaml.composer import MAXIMUM_SCALAR, LinedDict, LinedList, compose
from bough.formats.yaml.scalars import resolve_scalar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bough.formats.yaml.composer import Value

#: The name under which a file is sent.
LOCAL_PATH = "localpath"
#: Characters that a text in YAML cannot have, or not without being changed.
_BINARY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def inline_files(text: str, read: Callable[[str], bytes]) -> str:
    """The workflow with the contents of its files; without such files, the text as it is.

    What is no text becomes base64. A workflow that is not valid is left as it is, for the server to
    refuse.
    """
    documents = [value for value, _ in compose(text, "workflow")]
    entries = [entry for value in documents for entry in _entries(value)]
    if not entries:
        return text
    for entry in entries:
        path = entry.pop(LOCAL_PATH, None)
        # An alias may stand for an entry that was met before.
        if isinstance(path, str):
            _fill(entry, path, read(path))
    return "---\n".join(_written(value) for value in documents)


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
    if text is None or _BINARY.search(text):
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


class _Dumper(yaml.SafeDumper):
    """Writes values so that they are read as what they are."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the library's signature
        """Write everything out."""
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if _BINARY.search(text) or not isinstance(resolve_scalar(text), str):
        style = '"'
    else:
        style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)  # pyright: ignore[reportUnknownMemberType]


def _write_number(dumper: yaml.SafeDumper, number: Decimal) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:float", str(number))  # pyright: ignore[reportUnknownMemberType]


def _write_mapping(dumper: yaml.SafeDumper, value: LinedDict) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value.items())


def _write_list(dumper: yaml.SafeDumper, value: LinedList) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value)


_Dumper.add_representer(str, _write_text)
_Dumper.add_representer(Decimal, _write_number)
_Dumper.add_representer(LinedDict, _write_mapping)
_Dumper.add_representer(LinedList, _write_list)


def _written(value: Value) -> str:
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=100_000)
