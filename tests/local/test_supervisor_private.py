"""The same with all that this machine can do: a view of its own and limits for each task."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from bough.backends.local import backend as backend_module
from bough.backends.local.attempt_state import read_state
from bough.backends.local.sandbox.cgroup_mounts import MEMORY, PIDS
from bough.backends.local.sandbox.limits import choose_limits, find_groups
from bough.model.backend import Sight
from tests.local.bench import Bench, kill, processes_of, until

#: Mounts the control group that it is in, in namespaces of its own, and lifts what it finds there.
_LIFT = """
import contextlib, ctypes, os, sys, time
libc = ctypes.CDLL(None)
libc.unshare(0x10000000 | 0x00020000 | 0x02000000)
for kind, options in ((b"cgroup", b"pids"), (b"cgroup2", None)):
    folder = f"{sys.argv[1]}-{kind.decode()}"
    os.mkdir(folder)
    libc.mount(b"none", folder.encode(), kind, ctypes.c_ulong(0), options)
    with contextlib.suppress(OSError), open(f"{folder}/pids.max", "w") as file:
        file.write("max")
print("done", flush=True)
time.sleep(1000)
"""

#: Where tasks see it, too: that of a virtual environment may be below /tmp.
PYTHON = str(Path(sys.executable).resolve())


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path, private=True, limits=True)
    try:
        yield bench
    finally:
        bench.end()


def test_a_task_runs_to_its_end(sealed: Bench) -> None:
    attempt = sealed.run_shell("echo out; echo error >&2; exit 7")
    assert 7 == sealed.wait_over(attempt).exit_code
    assert {"out", "error"} == set(sealed.texts(attempt))


def test_a_signal_is_told_from_an_exit_code(sealed: Bench) -> None:
    attempt = sealed.run_shell("kill -SEGV $$")
    seen = sealed.wait_over(attempt)
    assert (139, signal.SIGSEGV) == (seen.exit_code, seen.signal)


@pytest.mark.parametrize("options", [{"private": True, "limits": True}, {}], ids=["all", "plain"])
def test_a_task_starts_with_default_signals_whatever_the_server_ignores(tmp_path, options):
    signals = (signal.SIGINT, signal.SIGQUIT, signal.SIGUSR2)
    before = {each: signal.signal(each, signal.SIG_IGN) for each in signals}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})
    try:
        # What forks the supervisors inherits that.
        bench = Bench(tmp_path, **options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for each, handler in before.items():
            signal.signal(each, handler)
    try:
        attempt = bench.run("grep", "-E", "Sig(Ign|Blk)", "/proc/self/status")
        bench.wait_over(attempt)
        told = dict(each.split(":\t") for each in bench.texts(attempt))
        blocked, ignored = (int(told[name], 16) for name in ("SigBlk", "SigIgn"))
        # The C library keeps the signals 32 and 33 to itself, and lets no program change them.
        own = 0b11 << 31
        assert (0, 0) == (blocked & ~own, ignored & ~own)
    finally:
        bench.end()


def test_a_stop_lets_a_task_clean_up_within_its_time(sealed: Bench) -> None:
    attempt = sealed.run_shell("trap 'echo cleaning; exit 5' TERM; echo ready; while :; do :; done")
    until(lambda: "ready" in sealed.texts(attempt))
    sealed.stop(attempt, grace_s=50)
    assert 5 == sealed.wait_over(attempt).exit_code
    assert "cleaning" == sealed.texts(attempt)[-1]


def test_what_ignores_the_notice_is_killed_with_all_its_children(sealed: Bench) -> None:
    script = "trap '' TERM; (setsid sleep 1000 &); sleep 1000 & echo ready; sleep 1000"
    attempt = sealed.run_shell(script)
    until(lambda: "ready" in sealed.texts(attempt))
    sealed.stop(attempt)
    assert 137 == sealed.wait_over(attempt).exit_code
    assert [] == processes_of(attempt)


def test_children_that_a_task_leaves_are_ended(sealed: Bench) -> None:
    script = "(setsid sleep 1000 &); sleep 1000 & env -i setsid sleep 1000 & exit 3"
    attempt = sealed.run_shell(script)
    assert 3 == sealed.wait_over(attempt).exit_code
    assert [] == processes_of(attempt)


def test_a_group_starts_its_next_task_while_the_supervisor_of_the_last_one_leaves(
    sealed: Bench,
) -> None:
    attempts = []
    for _ in range(30):
        attempts.append(sealed.run("/bin/true"))
        sealed.wait_over(attempts[-1])
    # Each at the moment at which the one before gives up the network of their group.
    assert [0] * 30 == [sealed.wait_over(each).exit_code for each in attempts]


def test_if_one_of_a_gang_cannot_be_started_none_is(sealed: Bench) -> None:
    gang = [sealed.shell("echo ran"), sealed.launch("/no/such/program", name="broken")]
    sealed.start(*gang)
    seen = [sealed.wait_over(each.attempt) for each in gang]
    assert [Sight.UNSTARTABLE] * 2 == [each.sight for each in seen], seen[0].message
    assert "Task broken could not be started: /no/such/program" in seen[0].message
    assert [] == sealed.texts(gang[0].attempt)


def test_a_task_whose_supervisor_is_killed_is_lost_and_nothing_of_it_is_left(sealed: Bench) -> None:
    attempt = sealed.run_shell("(setsid sleep 1000 &); sleep 1000 & echo ready; sleep 1000")
    until(lambda: sealed.texts(attempt))
    folder = sealed.options.folder / "attempts" / attempt.replace("/", "-")
    state = read_state(folder / "state")
    assert state is not None
    assert state.supervisor is not None
    kill(state.supervisor.pid)
    assert Sight.LOST is sealed.wait_over(attempt).sight
    assert [] == processes_of(attempt)


def test_a_task_goes_on_when_its_server_is_gone(sealed: Bench) -> None:
    attempt = sealed.run_shell("trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done")
    until(lambda: "ready" in sealed.texts(attempt))
    sealed.restart()
    assert Sight.RUNNING is sealed.wait_running(attempt).sight
    sealed.stop(attempt, grace_s=50)
    assert 9 == sealed.wait_over(attempt).exit_code


def test_nothing_is_left_of_the_limits_of_what_has_ended(sealed: Bench) -> None:
    setup, _ = choose_limits(sealed.options)
    attempt = sealed.run_shell("exit 0")
    sealed.wait_over(attempt)
    until(lambda: setup is None or not find_groups(setup))


def test_a_task_that_takes_too_much_memory_is_told_so(sealed: Bench) -> None:
    _limit_or_skip(sealed, MEMORY)
    launch = sealed.launch("/usr/bin/tail", "/dev/zero")
    sealed.start(msgspec.structs.replace(launch, memory_bytes=32 * 2**20))
    seen = sealed.wait_over(launch.attempt)
    assert (137, "memory" in seen.message) == (seen.exit_code, True)


def test_a_task_of_which_a_child_takes_too_much_memory_is_told_so(sealed: Bench) -> None:
    _limit_or_skip(sealed, MEMORY)
    greedy = f"{PYTHON} -I -S -c 'bytearray(2**28)'"
    launch = sealed.launch("/bin/sh", "-c", f"{greedy}; exit 3")
    sealed.start(msgspec.structs.replace(launch, memory_bytes=2**26))
    seen = sealed.wait_over(launch.attempt)
    # With version 2 all processes of a task are killed with the one.
    who = "It" if seen.signal == signal.SIGKILL else "A process of it"
    said = f"{who} used more memory than it may (its limit is 64Mi, the most it had is "
    assert said == seen.message.partition("most it had is ")[0] + "most it had is "
    assert "Mi), and was killed." in seen.message


@pytest.mark.parametrize("memory_bytes", [1, 2**12, 2**17])
def test_a_task_that_may_use_less_memory_than_its_start_takes_is_told_so(
    sealed: Bench, memory_bytes: int
) -> None:
    _limit_or_skip(sealed, MEMORY)
    launch = sealed.launch("/bin/true")
    sealed.start(msgspec.structs.replace(launch, memory_bytes=memory_bytes))
    seen = sealed.wait_over(launch.attempt)
    assert (Sight.UNSTARTABLE, True) == (seen.sight, "takes more memory than" in seen.message), seen


def test_a_task_whose_supervisor_is_killed_leaves_no_group(sealed: Bench) -> None:
    setup, _ = choose_limits(sealed.options)
    attempt = sealed.run_shell("sleep 1000")
    sealed.wait_running(attempt)
    state = read_state(sealed.options.folder / "attempts" / attempt.replace("/", "-") / "state")
    assert state is not None
    assert state.supervisor is not None
    kill(state.supervisor.pid)
    assert Sight.LOST is sealed.wait_over(attempt).sight
    assert setup is None or {} == find_groups(setup)


def test_a_task_that_starts_itself_again_and_again_is_bounded_and_ended(tmp_path: Path) -> None:
    bench = Bench(tmp_path, private=True, limits=True, processes=60)
    try:
        _limit_or_skip(bench, PIDS)
        bomb = bench.run("bash", "-c", "bomb() { bomb | bomb & }; bomb 2>/dev/null; sleep 1000")
        beside = bench.run_shell("echo beside")
        assert 0 == bench.wait_over(beside).exit_code
        bench.stop(bomb)
        bench.wait_over(bomb)
        assert [] == processes_of(bomb)
    finally:
        bench.end()


def test_a_task_that_has_too_many_processes_is_told_so(tmp_path: Path) -> None:
    bench = Bench(tmp_path, private=True, limits=True, processes=30)
    try:
        _limit_or_skip(bench, PIDS)
        many = bench.run_shell("for each in $(seq 50); do sleep 1000 & done")
        over = bench.wait_over(many)
        assert (2, "It wanted more processes than it may have.") == (over.exit_code, over.message)
    finally:
        bench.end()


def test_without_control_groups_a_task_leaves_processes_to_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_module, "choose_limits", lambda _: (None, ()))
    bench = Bench(tmp_path, limits=True)
    try:
        attempt = bench.run("bash", "-c", "ulimit -u")
        bench.wait_over(attempt)
        _, most = resource.getrlimit(resource.RLIMIT_NPROC)
        expected = "unlimited" if most == resource.RLIM_INFINITY else str(most * 3 // 4)
        assert [expected] == bench.texts(attempt)
    finally:
        bench.end()


def test_a_task_that_makes_namespaces_cannot_change_its_limits(sealed: Bench) -> None:
    _limit_or_skip(sealed, PIDS)
    attempt = sealed.run(PYTHON, "-I", "-S", "-c", _LIFT, "groups")
    until(lambda: sealed.texts(attempt))
    setup, _ = choose_limits(sealed.options)
    assert setup is not None
    folder = find_groups(setup)[attempt].folders[PIDS]
    assert Path(folder, "pids.max").read_text().strip().isdigit()
    sealed.stop(attempt)
    sealed.wait_over(attempt)


def _limit_or_skip(bench: Bench, controller: str) -> None:
    setup, _ = choose_limits(bench.options)
    if setup is None or controller not in setup.parents:
        text = f"{controller} cannot be limited on this machine"
        assert os.environ.get("CI") != "true", text
        pytest.skip(f"NOT TESTED: {text}")
