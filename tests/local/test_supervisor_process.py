"""A supervisor serves one start after the other, and nothing of one is left for the next."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from bough.backends.local.attempt_folder import Folders
from bough.backends.local.attempt_state import read_state
from bough.backends.local.options import LocalOptions
from bough.backends.local.order_lease import OrderLease, since_boot_ms
from bough.backends.local.supervisor import fork_server
from bough.backends.local.supervisor.instructions import (
    Setup,
    SupervisorRequest,
    decode_request,
    encode,
)
from bough.model.backend import Sight
from tests.local.bench import Bench, kill, processes_of, until
from tests.local.plain_account import in_another_process


def test_a_supervisor_whose_task_has_ended_serves_the_next_start(bench: Bench) -> None:
    first = finished(bench)
    for _ in range(4):
        wait_until_waiting(first)
        assert first == finished(bench)


def test_tasks_that_run_at_the_same_time_have_a_supervisor_each(bench: Bench) -> None:
    attempts = [bench.run_shell("sleep 1000") for _ in range(3)]
    for each in attempts:
        bench.wait_running(each)
    assert 3 == len({supervisor(bench, each) for each in attempts})


def test_of_many_short_tasks_some_are_served_by_a_supervisor_that_was_there(bench: Bench) -> None:
    attempts = [bench.run("/bin/true") for _ in range(60)]
    for each in attempts:
        assert 0 == bench.wait_over(each).exit_code
    assert len({supervisor(bench, each) for each in attempts}) < len(attempts)


def test_a_supervisor_that_waits_holds_nothing_of_its_last_tasks(bench: Bench) -> None:
    pid = finished(bench)
    wait_until_waiting(pid)
    folders = Folders(bench.options.folder)
    opened = [os.readlink(each) for each in Path(f"/proc/{pid}/fd").iterdir()]
    assert [] == [each for each in opened if each.startswith(str(folders.attempts))]
    # What keeps the server's address finds that nothing runs.
    with folders.running.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_supervisor_that_has_had_secrets_serves_no_other_start(bench: Bench) -> None:
    launch = bench.shell("true")
    secret = {"store": {"key": "of one user"}}
    bench.start(msgspec.structs.replace(launch, secrets=secret))
    bench.wait_over(launch.attempt)
    first = supervisor(bench, launch.attempt)
    assert first != finished(bench)
    until(lambda: not Path(f"/proc/{first}").exists())


def test_a_supervisor_that_is_killed_while_it_waits_is_not_missed(bench: Bench) -> None:
    pid = finished(bench)
    wait_until_waiting(pid)
    kill(pid)
    assert pid != finished(bench)


def test_a_start_that_a_stopped_supervisor_was_given_is_done_by_another(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bough.backends.local.backend._ASK_S", 0.1)
    pid = finished(bench)
    wait_until_waiting(pid)
    os.kill(pid, signal.SIGSTOP)
    marks = bench.mark("ran")
    attempt = bench.run_shell(f"echo ran >> {marks}")
    bench.wait_over(attempt)
    assert pid != supervisor(bench, attempt)
    # It goes on, and finds that there is nothing to do.
    os.kill(pid, signal.SIGCONT)
    finished(bench)
    assert "ran\n" == marks.read_text()


def test_supervisors_that_wait_exit_with_the_server_and_others_go_on(bench: Bench) -> None:
    running = bench.run_shell("sleep 1000")
    bench.wait_running(running)
    waiting = finished(bench)
    wait_until_waiting(waiting)
    bench.backend.close()
    until(lambda: not Path(f"/proc/{waiting}").exists())
    assert [] != processes_of(running)
    bench.backend = bench.open()
    assert Sight.RUNNING is bench.wait_running(running).sight


def test_what_one_task_leaves_is_ended_before_the_next_has_its_supervisor(bench: Bench) -> None:
    attempt = bench.run_shell("(setsid sleep 1000 &); sleep 0.1")
    bench.wait_over(attempt)
    first = supervisor(bench, attempt)
    wait_until_waiting(first)
    assert first == finished(bench)
    assert [] == processes_of(attempt)


def test_a_start_that_fails_leaves_its_supervisor_as_it_was(bench: Bench) -> None:
    launch = bench.launch("/does/not/exist")
    bench.start(launch)
    assert Sight.UNSTARTABLE is bench.wait_over(launch.attempt).sight
    wait_until_waiting(supervisor(bench, launch.attempt))
    attempt = bench.run_shell("ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status")
    bench.wait_over(attempt)
    assert supervisor(bench, launch.attempt) == supervisor(bench, attempt)
    files, blocked = bench.texts(attempt)
    assert ("4", 0) == (files, int(blocked.partition(":")[2], 16))


def test_an_environment_is_not_handed_on_to_the_next_task(bench: Bench) -> None:
    first = bench.run_shell("true", environment={"OF_THE_FIRST": "1"})
    bench.wait_over(first)
    second = bench.run_shell('echo "[$OF_THE_FIRST]"')
    bench.wait_over(second)
    assert ["[]"] == bench.texts(second)


def finished(bench: Bench) -> int:
    """Run a short task to its end; the supervisor that it had."""
    attempt = bench.run("/bin/true")
    assert 0 == bench.wait_over(attempt).exit_code
    until(lambda: bench.is_over(attempt))
    return supervisor(bench, attempt)


def supervisor(bench: Bench, attempt: str) -> int:
    folder = bench.options.folder / "attempts" / attempt.replace("/", "-")
    state = read_state(folder / "state")
    assert state is not None
    assert state.supervisor is not None
    return state.supervisor.pid


def wait_until_waiting(pid: int) -> None:
    """It reads from the fork server, with nothing else open but its streams."""
    until(lambda: sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2", "3"] and reads(pid, 3))


def reads(pid: int, descriptor: int) -> bool:
    """Whether a process is in a system call about a descriptor; then it has said that it waits."""
    return Path(f"/proc/{pid}/syscall").read_text().split()[1:2] == [hex(descriptor)]


def test_a_request_that_is_made_again_while_it_waits_is_still_one(tmp_path: Path) -> None:
    """Under the lease of the last time, because an earlier one expires sooner."""
    ours, theirs = socket.socketpair()
    first, second = (OrderLease(3, 7, until_ms) for until_ms in (9_000, 12_000))
    asked = [(("a", "b"), first), (("c",), first), (("a", "b"), second), (("a",), second)]
    with ours, theirs:
        forker = fork_server._Forker(Setup(LocalOptions(tmp_path)), theirs)
        for names, lease in asked:
            forker._note(encode(SupervisorRequest(names, lease)))
        waiting = [decode_request(each) for each in forker._requests.values()]
    expected = [(("a", "b"), second), (("c",), first), (("a",), second)]
    assert expected == [(each.names, each.lease) for each in waiting]


def test_a_task_whose_request_waited_for_longer_than_its_lease_has_one_supervisor_and_runs(
    bench: Bench,
) -> None:
    asked: list[tuple[Sequence[str], OrderLease]] = []
    bench.backend._fork_server.supervise = lambda *each: asked.append(each)  # type: ignore[method-assign]
    attempt = bench.run("/bin/true")
    (names, lease) = asked[0]
    leases = (msgspec.structs.replace(lease, until_ms=since_boot_ms() - 1), lease)

    def serve() -> str:
        _, theirs = socket.socketpair()
        forker = fork_server._Forker(Setup(bench.options), theirs)
        for each in leases:
            forker._note(encode(SupervisorRequest(tuple(names), each)))
        forker._serve()
        return str(len(forker._supervisors))

    assert "1" == in_another_process(serve)
    assert 0 == bench.wait_over(attempt).exit_code
