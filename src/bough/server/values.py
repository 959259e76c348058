"""Times, amounts, query parameters and notes on changes as they are sent.

Times are UTC without a zone, which is what existing clients read.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Protocol

from bough.control.change_recording import NO_NOTE, Note
from bough.control.people import profiles
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Actor

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}


class Remark(Protocol):
    """What a request says about the change that it makes."""

    @property
    def description(self) -> str:
        """In the author's words."""
        ...

    @property
    def tags(self) -> list[str]:
        """By which it is found in the history."""
        ...


def time_text(at_ms: int | None) -> str | None:
    """A time, to the millisecond."""
    if at_ms is None:
        return None
    at = datetime.fromtimestamp(at_ms / 1_000, UTC).replace(tzinfo=None)
    return at.isoformat(timespec="milliseconds")


def expiry_text(at_ms: int) -> str:
    """When a token ends, to the second.

    Programs between a client and this server read it as a time and write it anew, and both forms
    are compared as text. Only a time without a fraction is written in one way by all.
    """
    return datetime.fromtimestamp(at_ms // 1_000, UTC).replace(tzinfo=None).isoformat()


def moment_text(at_ms: int) -> str:
    """A time as it stands before a line of text, to the second."""
    return datetime.fromtimestamp(at_ms // 1_000, UTC).strftime("%Y/%m/%d %H:%M:%S")


def read_time_ms(what: str, text: str | None) -> int | None:
    """A time that was sent: UTC, unless it says otherwise; a date is its first moment."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(
            f"{what} must be a time like 2026-01-31T12:00:00, not {text[:40]!r}"
        ) from None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    try:
        return int(at.timestamp() * 1_000)
    except (OverflowError, ValueError):
        raise Invalid(f"{what} is out of range: {text[:40]!r}") from None


def read_moment_ms(what: str, text: str, now_ms: int) -> int:
    """A time that was sent, or one so long ago, like `7d`."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNITS and number.isascii() and number.isdecimal() and len(number) <= 9:
        return max(0, now_ms - int(number) * _UNITS[unit] * 1_000)
    try:
        return read_time_ms(what, text) or 0
    except Invalid:
        raise Invalid(
            f"{what} must be a time like 2026-01-31 or 2026-01-31T12:00:00, or how long ago, like "
            f"7d or 12h, not {text[:40]!r}."
        ) from None


def read_date_ms(what: str, text: str | None) -> int | None:
    """The first moment of a day that was sent, in UTC."""
    if text is None:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{what} must be a date like 2026-01-31, not {text[:40]!r}.") from None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1_000)


def seconds_between(start_ms: int | None, end_ms: int | None) -> float | None:
    """How long something took."""
    return None if start_ms is None or end_ms is None else max(0, end_ms - start_ms) / 1_000


def cores(milli: int) -> float | int:
    """Cores, without a suffix, whole where they are."""
    return milli // 1_000 if milli % 1_000 == 0 else milli / 1_000


def gibibytes(amount: int) -> str:
    """Memory or storage with a suffix that every client knows."""
    return f"{amount // 2**20}Mi" if amount % 2**30 else f"{amount // 2**30}Gi"


def read_pairs(what: str, pairs: list[str] | None) -> dict[str, str]:
    """`key=value`, as often as it was sent."""
    found: dict[str, str] = {}
    for pair in pairs or ():
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise Invalid(f"{what} must be like key=value, not {pair[:60]!r}.")
        found[key] = value
    return found


def chosen_pools(
    site: Site, actor: Actor, pools: list[str] | None, *, all_pools: bool
) -> tuple[str, ...] | None:
    """The pools to list: the named ones, all (`None`), or the default pool of the user."""
    if all_pools:
        return None
    if pools:
        return tuple(pools)
    chosen = profiles.get_profile(site, actor).profile.pool
    if chosen is None:
        raise Invalid(
            "No pool selected!", hint="send pools or all_pools, or choose a pool in the profile"
        )
    return (chosen,)


def read_note(sent: Remark | None) -> Note:
    """The author's remark about a change; none was sent with `None`."""
    return NO_NOTE if sent is None else Note(sent.description, tuple(sent.tags))
