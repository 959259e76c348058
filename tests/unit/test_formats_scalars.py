"""What an unquoted YAML scalar means."""

from __future__ import annotations

from decimal import Decimal

import pytest

from bough.formats.yaml.scalars import resolve_scalar, resolve_tagged


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null_is_nothing(text: str):
    assert resolve_scalar(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False)],
)
def test_true_and_false_are_boolean(text: str, value: bool):
    assert resolve_scalar(text) is value


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("-7", -7), ("+12", 12), ("1000", 1000)])
def test_decimal_integers_are_integers(text: str, value: int):
    resolved = resolve_scalar(text)
    assert (type(resolved), resolved) == (int, value)


@pytest.mark.parametrize("text", ["1.5", "0.1", "1e3", "-2.50", ".5", "1E-3", "0.0"])
def test_other_numbers_stay_exact(text: str):
    assert resolve_scalar(text) == Decimal(text)
    assert isinstance(resolve_scalar(text), Decimal)


@pytest.mark.parametrize(
    "text",
    [
        "yes", "no", "on", "off", "y", "2020-01-01", "12:30", "0x1f", "0o17", "0123", "00.5",
        "1_000", ".inf", "-.inf", ".nan", "1e", "-", "+", ".", "16Gi", "١٢", "nULL", "tRue",
    ],
)  # fmt: skip
def test_everything_else_stays_text(text: str):
    assert resolve_scalar(text) == text
    assert isinstance(resolve_scalar(text), str)


@pytest.mark.parametrize("text", ["9" * 41, "1e100", "1e-100", "1e999999999", "1." + "0" * 60])
def test_numbers_that_would_be_slow_to_compute_with_stay_text(text: str):
    assert resolve_scalar(text) == text


def test_a_tag_turns_a_number_into_text():
    assert resolve_tagged("tag:yaml.org,2002:str", "5") == "5"


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [("int", "5", 5), ("float", "1.5", Decimal("1.5")), ("bool", "true", True), ("null", "", None)],
)
def test_a_core_tag_that_fits_is_accepted(tag: str, text: str, value: object):
    assert resolve_tagged(f"tag:yaml.org,2002:{tag}", text) == value


@pytest.mark.parametrize(
    ("tag", "text"), [("int", "x"), ("int", "true"), ("bool", "yes"), ("null", "0"), ("float", "x")]
)
def test_a_core_tag_that_does_not_fit_is_refused(tag: str, text: str):
    with pytest.raises(ValueError, match="is not of the type"):
        resolve_tagged(f"tag:yaml.org,2002:{tag}", text)


@pytest.mark.parametrize("tag", ["tag:yaml.org,2002:binary", "!mine", "int", "tag:other,1:int"])
def test_other_tags_are_refused(tag: str):
    with pytest.raises(ValueError, match="is not supported"):
        resolve_tagged(tag, "1")
