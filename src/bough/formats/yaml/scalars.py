"""What a plain YAML scalar means: nothing, true or false, a number, or text.

Narrower than YAML 1.1 on purpose: `yes`, `on`, `12:30`, `0x1f`, `0123` and dates stay text, so that
nothing is turned into what its author did not mean. Numbers stay exact.
"""

from __future__ import annotations

import re
from decimal import Decimal

Scalar = None | bool | int | Decimal | str

#: Numbers with more digits, or a larger exponent, stay text: no number that means something is
#: that long, and arithmetic on it would be slow.
MAXIMUM_DIGITS = 40
MAXIMUM_EXPONENT = 99

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z", re.ASCII)
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE]([-+]?[0-9]+))?\Z", re.ASCII)
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]", re.ASCII)
_NUMBER_STARTS = frozenset("0123456789+-.")

_TAG_PREFIX = "tag:yaml.org,2002:"


def resolve_scalar(text: str) -> Scalar:
    """Say what an unquoted scalar without a tag means."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMBER_STARTS or len(text) > 2 * MAXIMUM_DIGITS:
        return text
    if _INTEGER.match(text):
        return int(text) if len(text) <= MAXIMUM_DIGITS else text
    number = _NUMBER.match(text)
    if number is None or _LEADING_ZERO.match(text) or len(text) > MAXIMUM_DIGITS:
        return text
    exponent = number.group(1)
    if exponent is not None and abs(int(exponent)) > MAXIMUM_EXPONENT:
        return text
    return Decimal(text)


def resolve_tagged(tag: str, text: str) -> Scalar:
    """Read a scalar with a tag; raise ValueError where it is not what the tag says."""
    name = tag.removeprefix(_TAG_PREFIX)
    if name in ("!", "str"):
        return text
    value = resolve_scalar(text)
    fits = {
        "null": value is None,
        "bool": isinstance(value, bool),
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": isinstance(value, (int, Decimal)) and not isinstance(value, bool),
    }
    if tag == name or name not in fits:
        raise ValueError(f"the tag {tag[:60]!r} is not supported; leave it out")
    if not fits[name]:
        raise ValueError(f"{text[:40]!r} is not of the type that its tag !!{name} says")
    return value


def is_collection_tag(tag: str | None, name: str) -> bool:
    """Say whether a tag on a mapping (`map`) or sequence (`seq`) only repeats what it is."""
    return tag is None or tag in ("!", _TAG_PREFIX + name)
