"""Finished workflows in a file: written, checked, dropped on the server; and what goes wrong."""

from __future__ import annotations

import gzip
import json
import resource
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.served import PROGRAM, Served, serving


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory):
    """A server with a workflow that runs and two that have ended."""
    with serving(tmp_path_factory.mktemp("site")) as served:
        served.done("pool", "create", "team", "--quota", "60")
        for _ in range(2):
            name = served.run("team", 5, "NORMAL")
            served.done("workflow", "cancel", name)
            served.until(lambda name=name: served.status(name) == "FAILED_CANCELED")
        served.run("team", 5, "NORMAL")
        yield served


def lines(path: Path) -> list[dict[str, Any]]:
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt") as file:
        return [json.loads(line) for line in file]


def test_finished_workflows_are_written_to_a_file_that_can_be_checked(site: Served, tmp_path: Path):
    for name in ("plain.jsonl", "packed.jsonl.gz"):
        path = tmp_path / name
        written = site.json("history", "export", str(path), "--until", "0s")
        assert (2, 0) == (written["workflows"], written["dropped"])
        head, first, second, end = lines(path)
        assert "bough history" == head["kind"]
        assert ["job-1", "job-2"] == [each["workflow"]["workflow_id"] for each in (first, second)]
        assert "sleep" in str(first["spec"])
        assert {"workflow", "spec", "template", "groups", "tasks", "events"} == set(first)
        assert 2 == end["workflows"]
        assert 0o600 == path.stat().st_mode & 0o777
        assert written == site.json("history", "check", str(path))
        assert "2 workflows" in site.done("history", "check", str(path))


def test_a_file_that_was_changed_or_cut_off_is_refused(site: Served, tmp_path: Path):
    path = tmp_path / "history.jsonl"
    site.done("history", "export", str(path), "--until", "0s")
    whole = path.read_text()
    for text, said in (
        (whole.replace("job-1", "job-7"), "its checksum is wrong"),
        (whole[: len(whole) // 2], "its end is missing"),
        ("", "it is empty"),
        ("{}\n", "is no history of Bough"),
        (whole.replace('"form":1', '"form":2'), "reads form 1"),
    ):
        path.write_text(text)
        ended = site.osmo("history", "check", str(path))
        assert (2, True) == (ended.code, said in ended.errors), ended
    exists = site.osmo("history", "export", str(path), "--until", "0s", "--drop")
    assert (2, True) == (exists.code, "exists; name another file" in exists.errors)


def test_a_full_disk_leaves_no_file_and_drops_nothing(site: Served, tmp_path: Path):
    path = tmp_path / "history.jsonl"
    done = subprocess.run(
        [str(PROGRAM), "history", "export", str(path), "--until", "0s", "--drop"],
        # A limit on the size of files would also cut the bytecode that Python keeps for later.
        env={**site._environment, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
    )
    assert 0 != done.returncode
    assert f"{path} cannot be written: File too large." in done.stderr
    assert [] == list(tmp_path.iterdir())
    assert "FAILED_CANCELED" == site.status("job-1")


def test_what_is_dropped_is_in_the_file_alone_and_its_gpu_hours_stay(site: Served, tmp_path: Path):
    used = site.json("usage", "--until", "0s")["total"]["guaranteed"]
    path = tmp_path / "history.jsonl"
    future = site.osmo("history", "export", str(path), "--until", "2999-01-01")
    assert (2, True) == (future.code, "until must not be in the future" in future.errors)
    wrong = site.osmo("history", "export", str(path), "--until", "soon")
    assert (2, True) == (wrong.code, "until must be a time" in wrong.errors)

    printed = site.done("history", "export", str(path), "--until", "0s", "--drop")

    assert "2 of them were dropped on the server." in printed
    gone = site.osmo("workflow", "query", "job-1")
    assert (2, True) == (gone.code, "job-1 was exported and dropped" in gone.errors)
    listed = site.json("workflow", "list", "--pool", "team")["workflows"]
    assert ["job-3"] == [each["name"] for each in listed]
    assert used <= site.json("usage", "--until", "0s")["total"]["guaranteed"]
    again = site.json("history", "export", str(tmp_path / "again"), "--until", "0s", "--drop")
    assert (0, 0, None) == (again["workflows"], again["dropped"], again["first"])
    (entry,) = site.json("audit", "list", "--subject", "history")["entries"]
    assert ("history:Drop", 2) == (entry["action"], entry["after"]["dropped"])
