"""The page about the first hour does what it says."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.tutorial import PAGE, read_steps, reading, settled


def test_the_first_hour_prints_what_the_page_shows(tmp_path: Path):
    page = PAGE.with_name("first-hour.md").read_text(encoding="utf-8")
    with reading(tmp_path) as reader:
        for step in read_steps(page.split("\n")):
            shown = reader.follow(step)
            if step.printed is not None:
                assert settled(step.printed) == settled(shown), step.text
