"""Quantities as Kubernetes writes them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from bough.errors import Invalid
from bough.formats.yaml.quantity import parse_fraction, parse_quantity
from bough.model.words import write_amount


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("4", 4),
        ("0", 0),
        ("-3", -3),
        ("+3", 3),
        ("1e3", 1000),
        ("1E3", 1000),
        ("1E", 10**18),
        ("2k", 2000),
        ("16Gi", 16 << 30),
        ("1.5Gi", 3 << 29),
        ("0.5Ki", 512),
        ("3000m", 3),
        ("1.", 1),
        ("1.5e1", 15),
        ("1000000u", 1),
        ("1000000000n", 1),
        ("1Ei", 1 << 60),
    ],
)
def test_whole_units_are_exact(text: str, amount: int):
    assert parse_quantity(text, "gpu") == amount


@pytest.mark.parametrize(
    ("text", "milli"), [("4", 4000), ("500m", 500), ("1.5", 1500), ("0.1", 100), (".25", 250)]
)
def test_cpu_is_counted_in_thousandths(text: str, milli: int):
    assert parse_quantity(text, "cpu") == milli


def test_numbers_of_yaml_are_quantities_too():
    assert parse_quantity(Decimal("1e3"), "gpu") == 1000
    assert parse_quantity(Decimal("0.0"), "gpu") == 0
    assert parse_quantity(7, "cpu") == 7000


@pytest.mark.parametrize(
    ("text", "resource", "unit"),
    [
        ("1.5", "nvidia.com/gpu", "a whole unit of nvidia.com/gpu"),
        ("500m", "memory", "a whole unit of memory"),
        ("0.0005", "cpu", "a thousandth of a core"),
        ("1n", "cpu", "a thousandth of a core"),
    ],
)
def test_what_is_finer_than_the_unit_is_refused_and_never_rounded(
    text: str, resource: str, unit: str
):
    with pytest.raises(Invalid) as caught:
        parse_quantity(text, resource)
    assert caught.value.message == (
        f"{text!r} is finer than {unit}, the smallest amount that is counted"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 4",
        "4 ",
        "four",
        "4 Gi",
        "1ki",
        "1Zi",
        "0x10",
        "1e",
        "--1",
        "1e1.5",
        "1,5",
        "١",
        "1Gim",
        "25e-1k",
    ],
)
def test_what_is_no_quantity_is_refused(text: str):
    with pytest.raises(Invalid, match=r"is not a quantity; write it like 4, 500m, 1\.5 or 16Gi"):
        parse_quantity(text, "cpu")


@pytest.mark.parametrize("text", ["9" * 41, "1e31", "1e-31", "1e99999999999", "0." + "1" * 41])
def test_what_would_be_slow_to_compute_is_refused(text: str):
    with pytest.raises(Invalid, match=r"is out of range|is not a quantity"):
        parse_quantity(text, "gpu")


@pytest.mark.parametrize("text", ["0123", "00", "01.5", "-07"])
def test_a_leading_zero_is_refused_because_it_may_mean_octal(text: str):
    with pytest.raises(Invalid, match="may mean octal"):
        parse_quantity(text, "gpu")


def test_a_long_text_is_cut_in_the_message():
    with pytest.raises(Invalid) as caught:
        parse_quantity("x" * 1_000_000, "gpu")
    assert len(caught.value.message) < 120


def test_a_weight_is_an_exact_fraction():
    assert parse_fraction("0.1") == Fraction(1, 10)
    assert parse_fraction("1n") == Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("cpu", 1500, "1500m"),
        ("cpu", 8000, "8"),
        ("cpu", -500, "-500m"),
        ("cpu", 0, "0"),
        ("memory", 16 << 30, "16Gi"),
        ("memory", 1536 << 20, "1536Mi"),
        ("memory", 1000, "1000"),
        ("memory", 0, "0"),
        ("hugepages-2Mi", 4 << 20, "4Mi"),
        ("ephemeral-storage", -(2 << 10), "-2Ki"),
        ("nvidia.com/gpu", 1024, "1024"),
    ],
)
def test_amounts_are_written_as_people_write_them(resource: str, amount: int, text: str):
    assert write_amount(resource, amount) == text
    assert parse_quantity(text, resource) == amount
