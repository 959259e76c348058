"""The policy file: every choice of a policy, written over a preset, into `model.policy.Policy`.

    preset: osmo
    gangs:
      minimum_runtime: 15m
      eviction_limit: 10

Fields have the names of the structs (`snake_case`); a time, whose field ends in `_ms`, is written
without that ending and as a duration; `none` says "no limit" where that is possible. What the
structs have can be written, so a new choice needs no line here.
"""

from __future__ import annotations

from enum import Enum, StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import inspect

from bough.errors import Broken, Invalid, NotFound
from bough.formats.yaml.documents import read_file, read_text
from bough.formats.yaml.fields import Fields, Reading
from bough.formats.yaml.times import parse_duration_s
from bough.model.policy import KAI, KAI_FAIR, KUEUE, KUEUE_FAIR, OSMO, Policy
from bough.model.problem import Problem, Severity, problem_line
from bough.model.words import suggest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bough.formats.yaml.documents import Document

#: How "no limit" is written.
NONE = "none"
PRESETS = {policy.name: policy for policy in (OSMO, KUEUE, KUEUE_FAIR, KAI, KAI_FAIR)}
#: The key under which a document names the preset that it changes.
PRESET = "preset"
#: What would stop a scheduler is refused: no search that may try nothing, and no right to evict of
#: which nothing may be used; `reclaim` and `preempt` say that nothing is evicted.
LEAST = {"work": 1, "eviction_limit": 1, "saturation_percent": 100}
#: What every database and every reader of JSON can keep.
_MOST = 2**53
_KUEUE_GROUP = "kueue.x-k8s.io"
_MILLISECONDS = "_ms"
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1_000))


class Preset(StrEnum):
    """The presets by name."""

    OSMO = OSMO.name
    KUEUE = KUEUE.name
    KUEUE_FAIR = KUEUE_FAIR.name
    KAI = KAI.name
    KAI_FAIR = KAI_FAIR.name


class PolicyRead(NamedTuple):
    """A policy, and everything that is wrong with what was written."""

    policy: Policy
    problems: list[Problem]


class WrittenPolicy(NamedTuple):
    """The same, with the preset that was named."""

    policy: Policy
    problems: list[Problem]
    preset: str | None = None


def preset_for(documents: Iterable[Document]) -> Policy:
    """The preset that suits some objects: Kueue's own where there are objects of Kueue."""
    for document in documents:
        value = document.value
        version = value.get("apiVersion") if isinstance(value, dict) else None
        if isinstance(version, str) and version.rpartition("/")[0] == _KUEUE_GROUP:
            return KUEUE
    return OSMO


def read_policy(path: str, default: Policy = OSMO, *, lenient: bool = False) -> PolicyRead:
    """Read a policy file, or take a preset by its name; a file changes the preset that it names.

    Where it names none, it changes the default.
    """
    found = read_policy_file(path, default, lenient=lenient)
    return PolicyRead(found.policy, found.problems)


def read_policy_file(path: str, default: Policy = OSMO, *, lenient: bool = False) -> WrittenPolicy:
    """The same, with the preset that it names. A file goes before a preset of its name."""
    if path in PRESETS and not Path(path).exists():
        return WrittenPolicy(PRESETS[path], [], path)
    try:
        documents = read_file(path)
    except NotFound:
        known = ", ".join(PRESETS)
        meant = suggest(path, list(PRESETS))
        raise NotFound(f"{path}: no such file, and no preset; these are {known}{meant}") from None
    return _only(documents, path, default, lenient=lenient)


def read_policy_text(text: str, source: str, default: Policy = OSMO) -> WrittenPolicy:
    """Read the text of a policy file; problems name the source."""
    return _only(read_text(text, source), source, default, lenient=False)


def read_policy_value(
    value: object, default: Policy = OSMO, *, lenient: bool = False
) -> WrittenPolicy:
    """Read a policy from plain data, which has no lines."""
    text = msgspec.json.encode(value).decode()
    found = _only(read_text(text, ""), "", default, lenient=lenient)
    problems = [msgspec.structs.replace(each, line=0) for each in found.problems]
    return found._replace(problems=problems)


def read_stored_policy(document: Mapping[str, Any]) -> WrittenPolicy:
    """Read what `policy_document` has written, perhaps by an older program.

    What is no longer known is a warning; what it did not know yet is as its preset has it.
    """
    fields = {name: value for name, value in document.items() if name != PRESET}
    default = PRESETS.get(document.get(PRESET, ""), OSMO)
    return read_policy_value(fields, default, lenient=True)


def policy_document(policy: Policy, preset: str) -> dict[str, Any]:
    """A policy as a file has it: the preset that it began with, and every field."""
    return {PRESET: preset, **_written_struct(policy)}


def refuse_faults(found: WrittenPolicy) -> Policy:
    """The policy, if nothing is wrong with what was written."""
    lines = tuple(problem_line(each) for each in found.problems if each.severity is Severity.ERROR)
    if lines:
        raise Invalid("The policy cannot be used, and nothing was changed.", details=lines)
    return found.policy


def policy_of(document: Document, default: Policy = OSMO, *, lenient: bool = False) -> PolicyRead:
    """Read a policy from a document that was read already."""
    found = _read_document(document, default, lenient=lenient)
    return PolicyRead(found.policy, found.problems)


def field_names(struct: type[msgspec.Struct] = Policy) -> Iterator[str]:
    """Every field as it is written, those of nested structs as `gangs.line`."""
    for field in msgspec.structs.fields(struct):
        written = field.name.removesuffix(_MILLISECONDS)
        nested = _struct_of(inspect.type_info(field.type))
        if nested is None:
            yield written
        else:
            yield from (f"{written}.{name}" for name in field_names(nested))


def _only(
    documents: list[Document], source: str, default: Policy, *, lenient: bool
) -> WrittenPolicy:
    if len(documents) == 1:
        return _read_document(documents[0], default, lenient=lenient)
    count = "is empty" if not documents else f"has {len(documents)} documents"
    message = f"{count}; a policy file is one document"
    return WrittenPolicy(default, [Problem((), message, source=source)])


def _read_document(document: Document, default: Policy, *, lenient: bool) -> WrittenPolicy:
    reading = Reading(document, lenient=lenient)
    reading.subject = "Policy"
    fields = reading.fields()
    preset = fields.optional_choice(PRESET, Preset)
    start = default if preset is None else PRESETS[preset]
    policy = _read_struct(fields, start)
    fields.finish()
    return WrittenPolicy(policy, reading.problems, None if preset is None else preset.value)


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
            number = fields.optional_integer(name, minimum=LEAST.get(name, 0))
            return _WRONG if number is None else _bounded(fields, name, number)
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
        return _bounded(fields, name, parse_duration_s(text) * 1000)
    except Invalid as error:
        fields.error(name, error.message)
        return _WRONG


def _bounded(fields: Fields, name: str, number: int) -> object:
    if number <= _MOST:
        return number
    fields.error(name, "is larger than anything that can be counted")
    return _WRONG


def _read_choices(fields: Fields, name: str, choices: Any) -> object:
    known = {choice.value: choice for choice in choices}
    found: list[object] = []
    before = len(fields.reading.problems)
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
    return tuple(found) if len(fields.reading.problems) == before else _WRONG


def _struct_of(kind: inspect.Type) -> type[msgspec.Struct] | None:
    return kind.cls if isinstance(kind, inspect.StructType) else None


def _written_struct(struct: msgspec.Struct) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        name, value = field.name, getattr(struct, field.name)
        is_time = name.endswith(_MILLISECONDS)
        written[name.removesuffix(_MILLISECONDS)] = _written_value(value, is_time=is_time)
    return written


def _written_value(value: Any, *, is_time: bool) -> Any:
    if value is None:
        return NONE
    if isinstance(value, msgspec.Struct):
        return _written_struct(value)
    if is_time:
        return _written_duration(value)
    if isinstance(value, tuple):
        return [_written_value(each, is_time=False) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return value.value if isinstance(value, Enum) else value


def _written_duration(milliseconds: int) -> str:
    """A duration in its largest whole unit."""
    for unit, size in _UNITS:
        if milliseconds and milliseconds % size == 0:
            return f"{milliseconds // size}{unit}"
    return f"{milliseconds}ms" if milliseconds else "0s"
