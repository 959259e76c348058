"""What a supervisor copies for tasks: inputs before, checkpoints while, results after they run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from bough.backends.local.attempt_state import read_state
from bough.backends.local.data.locations import results_folder, url_folder
from bough.backends.local.supervisor.processes import children
from bough.model.backend import Launch, Sight
from bough.model.task_template import CheckpointSpec, InputSpec, OutputSpec
from tests.local.bench import Bench, until


def test_results_of_a_task_are_the_inputs_of_a_later_one(bench: Bench) -> None:
    first = bench.shell("echo 42 > {{output}}/answer", name="first")
    bench.start(first)
    bench.wait_over(first.attempt)
    later = bench.shell("cat {{input:0}}/answer", inputs=(InputSpec(task="first"),))
    bench.start(later)
    assert 0 == bench.wait_over(later.attempt).exit_code
    assert ["42"] == bench.texts(later.attempt)


def test_results_are_there_before_the_end_is_seen(bench: Bench) -> None:
    attempt = bench.run_shell("echo 42 > {{output}}/answer", name="maker")
    bench.wait_over(attempt)
    folder = results_folder(bench.options, "flow-1", "maker")
    assert "42\n" == (folder / "answer").read_text()


def test_a_task_that_failed_has_no_results(bench: Bench) -> None:
    url = "s3://bucket/results"
    attempt = bench.run_shell(
        "echo 42 > {{output}}/answer; exit 1", name="loser", outputs=(OutputSpec(url),)
    )
    bench.wait_over(attempt)
    assert not results_folder(bench.options, "flow-1", "loser").exists()
    assert not url_folder(bench.options, url, "").exists()


def test_results_that_cannot_be_copied_fail_the_task(bench: Bench) -> None:
    url = "s3://bucket/results"
    target = url_folder(bench.options, url, "")
    target.parent.mkdir(parents=True)
    target.write_text("a file where a folder is to be")
    attempt = bench.run_shell("echo 42 > {{output}}/answer", outputs=(OutputSpec(url),))
    seen = bench.wait_over(attempt)
    assert (Sight.ENDED, 3001) == (seen.sight, seen.exit_code)
    assert "" != seen.message


def test_inputs_that_are_not_there_prevent_the_start(bench: Bench) -> None:
    launch = bench.shell("true", inputs=(InputSpec(task="nobody"),))
    bench.start(launch)
    seen = bench.wait_over(launch.attempt)
    assert Sight.UNSTARTABLE is seen.sight
    assert "nobody" in seen.message


def test_checkpoints_are_copied_while_a_task_runs_and_when_it_was_killed(bench: Bench) -> None:
    url = "s3://bucket/checkpoints"
    folder = url_folder(bench.options, url, "")
    script = (
        "mkdir -p saved; echo one > saved/step; "
        f"while ! test -e {bench.mark('gate')}; do sleep 0.01; done; "
        "echo two > saved/step; echo ready; sleep 1000"
    )
    attempt = bench.run_shell(script, checkpoints=(CheckpointSpec("saved/*", url, 1),))
    until(lambda: _read(folder / "step") == "one\n")
    bench.mark("gate").touch()
    until(lambda: "ready" in bench.texts(attempt))
    bench.stop(attempt)
    assert Sight.ENDED is bench.wait_over(attempt).sight
    assert "two\n" == _read(folder / "step")


def test_a_stop_ends_the_preparation(bench: Bench) -> None:
    launch, _ = _launch_endlessly(bench)
    _find_preparation(bench, launch)
    bench.stop(launch.attempt)
    seen = bench.wait_over(launch.attempt)
    assert (Sight.ENDED, None) == (seen.sight, seen.exit_code)


def test_a_preparation_that_is_killed_is_made_again(bench: Bench) -> None:
    launch, file = _launch_endlessly(bench)
    preparation = _find_preparation(bench, launch)
    # What follows is done at once.
    file.rename(file.with_name("aa"))
    os.kill(preparation, signal.SIGKILL)
    assert 0 == bench.wait_over(launch.attempt).exit_code
    assert ["small"] == bench.texts(launch.attempt)


def test_what_only_a_running_task_needs_is_removed(bench: Bench) -> None:
    attempt = bench.run_shell("echo x > left; echo y > $TMPDIR/left")
    bench.wait_over(attempt)
    until(lambda: not any(bench.options.folder.glob("attempts/*/task/*/left")))


def _launch_endlessly(bench: Bench) -> tuple[Launch, Path]:
    """Start a task whose input is picked by a regex that takes very long for one file."""
    url = "s3://bucket/large"
    folder = url_folder(bench.options, url, "")
    folder.mkdir(parents=True)
    file = folder / ("a" * 100 + "!")
    file.write_text("small\n")
    launch = bench.shell("cat {{input:0}}/*", inputs=(InputSpec(url=url, regex="a*" * 30 + "$"),))
    bench.start(launch)
    return launch, file


def _find_preparation(bench: Bench, launch: Launch) -> int:
    """The process that makes a task ready, as soon as another one tries the regex for it."""
    path = bench.options.folder / "attempts" / _name(launch) / "state"
    found: list[int] = []

    def is_there() -> bool:
        state = read_state(path)
        beside = () if state is None or state.supervisor is None else children(state.supervisor.pid)
        found.extend(each for each in beside if children(each))
        return bool(found)

    until(is_there)
    return found[0]


def _name(launch: Launch) -> str:
    return launch.attempt.replace("/", "-")


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
