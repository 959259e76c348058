"""Pages as they are, and as they must be."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import page as bench_page
from tests.docs import reference, states
from tests.docs.blocks import EXCERPT, Fence, PageError, find_examples, find_fences
from tests.docs.commands import ROOT, CommandError, Ran, run
from tests.docs.session import replay

#: Prints how the command before it ended.
ECHO_CODE = ("echo", "$?")
Run = Callable[[tuple[str, ...]], Ran]

_KEY = re.compile(r"(?P<key>[A-Za-z_]\w*):")


def find_pages() -> list[Path]:
    """Every page that is kept true."""
    top = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    return [*top, *sorted((ROOT / "docs").rglob("*.md"))]


def rewrite(text: str, run_command: Run = run, root: Path = ROOT) -> str:
    """The page with all that it shows put right."""
    lines = _filled(text.split("\n"), reference.OPENING, reference.CLOSING, reference.headings)
    lines = _filled(lines, states.OPENING, states.CLOSING, states.sections)
    lines = _filled(lines, bench_page.OPENING, bench_page.CLOSING, bench_page.lines)
    # From the end, so that what is still to be done keeps its place.
    for fence in reversed(find_fences(lines)):
        above = lines[fence.opening - 1] if fence.opening else ""
        excerpt = EXCERPT.fullmatch(above)
        if excerpt is not None:
            body = _excerpt(root / excerpt["file"], excerpt["keys"].split(), fence.opening)
        elif fence.language == "console":
            body = _console(lines, fence, run_command)
        elif fence.language == "pycon":
            body = replay(lines[fence.opening + 1 : fence.closing], fence.opening + 2)
        else:
            continue
        lines[fence.opening + 1 : fence.closing] = body
    return "\n".join(lines)


def difference(page: Path) -> str:
    """What `make docs` would change in a page; empty where it is right."""
    text = page.read_text(encoding="utf-8")
    name = page.relative_to(ROOT).as_posix()
    changes = difflib.unified_diff(
        text.splitlines(), rewrite(text).splitlines(), f"{name} (as written)", name, lineterm=""
    )
    return "\n".join(changes)


def _filled(
    lines: list[str], opening: str, closing: str, contents: Callable[[], list[str]]
) -> list[str]:
    """The page with what stands between two of its lines made anew."""
    if opening not in lines:
        return lines
    first = lines.index(opening)
    if closing not in lines[first:]:
        raise PageError(first + 1, f"{closing} is missing")
    return [*lines[: first + 1], *contents(), *lines[lines.index(closing, first) :]]


def _console(lines: Sequence[str], fence: Fence, run_command: Run) -> list[str]:
    body: list[str] = []
    code: int | None = None
    for example in find_examples(lines[fence.opening + 1 : fence.closing], fence.opening + 2):
        body += example.lines
        if example.command == ECHO_CODE:
            if code is None:
                raise PageError(example.line, "there is no command before it")
            body.append(str(code))
            continue
        try:
            ran = run_command(example.command)
        except CommandError as error:
            raise PageError(example.line, str(error)) from None
        code = ran.code
        body += ran.output.splitlines()[: example.shown]
    return body


def _excerpt(path: Path, keys: Sequence[str], line: int) -> list[str]:
    """The wanted top-level keys of a YAML file as they are written; without keys, all of it."""
    if not path.is_file():
        raise PageError(line, f"there is no file {path.name} to show")
    lines = path.read_text(encoding="utf-8").splitlines()
    if not keys:
        return lines
    parts: dict[str, list[str]] = {}
    part: list[str] = []
    for each in lines:
        match = _KEY.match(each)
        if match is not None:
            part = parts.setdefault(match["key"], [])
        part.append(each)
    missing = [key for key in keys if key not in parts]
    if missing:
        raise PageError(line, f"{path.name} has no {missing[0]}; it has {', '.join(parts)}")
    return [each for key in keys for each in parts[key]]
