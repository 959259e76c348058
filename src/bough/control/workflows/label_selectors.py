"""Parses label selectors of lists: `team=robotics`, `team=(sim|robot)-*`."""

from __future__ import annotations

import itertools
import math
import re

from bough.errors import Invalid
from bough.formats.workflow.values import label_key_fault, label_value_fault
from bough.model.labels import LabelSelector

#: Limits: characters of one selector, and patterns that its alternatives expand to.
LONGEST = 4_096
MOST_PATTERNS = 32

_PART = re.compile(r"\(([^()]*)\)|([^()|]+)")
_STARS = re.compile(r"\*+")


def read_selector(text: str) -> LabelSelector:
    """Parse a label with its value; a key alone matches any value.

    In the value, a `*` stands for any text, and `(a|b)` for either.
    """
    if len(text) > LONGEST:
        raise Invalid(f"label: has more than {LONGEST:,} characters.")
    key, equals, value = text.partition("=")
    fault = label_key_fault(key)
    patterns = ("*",)
    if fault is None and equals:
        patterns = _patterns(text, value)
        # Characters that no value contains match nothing; a star stands for one that is allowed.
        faults = (label_value_fault(each.replace("*", "a")) for each in patterns)
        fault = next(filter(None, faults), None)
    if fault is not None:
        raise Invalid(f"label: {text[:80]!r} selects nothing: {fault}.")
    return LabelSelector(key, patterns)


def _patterns(text: str, value: str) -> tuple[str, ...]:
    parts: list[list[str]] = []
    place = 0
    while place < len(value):
        found = _PART.match(value, place)
        either = [] if found is None else [found[2]] if found[1] is None else found[1].split("|")
        if not all(either) or found is None or (found[1] is not None and len(either) < 2):
            raise Invalid(
                f"label: {text[:80]!r} is not as key=value with '*' for any text and (a|b) for "
                "either, which cannot be within another."
            )
        parts.append(either)
        place = found.end()
    if math.prod(map(len, parts)) > MOST_PATTERNS:
        raise Invalid(
            f"label: {text[:80]!r} stands for more than {MOST_PATTERNS} patterns; ask for fewer."
        )
    made = (_STARS.sub("*", "".join(each)) for each in itertools.product(*parts))
    return tuple(dict.fromkeys(made))
