"""Every acceptance scenario is a test, or the table says why not."""

from __future__ import annotations

from tests.store.acceptance import ELSEWHERE, PAGE, SCENARIOS, page, shown_by


def test_every_scenario_is_shown_or_explained():
    assert set(SCENARIOS) == set(shown_by()) | set(ELSEWHERE)


def test_the_table_is_as_the_tests_are():
    text = PAGE.read_text(encoding="utf-8")

    assert page(text) == text, "say `python -m tests.store.acceptance`"
