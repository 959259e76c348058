"""The fenced blocks of a Markdown page, and the commands in one."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import NamedTuple

PROMPT = "$ "
#: The block below it shows a part of a file.
EXCERPT = re.compile(r"<!-- excerpt (?P<file>\S+)(?P<keys>(?: \S+)*) -->")
_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,}|~{3,}) *(?P<language>\S*)")
_HEAD = re.compile(r"(?P<command>.*\S) *\| *head -(?P<lines>[0-9]+)")


class PageError(Exception):
    """A page is written in a way that cannot be checked."""

    def __init__(self, line: int, message: str) -> None:
        #: Counts from 1.
        self.line = line
        super().__init__(f"line {line}: {message}")


class Fence(NamedTuple):
    """A block; its text is between the two lines, which count from 0."""

    opening: int
    closing: int
    language: str


class Example(NamedTuple):
    """One command of a block, as it is written and as it is run."""

    lines: tuple[str, ...]
    command: tuple[str, ...]
    #: How many lines of the output are shown; `None`: all of them.
    shown: int | None
    #: Where it stands in the page, from 1.
    line: int


def find_fences(lines: Sequence[str]) -> list[Fence]:
    """Every fenced block of a page."""
    fences: list[Fence] = []
    opening = -1
    ticks = language = ""
    for number, line in enumerate(lines):
        match = _FENCE.fullmatch(line.rstrip())
        if match is None:
            continue
        if not ticks:
            opening, ticks, language = number, match["ticks"], match["language"]
            if language == "console" and match["indent"]:
                raise PageError(number + 1, "a console block must not be indented")
        elif match["ticks"].startswith(ticks) and not match["language"]:
            fences.append(Fence(opening, number, language))
            ticks = ""
    if ticks:
        raise PageError(opening + 1, "this block is never closed")
    return fences


def find_examples(lines: Sequence[str], first: int) -> list[Example]:
    """The commands of a console block whose text starts at line `first`, from 1."""
    examples: list[Example] = []
    number = 0
    while number < len(lines):
        start = number
        number += 1
        if lines[start].startswith(PROMPT):
            while lines[number - 1].endswith("\\") and number < len(lines):
                number += 1
            examples.append(_example(lines[start:number], first + start))
        elif not examples:
            raise PageError(first + start, "a console block starts with a command: $ bough ...")
    if not examples:
        raise PageError(first, "a console block without a command")
    return examples


def _example(lines: Sequence[str], line: int) -> Example:
    written = " ".join(part.removesuffix("\\").strip() for part in lines)
    text = written.removeprefix(PROMPT)
    head = _HEAD.fullmatch(text)
    if head is not None:
        text = head["command"]
    try:
        command = tuple(shlex.split(text))
    except ValueError as error:
        raise PageError(line, f"cannot be read as a command: {error}") from None
    return Example(tuple(lines), command, None if head is None else int(head["lines"]), line)
