"""How long gangs have run, and what is safe from eviction until it has run long enough."""

from __future__ import annotations

from typing import Any

import pytest

from bough.cli.main import run
from tests.objects import cluster_queue, group, kueue, node, pod, queue, workload


def runs(name: str, status: str = "", queue: str = "q") -> str:
    """A preemptible gang of one GPU that runs on n; `status` of its pod."""
    made = group(name, queue=queue).replace("build", "train")
    return f"{made}\n---\n{pod(f'{name}-0', 'nodeName: n,')[:-1]}, status: {{{status}}}}}"


def safe_for_ten_hours(*more: str) -> tuple[str, ...]:
    """A gang that runs on the only GPU of a queue without quota, and one that wants it back."""
    safe = queue("lender", gpus="0", more=", reclaimMinRuntime: 10h")
    return (safe, queue(gpus="1"), ONE_GPU, group("owner"), pod("owner-0"), *more)


STARTED = 'phase: Running, startTime: "2026-01-01T00:00:00Z"'
ONE_GPU = node().replace('gpu: "8"', 'gpu: "1"')


def ended(answer: Any) -> list[str]:
    return [each["workload"] for each in answer["evictions"]]


def test_a_gang_is_safe_until_it_has_run_as_long_as_its_queue_says(ask):
    world = safe_for_ten_hours(runs("safe", STARTED, queue="lender"))

    assert [] == ended(ask("plan FILE --now 2026-01-01T01:00:00Z", *world))
    assert ["safe"] == ended(ask("plan FILE --now 2026-01-01T11:00:00Z", *world))


def test_a_gang_with_an_unknown_start_is_not_safe(ask):
    world = safe_for_ten_hours(runs("safe", "phase: Running", queue="lender"))

    assert ["safe"] == ended(ask("plan FILE --now 2026-01-01T01:00:00Z", *world))


def test_why_is_answered_for_the_time_that_is_named(ask):
    world = safe_for_ten_hours(runs("safe", STARTED, queue="lender"))
    early = ask("why FILE owner --now 2026-01-01T01:00:00Z", *world)["certificate"]
    late = ask("why FILE owner --now 2026-01-01T11:00:00Z", *world)["certificate"]

    assert ("waits", "nominated") == (early["verdict"], late["verdict"])


def test_a_gang_has_run_since_the_first_of_its_pods_that_run_was_started(scene):
    """What it gained later, what has ended and what does not say when it started do not count."""
    pods = (
        (0, "nodeName: n,", 'phase: Succeeded, startTime: "1970-01-01T00:00:01Z"'),
        (1, "nodeName: n,", 'phase: Running, startTime: "1970-01-01T00:00:03Z"'),
        (2, "nodeName: n,", 'phase: Running, startTime: "1970-01-01T00:00:02Z"'),
        (3, "nodeName: n,", "phase: Running"),
        (4, "", "phase: Pending"),
    )
    texts = [f"{pod(f'g-{at}', spec)[:-1]}, status: {{{status}}}}}" for at, spec, status in pods]
    found = scene(queue(), node(), group("g"), *texts).snapshot.gangs["q"]

    assert [2_000] == [gang.started_ms for gang in found]


@pytest.mark.parametrize(
    ("written", "started"),
    [("2026-01-01T00:00:05Z", 1_767_225_605_000), ("at noon", 1_767_225_600_000)],
)
def test_the_last_start_that_a_scheduler_wrote_down_counts_for_what_runs(scene, written, started):
    last = f'annotations: {{kai.scheduler/last-start-timestamp: "{written}"}}'
    runs_now, waits_now = (
        each.replace("metadata: {name: g", f"metadata: {{{last}, name: g", 1)
        for each in (runs("g1", STARTED), group("g2"))
    )
    found = scene(queue(), node(), runs_now, waits_now)

    assert [started, None] == [gang.started_ms for gang in found.snapshot.gangs["q"]]
    field = 'metadata.annotations["kai.scheduler/last-start-timestamp"]'
    told = [] if written.startswith("2026") else [("PodGroup/g1", field), ("PodGroup/g2", field)]
    assert told == [(each.subject, each.field) for each in found.problems]


def test_a_pod_on_its_own_and_a_workload_have_run_since_they_started(scene):
    alone = f"{pod('alone', 'nodeName: n,', labels='kai.scheduler/queue: team')[:-1]}, status: {{"
    alone += 'startTime: "1970-01-01T00:00:02Z"}}'
    reserved = """status:
  admission: {clusterQueue: team, podSetAssignments: [{name: main, flavors: {}, count: 1}]}
  conditions: [{type: QuotaReserved, status: "True", lastTransitionTime: "1970-01-01T00:00:03Z"}]
"""
    door = kueue("LocalQueue", "door, namespace: ns", "clusterQueue: team")
    work = workload("runs", "door") + reserved, workload("waits", "door")
    found = scene(
        kueue("ResourceFlavor", "h100"), cluster_queue("team"), node(), door, alone, *work
    )

    starts = {gang.name: gang.started_ms for gang in found.snapshot.gangs["team"]}
    assert {"alone": 2_000, "ns/runs": 3_000, "ns/waits": None} == starts


@pytest.mark.parametrize("command", ["plan FILE", "why FILE a"])
def test_a_time_that_is_none_is_told_precisely(tmp_path, capsys, command):
    path = tmp_path / "objects.yaml"
    path.write_text("\n---\n".join((queue(), node(), runs("a"))), encoding="utf-8")
    code = run([*command.replace("FILE", str(path)).split(), "--now", "noon"])

    told = "error: --now: 'noon' is not a time; write it like 2026-01-31T12:00:00Z.\n"
    assert (2, told) == (code, capsys.readouterr().err.splitlines(keepends=True)[0])


def test_a_start_that_is_no_time_is_an_error_with_its_path(tmp_path, capsys):
    path = tmp_path / "objects.yaml"
    path.write_text("\n---\n".join((queue(), node(), runs("g", "startTime: noon"))))

    assert run(["plan", str(path)]) == 2
    assert "Pod/g-0: status.startTime: 'noon' is not a time" in capsys.readouterr().err
