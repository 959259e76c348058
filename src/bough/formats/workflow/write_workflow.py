"""Workflows as YAML text, which is read again as what was written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

import yaml

from bough.formats.workflow.templates import TEMPLATE_MARKS, unused_character, without_placeholders
from bough.formats.yaml.composer import LinedDict, LinedList
from bough.formats.yaml.scalars import resolve_scalar

#: What a workflow is made of.
Written = None | bool | int | str | Decimal | Sequence["Written"] | Mapping[str, "Written"]

#: Characters that a text in YAML cannot have, or not without being changed.
_BINARY = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_BRACE = re.compile(r"\{(?=[{%#])")


def is_binary(text: str) -> bool:
    """Whether a text has characters that YAML cannot hold as they are."""
    return _BINARY.search(text) is not None


def write_workflow(value: Written) -> str:
    """The values as YAML."""
    return _dump(value, _Dumper)


def write_literally(value: Written) -> str:
    """The values as YAML that is no template, whatever stands in them.

    A brace that would begin something to render is written as an escape; what tasks fill in while
    they run, such as `{{output}}`, stays.
    """
    stand_in = unused_character(_dump(value, _Dumper))

    class Literal(_Dumper):
        """Marks the braces that must be written as escapes."""

    def write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
        if not any(mark in without_placeholders(text) for mark in TEMPLATE_MARKS):
            return _write_text(dumper, text)
        kept = _BRACE.sub(stand_in, text)
        return dumper.represent_scalar("tag:yaml.org,2002:str", kept, '"')  # pyright: ignore[reportUnknownMemberType]

    Literal.add_representer(str, write_text)
    return _dump(value, Literal).replace(stand_in, "\\x7b")


class _Dumper(yaml.SafeDumper):
    """Writes values so that they are read as what they are."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the library's signature
        """Write everything out."""
        return True


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if is_binary(text) or not isinstance(resolve_scalar(text), str):
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


def _dump(value: Written, dumper: type[_Dumper]) -> str:
    return yaml.dump(value, Dumper=dumper, allow_unicode=True, sort_keys=False, width=100_000)
