"""The typed cursor over a mapping: types, and fields that are never read."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction

import pytest

from bough.formats.kubernetes.metadata import Metadata, read_metadata
from bough.formats.yaml.composer import compose
from bough.formats.yaml.documents import Document
from bough.formats.yaml.fields import Fields, Reading
from bough.model.problem import Severity


class Colour(StrEnum):
    RED = "Red"
    BLUE = "Blue"


def cursor(text: str, *, lenient: bool = False) -> Fields:
    ((value, line),) = compose(text, "x.yaml")
    return Reading(Document(value, "x.yaml", line), lenient=lenient).fields()


def problems(fields: Fields) -> list[tuple[str, str, int]]:
    return [(each.field, each.message, each.line) for each in fields.reading.problems]


def test_fields_of_the_right_type_give_their_values():
    fields = cursor(
        "t: x\ni: 3\nb: true\nq: 500m\nf: 0.5\nc: Red\nm: {a: x}\nl: [x, y]\nr: {cpu: 1, gpu: 2}\n"
        "w: '1970-01-01T00:00:01.5Z'\n"
    )
    assert fields.text("t") == "x"
    assert fields.integer("i", minimum=1) == 3
    assert fields.boolean("b", default=False) is True
    assert fields.quantity("q", "cpu") == 500
    assert fields.optional_fraction("f") == Fraction(1, 2)
    assert fields.choice("c", Colour, Colour.BLUE) is Colour.RED
    assert fields.text_map("m") == {"a": "x"}
    assert fields.texts("l") == ("x", "y")
    assert fields.quantities("r") == {"cpu": 1000, "gpu": 2}
    assert fields.optional_time_ms("w") == 1500
    fields.finish()
    assert problems(fields) == []


def test_absent_and_null_fields_give_their_defaults():
    fields = cursor("t: null\n")
    assert fields.optional_text("t") is None
    assert fields.optional_integer("i") is None
    assert fields.boolean("b", default=True) is True
    assert fields.optional_quantity("q", "cpu") is None
    assert fields.choice("c", Colour, Colour.BLUE) is Colour.BLUE
    assert (fields.text_map("m"), fields.texts("l"), fields.children("k")) == ({}, (), [])
    assert fields.optional_child("n") is None
    fields.finish()
    assert problems(fields) == []


@pytest.mark.parametrize("text", ["{}", "x: null"])
def test_a_required_field_that_is_absent_is_an_error(text: str):
    for read in (
        lambda fields: fields.text("x"),
        lambda fields: fields.integer("x"),
        lambda fields: fields.quantity("x", "cpu"),
        lambda fields: fields.child("x"),
    ):
        fields = cursor(text)
        read(fields)
        assert problems(fields) == [("x", "is missing", 1)]


@pytest.mark.parametrize(
    ("text", "read", "message"),
    [
        ("x: 5", lambda f: f.text("x"), "expected text, not the number 5; put it in quotes"),
        ("x: true", lambda f: f.optional_text("x"), "expected text, not true; put it in quotes"),
        ("x: ''", lambda f: f.text("x"), "must not be empty"),
        ("x: [1]", lambda f: f.text("x"), "expected text, not a list"),
        ("x: 1.5", lambda f: f.integer("x"), "expected a whole number, not the number 1.5"),
        ("x: true", lambda f: f.integer("x"), "expected a whole number, not true"),
        ("x: '5'", lambda f: f.integer("x"), "expected a whole number, not the text '5'"),
        ("x: -1", lambda f: f.integer("x", minimum=0), "is -1, but must be at least 0"),
        (
            "x: yes",
            lambda f: f.boolean("x", default=True),
            "expected true or false, not the text 'yes'",
        ),
        (
            "x: true",
            lambda f: f.quantity("x", "cpu"),
            "expected a quantity such as 4, 500m or 16Gi, not true",
        ),
        (
            "x: {}",
            lambda f: f.optional_fraction("x"),
            "expected a quantity such as 4, 500m or 16Gi, not a mapping",
        ),
        (
            "x: 4 cores",
            lambda f: f.quantity("x", "cpu"),
            "'4 cores' is not a quantity; write it like 4, 500m, 1.5 or 16Gi",
        ),
        (
            "x: red",
            lambda f: f.choice("x", Colour, Colour.BLUE),
            "expected one of Red, Blue, not the text 'red'; did you mean Red?",
        ),
        (
            "x: 3",
            lambda f: f.choice("x", Colour, Colour.BLUE),
            "expected one of Red, Blue, not the number 3",
        ),
        ("x: []", lambda f: f.child("x"), "expected a mapping, not a list"),
        ("x: a", lambda f: f.text_map("x"), "expected a mapping, not the text 'a'"),
        ("x: {}", lambda f: f.texts("x"), "expected a list, not a mapping"),
        ("x: a", lambda f: f.children("x"), "expected a list, not the text 'a'"),
        (
            "x: yesterday",
            lambda f: f.optional_time_ms("x"),
            "'yesterday' is not a time; write it like 2026-01-31T12:00:00Z",
        ),
        (
            "x: '2026-02-30T00:00:00Z'",
            lambda f: f.optional_time_ms("x"),
            "'2026-02-30T00:00:00Z' is not a time; write it like 2026-01-31T12:00:00Z",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_an_error_that_names_the_value(text, read, message):
    fields = cursor(text)
    read(fields)
    assert problems(fields) == [("x", message, 1)]


@pytest.mark.parametrize(
    ("text", "read", "place", "message"),
    [
        ("x:\n- a\n- 5", lambda f: f.texts("x"), "x[1]", "expected text, not the number 5"),
        ("x:\n- {}\n- null", lambda f: f.children("x"), "x[1]", "expected a mapping, not null"),
        (
            "x:\n  a: b\n  c/d: 1",
            lambda f: f.text_map("x"),
            'x["c/d"]',
            "expected text, not the number 1; put it in quotes",
        ),
        (
            "x:\n  cpu: 1\n  gpu: 0.5",
            lambda f: f.quantities("x"),
            "x.gpu",
            "'0.5' is finer than a whole unit of gpu, the smallest amount that is counted",
        ),
    ],
)
def test_a_wrong_item_has_a_place_of_its_own(text, read, place, message):
    fields = cursor(text)
    read(fields)
    assert problems(fields) == [(place, message, 3)]


def test_all_problems_are_collected_in_order():
    fields = cursor("a: 1\nb: x\nc:\n- d: []\n")
    fields.text("a")
    fields.integer("b")
    for child in fields.children("c"):
        child.text("d")
    fields.finish()
    assert [(place, line) for place, _, line in problems(fields)] == [
        ("a", 1),
        ("b", 2),
        ("c[0].d", 4),
    ]


def test_fields_that_were_not_read_are_errors_at_every_depth():
    fields = cursor("known: 1\nknwon: 2\nchild:\n  deep:\n  - other: 3\nlist:\n- more: 4\n")
    fields.integer("known")
    fields.child("child").children("deep")
    fields.children("list")
    fields.finish()
    assert problems(fields) == [
        ("knwon", "unknown field; did you mean known?", 2),
        ("child.deep[0].other", "unknown field", 5),
        ("list[0].more", "unknown field", 7),
    ]
    assert {each.severity for each in fields.reading.problems} == {Severity.ERROR}


def test_fields_that_were_not_read_are_warnings_when_lenient():
    fields = cursor("x: 1\n", lenient=True)
    fields.finish()
    assert [(each.severity, each.message) for each in fields.reading.problems] == [
        (Severity.WARNING, "unknown field")
    ]


def test_an_ignored_field_is_not_looked_into():
    fields = cursor("status: {anything: [1, {a: b}]}\n")
    fields.ignore("status")
    fields.finish()
    assert problems(fields) == []


def test_two_spellings_of_one_field_are_an_error():
    fields = cursor("cohort: a\ncohortName: b\n")
    assert fields.spelling("cohortName", "cohort") == "cohortName"
    fields.finish()
    assert problems(fields) == [("cohort", "says the same as cohortName; keep one of them", 1)]


def test_the_spelling_that_is_used_is_found():
    assert cursor("cohort: a").spelling("cohortName", "cohort") == "cohort"
    assert cursor("{}").spelling("cohortName", "cohort") == "cohortName"


def test_a_document_that_is_no_mapping_is_an_error():
    assert problems(cursor("- a\n")) == [("", "expected a mapping, not a list", 1)]


def test_metadata_is_read_and_the_server_s_own_fields_are_passed_over():
    fields = cursor(
        "metadata:\n  name: x\n  namespace: n\n  uid: u\n  labels: {a: b}\n"
        "  creationTimestamp: '1970-01-01T01:00:00+01:00'\n  resourceVersion: '12'\n"
        "  managedFields: [{manager: kubectl}]\n  generation: 4\n  ownerReferences: []\n"
    )
    metadata = read_metadata(fields)
    fields.finish()
    assert metadata == Metadata("x", namespace="n", uid="u", created_ms=0, labels={"a": "b"})
    assert problems(fields) == []


def test_an_unknown_field_of_metadata_is_reported():
    fields = cursor("metadata: {name: x, lables: {}}\n")
    read_metadata(fields)
    fields.finish()
    assert problems(fields) == [("metadata.lables", "unknown field; did you mean labels?", 1)]
