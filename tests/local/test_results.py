"""Reading what tasks left behind: every file once, in order, and nothing through a link."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.local.data.locations import results_folder
from bough.backends.local.data.results import LocalResults
from bough.backends.local.options import LocalOptions

NAMES = st.sampled_from(["a", "a-b", "a.b", "b", "B", "é", "z z"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(tuple)


def results(folder: Path, files: dict[str, bytes]) -> LocalResults:
    """The results of task `t` of `w-1`, with these files."""
    options = LocalOptions(folder)
    base = results_folder(options, "w-1", "t")
    base.mkdir(parents=True)
    for path, content in files.items():
        (base / path).parent.mkdir(parents=True, exist_ok=True)
        (base / path).write_bytes(content)
    return LocalResults(options)


@given(st.sets(PATHS, max_size=12), st.integers(1, 4))
def test_pages_have_every_file_once_and_in_order(paths: set[tuple[str, ...]], limit: int):
    # A name cannot be that of a file and of a folder.
    above = {path[:length] for path in paths for length in range(1, len(path))}
    files = sorted(path for path in paths if path not in above)
    with tempfile.TemporaryDirectory() as folder:
        kept = results(Path(folder), {"/".join(path): b"x" for path in files})
        found: list[tuple[str, ...]] = []
        more = True
        while more:
            page = kept.list_files("w-1", "t", found[-1] if found else (), limit)
            assert page is not None
            assert len(page.files) <= limit
            found += [tuple(each.path.split("/")) for each in page.files]
            more = page.more
    assert files == found


def test_nothing_is_kept_of_a_task_without_results(tmp_path: Path):
    kept = results(tmp_path, {"a": b"1"})

    assert None is kept.list_files("w-1", "other", (), 10)
    assert None is kept.read_part("w-1", "other", ("a",), 0, 10)


def test_a_file_is_read_part_by_part(tmp_path: Path):
    kept = results(tmp_path, {"d/a": b"0123456789"})
    parts = [kept.read_part("w-1", "t", ("d", "a"), offset, 4) for offset in (0, 4, 8, 12)]

    assert [b"0123", b"4567", b"89", b""] == [each and each.content for each in parts]
    assert {10} == {each.file.size_bytes for each in parts if each is not None}


def test_a_file_that_is_replaced_has_another_version(tmp_path: Path):
    kept = results(tmp_path, {"a": b"1"})
    first = kept.read_part("w-1", "t", ("a",), 0, 4)
    (tmp_path / "new").write_bytes(b"2")
    (tmp_path / "new").replace(results_folder(LocalOptions(tmp_path), "w-1", "t") / "a")
    second = kept.read_part("w-1", "t", ("a",), 0, 4)

    assert first is not None
    assert second is not None
    assert first.file.version != second.file.version


@pytest.mark.parametrize("target", ["/etc", "..", "inside"])
def test_links_are_neither_listed_nor_followed(tmp_path: Path, target: str):
    kept = results(tmp_path, {"inside/a": b"1"})
    base = results_folder(LocalOptions(tmp_path), "w-1", "t")
    (base / "folder").symlink_to(target)
    (base / "file").symlink_to("inside/a")
    os.mkfifo(base / "pipe")
    page = kept.list_files("w-1", "t", (), 10)

    assert page is not None
    assert (["inside/a"], 3) == ([each.path for each in page.files], page.left_out)
    for path in (("folder", "passwd"), ("folder", "a"), ("file",), ("pipe",), ("inside",)):
        assert None is kept.read_part("w-1", "t", path, 0, 10)
