from __future__ import annotations

from pathlib import Path

import pytest

from bough.control.fair_turns import FairTurns
from bough.control.workflows import rendering
from bough.control.workflows.rendering import render
from bough.errors import Invalid, Unavailable

TEMPLATE = """\
workflow:
  name: {{ name }}
  tasks:
{%- for number in range(count) %}
  - {name: "t{{ number }}", args: ["{{input:0}}", "${#x}", "{{ ratio * 2 }}", "{{ place }}"]}
{%- endfor %}
default-values: {name: x, count: 2, ratio: 0.25, place: "{{output}}/y"}
"""
RENDERED = """\
workflow:
  name: x
  tasks:
  - {name: "t0", args: ["{{input:0}}", "${#x}", "0.5", "{{output}}/y"]}
  - {name: "t1", args: ["{{input:0}}", "${#x}", "0.5", "{{output}}/y"]}
"""


def test_a_template_is_rendered_with_its_default_values():
    rendered = render(TEMPLATE)

    assert (RENDERED, TEMPLATE, ()) == (rendered.text, rendered.template, rendered.warnings)


def test_what_is_set_comes_first():
    text = render(TEMPLATE, ["count=1", "name=4"], ["ratio=ab"]).text

    assert "name: 4" in text
    assert '"abab"' in text
    assert "t1" not in text


def test_what_was_rendered_is_rendered_no_more():
    rendered = render(RENDERED)

    assert (RENDERED, None) == (rendered.text, rendered.template)


def test_raw_text_stays():
    assert "{{ x }} {%" == render("{% raw %}{{ x }} {%{% endraw %}").text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{{ missing }}", 1),
        ("default-values:\n  a: 1\nx: 2\ny: {{ missing }}", 4),
        ("x: 1\n{% for i in [1] %}\n{{ missing }}{% endfor %}\ndefault-values: {a: 1}", 3),
        ("{% macro m() %}\n{{ missing.x }}\n{% endmacro %}\n\n{{ m() }}", 2),
    ],
)
def test_a_variable_that_is_not_set_is_named_with_its_line(text: str, line: int):
    with pytest.raises(Invalid) as caught:
        render(text)

    message = f"The template cannot be rendered: line {line}: the variable 'missing' is not set."
    assert message == caught.value.message
    assert "--set missing=VALUE" in caught.value.hint


def test_filters_that_import_something_late_work_once_everything_is_given_up():
    text = "{{ x|striptags }} {{ x|pprint }} {{ x|wordwrap(2) }} {{ x|urlize }} {{ x|tojson }}"

    rendered = render(f"{{% set x = '<b>x' %}}{text}").text
    assert "x '<b>x' <b\n>x &lt;b&gt;x \"\\u003cb\\u003ex\"" == rendered


def test_what_is_said_about_files_of_the_machine_is_not_told():
    with pytest.raises(Invalid, match="line 1: it needs something that a template cannot have"):
        render("{{ 'x'.encode('no-such-encoding') }}")


def test_nothing_random_is_in_a_template():
    for text in ("{{ [1, 2]|random }}", "{{ lipsum() }}"):
        with pytest.raises(Invalid):
            render(text)


def test_the_renderer_has_nothing_of_the_servers_environment(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")

    assert "1" == render("{{ 1 }}").text


def test_a_machine_that_is_too_busy_is_not_the_templates_fault(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(rendering, "WALL_S", 0.001)
    with pytest.raises(Unavailable):
        render("{{ 1 }}")

    monkeypatch.setattr(rendering, "WAIT_S", 0.001)
    monkeypatch.setattr(rendering, "_TURNS", FairTurns(0, 0, "Too many templates."))
    with pytest.raises(Unavailable, match="Too many"):
        render("{{ 1 }}")


@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        ("raise SystemExit(1)", Unavailable, "the renderer failed"),
        ("print('no answer')", Unavailable, "the renderer failed"),
        ("raise SystemExit(3)", Invalid, "too much memory"),
        ("import os; os.kill(os.getpid(), 11)", Invalid, "too much memory"),
        ("import os; os.kill(os.getpid(), 9)", Invalid, "longer than 2 seconds"),
        ("""print('{"text": "\\\\ud800"}')""", Invalid, "half of a surrogate pair"),
    ],
)
def test_a_renderer_that_ends_badly_is_told_apart(
    program: str,
    kind: type[Exception],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
):
    (tmp_path / "renderer.py").write_text(program)
    monkeypatch.setattr(rendering, "_RENDERER", tmp_path / "renderer.py")
    with pytest.raises(kind, match=message):
        render("{{ 1 }}")
