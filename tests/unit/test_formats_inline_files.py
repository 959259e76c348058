from __future__ import annotations

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.control.workflows.specs import read_spec
from bough.errors import Invalid
from bough.formats.workflow.inline_files import inline_files
from bough.formats.yaml.composer import compose
from bough.tools.workflow_files import inline

ONE = """\
# a comment
workflow:
  name: x
  tasks:
  - name: a
    files:
    - {path: /opt/run.sh, localpath: run.sh}
    - {path: /opt/b, contents: "1e3"}
"""


def read_all(content: bytes) -> Any:
    return lambda _path: content


def contents(text: str) -> tuple[str, bool]:
    recipe = read_spec(text).groups[0].tasks[0].launch
    assert recipe is not None
    return recipe.files[0].contents, recipe.files[0].base64


def test_without_local_files_nothing_is_changed():
    text = "# as it is\nworkflow: {name: x, tasks: [{name: a, files: [{path: b, contents: c}]}]}"

    assert text == inline_files(text, read_all(b"never read")).text


def test_files_are_put_in_as_text():
    script = '#!/bin/sh\necho "it\'s" {{output}}\n  more: [é]\n'
    text = inline_files(ONE, read_all(script.encode())).text

    assert (script, False) == contents(text)
    assert "localpath" not in text
    assert "contents: |" in text


@pytest.mark.parametrize("content", [b"\xff\x00", b"a\0b", b"a\x07b", "a\u2028b".encode(), b"a\rb"])
def test_what_is_no_text_is_put_in_as_base64(content: bytes):
    assert (base64.b64encode(content).decode(), True) == contents(
        inline_files(ONE, read_all(content)).text
    )


@given(st.binary(max_size=200) | st.text(max_size=100).map(lambda text: text.encode()))
def test_every_file_arrives_as_it_is(content: bytes):
    found, encoded = contents(inline_files(ONE, read_all(content)).text)

    assert content == (base64.b64decode(found) if encoded else found.encode())


ODD = ["1e3", "yes", "0123", "~", "null", "12:30", "- a", "2026-01-01", "=", "<<", "a\x85b", "\ta",
       "a: b", "#", Decimal("0.50"), Decimal("1E+3")]  # fmt: skip


def _is_key(text: str) -> bool:
    return text != "<<"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(ODD),
        lambda values: st.lists(values, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=5).filter(_is_key), values, max_size=3),
        max_leaves=8,
    )
)  # fmt: skip
def test_everything_else_is_still_what_it_was(value: Any):
    text = _yaml(value)
    documents = [each for each, _ in compose(f"{ONE}extra: {text}\n", "x")]
    changed = [
        each for each, _ in compose(inline_files(f"{ONE}extra: {text}\n", read_all(b"")).text, "x")
    ]

    assert documents[0]["extra"] == changed[0]["extra"]  # type: ignore[index, call-overload]
    assert repr(documents[0]["extra"]) == repr(changed[0]["extra"])  # type: ignore[index, call-overload]


def _yaml(value: Any) -> str:
    """On one line, with every text in quotes."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(each):08x}" for each in value) + '"'
    return "null" if value is None else str(value)


def test_an_entry_that_is_used_twice_is_filled_once():
    text = (
        "workflow: {name: x, tasks: [{name: a, files: [&f {path: p, localpath: l}]},"
        " {name: b, files: [*f]}]}"
    )
    specs = read_spec(inline_files(text, read_all(b"hello")).text)

    assert ["hello", "hello"] == [
        group.tasks[0].launch and group.tasks[0].launch.files[0].contents for group in specs.groups
    ]


@pytest.mark.parametrize(
    "text",
    ["[]", "workflow: 5", "workflow: {tasks: {}}", "workflow: {tasks: [5, {files: [5]}]}", ""],
)
def test_what_is_no_workflow_is_left_to_others(text: str):
    assert text == inline_files(text, read_all(b"")).text


def test_files_are_found_from_the_folder_of_the_workflow(tmp_path: Path):
    (tmp_path / "run.sh").write_text("here")

    assert ("here", False) == contents(inline(ONE, str(tmp_path)).text)


def test_a_file_that_cannot_be_sent_is_named(tmp_path: Path):
    with pytest.raises(Invalid, match=r"localpath 'run.sh': there is no file .*/run.sh\."):
        inline(ONE, str(tmp_path))
    (tmp_path / "run.sh").mkdir()
    with pytest.raises(Invalid, match=r"run.sh is not a file"):
        inline(ONE, str(tmp_path))
    (tmp_path / "run.sh").rmdir()
    (tmp_path / "run.sh").write_bytes(b"x" * (3 << 20))
    with pytest.raises(Invalid, match=r"run.sh is larger than 2 MiB"):
        inline(ONE, str(tmp_path))
    (tmp_path / "run.sh").write_bytes(b"\xff" * (1 << 20))
    with pytest.raises(Invalid, match=r"has 1,048,576 bytes; a workflow can hold about 786,432"):
        inline(ONE, str(tmp_path))


def test_what_stands_twice_is_told_since_the_text_that_is_sent_does_not_show_it():
    text = ONE.replace("localpath:", "path: /opt/other, localpath:")

    assert "stands here twice" in " ".join(inline_files(text, read_all(b"")).warnings)
