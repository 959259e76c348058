from __future__ import annotations

import pytest

from bough.errors import Invalid
from bough.formats.workflow.templates import (
    is_template,
    read_template,
    read_variables,
    without_placeholders,
)


@pytest.mark.parametrize(
    "text",
    [
        "{{ x }}",
        "{% if x %}{% endif %}",
        "{# only a comment #}",
        "workflow: {}\ndefault-values: {}",
        '"default-values": {a: 1}',
        "{{output}} {{ outputs }}",
        "{{input}}",
        "{{ host }}",
    ],
)
def test_what_has_something_to_render_is_a_template(text: str):
    assert is_template(text)


@pytest.mark.parametrize(
    "text",
    [
        "workflow: {name: x}",
        "{{output}} {{ output }} {{input:0}} {{ input : 12 }} {{host:worker_1}} {{ workflow_id }}",
        "# default-values are elsewhere",
        "  default-values: {}",
        "echo ${#name} ${#list[@]} ${#@}",
        "default-values-of: x",
    ],
)
def test_what_tasks_fill_in_is_no_template(text: str):
    assert not is_template(text)


@pytest.mark.parametrize(
    ("text", "values", "rest"),
    [
        ("a: 1\ndefault-values: {b: 2}\n", {"b": 2}, "a: 1\n"),
        ("default-values:\n  b: 2\n\n  c: x\na: 1", {"b": 2, "c": "x"}, "a: 1"),
        ("default-values: {\n  b: 2\n}\na: 1", {"b": 2}, "a: 1"),
        ("default-values: {b: 2}\n{% set x = 1 %}", {"b": 2}, "{% set x = 1 %}"),
        ("default-values: {b: 2}\n---\na: 1", {"b": 2}, "---\na: 1"),
        ("default-values:\na: 1", {}, "a: 1"),
        ("default-values:\n# nothing\n", {}, ""),
        ("'default-values' : {b: [1, 2.5, no, ~]}", {"b": [1, 2.5, "no", None]}, ""),
        ("{# \ndefault-values: 1\n#}\n{{ b }}", {}, "{# \ndefault-values: 1\n#}\n{{ b }}"),
        (
            "{% raw %}\ndefault-values: 1\n{% endraw %}",
            {},
            "{% raw %}\ndefault-values: 1\n{% endraw %}",
        ),
        ("a: ${#x}\ndefault-values: {b: 1}\nc: '#}'", {"b": 1}, None),
        ("default-values: {b: '{{output}}/x'}", {"b": "{{output}}/x"}, ""),
    ],
)  # fmt: skip
def test_default_values_are_found_where_they_stand(text, values, rest):
    template = read_template(text, {})

    assert values == template.values
    assert rest is None or rest == template.text


def test_variables_come_on_top_of_default_values():
    template = read_template("default-values: {a: 1, b: 2}", {"b": "x", "c": None})

    assert {"a": 1, "b": "x", "c": None} == template.values


def test_what_tasks_fill_in_survives():
    text = "{{output}} {{ x }} {{ host:a }} ${#y}"
    template = read_template(text, {})

    assert "output" not in template.text
    assert "host" not in template.text
    assert text == template.restore(template.text, 1_000)


def test_characters_that_look_like_marks_stay_what_they_are():
    text = "\ue0000\ue000 {{output}} {{ x }}"
    template = read_template(text, {})

    assert text == template.restore(template.text, 1_000)
    assert f"{template.mark}7{template.mark}" == template.restore(
        f"{template.mark}7{template.mark}", 1_000
    )


def test_what_is_long_and_comes_again_and_again_is_refused_before_it_is_there():
    template = read_template(f"{{% for i in x %}}{{{{host:{'a' * 1_000}}}}}{{% endfor %}}", {})
    mark = f"{template.mark}0{template.mark}"

    assert 100 * 1_009 == len(template.restore(100 * mark, 100 * 1_009))
    with pytest.raises(Invalid, match="gives more than 4,000,000 characters"):
        template.restore(1_000_000 * mark, 4_000_000)


@pytest.mark.parametrize("blank", ["\xa0", "\u3000", "\x85", "\u2028"])
def test_a_blank_that_yaml_does_not_know_begins_no_defaults(blank: str):
    """As it is pasted from elsewhere; a name of a field ends only before blanks of YAML."""
    assert {} == read_template(f"default-values:{blank}{{a: 1}}\n", {}).values
    assert not is_template(f"default-values:{blank}")


def test_lines_are_those_of_the_template():
    template = read_template("a: 1\ndefault-values:\n  b: 2\n\nc: 3\n", {})

    assert [1, 5, 6] == [template.line(number) for number in (1, 2, 3)]
    assert 4 == read_template("{{ x }}", {}).line(4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("default-values: {a: 1}\ndefault-values: {b: 1}", "twice, again on line 2"),
        ("x: 1\ndefault-values: {a: [}", "default-values on line 2: no valid YAML"),
        ("default-values: 5", "must be a mapping"),
        ("default-values: {workflow_id: 5}", "'workflow_id' cannot be set"),
    ],
)
def test_wrong_default_values_are_refused(text, message):
    with pytest.raises(Invalid, match=message):
        read_template(text, {})


def test_of_a_default_value_that_stands_twice_the_last_one_counts():
    found = read_template("x: 1\ndefault-values:\n  a: 1\n  a: 2\n", {})

    assert {"a": 2} == found.values
    warning = '["default-values"].a: stands here twice, on lines 3 and 4; the last one counts.'
    assert (warning,) == found.warnings


def test_variables_are_typed_as_yaml_types_them_unless_they_are_text():
    pairs = ["a=4", "b=0.5", "c=true", "d=", "e=x=y", "f=yes", "g=0123"]

    assert {
        "a": 4, "b": 0.5, "c": True, "d": None, "e": "x=y", "f": "yes", "g": "0123",
    } == read_variables(pairs, [])  # fmt: skip
    assert {"a": "4", "b": ""} == read_variables(["a=5"], ["a=4", "b="])


@pytest.mark.parametrize("pair", ["", "a", "=1", "a-b=1", "a b=1", "1=1"])
def test_a_variable_has_a_name(pair: str):
    with pytest.raises(Invalid, match="--set-string must be like name=value"):
        read_variables([], [pair])


def test_what_tasks_fill_in_can_be_left_out():
    assert "s3://x/x/{{ y }}" == without_placeholders("s3://{{ workflow_id }}/{{output}}/{{ y }}")
