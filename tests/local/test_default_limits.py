"""Memory and disk of tasks that ask for none, and what becomes of a task that takes more disk."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from bough.backends.local.attempt_folder import Folders, folder_name
from bough.backends.local.data.disk_usage import DEEPEST, Measuring
from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox.cgroup_mounts import MEMORY
from bough.backends.local.sandbox.limits import Cgroup, choose_limits
from bough.model.backend import Sight
from bough.model.pool import DefaultLimits, OfferedNode
from tests.local.bench import Bench

MEBIBYTE, GIBIBYTE = 2**20, 2**30


def test_a_task_that_asks_for_none_gets_its_part_of_the_node_by_its_gpus():
    node = OfferedNode("a", gpus=8, memory_bytes=64 * GIBIBYTE, storage_bytes=801 * GIBIBYTE)

    one = DefaultLimits(8 * GIBIBYTE, 801 * GIBIBYTE // 8 // MEBIBYTE * MEBIBYTE)
    assert one == node.default_limits(0) == node.default_limits(1)
    assert 24 * GIBIBYTE == node.default_limits(3).memory_bytes
    assert DefaultLimits(64 * GIBIBYTE, 801 * GIBIBYTE) == node.default_limits(8)
    without = OfferedNode("b", memory_bytes=4 * GIBIBYTE, storage_bytes=10 * MEBIBYTE)
    assert DefaultLimits(4 * GIBIBYTE, 10 * MEBIBYTE) == without.default_limits(0)
    many = OfferedNode("c", gpus=1_000, memory_bytes=16 * GIBIBYTE)
    assert DefaultLimits(GIBIBYTE, 0) == many.default_limits(1)


def test_the_kernel_holds_a_task_to_its_part_of_the_memory(tmp_path):
    _, warnings = choose_limits(LocalOptions(tmp_path / "trial"))
    if warnings and os.environ.get("CI") != "true":
        pytest.skip(f"CONTROL GROUPS CANNOT BE USED HERE: {warnings}")
    bench = Bench(tmp_path, limits=True, memory_bytes=32 * GIBIBYTE, gpus=16)
    try:
        attempts = [bench.run_shell("sleep 1000", gpus=gpus) for gpus in (0, 2)]
        attempts.append(bench.run_shell("sleep 1000", memory_bytes=300 * MEBIBYTE))
        for each in attempts:
            bench.wait_running(each)

        assert [2 * GIBIBYTE, 4 * GIBIBYTE, 300 * MEBIBYTE] == [
            memory_limit(bench, each) for each in attempts
        ]
    finally:
        bench.end()


def memory_limit(bench: Bench, attempt: str) -> int:
    folder = Folders(bench.options.folder).of(folder_name(attempt))
    group = msgspec.json.decode(folder.group.read_bytes(), type=Cgroup)
    for name in ("memory.max", "memory.limit_in_bytes"):
        path = Path(group.folders[MEMORY], name)
        if path.exists():
            return int(path.read_text())
    raise AssertionError(group)


@pytest.mark.parametrize("private", [True, False])
def test_a_task_that_takes_more_disk_than_it_may_is_killed_and_its_neighbour_is_not(
    tmp_path, private
):
    bench = Bench(tmp_path, limits=True, private=private)
    try:
        fill = "head -c 8388608 /dev/zero > {}/file; echo written; sleep 1000"
        neighbour = bench.run_shell(fill.format("."), storage_bytes=16 * MEBIBYTE)
        greedy = bench.run_shell(fill.format("$TMPDIR"), storage_bytes=4 * MEBIBYTE)

        seen = bench.wait_over(greedy)

        assert (Sight.ENDED, 137) == (seen.sight, seen.exit_code)
        assert "It used more disk than it may (4 MiB), and was killed." == seen.message
        # Its folder may have been measured before it had written everything.
        assert bench.texts(greedy) in ([], ["written"])
        assert Sight.RUNNING is bench.wait_running(neighbour).sight
    finally:
        bench.end()


def test_disk_is_measured_in_steps_without_following_links_and_counts_a_file_once(tmp_path):
    for number in range(2_000):
        (tmp_path / f"small{number}").touch()
    (tmp_path / "below" / "deeper").mkdir(parents=True)
    (tmp_path / "below" / "deeper" / "large").write_bytes(b"x" * 3 * MEBIBYTE)
    os.link(tmp_path / "below" / "deeper" / "large", tmp_path / "again")
    (tmp_path / "out").symlink_to("/usr")
    (tmp_path / "gone").symlink_to("nowhere")

    measuring = Measuring((tmp_path, tmp_path / "not there"))
    steps = 1
    while not measuring.go_on():
        steps += 1

    assert steps >= 4
    assert 3 * MEBIBYTE <= measuring.used_bytes < 4 * MEBIBYTE
    assert not measuring.too_deep
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(DEEPEST + 2):
        os.mkdir("deep", dir_fd=folder)
        below = os.open("deep", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    open_before = len(os.listdir("/proc/self/fd"))
    measuring = Measuring((tmp_path,))
    while not measuring.go_on():
        pass
    assert measuring.too_deep
    assert open_before == len(os.listdir("/proc/self/fd"))
