from __future__ import annotations

import pytest

from bough.model.safe_regex import regex_fault


@pytest.mark.parametrize(
    "pattern",
    [
        "", ".*", r".*\.(jpg|png)$", "(?i).*x", "(?!tmp).*", "(ab)*(cd)*", "[)+(]*", r"\(a+\)+",
        "(a{1,3}){2}", "((a))+", "a{}b+", "(?P<x>a)(?P=x)", "(?#a+)b", "x{2,}y", "[]a]*", "(a|b)?",
        "(?:step-)[0-9]+/.*",
    ],
)  # fmt: skip
def test_what_ends_is_fine(pattern: str):
    assert None is regex_fault(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$", "(a|a)*b", "(?:a*)*", r"([a-z]+\d?)*x", "(a{1,3}){2,}", "((x+x+)+y)", "(a+){20}",
        "(?P<n>a+)+", "(a?){5,}", "(?:(a|b))*c", "(?i:a+)*", "((a)|b)+",
    ],
)  # fmt: skip
def test_a_repeat_of_what_can_be_matched_in_several_ways_is_refused(pattern: str):
    assert "could take for ever" in (regex_fault(pattern) or "")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "is not a regular expression"),
        ("a{99999999999}", "is not a regular expression"),
        ("a\x07", "cannot be shown"),
        ("a\nb", "cannot be shown"),
        ("a" * 257, "has 257 characters"),
        # Sets of characters that are large take long; paths are bytes.
        (r"(?i)[\u0100-\U0010ffff]", "is not a regular expression: bad escape"),
    ],
)
def test_what_is_no_pattern_is_refused(pattern: str, message: str):
    assert message in (regex_fault(pattern) or "")
