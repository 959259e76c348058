"""Times of the server as people read them.

A server sends UTC; people see their own time zone, or UTC with `--utc`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from bough.cli.output import printable
from bough.cli.screen import screen
from bough.cli.tables import NOTHING

if TYPE_CHECKING:
    from datetime import datetime

#: How long the time before a line of a log is: `2026/01/05 10:05:01`.
_LINE_TIME = 19
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"))


def show_time(text: str | None) -> str:
    """`2026-01-05 10:00`; under the name `osmo` `Jan 05, 2026 10:00 UTC`."""
    moment = _read(text)
    if moment is None:
        return printable(text) if text else NOTHING
    from datetime import UTC  # noqa: PLC0415  most commands show no time

    shown = moment.astimezone(UTC if screen().utc else None)
    if screen().osmo:
        return shown.strftime("%b %d, %Y %H:%M %Z")
    return shown.strftime("%Y-%m-%d %H:%M") + (" UTC" if screen().utc else "")


def show_age(since: str | None, until: str | None = None) -> str:
    """The time from one moment to another, or to now, in its largest two units: `3h12m`."""
    start = _read(since)
    if start is None:
        return NOTHING
    from datetime import UTC, datetime  # noqa: PLC0415  most commands show no time

    end = _read(until) or datetime.now(UTC)
    return duration(int((end - start).total_seconds()))


def show_line(line: str) -> str:
    """A line of a log or an event, whose time the server gives in UTC, for the reader's zone."""
    if screen().osmo or screen().utc:
        return line
    return _local_moment(line[:_LINE_TIME]) + line[_LINE_TIME:]


def duration(seconds: int) -> str:
    """So many seconds in the largest two units: `45s`, `12m`, `3h12m`, `5d4h`; then `20d`."""
    seconds = max(0, seconds)
    if seconds < 60:
        return f"{seconds}s"
    for number, (size, unit) in enumerate(_UNITS):
        if seconds >= size:
            text = f"{seconds // size}{unit}"
            if number + 1 < len(_UNITS) and seconds < 10 * 86_400:
                smaller, name = _UNITS[number + 1]
                rest = seconds % size // smaller
                text += f"{rest}{name}" if rest else ""
            return text
    raise AssertionError(seconds)


@lru_cache(maxsize=8)
def _local_moment(text: str) -> str:
    """The time before a line in the reader's zone; other text as it is."""
    if text[4:5] != "/" or (moment := _read(text.replace("/", "-"))) is None:
        return text
    return moment.astimezone().strftime("%Y/%m/%d %H:%M:%S")


def _read(text: str | None) -> datetime | None:
    """Read a time of the server; `None` where the text is no time."""
    if not text:
        return None
    from datetime import UTC, datetime  # noqa: PLC0415  most commands show no time

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
