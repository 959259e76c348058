"""Turns JSON values into what the readers of files expect: without line numbers, within limits."""

from __future__ import annotations

from decimal import Decimal

from bough.errors import Invalid
from bough.formats.yaml.composer import MAXIMUM_DEPTH, LinedDict, LinedList, Value

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


def from_json(value: Json, most: int) -> Value:
    """Convert a decoded value; refuses more than `most` values, or deeper nesting than in files."""
    return _Converter(most).convert(value, 0)


class _Converter:
    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most

    def convert(self, value: Json, depth: int) -> Value:
        self._left -= 1
        if self._left < 0:
            raise Invalid(f"the object has more than {self._most:,} values, the limit")
        if depth > MAXIMUM_DEPTH:
            raise Invalid(f"the object is nested deeper than {MAXIMUM_DEPTH} levels, the limit")
        if isinstance(value, dict):
            mapping = LinedDict()
            for key, each in value.items():
                mapping[key] = self.convert(each, depth + 1)
            mapping.lines = [0] * len(mapping)
            return mapping
        if isinstance(value, list):
            sequence = LinedList()
            for each in value:
                sequence.append(self.convert(each, depth + 1))
            sequence.lines = [0] * len(sequence)
            return sequence
        return Decimal(str(value)) if isinstance(value, float) else value
