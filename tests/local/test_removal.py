"""What tasks left behind is removed, whatever they did to prevent it."""

from __future__ import annotations

import os
from pathlib import Path

from bough.backends.local.data.copying import copy_files
from bough.backends.local.data.removal import remove
from bough.backends.local.preparation.prepare_task import clean_up
from bough.backends.local.task_command import Copy


def make_deep(folder: Path, depth: int = 3_000) -> None:
    """Folders within folders, deeper than a path can say, with a file in each hundredth."""
    here = os.open(folder, os.O_RDONLY)
    for number in range(depth):
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
        if number % 100 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_folders_of_any_depth_are_removed(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "tmp").mkdir()
    for name in ("work", "tmp"):
        make_deep(tmp_path / name)
    (tmp_path / "view" / "wide" / "wider").mkdir(parents=True)

    clean_up(tmp_path)

    assert [] == list(tmp_path.iterdir())


def test_results_of_any_depth_are_replaced(tmp_path):
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        make_deep(tmp_path / name)
        copy_files(Copy(str(tmp_path / name), str(tmp_path / "results" / "task"), move=True))

    assert ["task"] == [each.name for each in (tmp_path / "results").iterdir()]
    remove(tmp_path / "results")


def test_folders_that_cannot_be_listed_or_changed_are_removed(tmp_path):
    inner = tmp_path / "gone" / "closed" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").write_text("")
    (inner / "file").chmod(0)
    for each in (inner, inner.parent, inner.parent.parent):
        each.chmod(0)

    remove(tmp_path / "gone")

    assert [] == list(tmp_path.iterdir())


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path):
    kept = tmp_path / "kept"
    (kept / "closed").mkdir(parents=True)
    (kept / "closed").chmod(0o500)
    (tmp_path / "folder").mkdir()
    for link in (tmp_path / "work", tmp_path / "folder" / "link"):
        link.symlink_to(kept)

    clean_up(tmp_path)
    remove(tmp_path / "folder")

    assert [kept] == list(tmp_path.iterdir())
    assert 0o500 == (kept / "closed").stat().st_mode & 0o777


def test_what_is_gone_already_is_no_error(tmp_path):
    remove(tmp_path / "nothing")
    remove(tmp_path / "nothing" / "below")
