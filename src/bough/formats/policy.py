"""The policy file: every choice of a policy, written over a preset, into `model.policy.Policy`.

    preset: osmo
    gangs:
      minimum_runtime: 15m
      eviction_limit: 10

Fields have the names of the structs (`snake_case`); a time, whose field ends in `_ms`, is written
without that ending and as a duration; `none` says "no limit" where that is possible. What the
structs have can be written, so a new choice needs no line here. Must not know what a choice does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import inspect

from bough.errors import Broken, Invalid
from bough.formats.documents import read_file
from bough.formats.durations import parse_duration_s
from bough.formats.fields import Fields, Reading, suggest
from bough.model.policy import KAI, KUEUE, OSMO, Policy
from bough.model.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bough.formats.documents import Document

#: How "no limit" is written.
NONE = "none"
PRESETS = {policy.name: policy for policy in (OSMO, KUEUE, KAI)}
_KUEUE_GROUP = "kueue.x-k8s.io"
_MILLISECONDS = "_ms"


class Preset(StrEnum):
    """The presets by name."""

    OSMO = OSMO.name
    KUEUE = KUEUE.name
    KAI = KAI.name


class PolicyRead(NamedTuple):
    """A policy, and everything that is wrong with what was written."""

    policy: Policy
    problems: list[Problem]


def preset_for(documents: Iterable[Document]) -> Policy:
    """The preset that suits some objects: Kueue's own where there are objects of Kueue."""
    for document in documents:
        value = document.value
        version = value.get("apiVersion") if isinstance(value, dict) else None
        if isinstance(version, str) and version.rpartition("/")[0] == _KUEUE_GROUP:
            return KUEUE
    return OSMO


def read_policy(path: str, default: Policy = OSMO, *, lenient: bool = False) -> PolicyRead:
    """Read a policy file; where it names no preset, it changes the default."""
    documents = read_file(path)
    if len(documents) != 1:
        count = "is empty" if not documents else f"has {len(documents)} documents"
        message = f"{count}; a policy file is one document"
        return PolicyRead(default, [Problem((), message, source=path)])
    return policy_of(documents[0], default, lenient=lenient)


def policy_of(document: Document, default: Policy = OSMO, *, lenient: bool = False) -> PolicyRead:
    """Read a policy from a document that was read already."""
    reading = Reading(document, lenient=lenient)
    reading.subject = "Policy"
    fields = reading.fields()
    preset = fields.optional_choice("preset", Preset)
    start = default if preset is None else PRESETS[preset]
    policy = _read_struct(fields, start)
    fields.finish()
    return PolicyRead(policy, reading.problems)


def field_names(struct: type[msgspec.Struct] = Policy) -> Iterator[str]:
    """Every field as it is written, those of nested structs as `gangs.line`."""
    for field in msgspec.structs.fields(struct):
        written = field.name.removesuffix(_MILLISECONDS)
        nested = _struct_of(inspect.type_info(field.type))
        if nested is None:
            yield written
        else:
            yield from (f"{written}.{name}" for name in field_names(nested))


def _read_struct(fields: Fields, start: Any) -> Any:
    """A struct with what is written over what it starts from."""
    changes: dict[str, object] = {}
    for field in msgspec.structs.fields(start):
        name = field.name.removesuffix(_MILLISECONDS)
        kind = inspect.type_info(field.type)
        nested = _struct_of(kind)
        if nested is not None:
            child = fields.optional_child(name)
            if child is not None:
                changes[field.name] = _read_struct(child, getattr(start, field.name))
            continue
        if name not in fields:
            fields.ignore(name)
            continue
        found = _read_value(fields, name, kind, is_time=name != field.name)
        if found is not _WRONG:
            changes[field.name] = found
    return msgspec.structs.replace(start, **changes)


#: What was written cannot be used; the problem is recorded.
_WRONG = object()


def _read_value(fields: Fields, name: str, kind: inspect.Type, *, is_time: bool) -> object:
    if isinstance(kind, inspect.UnionType):
        if fields.is_text(name, NONE):
            return None
        kind = next(each for each in kind.types if not isinstance(each, inspect.NoneType))
    if is_time:
        return _read_duration_ms(fields, name)
    match kind:
        case inspect.BoolType():
            before = len(fields.reading.problems)
            value = fields.boolean(name, default=False)
            return value if len(fields.reading.problems) == before else _WRONG
        case inspect.IntType():
            number = fields.optional_integer(name, minimum=0)
            return _WRONG if number is None else number
        case inspect.StrType():
            text = fields.optional_text(name)
            return _WRONG if text is None else text
        case inspect.EnumType():
            choice = fields.optional_choice(name, kind.cls)  # pyright: ignore[reportArgumentType]
            return _WRONG if choice is None else choice
        case inspect.VarTupleType(item_type=inspect.EnumType(cls=choices)):
            return _read_choices(fields, name, choices)
        case _:
            raise Broken(f"a policy has the field {name}, of a type that no file can have")


def _read_duration_ms(fields: Fields, name: str) -> object:
    text = fields.written(name)
    if text is None:
        return _WRONG
    try:
        return parse_duration_s(text) * 1000
    except Invalid as error:
        fields.error(name, error.message)
        return _WRONG


def _read_choices(fields: Fields, name: str, choices: Any) -> object:
    known = {choice.value: choice for choice in choices}
    found: list[object] = []
    texts = fields.texts(name)
    for index, text in enumerate(texts):
        path = (*fields.path, name, index)
        if text not in known:
            names = ", ".join(known)
            message = f"expected one of {names}, not the text {text[:60]!r}"
            fields.reading.error(path, f"{message}{suggest(text, list(known))}")
        elif known[text] in found:
            fields.reading.error(path, f"{text} stands here twice")
        else:
            found.append(known[text])
    return tuple(found) if len(found) == len(texts) and found else _WRONG


def _struct_of(kind: inspect.Type) -> type[msgspec.Struct] | None:
    return kind.cls if isinstance(kind, inspect.StructType) else None
