"""Small values of a workflow, each with its one rule: names, labels, durations, paths, URLs.

A rule that also holds outside of workflows returns what is wrong as text; the others read a field
and record the problem there.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

from bough.errors import Invalid
from bough.formats.workflow.templates import without_placeholders
from bough.formats.yaml.fields import describe
from bough.formats.yaml.times import parse_duration_s
from bough.model.safe_regex import regex_fault

if TYPE_CHECKING:
    from bough.formats.yaml.fields import Fields

MAXIMUM_LABELS = 16
#: Ten years.
MAXIMUM_SECONDS = 3_650 * 86_400
#: What a system takes as one argument or variable of a program.
MAXIMUM_ARGUMENT_BYTES = 128 * 1024 - 1
MAXIMUM_PATH = 4_095
#: A name of something that is known elsewhere: a platform, a node, an image.
MAXIMUM_WORD = 512

_NAME = re.compile(r"[a-zA-Z](?:[a-zA-Z0-9_-]{0,61}[a-zA-Z0-9])?\Z")
_LABEL_PART = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_LABEL_PREFIX = re.compile(
    r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*\Z"
)
_LABEL_FORM = (
    "up to 63 letters, digits, '-', '_' and '.', beginning and ending with a letter or digit"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,254}\Z")
_WORKFLOW = re.compile(r"[a-zA-Z][a-zA-Z0-9_-]{0,100}-[0-9]{1,18}\Z")
_CREDENTIAL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9])?\Z")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://[^\s\x00-\x1f\x7f]+\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_DAYS = re.compile(r"([0-9]{1,6})d\Z")
_ISO = re.compile(
    r"P(?=[0-9T])(?:([0-9]{1,6})W)?(?:([0-9]{1,6})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9})S)?)?\Z"
)
_ISO_UNITS_S = (7 * 86_400, 86_400, 3_600, 60, 1)


def read_name(fields: Fields) -> str:
    """The name of a workflow, group or task."""
    name = fields.text("name")
    if name and not _NAME.match(name):
        fields.error(
            "name",
            f"{name[:60]!r} is not valid: up to 63 letters, digits, dashes and underscores, "
            "beginning with a letter and ending with none of the last two",
        )
    return name


def folded(name: str) -> str:
    """What a name is compared by: systems that know no case and no underscores keep them apart."""
    return name.lower().replace("_", "-")


def label_fault(key: str, value: str) -> str | None:
    """What is wrong with a label; `None`: nothing."""
    fault = label_key_fault(key)
    if fault is not None:
        return fault
    fault = label_value_fault(value)
    return None if fault is None else f"the label {key!r} cannot be so: {fault}"


def label_key_fault(key: str) -> str | None:
    """What is wrong with the key of a label; `None`: nothing."""
    prefix, slash, name = key.rpartition("/")
    fault = f"{key[:80]!r} is not a valid Kubernetes label key"
    if slash and (len(prefix) > 253 or not _LABEL_PREFIX.match(prefix)):
        return f"{fault}: what stands before '/' is not a domain name"
    return None if _LABEL_PART.match(name) else f"{fault}: {_LABEL_FORM}"


def label_value_fault(value: str) -> str | None:
    """What is wrong with the value of a label; `None`: nothing. As in OSMO, it is not empty."""
    if _LABEL_PART.match(value):
        return None
    return f"{value[:80]!r} is not a valid non-empty Kubernetes label value: {_LABEL_FORM}"


def workflow_fault(text: str) -> str | None:
    """What is wrong with the identifier of another workflow; `None`: nothing."""
    if _WORKFLOW.match(text):
        return None
    return f"{text[:80]!r} is no ID of a workflow, such as train-3"


def variable_fault(name: str, value: str) -> str | None:
    """What is wrong with a variable of the environment; `None`: nothing."""
    if not _VARIABLE.match(name):
        return (
            f"{name[:80]!r} is not the name of a variable: letters, digits, '_', '.' and '-', not "
            "beginning with a digit"
        )
    return argument_fault(value)


def argument_fault(text: str) -> str | None:
    """What is wrong with a text that a program is started with; `None`: nothing."""
    if "\0" in text:
        return "contains the character NUL, which no program can be given"
    size = len(text) if text.isascii() else len(text.encode())
    if size > MAXIMUM_ARGUMENT_BYTES:
        return f"has {size:,} bytes; a program is given at most {MAXIMUM_ARGUMENT_BYTES:,} at once"
    return None


def read_labels(fields: Fields) -> dict[str, str]:
    """Labels by name."""
    nested = fields.optional_child("labels")
    if nested is None:
        return {}
    labels = {key: _read_label(nested, key) for key in nested.names()}
    if len(labels) > MAXIMUM_LABELS:
        fields.error("labels", f"has {len(labels)} labels; at most {MAXIMUM_LABELS} are possible")
    for key, value in labels.items():
        fault = None if value is None else label_fault(key, value)
        if fault is not None:
            nested.error(key, fault)
    return {key: value or "" for key, value in labels.items()}


def _read_label(fields: Fields, key: str) -> str | None:
    """The value of a label; `None`: what is wrong with it was said."""
    if fields.is_mapping(key):
        fields.error(key, "labels must be strings, not mappings")
        fields.ignore(key)
        return None
    value = fields.written(key)
    return None if value is None and key in fields else value or ""


def read_environment(fields: Fields) -> dict[str, str]:
    """Variables by name. What is true or false becomes `True` or `False`, as in OSMO."""
    nested = fields.optional_child("environment")
    if nested is None:
        return {}
    variables: dict[str, str] = {}
    for name in nested.names():
        variables[name] = str(nested.scalar(name))
        fault = variable_fault(name, variables[name])
        if name not in nested:
            fault = "has no value; write '' for an empty one"
        if fault is not None:
            nested.error(name, fault)
    return variables


def read_arguments(fields: Fields, name: str) -> tuple[str, ...]:
    """What a program is started with, word by word."""
    words = fields.writings(name)
    for word in words:
        fault = argument_fault(word)
        if fault is not None:
            fields.error(name, fault)
    return words


def read_duration_s(fields: Fields, name: str) -> int | None:
    """A duration such as `90s`, `15m`, `8h`, `2d`, in ISO 8601 (`PT8H`), or a number of seconds."""
    value = fields.scalar(name)
    if isinstance(value, bool):
        fields.error(name, f"expected a duration, not {describe(value)}")
        return None
    text = f"{value}s" if isinstance(value, (int, Decimal)) else value
    if text is None:
        return None
    try:
        seconds = _parse_duration_s(text)
    except Invalid as error:
        fields.error(name, error.message)
        return None
    if not 1 <= seconds <= MAXIMUM_SECONDS:
        fields.error(name, f"is {text[:40]!r}, but must be from 1s to {MAXIMUM_SECONDS // 86_400}d")
        return None
    return seconds


def _parse_duration_s(text: str) -> int:
    days = _DAYS.match(text)
    if days:
        return int(days[1]) * 86_400
    iso = _ISO.match(text)
    if iso:
        return sum(
            int(number or 0) * unit for number, unit in zip(iso.groups(), _ISO_UNITS_S, strict=True)
        )
    try:
        return parse_duration_s(text)
    except Invalid:
        raise Invalid(
            f"{text[:40]!r} is not a duration; write it like 90s, 15m, 8h, 2d, or as PT8H"
        ) from None


def word_fault(text: str) -> str | None:
    """What is wrong with a name of something that is known elsewhere; `None`: nothing."""
    if len(text) > MAXIMUM_WORD:
        return f"{text[:60]!r} has {len(text)} characters; at most {MAXIMUM_WORD} are possible"
    if not text.isprintable():
        return f"{text[:60]!r} has characters that cannot be shown"
    return None


def read_word(fields: Fields, name: str, *, required: bool = False) -> str | None:
    """A name of something that is known elsewhere, or None."""
    text = fields.text(name) if required else fields.optional_text(name)
    fault = None if text is None else word_fault(text)
    if fault is not None:
        fields.error(name, fault)
    return text


def read_words(fields: Fields, name: str) -> tuple[str, ...]:
    """Several such names."""
    words = fields.texts(name)
    for index, word in enumerate(words):
        fault = word_fault(word)
        if fault is not None:
            fields.reading.error((*fields.path, name, index), fault)
    return words


def read_path(fields: Fields, name: str) -> str:
    """A required path without `..`; a backend decides where it can be."""
    path = fields.text(name)
    if len(path) > MAXIMUM_PATH:
        fields.error(name, f"has {len(path)} characters; at most {MAXIMUM_PATH} are possible")
    elif _CONTROL.search(path):
        fields.error(name, f"{path[:80]!r} contains a control character")
    elif ".." in path.split("/"):
        fields.error(name, f"{path[:80]!r} leads upwards with '..'; write where it ends")
    return path


def read_url(fields: Fields, name: str = "url") -> str:
    """A URL that must be there. What is found there, a backend knows."""
    url = fields.text(name)
    if url and (len(url) > MAXIMUM_PATH or not _URL.match(without_placeholders(url))):
        fields.error(name, f"{url[:80]!r} is not a URL like s3://bucket/path")
    elif ".." in url.split("/"):
        fields.error(name, f"{url[:80]!r} leads upwards with '..'; write where it ends")
    return url


def read_regex(fields: Fields) -> str | None:
    """A regular expression for the paths of files, or None."""
    pattern = fields.optional_text("regex")
    fault = None if pattern is None else regex_fault(pattern)
    if fault is not None:
        fields.error("regex", fault)
    return pattern


def read_credential_name(fields: Fields, name: str) -> str:
    """The name of a credential, which is the name of a field."""
    if not _CREDENTIAL.match(name):
        fields.error(name, f"{name[:80]!r} is not the name of a credential")
    return name
