"""What a supervisor does with tasks that do not behave, and what is left when it is gone."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from bough.backends.local.attempt_state import AttemptLock, Begun, read_state
from bough.model.backend import Sight
from tests.local.bench import Bench, kill, processes_of, until

#: Numbers 32 and 33 belong to the C library, which lets no program change what they do.
LIBRARY_SIGNALS = 0x1_8000_0000


@pytest.fixture
def quick_fork_servers() -> None:
    """Here fork servers are started as the server starts them."""


def test_a_task_that_ends_at_once_is_seen_to_end(bench: Bench) -> None:
    attempts = [bench.run("/bin/true") for _ in range(30)]
    assert [0] * 30 == [bench.wait_over(each).exit_code for each in attempts]


def test_children_that_a_task_leaves_are_ended(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000 & sleep 1000 & exit 0")
    assert 0 == bench.wait_over(attempt).exit_code
    assert [] == processes_of(attempt)


def test_children_that_went_away_into_their_own_session_are_ended(bench: Bench) -> None:
    script = "(setsid sh -c 'echo away; setsid sleep 1000 & sleep 1000' &) ; sleep 0.2; exit 3"
    attempt = bench.run_shell(script)
    assert 3 == bench.wait_over(attempt).exit_code
    assert [] == processes_of(attempt)


def test_children_with_an_environment_of_their_own_are_ended(bench: Bench) -> None:
    pids = bench.mark("pids")
    script = (
        "env -i setsid sh -c 'echo $$ > " + str(pids) + "; sleep 1000 & wait' & "
        "while ! test -s " + str(pids) + "; do sleep 0.01; done"
    )
    attempt = bench.run_shell(script)
    assert 0 == bench.wait_over(attempt).exit_code
    assert not Path(f"/proc/{pids.read_text().strip()}").exists()


def test_one_of_a_gang_ends_with_its_children_and_the_others_go_on(bench: Bench) -> None:
    leaver = bench.shell("(setsid sleep 1000 &); sleep 0.1; exit 0")
    stayer = bench.shell("(setsid sleep 1000 &); sleep 1000")
    bench.start(leaver, stayer)
    bench.wait_over(leaver.attempt)
    assert [] == processes_of(leaver.attempt)
    until(lambda: 2 <= len(processes_of(stayer.attempt)))
    bench.stop(stayer.attempt)
    bench.wait_over(stayer.attempt)
    assert [] == processes_of(stayer.attempt)


def test_a_stop_ends_children_too(bench: Bench) -> None:
    script = "trap '' TERM; (setsid sleep 1000 &); sleep 1000 & echo ready; sleep 1000"
    attempt = bench.run_shell(script)
    until(lambda: bench.texts(attempt))
    bench.stop(attempt)
    bench.wait_over(attempt)
    assert [] == processes_of(attempt)


def test_a_task_goes_on_when_its_server_is_gone_and_is_found_again(bench: Bench) -> None:
    script = "echo before; while ! test -e $GATE; do sleep 0.01; done; echo after; exit 9"
    attempt = bench.run_shell(script, environment={"GATE": str(bench.mark("gate"))})
    bench.wait_running(attempt)
    bench.backend.close()
    bench.mark("gate").touch()
    state = bench.options.folder / "attempts" / attempt.replace("/", "-") / "state"
    until(lambda: (found := read_state(state)) is not None and found.end)
    bench.backend = bench.open()
    seen = bench.see(attempt)
    assert seen is not None
    assert (Sight.ENDED, 9) == (seen.sight, seen.exit_code)
    assert ["before", "after"] == bench.texts(attempt)


def test_a_task_whose_supervisor_is_killed_is_lost_and_nothing_of_it_is_left(bench: Bench) -> None:
    attempt = bench.run_shell("(setsid sleep 1000 &); sleep 1000 & sleep 1000", gpus=8)
    bench.wait_running(attempt)
    kill(_keeper(bench, attempt))
    assert Sight.LOST is bench.wait_over(attempt).sight
    assert [] == processes_of(attempt)
    again = bench.run_shell("exit 0", gpus=8)
    assert 0 == bench.wait_over(again).exit_code


def test_a_task_whose_folder_is_gone_is_ended_before_it_counts_as_lost(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    (bench.options.folder / "attempts" / attempt.replace("/", "-")).rename(bench.path / "elsewhere")
    assert Sight.LOST is bench.wait_over(attempt).sight
    assert [] == processes_of(attempt)


def test_a_stranger_with_the_number_of_a_lost_task_is_left_alone(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    state = bench.options.folder / "attempts" / attempt.replace("/", "-") / "state"
    content = state.read_bytes()
    bench.backend.close()
    for pid in (_keeper(bench, attempt), *processes_of(attempt)):
        kill(pid)
    until(lambda: not processes_of(attempt))
    # As if the number had been given to this very process since.
    old = read_state(state)
    assert old is not None
    assert old.begun is not None
    _rewrite(state, content, old.begun.pid, os.getpid())
    changed = read_state(state)
    assert changed is not None
    assert changed.begun is not None
    assert os.getpid() == changed.begun.pid
    bench.backend = bench.open()
    assert Sight.LOST is bench.wait_over(attempt).sight


def test_after_a_restart_of_the_machine_everything_is_lost(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    bench.backend.close()
    for pid in (_keeper(bench, attempt), *processes_of(attempt)):
        kill(pid)
    monkeypatch.setattr("bough.backends.local.backend.boot_id", lambda: "another")
    bench.backend = bench.open()
    seen = bench.wait_over(attempt)
    assert Sight.LOST is seen.sight
    assert "restarted" in seen.message


def test_a_fork_server_that_is_killed_is_replaced(bench: Bench) -> None:
    first = bench.run_shell("sleep 1000")
    bench.wait_running(first)
    process = bench.backend._fork_server._process
    assert process is not None
    process.kill()
    process.wait()
    second = bench.run_shell("exit 6")
    assert 6 == bench.wait_over(second).exit_code
    assert Sight.RUNNING is bench.wait_running(first).sight


def test_a_stopped_supervisor_goes_on_when_its_task_must_end(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    os.kill(_keeper(bench, attempt), signal.SIGSTOP)
    bench.stop(attempt)
    assert 137 <= (bench.wait_over(attempt).exit_code or 0) <= 143


def test_a_signal_to_a_supervisor_that_does_not_listen_yet_does_not_end_it(bench: Bench) -> None:
    process = bench.backend._fork_server._process
    assert process is not None
    bench.wait_over(bench.run("true"))
    status = Path(f"/proc/{process.pid}/status").read_text()
    (ignored,) = re.findall(r"SigIgn:\s*([0-9a-f]+)", status)
    assert int(ignored, 16) & 1 << (signal.SIGUSR1 - 1)


def test_an_interrupt_from_the_keyboard_reaches_no_task(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    own = os.getsid(0)
    process = bench.backend._fork_server._process
    assert process is not None
    assert own not in {os.getsid(pid) for pid in (process.pid, _keeper(bench, attempt))}
    assert own not in {os.getsid(pid) for pid in processes_of(attempt)}


def test_a_task_finds_signals_and_files_as_usual(bench: Bench) -> None:
    script = "grep -E 'SigIgn|SigBlk' /proc/self/status; ls /proc/self/fd | wc -l; umask"
    attempt = bench.run_shell(script)
    bench.wait_over(attempt)
    texts = bench.texts(attempt)
    names = [text.partition(":")[0] for text in texts[:2]]
    signals = [int(text.partition(":")[2], 16) & ~LIBRARY_SIGNALS for text in texts[:2]]
    assert ["SigBlk", "SigIgn"] == names
    assert [0, 0] == signals
    # Its three streams, and the folder that is being listed.
    assert ["4", "0022"] == texts[2:]


def test_a_task_goes_before_the_server_where_memory_runs_out(bench: Bench) -> None:
    attempt = bench.run_shell("cat /proc/self/oom_score_adj")
    bench.wait_over(attempt)
    assert ["200"] == bench.texts(attempt)


def test_a_task_has_a_session_of_its_own(bench: Bench) -> None:
    attempt = bench.run_shell("ps -o pid=,pgid=,sid= -p $$")
    bench.wait_over(attempt)
    assert 1 == len(set(bench.texts(attempt)[0].split()))


def test_a_supervisor_that_fails_says_so(bench: Bench) -> None:
    launch = bench.shell("true")
    folder = bench.options.folder / "attempts" / launch.attempt.replace("/", "-")
    folder.mkdir(mode=0o700)
    (folder / "secrets.json").mkdir()
    bench.start(launch)
    seen = bench.wait_over(launch.attempt)
    assert Sight.UNSTARTABLE is seen.sight
    assert f"Task {launch.name} could not be started" in seen.message


def _keeper(bench: Bench, attempt: str) -> int:
    folder = bench.options.folder / "attempts" / attempt.replace("/", "-")
    state = read_state(folder / "state")
    assert state is not None
    assert state.supervisor is not None
    return state.supervisor.pid


def _rewrite(state: Path, content: bytes, before: int, after: int) -> None:
    """Write a state again with another number of its process."""
    assert str(before).encode() in content
    hold = AttemptLock(state)
    hold.write(Begun(after, 1, 1))
    hold.close()


def test_a_signal_to_no_process_does_no_harm(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1):
        os.kill(_keeper(bench, attempt), number)
    bench.stop(attempt)
    assert Sight.ENDED is bench.wait_over(attempt).sight
