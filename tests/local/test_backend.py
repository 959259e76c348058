"""Starting, seeing, ending and forgetting tasks that are real processes."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec
import pytest

from bough.backends.local.attempt_folder import folder_name
from bough.backends.local.backend import LocalBackend
from bough.backends.local.data.locations import results_folder
from bough.backends.local.options import LocalOptions
from bough.backends.local.order_lease import OrderLease
from bough.backends.local.supervisor.instructions import Setup, SupervisorRequest
from bough.backends.local.supervisor.supervisor_process import take
from bough.errors import Invalid, NotLeading, Unavailable
from bough.model.backend import Backend, Leadership, Observation, Sight, Start, Stop
from tests.local.bench import Bench, now_ms, processes_of, until

_WAIT = "while ! test -e $GATE; do sleep 0.01; done"


def test_a_task_runs_and_its_exit_code_is_seen(bench: Bench) -> None:
    attempt = bench.run_shell("exit 7")
    seen = bench.wait_over(attempt)
    assert (Sight.ENDED, 7, None, "") == (seen.sight, seen.exit_code, seen.signal, seen.message)


def test_it_meets_what_every_backend_meets(bench: Bench) -> None:
    backend: Backend = bench.backend
    assert ("default", 8) == (backend.name, backend.nodes()[0].gpus)


def test_a_task_is_running_from_its_start_to_its_end(bench: Bench) -> None:
    before_ms = now_ms()
    attempt = bench.run_shell(_WAIT, environment=_gate(bench))
    running = bench.wait_running(attempt)
    assert before_ms <= running.at_ms <= now_ms()
    bench.mark("gate").touch()
    ended = bench.wait_over(attempt)
    assert running.at_ms <= ended.at_ms <= now_ms()


def test_a_signal_is_told_from_an_exit_code(bench: Bench) -> None:
    attempt = bench.run_shell("kill -SEGV $$")
    seen = bench.wait_over(attempt)
    assert (Sight.ENDED, 139, signal.SIGSEGV) == (seen.sight, seen.exit_code, seen.signal)
    assert "SIGSEGV" in seen.message


def test_a_task_sees_nothing_of_the_servers_environment(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOUGH_TOKEN", "very secret")
    bench.restart()
    attempt = bench.run_shell("env; tr '\\0' '\\n' < /proc/$PPID/environ")
    bench.wait_over(attempt)
    text = "\n".join(bench.texts(attempt))
    assert "very secret" not in text
    assert "BOUGH_WORKFLOW_ID=flow-1" in text


def test_starting_again_what_is_known_does_nothing(bench: Bench) -> None:
    launch = bench.shell("echo ran >> $MARK", environment={"MARK": str(bench.mark("ran"))})
    for _ in range(3):
        bench.start(launch)
    bench.wait_over(launch.attempt)
    bench.start(launch)
    bench.restart()
    bench.start(launch)
    assert Sight.ENDED is bench.wait_over(launch.attempt).sight
    assert "ran\n" == bench.mark("ran").read_text()


def test_a_stop_lets_a_task_clean_up_within_its_time(bench: Bench) -> None:
    script = "trap 'echo cleaning; exit 5' TERM; echo ready; while :; do sleep 0.01; done"
    attempt = bench.run_shell(script)
    until(lambda: "ready" in bench.texts(attempt))
    bench.stop(attempt, grace_s=50)
    seen = bench.wait_over(attempt)
    assert (Sight.ENDED, 5) == (seen.sight, seen.exit_code)
    assert "cleaning" == bench.texts(attempt)[-1]


def test_what_ignores_the_notice_is_killed_when_its_time_is_up(bench: Bench) -> None:
    attempt = bench.run_shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    until(lambda: "ready" in bench.texts(attempt))
    bench.stop(attempt, grace_s=1)
    seen = bench.wait_over(attempt)
    assert (137, signal.SIGKILL) == (seen.exit_code, seen.signal)
    assert [] == processes_of(attempt)


def test_a_second_stop_can_shorten_the_time(bench: Bench) -> None:
    attempt = bench.run_shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    until(lambda: "ready" in bench.texts(attempt))
    bench.stop(attempt, grace_s=3_600)
    bench.stop(attempt, grace_s=3_600)
    assert Sight.RUNNING is bench.wait_running(attempt).sight
    bench.stop(attempt, grace_s=0)
    assert 137 == bench.wait_over(attempt).exit_code


def test_a_task_that_stands_still_can_be_stopped(bench: Bench) -> None:
    attempt = bench.run_shell("trap 'exit 4' TERM; echo ready; kill -STOP $$; sleep 1000")
    until(lambda: "ready" in bench.texts(attempt))
    bench.stop(attempt, grace_s=50)
    assert 4 == bench.wait_over(attempt).exit_code


def test_a_stop_of_what_is_unknown_counts_as_ended_and_prevents_a_start(bench: Bench) -> None:
    launch = bench.shell("touch $MARK", environment={"MARK": str(bench.mark("ran"))})
    bench.stop(launch.attempt)
    bench.stop(launch.attempt)
    seen = bench.see(launch.attempt)
    assert seen is not None
    assert (Sight.ENDED, None) == (seen.sight, seen.exit_code)
    bench.start(launch)
    bench.restart()
    bench.start(launch)
    assert Sight.ENDED is bench.wait_over(launch.attempt).sight
    assert not bench.mark("ran").exists()


def test_a_stop_right_after_the_start_ends_it_or_prevents_it(bench: Bench) -> None:
    for _ in range(20):
        launch = bench.shell("sleep 1000")
        bench.start(launch)
        bench.stop(launch.attempt)
        assert Sight.ENDED is bench.wait_over(launch.attempt).sight
        assert [] == processes_of(launch.attempt)


def test_what_was_forgotten_is_told_no_more_and_its_log_can_be_read(bench: Bench) -> None:
    attempt = bench.run_shell("echo hello")
    bench.wait_over(attempt)
    bench.backend.forget((attempt,))
    assert () == bench.backend.observe()
    bench.restart()
    assert () == bench.backend.observe()
    assert ["hello"] == bench.texts(attempt)


def test_what_still_runs_is_not_forgotten(bench: Bench) -> None:
    attempt = bench.run_shell("sleep 1000")
    bench.wait_running(attempt)
    bench.backend.forget((attempt,))
    assert Sight.RUNNING is bench.wait_running(attempt).sight


def test_what_was_forgotten_is_not_started_again(bench: Bench) -> None:
    launch = bench.shell("echo ran >> $MARK", environment={"MARK": str(bench.mark("ran"))})
    bench.start(launch)
    bench.wait_over(launch.attempt)
    bench.backend.forget((launch.attempt,))
    bench.start(launch)
    assert Sight.ENDED is bench.wait_over(launch.attempt).sight
    assert "ran\n" == bench.mark("ran").read_text()


def test_a_reminder_of_what_is_not_known_here_does_not_run_it_again(bench: Bench) -> None:
    launch = bench.shell("touch $MARK", environment={"MARK": str(bench.mark("ran"))})
    bench.start(msgspec.structs.replace(launch, started_ms=1))
    assert Sight.LOST is bench.wait_over(launch.attempt).sight
    assert not bench.mark("ran").exists()


def test_after_their_days_attempts_are_deleted(tmp_path: Path) -> None:
    time_ms = now_ms()
    bench = Bench(tmp_path, keep_days=3)
    bench.backend.close()
    bench.backend = LocalBackend(bench.options, lambda: time_ms)
    old = bench.run_shell("echo old; echo x > {{output}}/old", name="old")
    bench.wait_over(old)
    bench.backend.forget((old,))
    time_ms += 3 * 86_400_000
    bench.backend.forget(())
    assert ["old"] == bench.texts(old)
    assert results_folder(bench.options, "flow-1", "old").exists()
    time_ms += 86_400_000
    new = bench.run_shell("echo new")
    bench.wait_over(new)
    bench.backend.forget((new,))
    assert bench.backend.read_log(old) is None
    assert not results_folder(bench.options, "flow-1", "old").exists()
    assert ["new"] == bench.texts(new)
    until(lambda: not any((bench.options.folder / "trash").iterdir()))
    bench.end()


def test_a_task_cannot_have_its_results_kept_longer(tmp_path: Path) -> None:
    time_ms = now_ms()
    bench = Bench(tmp_path, keep_days=3)
    bench.backend.close()
    bench.backend = LocalBackend(bench.options, lambda: time_ms)
    sly = bench.run_shell("touch -d 2100-01-01 {{output}}", name="sly")
    bench.wait_over(sly)
    bench.backend.forget((sly,))
    made = results_folder(bench.options, "flow-1", "sly")
    assert made.stat().st_mtime > 4_000_000_000
    (bench.options.folder / "past" / ".nothing-of-ours").touch()
    time_ms += 5 * 86_400_000
    bench.backend.forget(())
    assert not made.exists()
    bench.end()


def test_the_identity_of_an_attempt_cannot_name_another_folder(bench: Bench) -> None:
    for attempt in ("../../x/0", "a/b/0", "a", "a/-1", ".../0", "a/0\n", ""):
        with pytest.raises(Invalid):
            bench.backend.stop(Stop((attempt,), "cancel"))


def test_a_folder_has_one_server(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bough.backends.local.backend._LOCK_S", 0.1)
    with pytest.raises(Unavailable, match="Another server"):
        bench.open()


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    options = LocalOptions(folder=tmp_path / "file" / "local", gpus=1)
    with pytest.raises(Invalid, match="file/local cannot be the folder of the tasks"):
        LocalBackend(options, now_ms)


def test_a_task_for_a_node_that_is_not_here_cannot_be_started(bench: Bench) -> None:
    launch = bench.shell("true", node="elsewhere")
    bench.start(launch)
    seen = bench.wait_over(launch.attempt)
    assert Sight.UNSTARTABLE is seen.sight
    assert "elsewhere" in seen.message


def test_the_waker_is_called_when_a_task_ends(bench: Bench) -> None:
    rung: list[int] = []
    bench.backend.close()
    bench.backend = LocalBackend(bench.options, now_ms, lambda: rung.append(1))
    attempt = bench.run_shell(_WAIT, environment=_gate(bench))
    until(lambda: len(rung) == 1)
    bench.mark("gate").touch()
    # Two at once may come as one, so the second one is asked for when the first was heard.
    until(lambda: len(rung) == 2)
    assert Sight.ENDED is bench.wait_over(attempt).sight


def test_an_end_is_seen_although_no_event_told(bench: Bench) -> None:
    attempt = bench.run_shell(_WAIT, environment=_gate(bench))
    bench.wait_running(attempt)
    news = bench.options.folder / "news"
    news.rename(bench.options.folder / "elsewhere")
    bench.mark("gate").touch()
    assert Sight.ENDED is bench.wait_over(attempt).sight


def test_secrets_are_gone_from_the_disk_when_the_task_has_ended(bench: Bench) -> None:
    launch = bench.shell("sleep 0.1")
    secret = {"login": {"password": "open sesame"}}
    bench.start(msgspec.structs.replace(launch, secrets=secret))
    bench.wait_over(launch.attempt)

    def holding() -> list[Path]:
        found: list[Path] = []
        for above, _, names in os.walk(bench.options.folder):
            for each in (Path(above, name) for name in names):
                # What is removed at this moment holds nothing.
                with contextlib.suppress(FileNotFoundError):
                    if each.is_file() and b"open sesame" in each.read_bytes():
                        found.append(each)
        return found

    until(lambda: not holding())


def test_only_the_owner_can_look_into_an_attempt(bench: Bench) -> None:
    attempt = bench.run_shell("true")
    bench.wait_over(attempt)
    folder = bench.options.folder / "attempts" / attempt.replace("/", "-")
    assert 0o700 == os.stat(folder).st_mode & 0o777
    assert {0o600} == {each.stat().st_mode & 0o777 for each in folder.iterdir() if each.is_file()}


def test_many_attempts_are_seen_at_once(bench: Bench) -> None:
    launches = [bench.shell("exit 3") for _ in range(40)]
    for launch in launches:
        bench.start(launch)
    for launch in launches:
        bench.wait_over(launch.attempt)
    seen = {each.attempt: each.exit_code for each in bench.backend.observe()}
    assert {launch.attempt: 3 for launch in launches} == seen


def test_an_empty_start_and_stop_do_nothing(bench: Bench) -> None:
    bench.backend.start(Start("flow-1", "group", ()))
    bench.backend.stop(Stop((), "cancel"))
    expected: tuple[Observation, ...] = ()
    assert expected == bench.backend.observe()


def _gate(bench: Bench) -> dict[str, str]:
    return {"GATE": str(bench.mark("gate"))}


def _boot_ms() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def test_orders_of_an_older_leader_are_refused(bench: Bench) -> None:
    later = _boot_ms() + 600_000
    bench.backend.lead(Leadership(5, later))
    attempt = bench.run_shell("true")
    with pytest.raises(NotLeading):
        bench.backend.lead(Leadership(4, later))
    assert 0 == bench.wait_over(attempt).exit_code


def test_orders_that_come_after_their_lease_has_expired_are_refused(bench: Bench) -> None:
    """As of a server that was frozen with the order in its hand."""
    mark = bench.mark("started")
    running = bench.run_shell("sleep 600")
    bench.wait_running(running)
    bench.backend.lead(Leadership(5, _boot_ms() - 1))
    with pytest.raises(NotLeading):
        bench.run_shell(f"touch {mark}")
    with pytest.raises(NotLeading):
        bench.stop(running)
    bench.backend.lead(Leadership(5, _boot_ms() + 600_000))
    assert Sight.RUNNING is bench.wait_running(running).sight
    assert not mark.exists()


def test_supervisors_begin_nothing_for_a_server_that_no_longer_leads(bench: Bench) -> None:
    """Neither of an older lease, nor of an earlier opening of the folder, nor too late."""
    mark, later = bench.mark("started"), _boot_ms() + 600_000
    bench.backend.lead(Leadership(5, later))
    opening = bench.backend._order_lease.opening
    asked: list[OrderLease] = []
    supervise = bench.backend._fork_server.supervise
    bench.backend._fork_server.supervise = lambda _, lease: asked.append(lease)  # type: ignore[method-assign]
    attempt = bench.run_shell(f"touch {mark}")
    assert [OrderLease(opening, 5, later)] == asked
    name = folder_name(attempt)
    for older in (
        OrderLease(opening, 4, later),
        OrderLease(opening - 1, 6, later),
        OrderLease(opening, 5, _boot_ms() - 1),
    ):
        assert [] == take(Setup(bench.options), SupervisorRequest((name,), older))
    assert not mark.exists()
    bench.backend._fork_server.supervise = supervise  # type: ignore[method-assign]
    supervise([name], OrderLease(opening, 5, later))
    assert 0 == bench.wait_over(attempt).exit_code


def test_a_restored_database_may_begin_with_an_earlier_number(bench: Bench) -> None:
    bench.backend.lead(Leadership(9, _boot_ms() + 600_000))
    bench.restart()
    bench.backend.lead(Leadership(2, _boot_ms() + 600_000))
    assert 0 == bench.wait_over(bench.run_shell("true")).exit_code


def test_a_task_says_whether_it_was_told_to_end_before_it_did(bench: Bench) -> None:
    """So that no times have to be compared, which may be of clocks that were set in between."""
    alone = bench.run_shell("exit 3")
    told = bench.run_shell("trap 'exit 4' TERM; echo ready; while :; do sleep 0.01; done")
    bench.wait_text(told, "ready")
    ended = bench.wait_over(alone)
    assert (3, False) == (ended.exit_code, ended.told)
    bench.stop(alone)
    assert bench.wait_over(alone).told is False
    bench.stop(told, grace_s=60)
    ended = bench.wait_over(told)
    assert (4, True) == (ended.exit_code, ended.told)
