"""Merges pod templates, later ones over earlier ones, as OSMO does.

Objects are merged field by field. In lists, items with the same name are merged, and all others are
appended. Fields that Bough sets itself are applied last, so no template can change them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = Any
_CONTAINERS = ("containers", "initContainers")
_OF_OSMO = ("osmo-ctrl", "osmo-init")


def merge_all(templates: Iterable[Mapping[str, Json]]) -> dict[str, Json]:
    """Merge all templates into one."""
    merged: dict[str, Json] = {}
    for each in templates:
        merged = merge(merged, each)
    return merged


def merge(below: Mapping[str, Json], above: Mapping[str, Json]) -> dict[str, Json]:
    """`below` with the fields of `above` merged over it; neither is changed."""
    merged = dict(below)
    for key, value in above.items():
        before = merged.get(key)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            merged[key] = _merge_lists(before, value)
        else:
            merged[key] = value
    return merged


def without_missing(template: Mapping[str, Json]) -> dict[str, Json]:
    """A template without the containers that only OSMO's pods have."""
    spec = template.get("spec")
    if not isinstance(spec, Mapping):
        return dict(template)
    kept = {
        key: [each for each in value if not _is_missing(each)] if key in _CONTAINERS else value
        for key, value in spec.items()
        if key not in _CONTAINERS or isinstance(value, list)
    }
    return {**template, "spec": kept}


def _is_missing(container: Json) -> bool:
    return isinstance(container, Mapping) and container.get("name") in _OF_OSMO


def _merge_lists(below: list[Json], above: list[Json]) -> list[Json]:
    merged = list(below)
    for each in above:
        at = _same_name(merged, each)
        if at is not None:
            merged[at] = merge(merged[at], each)
        elif each not in merged:
            merged.append(each)
    return merged


def _same_name(items: list[Json], wanted: Json) -> int | None:
    name = wanted.get("name") if isinstance(wanted, Mapping) else None
    if name is None:
        return None
    for at, each in enumerate(items):
        if isinstance(each, Mapping) and each.get("name") == name:
            return at
    return None
