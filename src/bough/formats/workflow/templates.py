"""Templates of workflows, as text: what is one, what it is given, and what must survive it.

A template is not YAML yet, so its `default-values` are found by their place in the text. What tasks
fill in while they run (`{{output}}`, `{{host:master}}`) looks like a template and is none.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from bough.errors import Invalid
from bough.formats.yaml.composer import LinedDict, LinedList, RepeatedKey, Unreadable, compose
from bough.formats.yaml.scalars import resolve_scalar
from bough.model.array import PLACEHOLDER
from bough.model.problem import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bough.formats.yaml.composer import Value

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]

#: Values in `default-values`, aliases written out.
MAXIMUM_VALUES = 10_000
#: Stands for the value of an element, unless a variable is called so.
ARRAY = "array"
#: Names that stand for what a task fills in, so that no variable can have them.
RESERVED = ("output", "workflow_id", "uuid")

_PLACEHOLDER = re.compile(
    r"\{\{[ \t]*(?:output|workflow_id|uuid|array|(?:input|host|array)[ \t]*:[ \t]*[A-Za-z0-9_.-]+)"
    r"[ \t]*\}\}"
    # A shell's length of a variable, which is no comment.
    r"|\$\{#[A-Za-z0-9_@*]+(?:\[[^\]\s{}#]*\])?\}"
)
TEMPLATE_MARKS = ("{{", "{%", "{#")
#: A comment, or text that is not rendered: how it starts.
_HIDING = re.compile(r"\{#|\{%[-+]?\s*raw\s*[-+]?%\}")
_END_OF_COMMENT = re.compile(r"#\}")
_END_OF_RAW = re.compile(r"\{%[-+]?\s*endraw\s*[-+]?%\}")
_DEFAULTS = re.compile(
    r"^(?:default-values|\"default-values\"|'default-values')[ \t]*:(?=[ \t\r\n]|\Z)", re.MULTILINE
)
#: What ends the block: the next field at the margin, another document, or a statement.
_NEXT = re.compile(r"^(?:---|\.\.\.|\{[%#{]|[A-Za-z_\"'][^\n:]*:(?:[ \t\r]|$))", re.MULTILINE)
_NOT_A_LINE_BREAK = re.compile(r"[^\n]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")


class Template(NamedTuple):
    """A template, ready to be rendered."""

    #: Without `default-values`, and with marks instead of what must survive.
    text: str
    values: dict[str, Plain]
    #: What the marks stand for, by number.
    kept: tuple[str, ...]
    #: The character on both sides of a mark's number.
    mark: str
    #: The lines of `default-values`, which the text lacks: the first, and how many.
    cut: tuple[int, int]
    #: Of `default-values`.
    warnings: tuple[str, ...] = ()

    def restore(self, rendered: str, most: int) -> str:
        """The rendered text with everything that had to survive in its place.

        A mark is short and may stand for something long, as often as a template repeats it; more
        characters than `most` are refused before they are there.
        """
        if not self.kept:
            return rendered
        size = len(rendered)

        def original(found: re.Match[str]) -> str:
            nonlocal size
            number = int(found[1])
            if number >= len(self.kept):
                return found[0]
            size += len(self.kept[number]) - len(found[0])
            if size > most:
                raise Invalid(
                    f"The template cannot be rendered: gives more than {most:,} characters."
                )
            return self.kept[number]

        return re.sub(f"{self.mark}([0-9]{{1,9}}){self.mark}", original, rendered)

    def line(self, line: int) -> int:
        """The line of the template that is this line of the text."""
        first, count = self.cut
        return line + count if count and line >= first else line


def is_template(text: str) -> bool:
    """Whether a text has anything to render; what was rendered before has not."""
    rest = _PLACEHOLDER.sub("", text)
    return any(mark in rest for mark in TEMPLATE_MARKS) or _DEFAULTS.search(rest) is not None


def without_placeholders(text: str) -> str:
    """A text with something plain instead of what tasks fill in."""
    return _PLACEHOLDER.sub("x", text) if "{{" in text else text


def read_template(text: str, variables: Mapping[str, Plain]) -> Template:
    """Take a template apart; variables come on top of its own `default-values`."""
    block = _find_defaults(text)
    repeated: list[RepeatedKey] = []
    defaults: dict[str, Plain] = {}
    cut = (0, 0)
    if block is not None:
        start, end = block
        defaults = _read_defaults(text, start, end, repeated)
        cut = (text.count("\n", 0, start) + 1, text.count("\n", start, end))
        text = text[:start] + text[end:]
    values = {**defaults, **variables}
    for name in RESERVED:
        if name in values:
            raise Invalid(
                f"The template's variable {name!r} cannot be set: {{{{{name}}}}} stands for what a "
                "task fills in while it runs; choose another name."
            )
    mark = unused_character(text)
    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        if ARRAY in values and PLACEHOLDER.fullmatch(found[0]):
            # Workflows had variables of that name before there were arrays.
            return found[0]
        kept.append(found[0])
        return f"{mark}{len(kept) - 1}{mark}"

    warnings = tuple(f"{dotted(each.path)}: {each.message}." for each in repeated)
    return Template(_PLACEHOLDER.sub(keep, text), values, tuple(kept), mark, cut, warnings)


def read_variables(pairs: Iterable[str], strings: Iterable[str]) -> dict[str, Plain]:
    """Variables as `name=value`: the first typed as YAML types them, the second always text."""
    typed = {name: _plain(resolve_scalar(text)) for name, text in _split("--set", pairs)}
    return {**typed, **dict(_split("--set-string", strings))}


def unused_character(text: str) -> str:
    """A character that the text does not have; the private ones are many."""
    for code in range(0xE000, 0xF900):
        if chr(code) not in text:
            return chr(code)
    raise Invalid("The template uses every private character of Unicode.")


def _split(option: str, pairs: Iterable[str]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not _NAME.match(name):
            raise Invalid(
                f"{option} must be like name=value, with a name of letters, digits and "
                f"underscores, not {pair[:60]!r}."
            )
        yield name, value


def _find_defaults(text: str) -> tuple[int, int] | None:
    """Where the block starts and ends; comments and raw text do not count."""
    seen = _without_hidden(text)
    found = _DEFAULTS.search(seen)
    if found is None:
        return None
    again = _DEFAULTS.search(seen, found.end())
    if again is not None:
        line = text.count("\n", 0, again.start()) + 1
        raise Invalid(f"The template has default-values twice, again on line {line}.")
    after = _NEXT.search(text, found.end())
    return found.start(), len(text) if after is None else after.start()


def _without_hidden(text: str) -> str:
    """The text with blanks where a comment or raw text is; each character is looked at once."""
    text = _PLACEHOLDER.sub(lambda found: " " * len(found[0]), text)
    parts: list[str] = []
    position = 0
    while True:
        opened = _HIDING.search(text, position)
        end = _END_OF_COMMENT if opened is not None and opened[0] == "{#" else _END_OF_RAW
        closed = None if opened is None else end.search(text, opened.end())
        if opened is None or closed is None:
            parts.append(text[position:])
            return "".join(parts)
        parts.append(text[position : opened.start()])
        parts.append(_NOT_A_LINE_BREAK.sub(" ", text[opened.start() : closed.end()]))
        position = closed.end()


def _read_defaults(
    text: str, start: int, end: int, repeated: list[RepeatedKey]
) -> dict[str, Plain]:
    # Empty lines before it, so that errors name the lines of the template.
    block = "\n" * text.count("\n", 0, start) + text[start:end]
    try:
        documents = [value for value, _ in compose(block, "workflow", MAXIMUM_VALUES, repeated)]
    except Unreadable as error:
        raise Invalid(
            f"The template's default-values on line {error.line}: {error.reason}."
        ) from None
    found = documents[0] if documents else LinedDict()
    values = found.get("default-values") if isinstance(found, LinedDict) else found
    if values is None:
        return {}
    if not isinstance(values, LinedDict):
        raise Invalid("The template's default-values must be a mapping of names to values.")
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Value) -> Plain:
    """A value as templates compute with it; the composer bounds how deep it is."""
    if isinstance(value, LinedDict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, LinedList):
        return [_plain(each) for each in value]
    return float(value) if isinstance(value, Decimal) else value
