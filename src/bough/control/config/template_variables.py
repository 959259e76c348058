"""Variables in pod templates, by the names that OSMO gives them. Pure.

    {{USER_CPU}}    {% if USER_CPU > 2 %}2{% else %}{{USER_CPU}}{% endif %}

USER_CPU, USER_GPU, USER_MEMORY and USER_STORAGE are what a task asks for, else what its platform or
pool has as a default variable; of USER_MEMORY and USER_STORAGE there are parts, as USER_MEMORY_VAL
and USER_MEMORY_UNIT. WF_ID and so on are its labels without `osmo.`. These two forms are all that
is understood of templates: no program runs that others wrote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Protocol

from bough.model.pool import Json

Value = int | Fraction | str
#: The container that runs the task, as every backend with pods calls it.
CONTAINER = "task"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(r"\{\{\s*(" + _NAME + r")\s*\}\}")
_CHOICE = re.compile(
    r"\{%\s*if\s+(?P<left>" + _NAME + r")\s*(?P<how>==|!=|<=|>=|<|>)\s*"
    r"(?P<right>" + _NAME + r"|[0-9]+(?:\.[0-9]+)?|'[^']*'|\"[^\"]*\")\s*%\}"
    r"(?P<then>(?:(?!\{%).)*)"
    r"(?:\{%\s*else\s*%\}(?P<other>(?:(?!\{%).)*))?\{%\s*endif\s*%\}",
    re.DOTALL,
)
_ARRAY = re.compile(r"ARRAY:\[(.*)\]", re.DOTALL)
_COMPARED: Mapping[str, Callable[[Json, Json], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}
_UNITS = ("", "Ki", "Mi", "Gi", "Ti")
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)(B|Ki|Mi|Gi|Ti)?")


class Amounts(Protocol):
    """What a task asks for, or a node has."""

    @property
    def gpus(self) -> int:
        """GPUs."""
        ...

    @property
    def cpu_milli(self) -> int:
        """Thousandths of a core."""
        ...

    @property
    def memory_bytes(self) -> int:
        """Memory."""
        ...


class UnknownVariable(Exception):
    """A template names a variable that does not exist."""


def faults(template: Json, path: str = "") -> Iterator[str]:
    """What is not understood in a template, and where."""
    if isinstance(template, Mapping):
        for key, value in template.items():
            yield from faults(value, f"{path}.{key}")
    elif isinstance(template, list):
        for number, value in enumerate(template):
            yield from faults(value, f"{path}[{number}]")
    elif isinstance(template, str):
        left = _TOKEN.sub("", _CHOICE.sub(r"\g<then>\g<other>", template))
        if any(mark in left for mark in ("{{", "{%", "{#")):
            yield (
                f"{path}: {template[:80]!r} is not understood; write {{{{NAME}}}}, or "
                "{% if NAME > 2 %}this{% else %}that{% endif %}."
            )


def fill(template: Json, variables: Mapping[str, Value]) -> Json:
    """A template with its variables replaced; neither is changed."""
    if isinstance(template, Mapping):
        return {key: fill(value, variables) for key, value in template.items()}
    if isinstance(template, list):
        return [fill(value, variables) for value in template]
    if not isinstance(template, str) or not ("{{" in template or "{%" in template):
        return template
    text = _CHOICE.sub(lambda found: _chosen(found, variables), template)
    text = _TOKEN.sub(lambda found: _shown(_value(found[1], variables)), text)
    array = _ARRAY.fullmatch(text)
    if array is None:
        return text
    return array[1].split(",") if array[1] else []


def variables_of(
    asked: Mapping[str, Value],
    labels: Mapping[str, str],
    excluded: Iterable[str],
    defaults: Mapping[str, Json],
) -> dict[str, Value]:
    """The variables of one task.

    asked:   CPU, GPU, MEMORY and STORAGE; 0: nothing
    labels:  without their prefix, as workflow_id
    """
    given = {name: _plain(value) for name, value in defaults.items()}
    wanted = {f"USER_{name}": value for name, value in asked.items()}
    asked_for = {
        **wanted,
        **given,
        **{name: value for name, value in wanted.items() if value not in (0, "0")},
    }
    return {
        **with_parts(asked_for),
        "USER_CONTAINER_NAME": CONTAINER,
        "USER_EXCLUDED_NODES": f"ARRAY:[{','.join(excluded)}]",
        **{_labelled(name): value for name, value in labels.items()},
    }


def amounts(resources: Amounts, storage_bytes: int) -> dict[str, Value]:
    """What a task asks for, or a node has, as variables write it."""
    return {
        "CPU": Fraction(resources.cpu_milli, 1_000),
        "GPU": resources.gpus,
        "MEMORY": quantity(resources.memory_bytes),
        "STORAGE": quantity(storage_bytes),
    }


def with_parts(variables: Mapping[str, Value]) -> dict[str, Value]:
    """Variables, with number and unit of those that are amounts of bytes."""
    found: dict[str, Value] = {}
    for name in variables:
        if name.endswith(("_MEMORY", "_STORAGE")):
            found |= _parts(name, variables)
    return {**found, **variables}


def quantity(amount: int) -> str:
    """An amount of bytes in the largest unit that it is a whole number of."""
    unit = 0
    while amount and amount % 1024 == 0 and unit + 1 < len(_UNITS):
        amount, unit = amount // 1024, unit + 1
    return f"{amount}{_UNITS[unit]}"


def _parts(name: str, amounts: Mapping[str, Value]) -> dict[str, Value]:
    """Number and unit of an amount of bytes, and how much it is in each unit."""
    found = _AMOUNT.fullmatch(str(amounts.get(name, "")))
    if found is None:
        return {}
    unit = found[2] or "B"
    sizes = {each or "B": 1024**power for power, each in enumerate(_UNITS)}
    amount = Fraction(found[1]) * sizes[unit]
    parts: dict[str, Value] = {f"{name}_VAL": found[1], f"{name}_UNIT": unit}
    return parts | {f"{name}_{each}": amount / size for each, size in sizes.items()}


def _labelled(name: str) -> str:
    return f"WF_{name.removeprefix('workflow_').upper()}"


def _plain(value: Json) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return Fraction(str(value)) if isinstance(value, float) else str(value)


def _chosen(found: re.Match[str], variables: Mapping[str, Value]) -> str:
    left, right = _value(found["left"], variables), _literal(found["right"], variables)
    one, other = _number(left), _number(right)
    if one is None or other is None:
        holds = _COMPARED[found["how"]](_shown(left), _shown(right))
    else:
        holds = _COMPARED[found["how"]](one, other)
    return found["then"] if holds else found["other"] or ""


def _literal(text: str, variables: Mapping[str, Value]) -> Value:
    if text[0] in "'\"":
        return text[1:-1]
    return Fraction(text) if text[0].isdecimal() else _value(text, variables)


def _value(name: str, variables: Mapping[str, Value]) -> Value:
    if name not in variables:
        raise UnknownVariable(name)
    return variables[name]


def _number(value: Value) -> Fraction | None:
    try:
        return Fraction(value)
    except (ValueError, ZeroDivisionError):
        return None


def _shown(value: Value) -> str:
    if isinstance(value, Fraction) and value.denominator != 1:
        return str(float(value))
    return str(value)
