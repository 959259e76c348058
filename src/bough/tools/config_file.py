"""One object from YAML as plain data, for commands that change a configuration."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from bough.errors import Invalid
from bough.formats.yaml.composer import Value, compose


def read_object(text: str, source: str) -> dict[str, Any]:
    """The one mapping that a text holds."""
    found = [value for value, _ in compose(text, source) if value is not None]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise Invalid(f"{source} must have one object with the fields to change.")
    return {name: _plain(each) for name, each in found[0].items()}


def _plain(value: Value) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value
