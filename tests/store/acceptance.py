"""The table of acceptance scenarios in docs/acceptance.md, made from the names of the tests.

`python -m tests.store.acceptance` writes it anew; a test compares.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "acceptance.md"
OPENING = "<!-- scenarios: made by `python -m tests.store.acceptance` -->"
SCENARIOS = range(1, 181)

#: What no test below the server shows, and where it belongs.
ELSEWHERE = {
    141: "a figure of `make bench`; no test looks at the clock",
}
_TEST = re.compile(r"^def (test_scenarios?_((?:\d{3}_(?:to_|and_)?)+)(\w+))\(", re.MULTILINE)


def shown_by() -> dict[int, list[str]]:
    """The tests of each scenario, by their names."""
    found: dict[int, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for name, numbers, sentence in _TEST.findall(path.read_text(encoding="utf-8")):
            place = path.relative_to(ROOT).as_posix()
            text = f"[{sentence.replace('_', ' ')}](../{place})"
            for number in _numbers(numbers):
                found.setdefault(number, []).append(text)
            assert name.startswith("test_scenario")
    return found


def table() -> str:
    """The table, a row for each scenario."""
    shown = shown_by()
    lines = ["| | shown by |", "|---:|---|"]
    for number in SCENARIOS:
        tests = shown.get(number)
        text = "; ".join(tests) if tests else f"*{ELSEWHERE[number]}*"
        lines.append(f"| {number} | {text} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page with the table as it must be."""
    head, opening, _ = text.partition(OPENING)
    return f"{head}{opening}\n{table()}"


def _numbers(text: str) -> list[int]:
    """`027_to_029_` and `156_157_and_172_` as numbers."""
    parts = [part for part in text.split("_") if part]
    numbers: list[int] = []
    for position, part in enumerate(parts):
        if part.isdigit():
            first = numbers[-1] + 1 if parts[position - 1] == "to" and numbers else int(part)
            numbers += range(first, int(part) + 1)
    return numbers


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
