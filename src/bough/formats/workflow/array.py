"""The array of a workflow: by indexes, by values, or by a table."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bough.errors import Invalid
from bough.formats.workflow.values import argument_fault
from bough.formats.workflow.write_workflow import Written, write_literally
from bough.formats.yaml.composer import LinedDict, LinedList, compose
from bough.model.array import ArraySpec, IndexRange

if TYPE_CHECKING:
    from bough.formats.yaml.composer import Value
    from bough.formats.yaml.fields import Fields

#: The most mappings, lists and values of a workflow.
MAXIMUM_VALUES = 100_000
#: The most elements of an array, and the highest index.
MAXIMUM_ELEMENTS = 10_000
MAXIMUM_INDEX = 10**9
#: The most characters of all values together.
MAXIMUM_TEXT = 1 << 20
_RANGE = re.compile(r"\s*([0-9]{1,10})(?:\s*-\s*([0-9]{1,10})(?:\s*:\s*([0-9]{1,10}))?)?\s*\Z")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}\Z")
_FORM = "indexes like 0-49, 0-100:10 or 1,5,9, and with %8 at most 8 of them at a time"


def read_array(fields: Fields) -> ArraySpec | None:
    """The array of a workflow; `None`: it has none."""
    if "array" not in fields:
        fields.ignore("array")
        return None
    try:
        if not fields.is_mapping("array"):
            return parse_array(fields.written("array") or "")
        return _read(fields.child("array"))
    except Invalid as error:
        fields.error("array", error.message)
        return None


def parse_array(text: str) -> ArraySpec:
    """An array as people type it: `0-49%8`."""
    indexes, percent, at_once = text.partition("%")
    if percent and not re.fullmatch(r"\s*[1-9][0-9]{0,8}\s*", at_once):
        raise Invalid(f"{text[:60]!r} is not an array: {_FORM}")
    return ArraySpec(_ranges(indexes, text), at_once=int(at_once) if percent else None)


def element_text(text: str, array: ArraySpec, index: int) -> str:
    """The file of one element, as if it had been submitted alone."""
    place = array.place_of(index)
    composed = compose(text, "workflow", MAXIMUM_VALUES, [])
    whole: dict[str, Written] = {}
    for document in (value for value, _ in composed if isinstance(value, LinedDict)):
        for name, value in document.items():
            if name == "workflow" and isinstance(value, LinedDict):
                own = {field: each for field, each in value.items() if field != "array"}
                whole[name] = {field: _filled(each, array, place) for field, each in own.items()}
            else:
                whole[name] = _filled(value, array, place)
    return write_literally(whole)


def _filled(value: Value, array: ArraySpec, place: int) -> Written:
    if isinstance(value, LinedDict):
        return {name: _filled(each, array, place) for name, each in value.items()}
    if isinstance(value, LinedList):
        return [_filled(each, array, place) for each in value]
    return array.fill(value, place) if isinstance(value, str) else value


def _read(nested: Fields) -> ArraySpec:
    at_once = nested.optional_integer("atOnce", minimum=1)
    given = [name for name in ("index", "values", "table") if name in nested]
    nested.ignore(*({"index", "values", "table"} - set(given)))
    if len(given) != 1:
        nested.ignore("index", "values", "table")
        raise Invalid("has either index, values or table")
    values: tuple[str, ...] = ()
    table: tuple[dict[str, str], ...] = ()
    if given == ["index"]:
        text = nested.written("index") or ""
        return ArraySpec(_ranges(text, text), at_once=at_once)
    if given == ["values"]:
        values = nested.writings("values")
        _check_texts(values)
    else:
        rows = nested.children("table")
        table = tuple({name: row.written(name) or "" for name in row.names()} for row in rows)
        _check_table(table)
    count = len(values) or len(table)
    _check_count(count)
    return ArraySpec((IndexRange(0, count - 1),), values, table, at_once)


def _ranges(indexes: str, whole: str) -> tuple[IndexRange, ...]:
    found: list[IndexRange] = []
    count = 0
    for part in indexes.split(","):
        match = _RANGE.match(part)
        if match is None:
            raise Invalid(f"{whole[:60]!r} is not an array: {_FORM}")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step < 1 or last > MAXIMUM_INDEX:
            raise Invalid(
                f"{part.strip()[:60]!r} has no indexes from the lower to the higher, at most "
                f"{MAXIMUM_INDEX}"
            )
        found.append(IndexRange(first, last, step))
        count += found[-1].count
        _check_count(count)
    seen: set[int] = set()
    for each in found:
        for index in range(each.first, each.last + 1, each.step):
            if index in seen:
                raise Invalid(f"{whole[:60]!r} has the index {index} twice")
            seen.add(index)
    return tuple(found)


def _check_count(count: int) -> None:
    if not count:
        raise Invalid("has no elements")
    if count > MAXIMUM_ELEMENTS:
        raise Invalid(f"has {count:,} elements or more; at most {MAXIMUM_ELEMENTS:,} are possible")


def _check_table(table: tuple[dict[str, str], ...]) -> None:
    columns = set(table[0]) if table else set[str]()
    for name in columns:
        if not _COLUMN.match(name):
            raise Invalid(
                f"{name[:60]!r} is not the name of a column: letters, digits, '-' and '_'"
            )
    for number, row in enumerate(table):
        if set(row) != columns:
            raise Invalid(f"row {number} has other columns than row 0")
    _check_texts([text for row in table for text in row.values()])


def _check_texts(texts: tuple[str, ...] | list[str]) -> None:
    for text in texts:
        fault = argument_fault(text)
        if fault is None and ".." in text.split("/"):
            fault = "has '..' as a part of a path"
        if fault is not None:
            raise Invalid(f"the value {text[:60]!r} {fault}")
    if sum(map(len, texts)) > MAXIMUM_TEXT:
        raise Invalid(f"has more than {MAXIMUM_TEXT:,} characters in its values")
