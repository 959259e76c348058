"""What pages tell people to write is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_variable_that_a_page_names_exists():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in _variables(page)}
    known = {name for module in (ROOT / "src").rglob("*.py") for name in _variables(module)}

    assert {"BOUGH_TOKEN", "BOUGH_TASK"} <= named
    assert set() == named - known


def _variables(file: Path) -> list[str]:
    return re.findall(r"\bBOUGH_[A-Z_]+\b", file.read_text(encoding="utf-8"))
