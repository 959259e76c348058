"""Variables in pod templates: what is put in their place, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.control.config.template_variables import (
    UnknownVariable,
    faults,
    fill,
    quantity,
    variables_of,
)

ASKED = {"CPU": Fraction(5, 2), "GPU": 8, "MEMORY": "16Gi", "STORAGE": "0"}
LABELS = {"workflow_id": "train-1", "pool": "team", "submitted_by": "ann", "group_name": "g"}
VARIABLES = variables_of(ASKED, LABELS, ("n1", "n2"), {"USER_STORAGE": "1Gi", "USER_CPU": 1})


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        ("{{USER_CPU}} {{ USER_GPU }}", "2.5 8"),
        ("{{USER_MEMORY}}", "16Gi"),
        # It asks for none, and its pool has a default.
        ("{{USER_STORAGE}}", "1Gi"),
        ("{{USER_MEMORY_VAL}} {{USER_MEMORY_UNIT}}", "16 Gi"),
        ("{{USER_STORAGE_VAL}}{{USER_STORAGE_UNIT}}", "1Gi"),
        ("{{USER_MEMORY_B}} {{USER_MEMORY_Ki}} {{USER_MEMORY_Mi}}", "17179869184 16777216 16384"),
        ("{{USER_MEMORY_Gi}} {{USER_MEMORY_Ti}}", "16 0.015625"),
        ("{% if USER_MEMORY_Gi > 8 %}large{% else %}small{% endif %}", "large"),
        ("{{WF_ID}}/{{WF_GROUP_NAME}}/{{WF_POOL}}/{{WF_SUBMITTED_BY}}", "train-1/g/team/ann"),
        ("{{USER_CONTAINER_NAME}}", "task"),
        ("{{USER_EXCLUDED_NODES}}", ["n1", "n2"]),
        ("{% if USER_CPU > 2 %}2{% else %}{{USER_CPU}}{% endif %}", "2"),
        ("{% if USER_CPU > 3 %}3{% else %}{{USER_CPU}}{% endif %}", "2.5"),
        ("a{% if WF_POOL == 'team' %}b{% endif %}c", "abc"),
        ("a{% if WF_POOL != 'team' %}b{% endif %}c", "ac"),
        ("{% if USER_GPU >= 8 %}{{WF_ID}}{% endif %}", "train-1"),
        ("plain {text}", "plain {text}"),
    ],
)
def test_what_is_put_in_the_place_of_variables(written, becomes):
    assert [] == list(faults({"a": written}))
    assert {"a": [becomes, 3, None]} == fill({"a": [written, 3, None]}, VARIABLES)


@pytest.mark.parametrize(
    ("default", "becomes"),
    [("2.5Gi", "2.5 Gi 2.5"), (2**29, "536870912 B 0.5"), ("512Mi", "512 Mi 0.5"), ("0", "0 B 0")],
)
def test_parts_of_an_amount_are_those_of_the_default_where_a_task_asks_for_none(default, becomes):
    asked = {"MEMORY": "0", "STORAGE": "0"}
    variables = variables_of(asked, {}, (), {"USER_MEMORY": default})

    shown = fill("{{USER_MEMORY_VAL}} {{USER_MEMORY_UNIT}} {{USER_MEMORY_Gi}}", variables)
    assert becomes == shown


@given(st.integers(0, 2**50))
def test_number_and_unit_together_are_the_amount(amount):
    text = quantity(amount)
    variables = variables_of({"MEMORY": text, "STORAGE": text}, {}, (), {})

    unit = variables["USER_MEMORY_UNIT"]
    assert text == f"{variables['USER_MEMORY_VAL']}{'' if unit == 'B' else unit}"
    assert amount == variables["USER_STORAGE_B"]


@pytest.mark.parametrize("default", ["much", "5Furlongs", "-1Gi", "1G", ""])
def test_what_is_no_amount_in_bytes_has_no_parts(default):
    variables = variables_of({"STORAGE": "1Gi"}, {}, (), {"USER_MEMORY": default})

    with pytest.raises(UnknownVariable) as unknown:
        fill("{{USER_MEMORY_VAL}}", variables)
    assert "USER_MEMORY_VAL" == str(unknown.value)


def test_a_value_is_not_searched_for_variables():
    variables = variables_of(ASKED, {"task_name": "{{WF_ID}}", **LABELS}, (), {})

    assert "{{WF_ID}}" == fill("{{WF_TASK_NAME}}", variables)


def test_a_variable_that_there_is_not_is_named():
    with pytest.raises(UnknownVariable) as unknown:
        fill({"a": "{{USER_COLOUR}}"}, VARIABLES)
    assert "USER_COLOUR" == str(unknown.value)


@pytest.mark.parametrize(
    "written",
    [
        "{{ USER_CPU | int }}",
        "{{ 1 + 1 }}",
        "{% for i in range(9) %}x{% endfor %}",
        "{% if USER_CPU %}x{% endif %}",
        "{% if USER_CPU > 2 %}x",
        "{# a comment #}",
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(written):
    (fault,) = faults({"spec": {"containers": [{"name": written}]}})
    assert fault.startswith(f".spec.containers[0].name: {written!r} is not understood; write {{{{")


@given(st.integers(0, 2**62))
def test_an_amount_is_written_in_a_unit_and_is_the_same_amount(amount):
    units = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4}
    text = quantity(amount)
    number, unit = (text[:-2], text[-2:]) if text[-2:] in units else (text, "")
    assert amount == int(number) * 1024 ** units.get(unit, 0)


@given(st.text(max_size=40))
def test_whatever_is_written_is_refused_or_filled_and_never_an_error(text):
    if not list(faults(text)):
        try:
            fill(text, VARIABLES)
        except UnknownVariable:
            assert "{" in text
