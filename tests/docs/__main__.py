"""`python -m tests.docs [--write]`: compare the pages with the program, or put them right."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.docs.blocks import PageError
from tests.docs.commands import ROOT
from tests.docs.links import broken_links
from tests.docs.pages import difference, find_pages, rewrite


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--write"]):
        return _fail(__doc__ or "")
    failed = False
    for page in find_pages():
        name = page.relative_to(ROOT).as_posix()
        try:
            if arguments:
                _write(page)
            elif found := difference(page):
                failed = True
                sys.stdout.write(f"{found}\n")
        except PageError as error:
            failed = True
            _fail(f"{name}: {error}")
        for each in broken_links(page):
            failed = True
            _fail(f"{name}: {each}")
    return 1 if failed else 0


def _write(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    after = rewrite(text)
    if after != text:
        page.write_text(after, encoding="utf-8")
        sys.stdout.write(f"rewrote {page.relative_to(ROOT).as_posix()}\n")


def _fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
