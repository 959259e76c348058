"""The type of each answer, and answers that say only what a test is about."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from litestar.response import Stream
from msgspec import inspect


@cache
def declared_answers() -> tuple[tuple[str, re.Pattern[str], Any], ...]:
    """Method, pattern of the path, and type of the answer of every route."""
    from bough.server.application import DECLARED

    return tuple(
        (each.method, re.compile(re.sub(r"\{\w+:(?:str|int)\}", "[^/]+", each.path)), each.answer)
        for each in DECLARED
    )


def answer_type(method: str, path: str) -> Any:
    """The type of what a route answers with."""
    for known, pattern, kind in declared_answers():
        if known == method and pattern.fullmatch(path):
            return kind
    return Any


def complete(method: str, path: str, body: Any) -> Any:
    """An answer with all that a server would send; what a test does not say is empty.

    A field that no server would send fails.
    """
    kind = answer_type(method, path)
    if kind is Any or kind is Stream:
        return body
    filled = fill(inspect.type_info(kind), body, path)
    return msgspec.to_builtins(msgspec.convert(filled, kind), str_keys=True)


def least(method: str, path: str) -> Any:
    """The least that a route can answer with."""
    kind = inspect.type_info(answer_type(method, path))
    return None if isinstance(kind, inspect.NoneType) else complete(method, path, empty(kind))


def fill(kind: inspect.Type, value: Any, where: str) -> Any:
    """A value of a type, with what it lacks."""
    if isinstance(kind, inspect.UnionType):
        found = [each for each in kind.types if not isinstance(each, inspect.NoneType)]
        return None if value is None else fill(found[0], value, where)
    if isinstance(kind, inspect.StructType):
        value = {} if value is None else value
        assert isinstance(value, Mapping), f"{where}: {value!r}"
        known = {each.encode_name: each for each in kind.fields}
        unknown = set(value) - set(known)
        assert not unknown, f"{where}: {kind.cls.__name__} has no {unknown}"
        return {
            name: fill(field.type, value[name], f"{where}.{name}")
            if name in value
            else empty(field.type)
            for name, field in known.items()
            if name in value or field.required
        }
    if isinstance(kind, inspect.ListType) and isinstance(value, list):
        return [fill(kind.item_type, each, where) for each in value]
    if isinstance(kind, inspect.DictType) and isinstance(value, Mapping):
        return {name: fill(kind.value_type, each, where) for name, each in value.items()}
    return value


def empty(kind: inspect.Type) -> Any:
    """The least that a type allows."""
    if isinstance(kind, inspect.UnionType):
        if kind.includes_none:
            return None
        return empty(kind.types[0])
    if isinstance(kind, inspect.StructType):
        return fill(kind, {}, kind.cls.__name__)
    known = {
        inspect.StrType: "",
        inspect.IntType: 0,
        inspect.FloatType: 0.0,
        inspect.BoolType: False,
        inspect.ListType: [],
        inspect.DictType: {},
        inspect.AnyType: None,
        inspect.TupleType: ["", ""],
    }
    return known[type(kind)]
