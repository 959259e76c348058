"""Links between pages and to files of the repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.docs.blocks import find_fences

_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"#{1,6} +(?P<text>.*\S)")


def broken_links(page: Path) -> list[str]:
    """Every link of a page that leads nowhere, with its line."""
    broken: list[str] = []
    for number, target in _links(page):
        name, _, anchor = target.partition("#")
        file = page if not name else page.parent / name
        if not file.exists():
            broken.append(f"line {number}: {target}: there is no such file")
        elif anchor and anchor not in _anchors(file):
            broken.append(f"line {number}: {target}: there is no such heading")
    return broken


def _links(page: Path) -> Iterator[tuple[int, str]]:
    for number, line in _prose(page):
        # What stands in a link's text may be code; what is code is no link.
        for match in _LINK.finditer(_CODE.sub("code", line)):
            if not re.match(r"[a-z]+:", match["target"]):
                yield number, match["target"]


def _anchors(page: Path) -> set[str]:
    found: set[str] = set()
    for _, line in _prose(page):
        match = _HEADING.fullmatch(line)
        if match is not None:
            kept = re.sub(r"[^\w\- ]", "", match["text"].lower())
            found.add(kept.replace(" ", "-"))
    return found


def _prose(page: Path) -> Iterator[tuple[int, str]]:
    """The lines outside fenced blocks, counted from 1."""
    lines = page.read_text(encoding="utf-8").splitlines()
    fenced = {
        number for fence in find_fences(lines) for number in range(fence.opening, fence.closing + 1)
    }
    return ((number + 1, line) for number, line in enumerate(lines) if number not in fenced)
