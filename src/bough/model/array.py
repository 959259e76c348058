"""Arrays: one workflow many times over, each time with another index, value or row of a table."""

from __future__ import annotations

import re

import msgspec

#: The placeholder for the value of an element: `{{array}}`, or `{{array:column}}` of a table.
PLACEHOLDER = re.compile(r"\{\{[ \t]*array(?:[ \t]*:[ \t]*([A-Za-z_][A-Za-z0-9_-]*))?[ \t]*\}\}")


class IndexRange(msgspec.Struct, frozen=True):
    """Indexes from the first to the last, both included."""

    first: int
    last: int
    step: int = 1

    @property
    def count(self) -> int:
        """How many there are."""
        return (self.last - self.first) // self.step + 1


class ArraySpec(msgspec.Struct, frozen=True):
    """The elements of an array, and how they differ."""

    ranges: tuple[IndexRange, ...]
    #: By the position of an element: its value of `{{array}}`; if empty, the element's index.
    values: tuple[str, ...] = ()
    #: By the position of an element: its values of `{{array:column}}`.
    table: tuple[dict[str, str], ...] = ()
    #: How many may wait or run at a time; `None`: as many as there is room for.
    at_once: int | None = None

    @property
    def count(self) -> int:
        """How many elements there are."""
        return sum(each.count for each in self.ranges)

    @property
    def last(self) -> int:
        """The highest index."""
        return max(each.first + (each.count - 1) * each.step for each in self.ranges)

    @property
    def columns(self) -> frozenset[str]:
        """The column names that may follow `array:`."""
        return frozenset(self.table[0]) if self.table else frozenset()

    def index_at(self, place: int) -> int:
        """The index of an element by its place, counted from 0."""
        for each in self.ranges:
            if place < each.count:
                return each.first + place * each.step
            place -= each.count
        raise IndexError(place)

    def place_of(self, index: int) -> int:
        """The place of the element of an index."""
        before = 0
        for each in self.ranges:
            if each.first <= index <= each.last and (index - each.first) % each.step == 0:
                return before + (index - each.first) // each.step
            before += each.count
        raise IndexError(index)

    def fill(self, text: str, place: int) -> str:
        """Replace the placeholders in a text by the values of one element."""
        return PLACEHOLDER.sub(lambda found: self._word(found, place), text)

    def fill_json(self, text: str, place: int) -> str:
        """The same within a JSON document, with the values escaped for it."""

        def value(found: re.Match[str]) -> str:
            return msgspec.json.encode(self._word(found, place)).decode()[1:-1]

        return PLACEHOLDER.sub(value, text)

    def _word(self, found: re.Match[str], place: int) -> str:
        if found[1] is not None:
            return self.table[place].get(found[1], found[0]) if self.table else found[0]
        return self.values[place] if self.values else str(self.index_at(place))
