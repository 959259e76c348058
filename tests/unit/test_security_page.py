"""Every line of docs/security.md and docs/reliability.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "security.md"
_LINK = re.compile(r"\[([^\]]+)\]\(\.\./(tests/[^)]+)\)")
SHOWN = "shown by |"


def missing_tests(page: str) -> list[str]:
    """The tests that a page names and that its files do not have."""
    # The name of a link may go on in the next line.
    found = [(" ".join(name.split()), path) for name, path in _LINK.findall(page)]
    return [
        f"{path}: {sentence}"
        for sentence, path in found
        if not _has(ROOT / path, sentence.replace(" ", "_"))
    ]


def lines_without_tests(page: str) -> list[str]:
    """The rows of tables that are to be shown by tests and name none."""
    found: list[str] = []
    within = False
    for line in page.splitlines():
        if not line.startswith("|"):
            within = False
        elif line.endswith(SHOWN):
            within = True
        elif within and not line.startswith("|---") and not _LINK.search(line):
            found.append(line)
    return found


def _has(path: Path, name: str) -> bool:
    if not path.is_file():
        return False
    return (
        re.search(rf"^def test_(scenarios?_[\d_a-z]+?_)?{name}\(", path.read_text(), re.MULTILINE)
        is not None
    )


def test_each_line_of_the_page_is_shown_by_tests_that_exist():
    page = PAGE.read_text(encoding="utf-8")

    assert page.count(SHOWN) >= 7
    assert [] == missing_tests(page)
    assert [] == lines_without_tests(page)


def test_the_page_about_reliability_names_tests_that_exist():
    page = PAGE.with_name("reliability.md").read_text(encoding="utf-8")

    assert len(_LINK.findall(page)) >= 10
    assert [] == missing_tests(page)


def test_a_line_without_a_test_and_a_test_that_is_gone_are_found():
    page = (
        "| cannot | shown by |\n|---|---|\n| fly | |\n"
        "| swim | [no such thing](../tests/unit/test_security_page.py) |\n"
    )

    assert ["| fly | |"] == lines_without_tests(page)
    assert ["tests/unit/test_security_page.py: no such thing"] == missing_tests(page)
