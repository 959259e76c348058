"""Times (RFC 3339) and durations (`90s`, `1h30m`), as Kubernetes writes them, into integers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from bough.errors import Invalid

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[-+]\d\d:\d\d)\Z", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
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


def parse_time_ms(text: str) -> int:
    """Read a time, in milliseconds since 1970; raise Invalid where it is none."""
    if _TIME.match(text):
        try:
            return (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(milliseconds=1)
        except ValueError:
            pass
    raise Invalid(f"{text[:40]!r} is not a time; write it like 2026-01-31T12:00:00Z")


def parse_duration_s(text: str) -> int:
    """Read a duration in whole seconds; raise Invalid where it is none."""
    shown = repr(text[:40])
    if text == "0":
        return 0
    if len(text) > 100 or not _DURATION.match(text):
        raise Invalid(f"{shown} is not a duration; write it like 90s, 15m or 1h30m")
    total = sum(
        (Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(text)), Fraction()
    )
    if total.denominator != 1:
        raise Invalid(f"{shown} is finer than a second, the smallest time that is counted")
    return total.numerator
