"""What tasks left behind, downloaded over HTTP: whole, resumed, and for those who may have it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.client.downloads import UNFINISHED, Download, DownloadProgress
from bough.errors import Invalid
from tests.e2e.local import Local, job, serving_locally, task
from tests.e2e.served import PATIENCE_S, PROGRAM

#: More than two parts of what is sent at once.
LARGE = 9 << 20


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with serving_locally(tmp_path_factory.mktemp("download"), 2) as local:
        local.pool("p", 2)
        yield local


@pytest.fixture(scope="module")
def done(host: Local) -> str:
    """A workflow of two tasks that have left something."""
    large = f"head -c {LARGE} /dev/urandom > {{{{output}}}}/large"
    script = "mkdir -p {{output}}/deep/er; echo one > {{output}}/deep/er/one"
    workflow = {
        "name": "made",
        "tasks": [
            task("main", f"{script}; {large}; ln -s /etc/passwd {{{{output}}}}/link"),
            task("small", "echo two > {{output}}/two"),
        ],
    }
    name = host.send("p", "NORMAL", workflow)
    host.over(name)
    assert "COMPLETED" == host.status(name), host.shown(name)
    return name


def download(host: Local, *arguments: str, token: str | None = None) -> tuple[int, str, str]:
    environment = dict(host.environment)
    if token is not None:
        environment["BOUGH_TOKEN"] = token
    ended = subprocess.run(
        [PROGRAM, "workflow", "download", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def kept(host: Local, name: str, path: str) -> bytes:
    """What the server has."""
    return (host.folder / "data" / "local" / "results" / name / path).read_bytes()


def files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


def test_all_results_come_each_task_in_its_folder(host: Local, done: str, tmp_path: Path):
    code, output, errors = download(host, done, "-o", str(tmp_path), "-t", "json")

    assert 0 == code, errors
    told = json.loads(output)
    assert (3, LARGE + 8, 0, 1) == tuple(
        told[each] for each in ("files", "bytes", "unchanged", "left_out")
    )
    assert ["main/deep/er/one", "main/large", "small/two"] == files(tmp_path)
    assert kept(host, done, "main/large") == (tmp_path / "main" / "large").read_bytes()
    # A second time nothing is sent.
    _, output, _ = download(host, done, "-o", str(tmp_path), "-t", "json")
    assert (0, 3) == tuple(json.loads(output)[each] for each in ("files", "unchanged"))


def test_one_task_or_one_path_of_it(host: Local, done: str, tmp_path: Path):
    assert 0 == download(host, done, "small", "-o", str(tmp_path / "s"))[0]
    assert 0 == download(host, done, "main", "deep/", "-o", str(tmp_path / "d"))[0]

    assert ["two"] == files(tmp_path / "s")
    assert ["deep/er/one"] == files(tmp_path / "d")


class _CutOff(Exception):
    """Ends a download in the middle."""


def test_a_download_that_was_cut_off_goes_on_where_it_ended(host: Local, done: str, tmp_path: Path):
    def cut(progress: DownloadProgress) -> None:
        if progress.bytes:
            raise _CutOff

    workflows = host.client.workflows
    with pytest.raises(_CutOff):
        Download(workflows, done, tmp_path, tell=cut).fetch("main", "large")
    (left,) = files(tmp_path)
    assert left.startswith(UNFINISHED)
    already = (tmp_path / left).stat().st_size
    assert 0 < already < LARGE

    seen: list[int] = []
    Download(workflows, done, tmp_path, tell=lambda progress: seen.append(progress.bytes)).fetch(
        "main", "large"
    )
    assert already == seen[0]
    assert ["large"] == files(tmp_path)
    assert kept(host, done, "main/large") == (tmp_path / "large").read_bytes()


def test_another_file_in_its_place_stays_unless_it_may_be_replaced(
    host: Local, done: str, tmp_path: Path
):
    (tmp_path / "two").write_text("mine")
    code, _, errors = download(host, done, "small", "-o", str(tmp_path))

    assert (2, "mine") == (code, (tmp_path / "two").read_text())
    assert "already exists" in errors
    assert "--overwrite" in errors
    ended = download(host, done, "small", "-o", str(tmp_path), "--overwrite")
    assert 0 == ended[0], ended
    assert "two\n" == (tmp_path / "two").read_text()


def test_nothing_is_written_through_a_link(host: Local, done: str, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "deep").symlink_to(tmp_path / "outside")

    with pytest.raises(Invalid, match="is a link"):
        Download(host.client.workflows, done, tmp_path / "here").fetch("main", "deep")
    assert [] == files(tmp_path / "outside")


@pytest.mark.parametrize(
    "path", ["../small/two", "/etc/passwd", "link", "deep/../large", "none", "a\nb", "x" * 300]
)
def test_only_what_a_task_left_can_be_read(host: Local, done: str, path: str):
    with pytest.raises(Exception, match=r"not the path of a result|has left no file"):
        host.client.workflows.result_part(done, "main", path)


def test_what_is_wrong_is_said(host: Local, done: str, tmp_path: Path):
    folder = ("-o", str(tmp_path))
    assert "has no task other" in download(host, done, "other", *folder)[2]
    assert "has left nothing at nowhere" in download(host, done, "main", "nowhere", *folder)[2]
    running = host.run("p", 1, "NORMAL")
    assert "is RUNNING; its results are there when" in download(host, running, "main", *folder)[2]
    assert "No task of" in download(host, running, *folder)[2]
    host.finish(running)
    failed = host.send("p", "NORMAL", job(0, script="echo x > {{output}}/x; exit 3"))
    host.over(failed)
    assert "Nothing is kept of what Task main" in download(host, failed, "main", *folder)[2]
    assert [] == files(tmp_path)


def test_a_user_of_another_pool_gets_nothing(host: Local, done: str, tmp_path: Path):
    host.pool("q", 0)
    host.client.users.create("eve", roles=["osmo-q-user"])
    token = host.client.tokens.create("eves", expires_at="2090-01-01", user="eve")
    code, _, errors = download(host, done, "small", "-o", str(tmp_path), token=token)

    assert (2, "access denied") == (code, errors.splitlines()[0].removeprefix("error: "))
    assert [] == files(tmp_path)
