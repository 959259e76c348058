"""Policies as tests write them: a field by its name, wherever in the document it stands."""

from __future__ import annotations

from typing import Any

from bough.formats.policy_file import field_names


def written(**choices: Any) -> dict[str, Any]:
    """A document that says these fields, as in `written(grace="2s")`."""
    document: dict[str, Any] = {}
    for name, value in choices.items():
        *parents, last = path_of(name)
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = value
    return document


def said(document: dict[str, Any], name: str) -> Any:
    """What a document says about a field."""
    found: Any = document
    for part in path_of(name):
        found = found[part]
    return found


def dotted(name: str) -> str:
    """A field as problems and differences name it."""
    return ".".join(path_of(name))


def path_of(name: str) -> list[str]:
    (found,) = [each.split(".") for each in field_names() if each.split(".")[-1] == name]
    return found
