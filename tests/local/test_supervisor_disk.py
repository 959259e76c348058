"""The disk is full: ends are still written down, and what was lost of a log is said."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_MOUNT = 'mount -t tmpfs -o size=6m none "$1" && exec "$2" -m tests.local.full_disk "$1"'


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """What happened on a small disk of its own."""
    folder = tmp_path_factory.mktemp("disk")
    unshare = shutil.which("unshare")
    probe = 'mount -t tmpfs none "$1"'
    command = (unshare or "unshare", "--mount", "sh", "-c")
    allowed = unshare is not None and not subprocess.call(
        (*command, probe, "sh", str(folder)), stderr=subprocess.DEVNULL
    )
    if not allowed:
        assert os.environ.get("CI") != "true", "no disk can be mounted on this machine"
        pytest.skip("NOT TESTED: no disk can be mounted on this machine, so none can be full")
    done = subprocess.run(
        (*command, _MOUNT, "sh", str(folder), sys.executable),
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def test_the_end_of_a_task_is_written_down(told: dict[str, object]) -> None:
    assert ["ended", 4] == told["exit"]


def test_the_log_has_what_could_be_written_and_says_what_was_lost(told: dict[str, object]) -> None:
    lines = told["lines"]
    assert isinstance(lines, list)
    assert "before" == lines[0]
    lost = [re.fullmatch(r"\[(\d+) lines? (?:was|were) lost here\].*", each) for each in lines]
    counts = [int(each[1]) for each in lost if each is not None]
    assert counts
    assert 3_001 == len(lines) - len(counts) + sum(counts)


def test_a_stop_works(told: dict[str, object]) -> None:
    assert ["ended", 137, []] == told["stopped"]


def test_nothing_new_is_taken_on_and_it_is_said_why(told: dict[str, object]) -> None:
    assert "No space left on device" == told["refused"]


def test_it_can_be_started_when_there_is_room_again(told: dict[str, object]) -> None:
    assert ["ended", ["third"]] == told["again"]


def test_the_end_can_be_forgotten(told: dict[str, object]) -> None:
    assert told["forgotten"] is True


def test_what_cannot_be_made_ready_is_lost_and_not_at_fault(told: dict[str, object]) -> None:
    large = told["large"]
    assert isinstance(large, list)
    assert "lost" == large[0]
    assert large[1].endswith("No space left on device")


def test_it_is_not_begun_while_there_is_little_room_and_it_is_said_why(
    told: dict[str, object],
) -> None:
    text = "The disk of the machine is full: tasks are started when there is room again."
    assert ["starting", text, "ended"] == told["tight"]


def test_the_servers_log_says_once_that_it_waits_for_room(told: dict[str, object]) -> None:
    lines = told["warnings"]
    assert isinstance(lines, list)
    assert ["The disk of the machine is full", "There is room on the disk again"] == [
        each.partition(":")[0] for each in lines
    ]
