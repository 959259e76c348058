"""What tasks do and leave behind, and what is told of it: starts, ends, data, logs, timeouts."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from tests.e2e.local import FAIL, Attempt, Local, gang, job, resources, serving_locally, task

#: Counts its steps, keeps each where it is found again, and goes on where it was. A step is told
#: before it is kept: where the signal to end comes between the two, it is told twice, never lost.
COUNT = """\
trap 'echo told to end; exit 0' TERM
trap 'echo finished; exit 0' USR1
step=$(cat {{input:0}}/counter/step 2>/dev/null || echo 0)
echo "begins after step $step."
mkdir -p /models/counter
while :; do
  step=$((step + 1))
  echo "step $step."
  echo $step > /models/counter/new && mv /models/counter/new /models/counter/step
  sleep 0.1
done
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Local]:
    with serving_locally(tmp_path_factory.mktemp("tasks"), 8) as local:
        yield local


@pytest.fixture
def local(host: Local) -> Iterator[Local]:
    """A pool `p` of eight GPUs."""
    host.pool("p", 8)
    yield host
    host.clear()


def serial(*tasks: dict[str, object]) -> dict[str, object]:
    return {"name": "serial", "resources": resources(1), "tasks": list(tasks)}


def test_a_gang_with_a_task_that_cannot_start_has_no_process(local: Local):
    broken = {**task("broken"), "command": ["/no/such/program"]}
    name = local.send("p", "NORMAL", gang([task("first"), task("second"), broken]))
    local.settle(FAILED_START_ERROR=[name])
    local.over(name)
    assert "broken" in local.message(name)
    assert "/no/such/program" in local.message(name)
    assert {"FAILED_START_ERROR"} == {each[-1].status for each in local.tasks(name).values()}
    assert {3003} == {each[-1].code for each in local.tasks(name).values()}


def test_a_preempted_job_goes_on_from_its_checkpoint(local: Local):
    url = "bough://p/counter"
    low = local.run(
        "p",
        8,
        "LOW",
        script=COUNT,
        inputs=[{"url": url}],
        checkpoint=[{"path": "/models/counter", "url": url, "frequency": "1s"}],
    )
    local.until(lambda: any("step 6." in line for line in local.log(low)))
    high = local.run("p", 8, "HIGH")
    local.left_waiting(low)
    local.finish(high)
    local.until(lambda: any("retry-1] step" in line for line in local.log(low)))
    local.finish(low)
    steps = [int(number) for number in re.findall(r"\] step (\d+)\.", "\n".join(local.log(low)))]
    assert list(range(1, steps[-1] + 1)) == sorted(set(steps))
    begun = re.findall(r"begins after step (\d+)\.", "\n".join(local.log(low)))
    assert "0" == begun[0]
    assert int(begun[1]) >= 5
    assert [
        Attempt(0, "FAILED_PREEMPTED", 3006),
        Attempt(1, "COMPLETED", 0),
    ] == local.attempts(low)


def test_tasks_get_what_those_before_them_wrote(local: Local):
    script = {"path": "/workspace/run.sh", "contents": "echo from the first > {{output}}/a\n"}
    first = task("first", "sh /workspace/run.sh", files=[script])
    second = task(
        "second",
        "cat {{input:0}}/a; echo from the second > {{output}}/b",
        inputs=[{"task": "first"}],
    )
    third = task(
        "third",
        "cat {{input:0}}/a {{input:1}}/b; ls {{input:1}}",
        inputs=[{"task": "first"}, {"task": "second"}],
    )
    name = local.send("p", "NORMAL", serial(first, second, third))
    local.over(name)
    assert "COMPLETED" == local.status(name)
    assert [
        "[second] from the first",
        "[third] from the first",
        "[third] from the second",
        "[third] b",
    ] == local.log(name)


def test_what_needs_a_failed_task_does_not_start(local: Local):
    first = task("first", "echo before; exit 3")
    second = task("second", "echo never", inputs=[{"task": "first"}])
    third = task("third", "echo never", inputs=[{"task": "second"}])
    name = local.send("p", "NORMAL", serial(first, second, third))
    local.over(name)
    assert "FAILED" == local.status(name)
    assert {
        "first": [Attempt(0, "FAILED", 3)],
        "second": [Attempt(0, "FAILED_UPSTREAM", 3000)],
        "third": [Attempt(0, "FAILED_UPSTREAM", 3000)],
    } == local.tasks(name)
    assert ["[first] before"] == local.log(name)


def test_a_restarted_workflow_uses_what_was_completed(local: Local):
    first = task("first", "echo once; date +%s%N > {{output}}/stamp")
    second = task(
        "second",
        "cat {{input:0}}/stamp; test $BOUGH_WORKFLOW_ID != restarted-1",
        inputs=[{"task": "first"}],
    )
    name = local.send("p", "NORMAL", {**serial(first, second), "name": "restarted"})
    local.over(name)
    assert "FAILED" == local.status(name)
    again = local.json("workflow", "restart", name)["name"]
    local.over(again)
    assert "COMPLETED" == local.status(again)
    assert 1 == local.log(name).count("[first] once")
    stamp = local.log(name)[-1]
    assert [stamp] == local.log(again)


def test_what_runs_or_waits_too_long_is_ended(local: Local):
    long = {**job(8), "timeout": {"exec_timeout": "2s"}}
    running = local.send("p", "NORMAL", long)
    waiting = local.send("p", "NORMAL", {**job(8), "timeout": {"queue_timeout": "1s"}})
    local.over(running, waiting)
    assert ["FAILED_EXEC_TIMEOUT", "FAILED_QUEUE_TIMEOUT"] == local.statuses(running, waiting)
    assert "Task ran longer than the set limit of" in local.message(running)
    assert "Task stayed in queue longer than the set limit of" in local.message(waiting)
    said = local.log(running)
    assert ("[main] holds GPUs 0,1,2,3,4,5,6,7.", "[main] told to end") == (said[0], said[-1])
    assert [] == local.log(waiting)


def test_what_is_cancelled_gets_notice_and_keeps_why(local: Local):
    name = local.run("p", 1, "NORMAL")
    local.done("workflow", "cancel", name, "--message", "no longer needed")
    local.over(name)
    found = local.workflow(name)
    assert ("FAILED_CANCELED", "admin") == (found["status"], found["cancelled_by"])
    assert "Task was canceled by user: admin. no longer needed" in found["failure_message"]
    assert "[main] told to end" == local.log(name)[-1]


def test_what_ignores_notice_is_killed_when_that_is_asked_for(local: Local):
    deaf = "trap '' TERM; echo deaf; while :; do sleep 1000; done"
    name = local.submit("p", 1, "NORMAL", script=deaf)
    local.until(lambda: ["[main] deaf"] == local.log(name))
    local.done("workflow", "cancel", name)
    assert 1 == len(local.mains(name))
    local.done("workflow", "cancel", name, "--force")
    local.over(name)
    assert "FAILED_CANCELED" == local.status(name)


@pytest.mark.parametrize(
    ("script", "code", "told"),
    [
        ("exit 42", 42, "42"),
        ("kill -9 $$", 137, "SIGKILL"),
        ("kill -SEGV $$", 139, "SIGSEGV"),
        ("exit 137", 137, "137"),
    ],
)
def test_exit_codes_and_signals_are_told_apart(local: Local, script: str, code: int, told: str):
    name = local.submit("p", 1, "NORMAL", script=script)
    local.over(name)
    assert [Attempt(0, "FAILED", code)] == local.attempts(name)
    (group,) = local.workflow(name)["groups"]
    assert told in group["tasks"][0]["failure_message"]
    assert ("SIG" in told) == ("SIG" in group["tasks"][0]["failure_message"])
    assert str(code) in local.done("workflow", "query", "--verbose", name)
    assert told in local.done("workflow", "events", name)


def test_logs_are_seen_while_the_task_runs(local: Local):
    name = local.run("p", 1, "NORMAL")
    with subprocess.Popen(
        local.command("workflow", "logs", name),
        env=local.environment,
        stdout=subprocess.PIPE,
        text=True,
    ) as reader:
        assert reader.stdout is not None
        seen = [reader.stdout.readline(), reader.stdout.readline()]
        assert "RUNNING" == local.status(name)
        assert [f"Workflow {name} has logs:\n", "[main] holds GPUs 0.\n"] == [
            seen[0],
            seen[1].split(" ", 2)[2],
        ]
        local.finish(name)
        rest = reader.stdout.read()
    assert 0 == reader.returncode
    assert rest.endswith("[main] finished\n")


def test_logs_of_each_attempt_and_of_errors_are_kept_apart(local: Local):
    script = "echo try $BOUGH_RETRY_ID; echo trouble >&2; test $BOUGH_RETRY_ID = 1 || exit 9"
    local.done("config", "set", "WORKFLOW", "max_retry_per_task=3")
    name = local.submit("p", 1, "NORMAL", script=script, exitActions={"RESCHEDULE": "9"})
    local.over(name)
    assert "COMPLETED" == local.status(name)
    assert [Attempt(0, "RESCHEDULED", 9), Attempt(1, "COMPLETED", 0)] == local.attempts(name)

    def logs(*arguments: str) -> list[str]:
        text = local.done("workflow", "logs", name, *arguments)
        # Two streams may be read in any order.
        return sorted(line.split(" ", 2)[2] for line in text.splitlines()[1:])

    assert ["[main] trouble", "[main] try 0"] == logs("--task", "main", "--retry-id", "0")
    assert ["[main retry-1] trouble", "[main retry-1] try 1"] == logs("--task", "main")
    assert ["[main retry-1] trouble", "[main] trouble"] == logs("--error")
    assert ["[main retry-1] trouble"] == logs("--error", "-n", "1")


def test_an_elastic_group_grows_into_what_is_free_and_gives_it_back(local: Local):
    held = local.run("p", 5, "NORMAL")
    elastic = gang([task("worker", replicas={"min": 2, "max": 6})])
    name = local.send("p", "LOW", elastic)
    local.until(lambda: 3 == len(local.ready(name)), lambda: local.shown(name))
    local.finish(held)
    local.until(lambda: 6 == len(local.ready(name)), lambda: local.shown(name))
    gpus = [gpu for each in local.mains() for gpu in each.gpus]
    assert 6 == len(set(gpus))
    local.run("p", 5, "NORMAL")
    local.until(lambda: 3 == len(local.mains(name)), lambda: local.shown(name))
    gpus = [gpu for each in local.mains() for gpu in each.gpus]
    assert list(range(8)) == sorted(gpus)
    assert "RUNNING" == local.status(name)
    assert not any("FAILED" in each.status for one in local.tasks(name).values() for each in one)


def test_the_end_of_the_lead_ends_the_others(local: Local):
    name = local.send("p", "NORMAL", gang([task("lead"), task("helper"), task("other")]))
    local.until(lambda: 3 == len(local.ready(name)))
    lead = next(each for each in local.mains(name) if each.environment["BOUGH_TASK"] == "lead")
    local.tell(lead, FAIL)
    local.over(name)
    assert "FAILED" == local.status(name)
    assert Attempt(0, "FAILED", 7) == local.tasks(name)["lead"][0]
    assert {"FAILED"} == {each[-1].status for each in local.tasks(name).values()}


def test_gpus_are_never_given_twice(local: Local):
    names = [local.submit("p", size, "NORMAL") for size in (1, 2, 3, 1, 1, 2, 2)]
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for _ in range(len(names)):
        local.until(lambda: bool(local.mains()))
        mains = local.mains()
        gpus = [gpu for each in mains for gpu in each.gpus]
        assert len(gpus) == len(set(gpus))
        assert set(gpus) <= set(range(8))
        seen |= {(each.attempt, each.gpus) for each in mains}
        local.finish(next(name for name in names if local.status(name) == "RUNNING"))
        if all(status == "COMPLETED" for status in local.statuses(*names)):
            break
    assert ["COMPLETED"] * 7 == local.statuses(*names)
    assert sorted([1, 2, 3, 1, 1, 2, 2]) == sorted(len(gpus) for _, gpus in seen)
    assert 7 == len({attempt for attempt, _ in seen})


def test_a_task_without_gpus_sees_none(local: Local):
    name = local.submit("p", 0, "NORMAL", script='echo "GPUs: <$CUDA_VISIBLE_DEVICES>"')
    local.over(name)
    assert ["[main] GPUs: <>"] == local.log(name)
