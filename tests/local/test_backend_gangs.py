"""A gang starts together or not at all; each GPU is given to one attempt at a time."""

from __future__ import annotations

import stat

import pytest

from bough.backends.local.gpu_slots import GpuSlots
from bough.model.backend import Launch, Sight
from tests.local.bench import Bench, processes_of, until


def test_a_gang_starts_together(bench: Bench) -> None:
    script = "touch $OWN; while ! test -e $OTHER; do sleep 0.01; done"
    marks = [str(bench.mark("a")), str(bench.mark("b"))]
    gang = [
        bench.shell(script, environment={"OWN": own, "OTHER": other})
        for own, other in (marks, marks[::-1])
    ]
    bench.start(*gang)
    assert [0, 0] == [bench.wait_over(each.attempt).exit_code for each in gang]


@pytest.mark.parametrize("kind", ["missing", "command", "interpreter", "mode", "format", "long"])
def test_if_one_of_a_gang_cannot_be_started_none_has_done_anything(bench: Bench, kind: str) -> None:
    touch = {"environment": {"MARK": str(bench.mark("ran"))}}
    gang = [
        bench.shell("touch $MARK", name="before", **touch),
        _broken(bench, kind),
        bench.shell("touch $MARK", name="after", **touch),
    ]
    bench.start(*gang)
    seen = [bench.wait_over(each.attempt) for each in gang]
    assert [Sight.UNSTARTABLE] * 3 == [each.sight for each in seen], seen[0].message
    assert 1 == len({each.message for each in seen})
    assert seen[0].message.startswith("Task broken could not be started: ")
    assert [] == [pid for each in gang for pid in processes_of(each.attempt)]
    assert not bench.mark("ran").exists()


def test_the_reason_names_what_is_missing(bench: Bench) -> None:
    said: dict[str, str] = {}
    for kind in ("missing", "command", "interpreter", "mode", "format"):
        launch = _broken(bench, kind)
        bench.start(launch)
        said[kind] = bench.wait_over(launch.attempt).message
    assert "/no/such/program: there is no such file" in said["missing"]
    assert "there is no command 'no-such-command'" in said["command"]
    assert "its interpreter '/no/such/python' does not exist" in said["interpreter"]
    assert "Permission denied" in said["mode"]
    assert "it is not a program" in said["format"]


def test_the_gpus_of_a_gang_that_did_not_start_are_free_again(bench: Bench) -> None:
    for _ in range(3):
        gang = [bench.shell("true", gpus=7), _broken(bench, "missing")]
        bench.start(*gang)
        assert Sight.UNSTARTABLE is bench.wait_over(gang[0].attempt).sight
    attempt = bench.run_shell("echo $CUDA_VISIBLE_DEVICES", gpus=8)
    bench.wait_over(attempt)
    assert ["0,1,2,3,4,5,6,7"] == bench.texts(attempt)


def test_a_stop_of_one_leaves_the_rest_of_a_gang(bench: Bench) -> None:
    gang = [bench.shell("sleep 1000") for _ in range(3)]
    bench.start(*gang)
    for each in gang:
        bench.wait_running(each.attempt)
    bench.stop(gang[1].attempt)
    assert Sight.ENDED is bench.wait_over(gang[1].attempt).sight
    for each in (gang[0], gang[2]):
        assert Sight.RUNNING is bench.wait_running(each.attempt).sight


def test_what_a_gang_grows_by_is_started_beside_what_runs(bench: Bench) -> None:
    script = "echo ran >> $MARK; sleep 1000"
    first = bench.shell(script, environment={"MARK": str(bench.mark("first"))})
    bench.start(first)
    bench.wait_running(first.attempt)
    more = bench.shell(script, environment={"MARK": str(bench.mark("more"))})
    bench.start(first, more)
    bench.wait_running(more.attempt)
    for name in ("more", "first"):
        until(lambda name=name: bench.mark(name).exists() and bench.mark(name).read_text())
    assert "ran\n" == bench.mark("first").read_text()


def test_each_gpu_is_given_once_and_free_again_after_the_end(bench: Bench) -> None:
    held = bench.shell("echo $CUDA_VISIBLE_DEVICES; sleep 1000", gpus=3)
    first = bench.shell("echo $CUDA_VISIBLE_DEVICES; sleep 1000", gpus=2)
    bench.start(held)
    bench.start(first)
    assert ["0,1,2"] == until(lambda: bench.texts(held.attempt))
    assert ["3,4"] == until(lambda: bench.texts(first.attempt))
    bench.stop(held.attempt)
    bench.wait_over(held.attempt)
    bench.restart()
    last = bench.run_shell("echo $CUDA_VISIBLE_DEVICES", gpus=4)
    bench.wait_over(last)
    assert ["0,1,2,5"] == bench.texts(last)


def test_a_task_without_gpus_sees_none(bench: Bench) -> None:
    attempt = bench.run_shell('echo "<$CUDA_VISIBLE_DEVICES>"')
    bench.wait_over(attempt)
    assert ["<>"] == bench.texts(attempt)


def test_more_gpus_than_are_free_cannot_be_had(bench: Bench) -> None:
    holder = bench.run_shell("sleep 1000", gpus=5)
    attempt = bench.run_shell("true", gpus=4)
    seen = bench.wait_over(attempt)
    assert Sight.UNSTARTABLE is seen.sight
    assert "no 4 GPUs that are free" in seen.message
    assert Sight.RUNNING is bench.wait_running(holder).sight


def test_a_gpu_is_held_while_anything_of_its_task_is_left(bench: Bench) -> None:
    attempt = bench.run_shell("setsid sleep 1000 & exit 0", gpus=8)
    bench.wait_over(attempt)
    assert [] == processes_of(attempt)
    again = bench.run_shell("exit 0", gpus=8)
    assert 0 == bench.wait_over(again).exit_code


def test_cards_give_the_lowest_free_numbers() -> None:
    cards = GpuSlots({"a": (0, 1, 2, 3), "b": (4, 5)})
    assert (0, 1) == cards.take("a", 2, "x")
    assert (2,) == cards.take("a", 1, "y")
    assert cards.take("a", 2, "z") is None
    assert (4, 5) == cards.take("b", 2, "z")
    cards.free("a", (0, 1), "x")
    cards.free("a", (2,), "x")
    assert (0, 1, 3) == cards.take("a", 3, "z")
    assert () == cards.take("c", 0, "z")


def _broken(bench: Bench, kind: str) -> Launch:
    file = bench.mark(kind)
    if kind == "missing":
        return bench.launch("/no/such/program", name="broken")
    if kind == "command":
        return bench.launch("no-such-command", name="broken")
    if kind == "long":
        return bench.launch("/bin/echo", *["x" * 1_000] * 8_000, name="broken")
    file.write_text("#!/no/such/python\n" if kind == "interpreter" else "no program\n")
    if kind != "mode":
        file.chmod(file.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return bench.launch(str(file), name="broken")


def test_none_of_a_gang_stays_where_processes_cannot_be_held(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "bough.backends.local.supervisor.fork_server_client._MODULE", "tests.local.untraced"
    )
    bench.restart()
    gang = [bench.shell("sleep 1000"), _broken(bench, "interpreter"), bench.shell("true")]
    bench.start(*gang)
    seen = [bench.wait_over(each.attempt) for each in gang]
    assert [Sight.UNSTARTABLE] * 3 == [each.sight for each in seen]
    assert [] == [pid for each in gang for pid in processes_of(each.attempt)]
    whole = [bench.shell("exit 3"), bench.shell("exit 4")]
    bench.start(*whole)
    assert [3, 4] == [bench.wait_over(each.attempt).exit_code for each in whole]


def test_a_large_gang_starts(bench: Bench) -> None:
    gang = [bench.shell("exit 0") for _ in range(150)]
    bench.start(*gang)
    assert {0} == {bench.wait_over(each.attempt).exit_code for each in gang}
