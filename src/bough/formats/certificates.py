"""Certificates, evictions and remedies as plain data, for answers of tools and of the server."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, cast

import msgspec

from bough.model.quota import FlavorResource, TreeNode

#: Properties that are told beside the fields they are made from.
_DERIVED = ("deficit", "never", "missing", "balance", "sentence")


def plain(value: object) -> Any:
    """Structs and named tuples by their fields, with what follows from these."""
    if isinstance(value, msgspec.Struct):
        fields = {name: plain(getattr(value, name)) for name in value.__struct_fields__}
        derived = {name: plain(getattr(value, name)) for name in _DERIVED if hasattr(value, name)}
        return fields | derived
    if isinstance(value, (FlavorResource, TreeNode)):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, (tuple, list)):
        return [plain(part) for part in cast("list[object]", value)]
    if isinstance(value, Mapping):
        table = cast("Mapping[str, object]", value)
        return {str(key): plain(part) for key, part in table.items()}
    return value.value if isinstance(value, Enum) else value
