"""One YAML stream into plain values that know their lines, within limits that no input can pass.

The parser's events are composed here, in a loop and not by recursion, so that deep nesting costs
nothing but an error, and aliases are counted by what they stand for, so that a few lines cannot
become billions of values.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple, cast

import yaml
from yaml.events import (
    AliasEvent,
    CollectionEndEvent,
    CollectionStartEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingStartEvent,
    ScalarEvent,
)

from bough.errors import Invalid
from bough.formats.yaml.scalars import is_collection_tag, resolve_scalar, resolve_tagged

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bough.model.problem import FieldPath

MAXIMUM_DEPTH = 64
MAXIMUM_SCALAR = 1 << 20
#: Mappings, sequences, keys and scalars in one stream, aliases counted as what they stand for.
MAXIMUM_VALUES = 10_000_000
#: Keys that stand twice in one stream, where that is allowed at all.
MAXIMUM_REPEATED = 100
#: Tags that a stream declares. The parser compares each of them with all before it.
MAXIMUM_TAGS = 100

_MERGE = "<<"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Where a tag is declared: at the beginning of what the parser takes for a line.
_TAG = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%TAG")
#: Characters that YAML does not allow.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


class LinedDict(dict[str, "Value"]):
    """A mapping that knows its own line and that of each key."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        #: Lines of the keys, in the order of the keys.
        self.lines: list[int] = []

    def line_of(self, key: str) -> int | None:
        """The line of a key, or None where there is no such key."""
        for known, line in zip(self, self.lines, strict=True):
            if known == key:
                return line
        return None

    def forget(self, key: str) -> None:
        """Remove a key that is there, and its line."""
        del self.lines[list(self).index(key)]
        del self[key]


class LinedList(list["Value"]):
    """A sequence that knows its own line and that of each item."""

    __slots__ = ("line", "lines")

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


Value = None | bool | int | Decimal | str | LinedDict | LinedList


class Unreadable(Invalid):
    """A file cannot be read as YAML."""

    def __init__(self, reason: str, source: str, line: int = 0, column: int = 0) -> None:
        place = ":".join([source, *(str(number) for number in (line, column) if number)])
        super().__init__(f"{place}: {reason}")
        #: The message without the place.
        self.reason = reason
        self.source = source
        #: Both count from 1; 0 means unknown.
        self.line = line
        self.column = column


class RepeatedKey(NamedTuple):
    """A key that stands twice in one mapping, below the top of a document."""

    path: FieldPath
    first_line: int
    #: Where it stands again; what is said here counts.
    line: int

    @property
    def message(self) -> str:
        """What to tell about it."""
        lines = f"lines {self.first_line} and {self.line}"
        return f"stands here twice, on {lines}; the last one counts"


def compose(
    text: str,
    source: str,
    maximum_values: int | None = None,
    repeated: list[RepeatedKey] | None = None,
) -> Iterator[tuple[Value, int]]:
    """Read the documents of a stream, each with the line on which it starts.

    With a list for what is `repeated`, keys may stand twice, and mappings may take fields over from
    others (`<<`), as most readers of YAML allow it; without one, both are refused.
    """
    most = MAXIMUM_VALUES if maximum_values is None else maximum_values
    composer = _Composer(source, most, repeated)
    _check_tags(text, source)
    try:
        for event in _events(text):
            if isinstance(event, ScalarEvent):
                composer.take_scalar(event)
            elif isinstance(event, CollectionStartEvent):
                composer.open(event)
            elif isinstance(event, CollectionEndEvent):
                composer.close(event)
            elif isinstance(event, AliasEvent):
                composer.take_alias(event)
            elif isinstance(event, DocumentStartEvent):
                composer.start(event)
            elif isinstance(event, DocumentEndEvent):
                yield composer.document, composer.line
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, source) from None
    except yaml.reader.ReaderError as error:
        raise _character_error(error, text, source) from None


def find_forbidden(text: str) -> int | None:
    """The position of a character that YAML does not allow; `None`: there is none."""
    found = _FORBIDDEN.search(text)
    return None if found is None else found.start()


def _check_tags(text: str, source: str) -> None:
    if "%TAG" in text and sum(1 for _ in _TAG.finditer(text)) > MAXIMUM_TAGS:
        raise Unreadable(f"more than {MAXIMUM_TAGS} %TAG directives", source)


def _events(text: str) -> Iterator[Event]:
    parsed = cast("object", yaml.parse(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType]
    return cast("Iterator[Event]", parsed)


class _Anchored(NamedTuple):
    value: Value
    #: How many values it stands for, and how deep they are nested.
    size: int
    height: int


class _Nesting:
    """A mapping or sequence that is not closed yet."""

    __slots__ = ("anchor", "counted", "height", "key", "key_line", "merged", "value")

    def __init__(self, value: LinedDict | LinedList, anchor: str | None, counted: int) -> None:
        self.value = value
        self.anchor = anchor
        #: The count of values before this one.
        self.counted = counted
        self.height = 1
        self.key: str | None = None
        self.key_line = 0
        #: The mappings that it takes fields over from, the strongest last.
        self.merged: list[LinedDict] = []

    def close(self) -> LinedDict | LinedList:
        """The value, with what it takes over; its own fields are stronger."""
        own = self.value
        if not self.merged or isinstance(own, LinedList):
            return own
        whole = LinedDict(own.line)
        lines: dict[str, int] = {}
        for each in (*self.merged, own):
            whole.update(each)
            lines.update(zip(each, each.lines, strict=True))
        whole.lines = [lines[name] for name in whole]
        return whole


class _Composer:
    """Holds what is open, what has an anchor, and how much there was."""

    def __init__(
        self, source: str, maximum_values: int, repeated: list[RepeatedKey] | None
    ) -> None:
        self._source = source
        self._maximum_values = maximum_values
        #: `None`: nothing may be repeated.
        self._repeated = repeated
        self.document: Value = None
        self.line = 0
        self._counted = 0
        self._frames: list[_Nesting] = []
        self._anchors: dict[str, _Anchored] = {}

    def start(self, event: DocumentStartEvent) -> None:
        self.document = None
        self.line = _line(event)
        self._anchors = {}

    def take_scalar(self, event: ScalarEvent) -> None:
        text = event.value
        if len(text) > MAXIMUM_SCALAR:
            raise self._refuse(event, f"a text of {len(text):,} characters; the limit is 1,048,576")
        if event.tag is not None:
            try:
                value = resolve_tagged(event.tag, text)
            except ValueError as error:
                raise self._refuse(event, str(error)) from None
        else:
            value = resolve_scalar(text) if event.implicit[0] else text
        if event.anchor is not None:
            self._anchors[event.anchor] = _Anchored(value, 1, 0)
        self._count(event, 1)
        self._attach(event, value, 0)

    def take_alias(self, event: AliasEvent) -> None:
        anchored = self._anchors.get(event.anchor or "")
        if anchored is None:
            raise self._refuse(
                event, f"the alias *{(event.anchor or '')[:60]} stands for nothing defined above it"
            )
        self._count(event, anchored.size)
        if len(self._frames) + anchored.height > MAXIMUM_DEPTH:
            raise self._refuse(event, f"nested more than {MAXIMUM_DEPTH} levels deep")
        self._attach(event, anchored.value, anchored.height)

    def open(self, event: CollectionStartEvent) -> None:
        if len(self._frames) >= MAXIMUM_DEPTH:
            raise self._refuse(event, f"nested more than {MAXIMUM_DEPTH} levels deep")
        is_mapping = isinstance(event, MappingStartEvent)
        if not is_collection_tag(event.tag, "map" if is_mapping else "seq"):
            tag = (event.tag or "")[:60]
            raise self._refuse(event, f"the tag {tag!r} is not supported; leave it out")
        line = _line(event)
        value = LinedDict(line) if is_mapping else LinedList(line)
        self._frames.append(_Nesting(value, event.anchor, self._counted))
        self._count(event, 1)

    def close(self, event: CollectionEndEvent) -> None:
        frame = self._frames.pop()
        value = frame.close()
        if frame.anchor is not None:
            size = self._counted - frame.counted
            self._anchors[frame.anchor] = _Anchored(value, size, frame.height)
        self._attach(event, value, frame.height, value.line)

    def _count(self, event: Event, values: int) -> None:
        self._counted += values
        if self._counted > self._maximum_values:
            most = f"{self._maximum_values:,}"
            raise self._refuse(event, f"more than {most} values (aliases written out)")

    def _attach(self, event: Event, value: Value, height: int, line: int = 0) -> None:
        """Add a finished value to its mapping or sequence."""
        if not self._frames:
            self.document = value
            return
        frame = self._frames[-1]
        frame.height = max(frame.height, height + 1)
        line = line or _line(event)
        container = frame.value
        if isinstance(container, LinedList):
            container.append(value)
            container.lines.append(line)
        elif frame.key is None:
            frame.key = self._key(event, value, container)
            frame.key_line = line
        elif frame.key == _MERGE:
            frame.merged += self._merged(event, value)
            frame.key = None
        else:
            container[frame.key] = value
            container.lines.append(frame.key_line)
            frame.key = None

    def _merged(self, event: Event, value: Value) -> list[LinedDict]:
        """It takes over another one, or several, of which the first is the strongest."""
        found = list(reversed(value)) if isinstance(value, LinedList) else [value]
        merged = [each for each in found if isinstance(each, LinedDict)]
        if len(merged) < len(found):
            raise self._refuse(event, "a merge key (<<) takes a mapping, or a list of mappings")
        return merged

    def _key(self, event: Event, value: Value, container: LinedDict) -> str:
        if not isinstance(value, str):
            what = "a mapping or list" if isinstance(value, (dict, list)) else str(value)
            hint = "put it in quotes if text is meant"
            raise self._refuse(event, f"the key {what} is not text; {hint}")
        if value == _MERGE and self._repeated is None:
            raise self._refuse(event, "merge keys (<<) are not supported; write the fields out")
        if value in container:
            self._note_repeated(event, value, container.line_of(value) or 0)
            container.forget(value)
        return value

    def _note_repeated(self, event: Event, key: str, first_line: int) -> None:
        """Note a key that stands twice, where that is allowed; never at the top of a document."""
        repeated = self._repeated
        if repeated is None or len(self._frames) == 1:
            message = f"the key {key[:80]!r} stands here twice, first on line {first_line}"
            raise self._refuse(event, message)
        if len(repeated) >= MAXIMUM_REPEATED:
            raise self._refuse(event, f"more than {MAXIMUM_REPEATED} keys that stand twice")
        repeated.append(RepeatedKey((*self._path(), key), first_line, _line(event)))

    def _path(self) -> FieldPath:
        """Where the innermost mapping is."""
        return tuple(
            frame.key or "" if isinstance(frame.value, LinedDict) else len(frame.value)
            for frame in self._frames[:-1]
        )

    def _refuse(self, event: Event, reason: str) -> Unreadable:
        mark = event.start_mark
        column = mark.column + 1 if mark else 0
        return Unreadable(reason, self._source, _line(event), column)


def _line(event: Event) -> int:
    mark = event.start_mark
    return mark.line + 1 if mark else 0


def _syntax_error(error: yaml.MarkedYAMLError, source: str) -> Unreadable:
    mark = error.problem_mark or error.context_mark
    context = f" ({error.context})" if error.context else ""
    reason = f"no valid YAML: {error.problem or 'cannot be parsed'}{context}"
    return Unreadable(reason, source, mark.line + 1 if mark else 0, mark.column + 1 if mark else 0)


def _character_error(error: yaml.reader.ReaderError, text: str, source: str) -> Unreadable:
    """Find the place ourselves: one parser counts bytes, the other characters."""
    found = _FORBIDDEN.search(text)
    if found is None:
        return Unreadable(f"no valid YAML: {error.reason}", source)
    line = text.count("\n", 0, found.start()) + 1
    column = found.start() - text.rfind("\n", 0, found.start())
    reason = f"the character U+{ord(found.group()):04X} must not stand in YAML"
    return Unreadable(reason, source, line, column)
