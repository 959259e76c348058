"""The tutorial does what it says, and its story is true."""

from __future__ import annotations

import re

from tests.e2e.tutorial import PAGE, read_steps, reading, settled


def test_the_tutorial_prints_what_the_page_shows(tmp_path):
    printed: dict[str, list[str]] = {}
    with reading(tmp_path) as reader:
        for step in read_steps(PAGE.read_text(encoding="utf-8").split("\n")):
            shown = reader.follow(step)

            if step.printed is not None:
                assert settled(step.printed) == settled(shown), step.text
                printed.setdefault(step.text, []).append(shown)

    # How far it was differs each time, but not that it went on from there.
    logs = "\n".join(
        text for command, each in printed.items() if "logs" in command for text in each
    )
    left = re.search(r"\[train\] leaves after step (\d+)", logs)
    again = re.search(r"\[train retry-1\] starts after step (\d+)", logs)
    assert left is not None
    assert again is not None
    assert int(left[1]) == int(again[1]) > 0
