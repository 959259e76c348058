"""No field of the policy is without effect: each is read in core or control."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

from bough.model.policy import Policy

SOURCE = Path(__file__).parents[2] / "src" / "bough"
#: For people; no decision depends on it.
FOR_PEOPLE = {"name"}
#: What a policy, or a part of it, is called where its fields are read.
HOLDERS = re.compile(r"_?(policy|rules|gangs|placement)")


def fields(struct: type[msgspec.Struct]) -> Iterator[str]:
    for field in msgspec.structs.fields(struct):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            yield from fields(field.type)
        else:
            yield field.name


@cache
def read_fields() -> set[str]:
    """The attributes of anything that is called like a policy, in core and control."""
    found: set[str] = set()
    for folder in ("core", "control"):
        for path in sorted((SOURCE / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Attribute) and HOLDERS.fullmatch(called(node.value)):
                    found.add(node.attr)
    # Properties of the policy itself stand for the fields that they read.
    for node in ast.walk(ast.parse((SOURCE / "model" / "policy.py").read_text())):
        if isinstance(node, ast.FunctionDef) and node.name in found:
            found |= {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    return found


def called(value: ast.expr) -> str:
    if isinstance(value, ast.Attribute):
        return value.attr
    return value.id if isinstance(value, ast.Name) else ""


@pytest.mark.parametrize("field", sorted({*fields(Policy)} - FOR_PEOPLE))
def test_a_field_of_the_policy_is_read(field: str):
    assert field in read_fields()
