"""Quantities as Kubernetes writes them (`4`, `500m`, `16Gi`, `1e3`, `1.5`) into exact integers.

CPU is counted in thousandths of a core, everything else in its own whole unit. Nothing that people
write is rounded: what is finer than the unit is refused. What an apiserver sends may be.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from bough.errors import Invalid

if TYPE_CHECKING:
    from decimal import Decimal

#: The resource that is counted in thousandths.
CPU = "cpu"

#: More digits, or a larger exponent, are refused before anything is computed.
MAXIMUM_DIGITS = 40
MAXIMUM_EXPONENT = 30

_QUANTITY = re.compile(
    r"(?P<sign>[-+]?)(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
    r"(?:[eE](?P<exponent>[-+]?[0-9]+)|(?P<suffix>[KMGTPE]i|[numkMGTPE]))?\Z",
    re.ASCII,
)
_MULTIPLIERS: dict[str, Fraction] = {
    "": Fraction(1),
    **{suffix: Fraction(1, 1000**power) for power, suffix in enumerate("mun", start=1)},
    **{suffix: Fraction(1000**power) for power, suffix in enumerate("kMGTPE", start=1)},
    **{f"{suffix}i": Fraction(1024**power) for power, suffix in enumerate("KMGTPE", start=1)},
}


def parse_quantity(value: str | int | Decimal, resource: str) -> int:
    """Read an amount of a resource, in thousandths for `cpu`; raise Invalid where it is none."""
    amount = parse_amount(value, resource)
    if amount.denominator != 1:
        unit = "a thousandth of a core" if resource == CPU else f"a whole unit of {resource}"
        shown = _shorten(str(value))
        raise Invalid(f"{shown} is finer than {unit}, the smallest amount that is counted")
    return amount.numerator


@lru_cache(maxsize=8_192)
def round_up_quantity(value: str | int, resource: str) -> int:
    """Read an amount as `parse_quantity` does; what is finer than the unit counts as one more."""
    amount = parse_amount(value, resource)
    return -(-amount.numerator // amount.denominator)


def parse_amount(value: str | int | Decimal, resource: str) -> Fraction:
    """Read an amount of a resource in its unit, however fine; raise Invalid where it is none."""
    return parse_fraction(value) * (1000 if resource == CPU else 1)


def parse_fraction(value: str | int | Decimal) -> Fraction:
    """Read a quantity as an exact fraction; raise Invalid if it is none."""
    text = str(value)
    match = _QUANTITY.match(text[: 4 * MAXIMUM_DIGITS])
    if match is None:
        raise Invalid(f"{_shorten(text)} is not a quantity; write it like 4, 500m, 1.5 or 16Gi")
    number = match["number"]
    exponent = match["exponent"] or "0"
    if len(number) > MAXIMUM_DIGITS or len(exponent) > 4 or abs(int(exponent)) > MAXIMUM_EXPONENT:
        raise Invalid(f"{_shorten(text)} is out of range for a quantity")
    if len(number) > 1 and number[0] == "0" and number[1] != ".":
        message = "starts with a zero, which may mean octal; leave the zero out"
        raise Invalid(f"{_shorten(text)} {message}")
    amount = Fraction(number.removesuffix("."))
    amount *= _MULTIPLIERS[match["suffix"] or ""] * Fraction(10) ** int(exponent)
    return -amount if match["sign"] == "-" else amount


def _shorten(text: str) -> str:
    return repr(text if len(text) <= MAXIMUM_DIGITS else text[:MAXIMUM_DIGITS] + "…")
