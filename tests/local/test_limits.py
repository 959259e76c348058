"""CPU, memory and processes of tasks, bounded by the control groups of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.backends.local.options import LocalOptions
from bough.backends.local.sandbox import limits as limits_module
from bough.backends.local.sandbox.cgroup_mounts import (
    CPU,
    DEVICES,
    MEMORY,
    PIDS,
    UNIFIED,
    Hierarchy,
    find_hierarchies,
)
from bough.backends.local.sandbox.limits import (
    Cgroup,
    CgroupSetup,
    choose_limits,
    find_groups,
    make_group,
    most_processes,
    parent_name,
    plan_group,
)
from bough.backends.local.task_command import TaskLimits

MEBIBYTE = 2**20
#: Takes so much memory, says so, and waits for its end.
TAKE = """
import sys
taken = bytearray(int(sys.argv[1]))
print(len(taken), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def setup(tmp_path) -> Iterator[CgroupSetup]:
    found, warnings = choose_limits(LocalOptions(tmp_path))
    if found is None and os.environ.get("CI") != "true":
        pytest.skip(f"CONTROL GROUPS CANNOT BE USED HERE, so limits are not tested: {warnings}")
    assert found is not None, warnings
    try:
        yield found
    finally:
        for group in find_groups(found).values():
            group.kill()
            until = time.monotonic() + 30
            while not group.remove() and time.monotonic() < until:
                time.sleep(0.01)
        assert [] == [each for each in found.parents.values() if Path(each).exists()]


def open_group(setup: CgroupSetup, attempt: str, limits: TaskLimits) -> Cgroup:
    """Make the group of an attempt, as a supervisor does."""
    group = plan_group(setup, attempt)
    make_group(group, limits)
    return group


class Task:
    """A process in a group from its beginning, as a supervisor starts it."""

    def __init__(self, group: Cgroup, *argv: str) -> None:
        self.process = subprocess.Popen(
            ("/bin/sh", "-c", 'read go && exec "$@"', "sh", *argv),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        group.add(self.process.pid)
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        self.out, _ = self.process.communicate(timeout=60)
        return self.process.returncode


def take(group: Cgroup, size: int) -> Task:
    return Task(group, sys.executable, "-I", "-S", "-c", TAKE, str(size))


def test_a_task_over_its_memory_is_killed_and_no_other_is(setup):
    small = open_group(setup, "small/0", TaskLimits(memory_bytes=64 * MEBIBYTE))
    large = open_group(setup, "large/0", TaskLimits(memory_bytes=512 * MEBIBYTE))
    other = take(large, 128 * MEBIBYTE)
    assert str(128 * MEBIBYTE) == other.line()

    greedy = take(small, 128 * MEBIBYTE)

    assert (-signal.SIGKILL, True) == (greedy.end(), small.memory_killed())
    assert ((other.process.pid,), False) == (large.processes(), large.memory_killed())
    assert 0 == other.end()


def test_a_task_within_its_memory_that_is_killed_was_not_killed_by_it(setup):
    group = open_group(setup, "task/0", TaskLimits(memory_bytes=256 * MEBIBYTE))
    task = take(group, MEBIBYTE)
    task.line()

    task.process.kill()

    assert (-signal.SIGKILL, False) == (task.end(), group.memory_killed())


def test_a_task_gets_no_more_cpu_than_it_asked_for(setup):
    group = open_group(setup, "task/0", TaskLimits(cpu_milli=100))
    task = Task(group, "/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")

    assert 0 == task.end()

    told = dict(
        line.split() for line in Path(group.folders[CPU], "cpu.stat").read_text().splitlines()
    )
    assert int(told["nr_throttled"]) > 0


def test_a_task_has_no_more_processes_than_it_may(setup):
    group = open_group(setup, "task/0", TaskLimits(processes=20))
    script = "i=0; while [ $i -lt 40 ]; do sleep 600 >/dev/null 2>&1 & i=$((i+1)); echo $i; done"
    task = Task(group, "/bin/sh", "-c", script)

    assert (2, "19") == (task.end(), task.out.split()[-1])
    assert group.processes_refused()
    assert group.kill()


def test_what_starts_itself_again_and_again_is_killed(setup):
    group = open_group(setup, "task/0", TaskLimits(1_000, 256 * MEBIBYTE, 50))
    task = Task(
        group, "/bin/bash", "-c", "bomb() { bomb | bomb & }; bomb 2>/dev/null; echo; sleep 600"
    )
    task.line()

    assert group.kill()
    assert -signal.SIGKILL == task.end()
    assert () == group.processes()


def test_a_task_has_at_most_a_quarter_of_the_processes_that_there_can_be(tmp_path):
    (tmp_path / "own" / "task-a").mkdir(parents=True)
    (tmp_path / "own" / "task-a" / "pids.max").touch()
    (tmp_path / "own" / "pids.max").write_text("max\n")
    (tmp_path / "pids.max").write_text("400\n")
    setup = CgroupSetup({PIDS: str(tmp_path / "own")}, "bough-x")
    most = Path(open_group(setup, "a", TaskLimits(processes=2**40)).folders[PIDS], "pids.max")
    assert "100" == most.read_text()

    (tmp_path / "pids.max").write_text("max\n")
    open_group(setup, "a", TaskLimits(processes=2**40))
    assert str(most_processes()) == most.read_text()
    assert most_processes() <= int(Path("/proc/sys/kernel/pid_max").read_text()) // 4


def test_no_limit_is_no_limit(setup):
    group = open_group(setup, "task/0", TaskLimits())
    task = take(group, 128 * MEBIBYTE)

    assert str(128 * MEBIBYTE) == task.line()
    assert 0 == task.end()


def test_all_that_is_in_a_group_is_killed_also_what_went_away(setup):
    group = open_group(setup, "task/0", TaskLimits())
    script = (
        "for i in 1 2 3; do setsid sleep 600 & done; (sleep 600 & setsid sleep 600 &) ; echo; wait"
    )
    task = Task(group, "/bin/sh", "-c", script)
    task.line()
    before = group.processes()
    assert len(before) > 3

    assert group.kill()

    assert (-signal.SIGKILL, ()) == (task.end(), group.processes())
    assert [] == [each for each in before[1:] if Path(f"/proc/{each}/fd").is_dir() and _alive(each)]


def test_a_group_with_processes_is_not_removed_and_one_without_is(setup):
    group = open_group(setup, "task/0", TaskLimits())
    task = Task(group, "cat")
    assert not group.remove()
    assert (task.process.pid,) == group.processes()

    task.end()

    assert [True, True] == [group.remove(), group.remove()]
    assert ((), False) == (group.processes(), group.memory_killed())
    assert group.kill()


def test_groups_are_made_while_others_remove_the_last_one_beside_them(setup, tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from bough.backends.local.sandbox.limits import *\n"
        "setup, _ = choose_limits(LocalOptions(Path(sys.argv[1])))\n"
        "for _ in range(400):\n"
        "    group = plan_group(setup, sys.argv[2])\n"
        "    make_group(group, TaskLimits())\n"
        "    group.remove()"
    )
    racers = [
        subprocess.Popen((sys.executable, "-c", program, str(tmp_path), f"task-{number}/0"))
        for number in range(4)
    ]

    assert [0] * 4 == [each.wait(120) for each in racers]
    assert {} == find_groups(setup)


def test_a_group_that_is_there_already_is_used(setup):
    first = open_group(setup, "task/0", TaskLimits(memory_bytes=64 * MEBIBYTE))

    assert first == open_group(setup, "task/0", TaskLimits(memory_bytes=128 * MEBIBYTE))


def test_groups_of_a_former_process_are_found_wherever_they_are(setup, tmp_path):
    attempts = [f"{uuid.uuid4()}/0", "../odd name/1"]
    program = (
        "import sys; from pathlib import Path\n"
        "from bough.backends.local.sandbox.limits import *\n"
        "setup, _ = choose_limits(LocalOptions(Path(sys.argv[1])))\n"
        "for attempt in sys.argv[2:]:\n"
        "    make_group(plan_group(setup, attempt), TaskLimits(memory_bytes=2**26))"
    )
    subprocess.run((sys.executable, "-c", program, str(tmp_path), *attempts), check=True)

    found = find_groups(setup)

    assert set(attempts) == set(found)
    for group in found.values():
        assert set(setup.parents) == set(group.folders)
        assert group.remove()
    assert {} == find_groups(setup)


def test_nothing_is_left_of_the_trial(setup, tmp_path):
    assert {} == find_groups(setup)
    assert parent_name(LocalOptions(tmp_path)) == setup.name


def test_limits_can_be_switched_off(tmp_path):
    assert (None, ()) == choose_limits(LocalOptions(tmp_path, limits=False))


def test_a_machine_without_control_groups_counts_only(tmp_path, monkeypatch):
    monkeypatch.setattr(limits_module, "find_hierarchies", tuple)

    assert (
        None,
        (
            "CPUs are counted but not enforced: this machine has no control groups",
            "tasks can use GPUs that they were not given: this machine has no control groups",
            "memory is counted but not enforced: this machine has no control groups",
            "tasks may have as many processes as they like: this machine has no control groups",
        ),
    ) == choose_limits(LocalOptions(tmp_path))


def test_control_groups_that_cannot_be_changed_count_only(tmp_path, monkeypatch):
    tree = Hierarchy((UNIFIED,), tmp_path / "mount", tmp_path / "mount" / "own")
    tree.own.mkdir(parents=True)
    for each in tree.ancestors():
        (each / "cgroup.subtree_control").write_text("io\n")
    (tree.own / "cgroup.subtree_control").unlink()
    monkeypatch.setattr(limits_module, "find_hierarchies", lambda: (tree,))

    setup, warnings = choose_limits(LocalOptions(tmp_path))

    assert setup is None
    assert [
        f"{what}: {tree.own} cannot be used (No such file or directory)"
        for what in (
            "CPUs are counted but not enforced",
            "tasks can use GPUs that they were not given",
            "memory is counted but not enforced",
            "tasks may have as many processes as they like",
        )
    ] == list(warnings)


@pytest.mark.parametrize(("allowed", "place"), [(True, "mount"), (False, "slice")])
def test_with_version_2_all_controllers_are_had_in_one_place(tmp_path, monkeypatch, allowed, place):
    """Of those that are delegated further down there are fewer."""
    mount = tmp_path / "mount"
    tree = Hierarchy((UNIFIED,), mount, mount / "slice" / "own")
    tree.own.mkdir(parents=True)
    (mount / "cgroup.subtree_control").write_text("cpu memory pids\n")
    (mount / "slice" / "cgroup.subtree_control").write_text("memory pids\n")

    def try_out(setup: CgroupSetup) -> None:
        if not allowed and {str(mount / setup.name)} == set(setup.parents.values()):
            raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(limits_module, "find_hierarchies", lambda: (tree,))
    monkeypatch.setattr(limits_module, "_try_out", try_out)

    setup, warnings = choose_limits(LocalOptions(tmp_path))

    assert setup is not None
    parent = str((mount if place == "mount" else mount / "slice") / setup.name)
    controllers = {MEMORY, PIDS, DEVICES} | ({CPU} if allowed else set())
    assert dict.fromkeys(controllers, parent) == setup.parents
    assert ([] if allowed else ["CPUs"]) == [each.split()[0] for each in warnings]


def test_limits_of_version_2_are_written_in_its_words(tmp_path):
    folder = tmp_path / "task-a"
    folder.mkdir()
    names = ("memory.max", "memory.swap.max", "memory.oom.group", "cpu.max", "pids.max")
    for name in names:
        (folder / name).touch()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 0\n")

    group = open_group(
        CgroupSetup(dict.fromkeys((CPU, MEMORY, PIDS), str(tmp_path)), "bough-x"),
        "a",
        TaskLimits(1_500, 64 * MEBIBYTE, 1_000),
    )

    assert [str(64 * MEBIBYTE), "0", "1", "150000 100000", "1000"] == [
        (folder / name).read_text() for name in names
    ]
    assert not group.memory_killed()
    (folder / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    assert group.memory_killed()


def test_a_group_of_version_2_is_killed_at_once():
    tree = next((each for each in find_hierarchies() if each.unified), None)
    folder = tree.own / f"bough-test-{os.getpid()}" if tree is not None else None
    try:
        assert folder is not None
        folder.mkdir()
    except (AssertionError, OSError) as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"CONTROL GROUPS OF VERSION 2 CANNOT BE USED HERE: {error}")
    group = Cgroup({MEMORY: str(folder)})
    try:
        task = Task(group, "/bin/sh", "-c", "setsid sleep 600 & echo; wait")
        task.line()

        assert group.kill()

        assert -signal.SIGKILL == task.end()
        assert () == group.processes()
    finally:
        assert group.remove()


@pytest.mark.parametrize("version", [1, 2])
def test_a_process_moves_itself_and_all_that_it_starts_then_into_a_group(version):
    trees = [each for each in find_hierarchies() if each.unified == (version == 2)]
    tree = next((each for each in trees if version == 2 or PIDS in each.controllers), None)
    folder = tree.own / f"bough-test-{os.getpid()}" if tree is not None else None
    try:
        assert folder is not None
        folder.mkdir()
    except (AssertionError, OSError) as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"CONTROL GROUPS OF VERSION {version} CANNOT BE USED HERE: {error}")
    group = Cgroup({PIDS: str(folder)})
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            group.join()
            child = os.fork()
            if child:
                os.write(writing, f"{child}".encode())
            signal.pause()
        finally:
            os._exit(1)
    try:
        os.close(writing)
        child = int(os.read(reading, 100))
        assert tuple(sorted((pid, child))) == group.processes()
    finally:
        os.close(reading)
        assert group.kill()
        os.waitpid(pid, 0)
        assert group.remove()


def _alive(pid: int) -> bool:
    """Whether a process is more than a zombie."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
