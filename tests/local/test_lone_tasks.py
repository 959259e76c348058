"""A task that starts alone is no fork of its init process; otherwise it is as one of a gang."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.backends.local.attempt_state import read_state
from bough.model.backend import Sight
from bough.model.task_template import FileSpec
from tests.local.bench import Bench
from tests.local.image_roots import Layer, make_root, write_archive
from tests.local.test_sandbox import needs_root

#: All that a process gets from the one that started it.
_SURROUNDINGS = """
grep -E '^(Uid|Gid|Groups|Cap...|NoNewPrivs|Sig(Blk|Ign)):' /proc/self/status
cut -d' ' -f4-6 /proc/$$/stat
ls /proc/$$/fd
cat /proc/$$/oom_score_adj
grep -v processes /proc/$$/limits
umask
pwd
"""
#: What few tasks need, and every fork of a supervisor would have to copy; `threading` also has
#: something to do in every fork.
_SELDOM = {"email", "http", "sqlite3", "ssl", "subprocess", "tarfile", "threading"}
#: The C library keeps the signals 32 and 33 to itself, and lets no program change them.
_OWN_SIGNALS = 0b11 << 31


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Bench]:
    account = "nobody" if os.geteuid() == 0 else None
    bench = Bench(tmp_path, private=True, limits=True, task_user=account)
    try:
        yield bench
    finally:
        bench.end()


def test_it_has_the_same_rights_files_and_signals_as_one_of_a_gang(sealed: Bench) -> None:
    alone = sealed.run_shell(_SURROUNDINGS)
    gang = [sealed.shell(_SURROUNDINGS) for _ in range(2)]
    sealed.start(*gang)
    told = []
    for attempt in (alone, *(each.attempt for each in gang)):
        assert 0 == sealed.wait_over(attempt).exit_code
        told.append([_changeable(each) for each in sealed.texts(attempt)])
    assert [told[0], told[0]] == told[1:]


def _changeable(line: str) -> str:
    """A line without the signals that no program can change."""
    name, _, value = line.partition(":\t")
    return f"{name} {int(value, 16) & ~_OWN_SIGNALS:x}" if name.startswith("Sig") else line


@needs_root
def test_it_has_an_account_and_nothing_of_the_rights_of_the_server(sealed: Bench) -> None:
    attempt = sealed.run_shell(_SURROUNDINGS)
    assert 0 == sealed.wait_over(attempt).exit_code
    lines = dict(each.split(":\t") for each in sealed.texts(attempt) if ":\t" in each)
    assert ["65534"] * 4 == lines["Uid"].split()
    assert ["65534"] * 4 == lines["Gid"].split()
    assert "1" == lines["NoNewPrivs"]
    assert {"0" * 16} == {lines[each] for each in ("CapInh", "CapPrm", "CapEff", "CapAmb")}


@needs_root
def test_it_can_do_nothing_to_its_init_process(sealed: Bench) -> None:
    # First at once, while the init process may still have the task's user as its real one.
    send = "for each in TERM KILL STOP INT CHLD CONT; do kill -$each 1 2>/dev/null; done"
    attempt = sealed.run_shell(
        f"{send}; sleep 0.2; kill -TERM 1 2>/dev/null || echo refused; exit 7"
    )
    assert 7 == sealed.wait_over(attempt).exit_code
    assert ["refused"] == sealed.texts(attempt)


def test_one_that_ends_at_once_has_a_time_at_which_it_started(sealed: Bench) -> None:
    for _ in range(10):
        attempt = sealed.run("/bin/true")
        sealed.wait_over(attempt)
        state = read_state(sealed.options.folder / "attempts" / attempt.replace("/", "-") / "state")
        assert state is not None
        assert state.begun is not None
        assert state.begun.started_ms is not None


@pytest.mark.parametrize("path", ["/nowhere:/osmo/work:/usr/bin", ":/usr/bin", ""])
def test_a_file_of_the_search_path_that_is_no_program_is_told(sealed: Bench, path: str) -> None:
    """A folder without a name is the one that the task is in."""
    attempt = sealed.run(
        "tool", files=(FileSpec("tool", "not a program"),), environment={"PATH": path}
    )
    seen = sealed.wait_over(attempt)
    assert Sight.UNSTARTABLE is seen.sight
    assert (seen.message or "").endswith("could not be started: tool: Permission denied")


@needs_root
def test_a_folder_that_its_account_may_not_enter_is_told(tmp_path: Path) -> None:
    images = tmp_path / "images"
    images.mkdir()
    root = make_root(tmp_path / "root")
    write_archive(images / "shut", Layer().tree(root), Layer().folder("opt/start", 0o700))
    bench = Bench(tmp_path, private=True, image_folder=images, task_user="nobody")
    try:
        seen = bench.wait_over(bench.run("/bin/true", image="shut"))
        assert Sight.UNSTARTABLE is seen.sight
        assert "Permission denied (/opt/start)" in (seen.message or "")
    finally:
        bench.end()


def test_supervisors_load_nothing_that_few_tasks_need() -> None:
    program = "import sys, bough.backends.local.supervisor.fork_server; print(*sys.modules)"
    told = subprocess.run((sys.executable, "-c", program), capture_output=True, check=True)
    assert set() == _SELDOM & {each.split(".")[0] for each in told.stdout.decode().split()}
