"""The notice before the end: the whole group has it, and a task that saves work has its time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.bench import Bench, processes_of, until

#: A program that saves its work when it is told to, and only then ends.
SAVES = "trap 'sleep 0.5; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
DEAF = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
#: Longer than any test waits.
FOREVER_S = 1_000_000


@pytest.fixture(params=[False, True], ids=["plain", "private"])
def bench(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Bench]:
    bench = Bench(tmp_path, private=request.param)
    try:
        yield bench
    finally:
        bench.end()


def ready(bench: Bench, script: str, shell: str = "sh") -> str:
    """A task that has come so far."""
    attempt = bench.run(shell, "-c", script, environment={"SAVES": SAVES, "DEAF": DEAF})
    until(lambda: "ready" in bench.texts(attempt))
    return attempt


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_what_a_shell_runs_may_save_its_work_although_the_shell_ends_at_once(
    bench: Bench, shell: str
) -> None:
    attempt = ready(bench, 'sh -c "$SAVES"; echo after', shell)
    bench.stop(attempt, grace_s=FOREVER_S)
    over = bench.wait_over(attempt)
    assert ["ready", "saved"] == [each for each in bench.texts(attempt) if each != "Terminated"]
    assert (143, 15) == (over.exit_code, over.signal)


def test_what_a_shell_runs_is_killed_when_its_time_is_up(bench: Bench) -> None:
    attempt = ready(bench, 'sh -c "$DEAF"; echo after')
    bench.stop(attempt, grace_s=1)
    bench.wait_over(attempt)
    assert ["ready"] == bench.texts(attempt)
    assert [] == processes_of(attempt)


def test_a_second_stop_shortens_the_time_of_what_a_shell_runs(bench: Bench) -> None:
    end = "trap 'echo told; trap - TERM; kill -TERM $$' TERM; "
    attempt = ready(bench, end + 'sh -c "$DEAF" & while :; do sleep 0.05; done')
    bench.stop(attempt, grace_s=FOREVER_S)
    until(lambda: "told" in bench.texts(attempt))
    bench.stop(attempt)
    bench.wait_over(attempt)
    assert [] == processes_of(attempt)


def test_what_went_away_from_the_group_has_no_notice_and_no_time(bench: Bench) -> None:
    attempt = ready(bench, "setsid sleep 1000 & echo ready; sleep 1000")
    bench.stop(attempt, grace_s=FOREVER_S)
    assert 143 == bench.wait_over(attempt).exit_code
    assert [] == processes_of(attempt)


def test_a_task_that_ends_by_itself_waits_for_no_other(bench: Bench) -> None:
    attempt = ready(bench, "trap 'exit 0' TERM; sh -c \"$DEAF\" & while :; do sleep 0.05; done")
    bench.stop(attempt, grace_s=FOREVER_S)
    assert 0 == bench.wait_over(attempt).exit_code
    assert [] == processes_of(attempt)


def test_a_task_leads_its_process_group(bench: Bench) -> None:
    attempt = bench.run("bash", "-c", "kill -0 -- -$$ && echo leads")
    bench.wait_over(attempt)
    assert ["leads"] == bench.texts(attempt)


def test_a_task_that_stops_its_group_and_goes_on_is_seen_to_end(bench: Bench) -> None:
    script = (
        'setsid sh -c ": > away; while sleep 0.1; do kill -CONT $$; done" & '
        "while [ ! -e away ]; do sleep 0.05; done; kill -STOP 0; exit 3"
    )
    assert 3 == bench.wait_over(bench.run_shell(script)).exit_code


def test_a_task_whose_group_stands_still_has_the_notice(bench: Bench) -> None:
    attempt = ready(bench, "trap 'exit 4' TERM; echo ready; kill -STOP 0")
    bench.stop(attempt, grace_s=FOREVER_S)
    assert 4 == bench.wait_over(attempt).exit_code
