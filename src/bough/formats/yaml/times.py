"""Times as Kubernetes writes them (RFC 3339) into integers. Must not know what time it is."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from bough.errors import Invalid

_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[-+]\d\d:\d\d)\Z", re.ASCII
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time_ms(text: str) -> int:
    """Read a time, in milliseconds since 1970; raise Invalid where it is none."""
    if _TIME.match(text):
        try:
            return (datetime.fromisoformat(text.upper()) - _EPOCH) // timedelta(milliseconds=1)
        except ValueError:
            pass
    raise Invalid(f"{text[:40]!r} is no time; write it like 2026-01-31T12:00:00Z")
