"""What is left out of an upload is what git would leave out."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bough.client.uploads import find_files
from bough.server.data_folder import write_secret
from bough.server.server_key import ServerKey

GIT = shutil.which("git") or "git"
_FILES = ("a", "b.log", "c/a", "c/b.log", "c/d/a", "c/d/e.log", "d/a", "x y", "[z]", "#h", "!n")
_PATTERNS = st.sampled_from(
    [
        *(
            "a",
            "/a",
            "*.log",
            "c/",
            "/c",
            "c/d",
            "**/a",
            "c/**",
            "c/**/a",
            "**/d/**",
            "!a",
            "!/c/a",
        ),
        *("!*.log", "!c/", "x\\ y", "x y ", "[z]", "\\#h", "\\!n", "#h", "[a-b]*", "?", "*", "!*/"),
        *("d", "**", "/**/a", "[!a]", "c/*/a", "", "  ", "/", "e.log/", "*.lo[fg]"),
    ]
)


def kept_by_git(folder: Path) -> list[str]:
    subprocess.run([GIT, "init", "-q"], cwd=folder, check=True)
    listed = [
        GIT,
        "-c",
        "core.quotepath=off",
        "ls-files",
        "-z",
        "-co",
        "--exclude-per-directory=.gitignore",
    ]
    found = subprocess.run(listed, cwd=folder, check=True, capture_output=True, text=True).stdout
    return sorted(filter(None, found.split("\0")))


@settings(max_examples=40, deadline=None)
@given(st.lists(_PATTERNS, max_size=4), st.lists(_PATTERNS, max_size=2))
def test_a_folder_is_uploaded_as_git_sees_it(
    tmp_path_factory: pytest.TempPathFactory, top: list[str], below: list[str]
):
    folder = tmp_path_factory.mktemp("tree")
    for each in _FILES:
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text(each)
    (folder / ".gitignore").write_text("\n".join(top) + "\n")
    (folder / "c" / ".gitignore").write_text("\n".join(below) + "\n")
    expected = kept_by_git(folder)

    found = find_files(folder, respect_ignored=True)

    assert expected == sorted(each.path for each in found.files)


def test_the_folder_of_git_is_never_uploaded_and_links_are_counted(tmp_path: Path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("x")
    (tmp_path / "a").write_text("a")
    (tmp_path / "link").symlink_to("a")

    found = find_files(tmp_path, respect_ignored=True)

    assert (["a"], 1) == ([each.path for each in found.files], found.left_out)


@pytest.mark.parametrize("respect_ignored", [True, False])
def test_the_data_folder_of_a_server_is_never_uploaded(tmp_path: Path, respect_ignored: bool):
    data = tmp_path / "deep" / "data"
    (data / "local").mkdir(parents=True)
    ServerKey.of(data)
    write_secret(data / "admin-token", "secret")
    (data / "local" / "log").write_text("x")
    (tmp_path / "deep" / "a").write_text("a")
    # A key of that name alone is a project's own.
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "server-key").write_text("x")

    found = find_files(tmp_path, respect_ignored=respect_ignored)

    assert ["deep/a", "keys/server-key"] == [each.path for each in found.files]
    assert (data,) == found.data_folders
