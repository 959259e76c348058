"""Which files of a folder are not uploaded: `.git`, and what its `.gitignore` files name.

The rules are git's: the last matching pattern decides, and deeper folders come after those above
them; `!` includes again; a slash at the end means folders only; a slash elsewhere anchors the
pattern to the folder of its file; `**` matches any number of folders. Nothing below an ignored
folder is included again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

FILE = ".gitignore"
_LONGEST = 1 << 20


class _Rule(NamedTuple):
    pattern: re.Pattern[str]
    #: The folder in which it counts; empty, or with a slash at its end.
    below: str
    folders_only: bool
    takes_back: bool


class Ignored:
    """The patterns that count in one folder, from all `.gitignore` files above it and its own."""

    def __init__(self, rules: Sequence[_Rule] = ()) -> None:
        self._rules = tuple(rules)

    def enter(self, root: Path, folder: str) -> Ignored:
        """The patterns that count in a folder below; an empty name is the root itself."""
        below = f"{folder}/" if folder else ""
        try:
            with (root / folder / FILE).open("rb") as file:
                text = file.read(_LONGEST).decode(errors="replace")
        except OSError:
            return self
        return Ignored((*self._rules, *_read(text, below)))

    def has(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder is ignored; the folders above it are not."""
        if path == ".git" or path.endswith("/.git"):
            return True
        for rule in reversed(self._rules):
            if rule.folders_only and not is_folder:
                continue
            if path.startswith(rule.below) and rule.pattern.fullmatch(path[len(rule.below) :]):
                return not rule.takes_back
        return False


def _read(text: str, below: str) -> Iterator[_Rule]:
    for line in text.splitlines():
        pattern = _stripped(line)
        if not pattern or pattern.startswith("#"):
            continue
        takes_back = pattern.startswith("!")
        pattern = pattern[1:] if takes_back else pattern
        folders_only = pattern.endswith("/")
        pattern = pattern.rstrip("/") if folders_only else pattern
        if not pattern:
            continue
        if "/" not in pattern:
            pattern = f"**/{pattern}"
        try:
            compiled = re.compile(_translated(pattern.removeprefix("/")), re.DOTALL)
        except re.error:
            continue
        yield _Rule(compiled, below, folders_only, takes_back)


def _stripped(line: str) -> str:
    """Strip blanks at the end, unless a backslash keeps one."""
    while line.endswith((" ", "\t")) and not line.endswith("\\ "):
        line = line[:-1]
    return line


def _translated(pattern: str) -> str:
    """A pattern as a regular expression on the path below the folder of its file."""
    parts = pattern.split("/")
    text = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            # At the end: everything below; elsewhere: any number of folders.
            text += ".+" if last else "(?:[^/]+/)*"
        else:
            text += _part(part) + ("" if last else "/")
    return text


def _part(part: str) -> str:
    text, at = "", 0
    while at < len(part):
        letter = part[at]
        at += 1
        if letter == "*":
            text += "[^/]*"
        elif letter == "?":
            text += "[^/]"
        elif letter == "\\" and at < len(part):
            text += re.escape(part[at])
            at += 1
        elif letter == "[" and (end := _class_end(part, at)) > 0:
            inner = part[at:end].replace("\\", "\\\\").replace("[", "\\[")
            inner = f"^{inner[1:]}" if inner.startswith("!") else inner
            text += f"(?!/)[{inner}]"
            at = end + 1
        else:
            text += re.escape(letter)
    return text


def _class_end(part: str, at: int) -> int:
    """Where a character class ends; a bracket right at its start belongs to it."""
    first = at + 1 if part[at : at + 1] in ("!", "^") else at
    return part.find("]", first + 1)
