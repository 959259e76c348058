"""Numbers, durations and tags as people send them, checked."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from bough.errors import Invalid
from bough.formats.yaml.times import parse_duration_s
from bough.model.pool import Json

#: More GPUs than any site has; larger numbers are mistakes.
MOST_GPUS = 10**9
#: Of a pool or a cohort.
MOST_WEIGHT = 10**9
#: Of a workflow, or of a change of configuration.
MAXIMUM_TAGS = 100
LONGEST_TAG = 100
#: Of a page.
LONGEST_ADDRESS = 1_000
_SIMPLE = re.compile(r"([0-9]{1,9})([smhd])\Z")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_EXIT_CODES = re.compile(r"\s*([0-9]{1,5})(?:\s*-\s*([0-9]{1,5}))?\s*\Z")
EXIT_ACTIONS = ("COMPLETE", "FAIL", "RESCHEDULE")


def check_tags(tags: Sequence[str], *, kept: int) -> None:
    """Refuse tags that cannot be shown in a line, or would be too many with those that are kept."""
    for tag in tags:
        if not tag.strip() or len(tag) > LONGEST_TAG or not tag.isprintable():
            raise Invalid(
                f"{tag[:60]!r} cannot be a tag: it has 1 to {LONGEST_TAG} characters, none of "
                "which breaks a line or cannot be shown."
            )
    if kept > MAXIMUM_TAGS:
        raise Invalid(f"It would have {kept} tags; at most {MAXIMUM_TAGS} are possible.")


def read_gpus(what: str, value: Json) -> int:
    """A number of GPUs, rounded down to whole ones."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Invalid(f"{what} must be a number of GPUs, not {_shown(value)}.")
    if not math.isfinite(value) or not 0 <= value <= MOST_GPUS:
        raise Invalid(f"{what} must be from 0 to {MOST_GPUS:,} GPUs, not {_shown(value)}.")
    return math.floor(value)


def read_weight(what: str, value: Json) -> int:
    """Read a weight. Refuses fractions: rounded down, 0.5 would count for nothing."""
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if not whole or not 0 <= value <= MOST_WEIGHT:
        raise Invalid(
            f"{what} must be a whole number from 0 to {MOST_WEIGHT:,}, not {_shown(value)}."
        )
    return int(value)


def read_limit(what: str, value: Json) -> int | None:
    """The same, or no limit: nothing, or -1 as the older interface writes it."""
    if value is None or (value == -1 and not isinstance(value, bool)):
        return None
    return read_gpus(what, value)


def read_duration_s(what: str, text: Json) -> int:
    """A duration in seconds, as `90s`, `15m`, `8h`, `60d` or `1h30m`."""
    if isinstance(text, str):
        simple = _SIMPLE.match(text)
        if simple:
            return int(simple[1]) * _SECONDS[simple[2]]
        try:
            return parse_duration_s(text)
        except Invalid as error:
            raise Invalid(f"{what}: {error.message}") from None
    raise Invalid(f"{what} must be a duration like 90s, 15m, 8h or 60d, not {_shown(text)}.")


def duration_text(seconds: int) -> str:
    """A duration with its largest whole unit, as people write it."""
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def read_address(what: str, value: Json) -> str:
    """The address of a page, which people open in a browser."""
    try:
        parts = urlsplit(value) if isinstance(value, str) else None
    except ValueError:
        parts = None
    known = parts is not None and parts.scheme in ("http", "https") and parts.hostname
    if not known or len(value) > LONGEST_ADDRESS or not value.isprintable() or " " in value:
        raise Invalid(f"{what} must be an address like https://host/path, not {_shown(value)}.")
    return str(value)


def read_exit_codes(what: str, text: str) -> tuple[tuple[int, int], ...]:
    """Exit codes as `0,1-10` into ranges, both ends included."""
    ranges: list[tuple[int, int]] = []
    for part in str(text).split(","):
        found = _EXIT_CODES.match(part)
        if found is None:
            raise Invalid(f"{what}: {_shown(text)} is not a list of exit codes like 0,1-10,3006.")
        ranges.append((int(found[1]), int(found[2] or found[1])))
    return tuple(ranges)


def check_exit_actions(what: str, actions: dict[str, str]) -> None:
    """Refuse actions that do not exist, and codes that are none."""
    for action, codes in actions.items():
        if action not in EXIT_ACTIONS:
            known = ", ".join(EXIT_ACTIONS)
            raise Invalid(f"{what}: the exit action {_shown(action)} does not exist; use {known}.")
        for low, high in read_exit_codes(f"{what}.{action}", codes):
            if low > high:
                raise Invalid(f"{what}.{action}: {low}-{high} has no codes; write {high}-{low}.")


def exit_action(exit_code: int, *sources: dict[str, str]) -> str | None:
    """What to do about an exit code; the first source that says anything about it decides."""
    for actions in sources:
        for action in EXIT_ACTIONS:
            ranges = read_exit_codes(action, actions[action]) if action in actions else ()
            if any(low <= exit_code <= high for low, high in ranges):
                return action
    return None


def _shown(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:60] + "…"
