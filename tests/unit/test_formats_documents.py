"""Files, folders and standard input into documents."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from bough.errors import NotFound
from bough.formats.yaml import documents
from bough.formats.yaml.composer import Unreadable
from bough.formats.yaml.documents import Document, find_files, line_of, locate, read_documents
from bough.model.problem import Problem


def write(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_a_folder_is_searched_in_the_order_of_names(tmp_path: Path):
    for name in ("b.yaml", "a.yml", "c/d.json", "c/.hidden.yaml", ".git/e.yaml", "readme.md"):
        write(tmp_path, name, "{}")
    found = [str(Path(file).relative_to(tmp_path)) for file in find_files([str(tmp_path)])]
    assert found == ["a.yml", "b.yaml", "c/d.json"]


def test_a_file_that_is_named_twice_is_read_once(tmp_path: Path):
    file = write(tmp_path, "a.yaml", "a: 1")
    assert len(read_documents([file, str(tmp_path), file])) == 1


def test_a_file_may_have_any_name_when_it_is_named_itself(tmp_path: Path):
    file = write(tmp_path, "objects.txt", "a: 1")
    assert [document.value for document in read_documents([file])] == [{"a": 1}]


def test_empty_documents_are_left_out(tmp_path: Path):
    file = write(tmp_path, "a.yaml", "---\n---\n# nothing\n---\na: 1\n---\n")
    assert [(each.value, each.line) for each in read_documents([file])] == [({"a": 1}, 5)]


def test_a_list_is_unrolled(tmp_path: Path):
    file = write(tmp_path, "a.yaml", "kind: List\nitems:\n- a: 1\n-\n  b: 2\n- null\n")
    assert [(each.value, each.line) for each in read_documents([file])] == [
        ({"a": 1}, 3),
        ({"b": 2}, 5),
        (None, 6),
    ]


def test_json_is_read(tmp_path: Path):
    file = write(tmp_path, "a.json", '{\n\t"a": [1, true, null, "x\\u00e9\\/"]\n}')
    assert [document.value for document in read_documents([file])] == [
        {"a": [1, True, None, "xé/"]}
    ]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path):
    file = write(tmp_path, "a.yaml", b"\xef\xbb\xbfa: 1\n")
    assert [document.value for document in read_documents([file])] == [{"a": 1}]


def test_standard_input_is_a_dash(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a: 1\n")))
    assert read_documents(["-"]) == [Document({"a": 1}, "<stdin>", 1)]


def test_a_missing_file_is_not_found(tmp_path: Path):
    with pytest.raises(NotFound, match=r"nowhere\.yaml: no such file or folder"):
        read_documents([str(tmp_path / "nowhere.yaml")])


def test_a_folder_without_yaml_is_not_found(tmp_path: Path):
    write(tmp_path, "readme.md", "hello")
    with pytest.raises(NotFound, match="the folder holds no YAML files") as caught:
        read_documents([str(tmp_path)])
    assert ".yaml" in caught.value.hint


def test_what_is_not_utf_8_is_refused_with_its_place(tmp_path: Path):
    file = write(tmp_path, "a.yaml", b"a: 1\nb: \xff\n")
    with pytest.raises(Unreadable, match=r"a\.yaml:2:4: not UTF-8: the byte 0xff"):
        read_documents([file])


def test_a_file_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(documents, "MAXIMUM_FILE_BYTES", 1 << 20)
    file = write(tmp_path, "a.yaml", b"#" * ((1 << 20) + 1))
    with pytest.raises(Unreadable, match="larger than 1 MiB, the limit"):
        read_documents([file])


def test_a_hundred_megabytes_of_nesting_are_refused(tmp_path: Path):
    path = tmp_path / "deep.yaml"
    path.write_bytes(b"[" * 1_000_000)
    os.truncate(path, 100_000_000)
    with pytest.raises(Unreadable, match="larger than 64 MiB, the limit"):
        read_documents([str(path)])


@pytest.mark.parametrize("opening", ["[", "- ", "{a: "])
def test_five_megabytes_of_nesting_are_refused(tmp_path: Path, opening: str):
    file = write(tmp_path, "deep.yaml", opening * (5_000_000 // len(opening)))
    with pytest.raises(Unreadable, match="nested more than 64 levels deep"):
        read_documents([file])


def test_a_path_that_no_system_can_have_is_refused():
    with pytest.raises(Unreadable, match="cannot be read"):
        read_documents(["a\0b.yaml"])


def test_the_line_of_a_field_is_that_of_its_key(tmp_path: Path):
    file = write(tmp_path, "a.yaml", "\na:\n  b:\n    - c: 1\n    -\n      c: 2\n")
    (document,) = read_documents([file])
    assert line_of(document, ("a", "b", 1, "c")) == 6
    assert line_of(document, ("a", "b", 0)) == 4
    assert line_of(document, ()) == 2


@pytest.mark.parametrize("path", [("a", "x", "y"), ("a", 3), ("a", "b", 9), ("a", "b", -1)])
def test_the_line_of_what_does_not_exist_is_that_of_the_nearest_above(
    tmp_path: Path, path: tuple[str | int, ...]
):
    file = write(tmp_path, "a.yaml", "# comment\na:\n  b: []\n")
    (document,) = read_documents([file])
    assert line_of(document, path) == (3 if path[1] == "b" else 2)


def test_a_problem_is_located_in_its_document(tmp_path: Path):
    file = write(tmp_path, "a.yaml", "a: 1\nb: 2\n")
    (document,) = read_documents([file])
    located = locate(Problem(("b",), "wrong"), document)
    assert (located.source, located.line, located.message) == (file, 2, "wrong")
