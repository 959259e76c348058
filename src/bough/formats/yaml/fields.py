"""A typed cursor over a mapping, which every reader of objects uses.

It checks the form: each field has the right type, and no field is left unread. All problems of an
object are collected; a wrong field gives its default, so that reading goes on.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

from bough.errors import Invalid
from bough.formats.yaml.composer import LinedDict, LinedList, Value
from bough.formats.yaml.documents import Document, line_of
from bough.formats.yaml.quantity import parse_fraction, parse_quantity
from bough.formats.yaml.times import parse_time_ms
from bough.model.problem import FieldPath, Problem, Severity
from bough.model.words import suggest

if TYPE_CHECKING:
    from collections.abc import Callable
    from enum import StrEnum
    from fractions import Fraction

Choice = TypeVar("Choice", bound="StrEnum")
Parsed = TypeVar("Parsed")


class Enough(Exception):
    """Too many problems were found to read on."""


class Reading:
    """What is found out while one document is read; its problems know file and line."""

    def __init__(
        self, document: Document, *, lenient: bool = False, most: int | None = None
    ) -> None:
        self.document = document
        #: After this many problems Enough is raised; `None`: never.
        self._most = most
        #: Kind and name, as `ClusterQueue/team-a`; set as soon as they are known.
        self.subject = ""
        self.problems: list[Problem] = []
        self._unknown = Severity.WARNING if lenient else Severity.ERROR

    def fields(self) -> Fields:
        """The cursor over the whole document."""
        return Fields(self.document.value, (), self)

    def error(self, path: FieldPath, message: str) -> None:
        """Record what makes the object unusable."""
        self._add(path, message, Severity.ERROR)

    def warn(self, path: FieldPath, message: str) -> None:
        """Record what is odd, but no obstacle."""
        self._add(path, message, Severity.WARNING)

    def unknown(self, path: FieldPath, message: str) -> None:
        """Record an unread field: an error, or a warning when reading leniently."""
        self._add(path, message, self._unknown)

    def _add(self, path: FieldPath, message: str, severity: Severity) -> None:
        line = line_of(self.document, path)
        source = self.document.source
        self.problems.append(Problem(path, message, severity, self.subject, source, line))
        if self._most is not None and len(self.problems) >= self._most:
            raise Enough


class Fields:
    """One mapping of a document. A field that is `null` counts as absent."""

    def __init__(self, value: Value, path: FieldPath, reading: Reading) -> None:
        self.path = path
        self.reading = reading
        self._read: set[str] = set()
        self._nested: list[Fields] = []
        if isinstance(value, LinedDict):
            self._values = value
        else:
            self._values = LinedDict()
            reading.error(path, f"expected a mapping, not {describe(value)}")

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def is_text(self, name: str, text: str) -> bool:
        """Whether a field is exactly this text; if it is, it counts as read."""
        if self._values.get(name) != text:
            return False
        self._read.add(name)
        return True

    def is_mapping(self, name: str) -> bool:
        """Whether a field, which can also have a simpler form, is a mapping."""
        return isinstance(self._values.get(name), LinedDict)

    def is_empty(self, name: str) -> bool:
        """Whether a field is a list without items."""
        return self._values.get(name) == []

    def names(self) -> tuple[str, ...]:
        """Every name in the mapping, those with a null value included."""
        return tuple(self._values)

    def spelling(self, *names: str) -> str:
        """Which of several names of one field is used here; the first one is the current name."""
        used = [name for name in names if name in self]
        self._read.update(names)
        for other in used[1:]:
            self.error(other, f"says the same as {used[0]}; keep one of them")
        return used[0] if used else names[0]

    def text(self, name: str) -> str:
        """A text that must be there and not be empty."""
        self._require(name)
        value = self.optional_text(name)
        if value == "":
            self.error(name, "must not be empty")
        return value or ""

    def optional_text(self, name: str) -> str | None:
        """A text, or None."""
        value = self._take(name)
        if value is None or isinstance(value, str):
            return value
        quote = "; put it in quotes" if isinstance(value, (bool, int, Decimal)) else ""
        return self._wrong(name, value, "text", quote)

    def written(self, name: str) -> str | None:
        """A text, or a number as it is written, or None."""
        value = self._take(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
            return str(value)
        return self._wrong(name, value, "text or a number")

    def scalar(self, name: str) -> bool | int | Decimal | str | None:
        """A text, a number, true or false, or None; a list or mapping is wrong."""
        value = self._take(name)
        if isinstance(value, (LinedDict, LinedList)):
            return self._wrong(name, value, "text or a number")
        return value

    def integer(self, name: str, *, minimum: int | None = None) -> int:
        """A whole number that must be there."""
        self._require(name)
        value = self.optional_integer(name, minimum=minimum)
        return value if value is not None else minimum or 0

    def optional_integer(self, name: str, *, minimum: int | None = None) -> int | None:
        """A whole number, or None."""
        value = self._take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong(name, value, "a whole number")
        if minimum is not None and value < minimum:
            self.error(name, f"is {value}, but must be at least {minimum}")
            return None
        return value

    def boolean(self, name: str, *, default: bool) -> bool:
        """True or false."""
        value = self._take(name)
        if isinstance(value, bool):
            return value
        if value is not None:
            self._wrong(name, value, "true or false")
        return default

    def choice(self, name: str, choices: type[Choice], default: Choice) -> Choice:
        """One of the values of an enumeration."""
        found = self.optional_choice(name, choices)
        return default if found is None else found

    def optional_choice(self, name: str, choices: type[Choice]) -> Choice | None:
        """One of the values of an enumeration, or None; an empty text counts as absent."""
        value = self._take(name)
        if value is None or value == "":
            return None
        for choice in choices:
            if value == choice.value:
                return choice
        known = ", ".join(choice.value for choice in choices)
        return self._wrong(name, value, f"one of {known}", suggest(value, list(choices)))

    def quantity(self, name: str, resource: str) -> int:
        """An amount of a resource that must be there, in integer units (`cpu`: thousandths)."""
        self._require(name)
        return self.optional_quantity(name, resource) or 0

    def optional_quantity(self, name: str, resource: str) -> int | None:
        """An amount of a resource, or None."""
        return self._parse(name, lambda value: parse_quantity(value, resource))

    def optional_fraction(self, name: str) -> Fraction | None:
        """A quantity that counts nothing, such as a weight, or None."""
        return self._parse(name, parse_fraction)

    def optional_time_ms(self, name: str) -> int | None:
        """A time such as 2026-01-31T12:00:00Z, in milliseconds since 1970, or None."""
        text = self.optional_text(name)
        if text is None:
            return None
        try:
            return parse_time_ms(text)
        except Invalid as error:
            self.error(name, error.message)
            return None

    def quantities(self, name: str) -> dict[str, int]:
        """Resources and amounts, in the order of the text; empty where absent."""
        nested = self.optional_child(name)
        if nested is None:
            return {}
        return {resource: nested.quantity(resource, resource) for resource in nested.names()}

    def text_map(self, name: str) -> dict[str, str]:
        """Texts by name, such as labels; empty where absent."""
        nested = self.optional_child(name)
        if nested is None:
            return {}
        return {key: nested.optional_text(key) or "" for key in nested.names()}

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts; empty where absent."""
        items = self._items(name)
        texts: list[str] = []
        for index, item in enumerate(items):
            if isinstance(item, str):
                texts.append(item)
            else:
                self.reading.error(
                    (*self.path, name, index), f"expected text, not {describe(item)}"
                )
        return tuple(texts)

    def text_or_texts(self, name: str) -> tuple[str, ...]:
        """A text, or a list of texts; nothing if it is absent."""
        if isinstance(self._values.get(name), str):
            return (self.text(name),)
        return self.texts(name)

    def writings(self, name: str) -> tuple[str, ...]:
        """A list of texts, or of numbers as they are written; empty where absent."""
        texts: list[str] = []
        for index, item in enumerate(self._items(name)):
            if isinstance(item, (str, int, Decimal)) and not isinstance(item, bool):
                texts.append(str(item))
            else:
                quote = "; put it in quotes" if isinstance(item, bool) else ""
                message = f"expected text or a number, not {describe(item)}{quote}"
                self.reading.error((*self.path, name, index), message)
        return tuple(texts)

    def child(self, name: str) -> Fields:
        """A mapping that must be there; an empty one where it is not."""
        self._require(name)
        return self.optional_child(name) or self.nothing(name)

    def optional_child(self, name: str) -> Fields | None:
        """A mapping, or None."""
        value = self._take(name)
        if value is None:
            return None
        nested = Fields(value, (*self.path, name), self.reading)
        self._nested.append(nested)
        return nested

    def nothing(self, name: str) -> Fields:
        """An empty mapping, for reading on where an optional one is absent."""
        return Fields(LinedDict(), (*self.path, name), self.reading)

    def children(self, name: str) -> list[Fields]:
        """A list of mappings; empty where absent."""
        nested = [
            Fields(item, (*self.path, name, index), self.reading)
            for index, item in enumerate(self._items(name))
        ]
        self._nested.extend(nested)
        return nested

    def ignore(self, *names: str) -> None:
        """Accept fields, and all below them, that have no meaning for us."""
        self._read.update(names)

    def error(self, name: str, message: str) -> None:
        """Record an error at a field."""
        self.reading.error((*self.path, name), message)

    def warn(self, name: str, message: str) -> None:
        """Record a warning at a field."""
        self.reading.warn((*self.path, name), message)

    def finish(self) -> None:
        """Report every field that was not read, here and in all mappings entered from here."""
        waiting: list[Fields] = [self]
        while waiting:
            fields = waiting.pop()
            known = sorted(fields._read)
            for name in fields._values:
                if name not in fields._read:
                    message = f"unknown field{suggest(name, known)}"
                    self.reading.unknown((*fields.path, name), message)
            waiting.extend(reversed(fields._nested))

    def _take(self, name: str) -> Value:
        self._read.add(name)
        return self._values.get(name)

    def _items(self, name: str) -> LinedList:
        value = self._take(name)
        if isinstance(value, LinedList):
            return value
        if value is not None:
            self._wrong(name, value, "a list")
        return LinedList()

    def _parse(self, name: str, parse: Callable[[str | int | Decimal], Parsed]) -> Parsed | None:
        value = self._take(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int, Decimal)):
            return self._wrong(name, value, "a quantity such as 4, 500m or 16Gi")
        try:
            return parse(value)
        except Invalid as error:
            self.error(name, error.message)
            return None

    def _require(self, name: str) -> None:
        if name not in self:
            self.error(name, "is missing")

    def _wrong(self, name: str, value: Value, expected: str, more: str = "") -> None:
        self.error(name, f"expected {expected}, not {describe(value)}{more}")


def describe(value: Value) -> str:
    """Say what a value is, short enough for a message."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, Decimal)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value[:60]!r}{'…' if len(value) > 60 else ''}"
    return "a mapping" if isinstance(value, LinedDict) else "a list"
