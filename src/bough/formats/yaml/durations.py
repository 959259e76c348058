"""Durations as Kubernetes writes them (`90s`, `1h30m`) into seconds. Must not know their use."""

from __future__ import annotations

import re
from fractions import Fraction

from bough.errors import Invalid

_UNITS = {
    "h": Fraction(3600),
    "m": Fraction(60),
    "s": Fraction(1),
    "ms": Fraction(1, 10**3),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "ns": Fraction(1, 10**9),
}
_PART = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)(h|ms|us|µs|ns|m|s)")
_DURATION = re.compile(rf"(?:{_PART.pattern})+\Z")


def parse_duration_s(text: str) -> int:
    """Read a duration in whole seconds; raise Invalid where it is none."""
    shown = repr(text[:40])
    if text == "0":
        return 0
    if len(text) > 100 or not _DURATION.match(text):
        raise Invalid(f"{shown} is no duration; write it like 90s, 15m or 1h30m")
    total = sum(
        (Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Fraction()
    )
    if total.denominator != 1:
        raise Invalid(f"{shown} is finer than a second, the smallest time that is counted")
    return total.numerator
