"""`bough gang check` and `bough gang show`, as they are typed."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from bough.cli.main import run

EXAMPLE = str(files("bough") / "examples" / "gangs")

BAD = """\
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: bad}
spec:
  queue: nobody
  minSubGroup: 5
  subGroups:
  - {name: a, minMember: 1, colour: red}
---
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: somebody}
spec: {resources: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: lost, annotations: {pod-group-name: bad}}
spec: {containers: []}
"""


@pytest.fixture
def bad(tmp_path: Path) -> str:
    path = tmp_path / "bad.yaml"
    path.write_text(BAD, encoding="utf-8")
    return str(path)


def write(folder: Path, text: str) -> str:
    path = folder / "gangs.yaml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_example_has_no_problems(capsys):
    assert 0 == run(["gang", "check", EXAMPLE])
    assert "23 objects, 0 errors, 0 warnings\n" == capsys.readouterr().out


def test_problems_come_with_file_and_line_in_the_order_of_the_file(bad, capsys):
    assert 1 == run(["gang", "check", bad])
    label = 'metadata.labels["kai.scheduler/subgroup-name"]'
    missing = "is missing: PodGroup bad has subgroups, and each pod names one of a"
    queue = "the gang waits: queue 'nobody' does not exist; did you mean somebody?"
    assert [
        f"{bad}:5: warning: PodGroup/bad: spec.queue: {queue}",
        f"{bad}:6: error: PodGroup/bad: spec.minSubGroup: is 5, but there is only 1 child subgroup",
        f"{bad}:8: error: PodGroup/bad: spec.subGroups[0].colour: unknown field",
        f"{bad}:17: error: Pod/lost: {label}: {missing}",
        "3 objects, 3 errors, 1 warning",
    ] == capsys.readouterr().out.splitlines()


def test_unknown_fields_are_warnings_when_reading_leniently(bad, capsys):
    assert 1 == run(["gang", "check", "--lenient", "--format-type", "json", bad])
    answer = json.loads(capsys.readouterr().out)
    assert (2, 2) == (answer["errors"], answer["warnings"])
    assert {"pod_groups": 1, "pods": 1, "queues": 1, "topologies": 0} == answer["objects"]


def test_a_queue_that_takes_no_gangs_is_a_warning_and_a_reason_to_wait(tmp_path, capsys):
    text = BAD.replace("minSubGroup: 5", "minSubGroup: 1").replace(", colour: red", "")
    path = write(tmp_path, text.split("---\napiVersion: v1\n")[0])
    assert 0 == run(["gang", "check", path])
    expected = "spec.queue: the gang waits: queue 'nobody' does not exist"
    assert f"{path}:5: warning: PodGroup/bad: {expected}" in capsys.readouterr().out
    assert 0 == run(["gang", "show", "--format-type", "json", path])
    (gang,) = json.loads(capsys.readouterr().out)["gangs"]
    assert "queue 'nobody' does not exist" == gang["queue_obstacle"]


def test_a_pod_without_its_pod_group_is_a_warning(tmp_path, capsys):
    path = write(tmp_path, BAD.split("---\n")[2])
    assert 0 == run(["gang", "check", path])
    assert "there is no PodGroup 'bad'; the pod waits for it" in capsys.readouterr().out


def test_gangs_with_errors_are_not_shown(bad, capsys):
    assert 2 == run(["gang", "show", bad])
    captured = capsys.readouterr()
    assert ("", "error: 3 errors in what was read") == (
        captured.out,
        captured.err.splitlines()[0],
    )


def test_a_gang_is_shown_as_a_tree_with_what_it_needs(capsys):
    assert 0 == run(["gang", "show", f"{EXAMPLE}/inference.yaml"])
    lines = capsys.readouterr().out.splitlines()
    state = "stale, it runs with less than it needs; can be completed with 2 pods"
    assert [
        f"inference, queue serving: {state}",
        "  not preemptible: 6 pods; holds 5, of which 1 surplus; 3 waiting",
        "  gives back next: pod prefill-0-2 of prefill-0",
    ] == lines[:3]
    table = [" ".join(line.split()) for line in lines[3:]]
    assert [
        "NODE NEEDS HAS WAITING TO START SURPLUS TOGETHER NOTE",
        "inference 3 of 4 subgroups 2 3 2 1",
        "├─ prefill-0 2 pods 3 0 0 1 rack",
        "├─ prefill-1 2 pods 2 0 0 0 rack",
        "├─ prefill-2 2 pods 0 2 2 0 rack",
        "└─ prefill-3 2 pods 0 1 0 0 rack lacks pods",
    ] == table


def test_a_gang_is_shown_as_data_with_its_pods_named(capsys):
    assert 0 == run(["gang", "show", "--format-type", "json", f"{EXAMPLE}/inference.yaml"])
    (gang,) = json.loads(capsys.readouterr().out)["gangs"]
    expected = {
        "complete": False,
        "stale": True,
        "can_start": True,
        "not_preemptible": 6,
        "surplus": ["prefill-0-2"],
        "first_choice": ["prefill-2-0", "prefill-2-1"],
        "next_unit": {"kind": "pod", "node": "prefill-0", "pods": ["prefill-0-2"]},
        "shortages": [],
    }
    assert expected == {key: gang[key] for key in expected}


def test_a_pod_on_its_own_is_a_gang_of_one(tmp_path, capsys):
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: lonely}\nspec: {containers: []}\n"
    assert 0 == run(["gang", "show", write(tmp_path, pod)])
    line = capsys.readouterr().out.splitlines()[0]
    assert "lonely, queue default-queue: can start with 1 pod" == line


def test_pods_stand_by_age_then_as_they_were_written(tmp_path, capsys):
    texts = ["apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: pg}\n"]
    for name, created in (("young", 9), ("silent", None), ("old", 1), ("mute", None)):
        age = "" if created is None else f', creationTimestamp: "1970-01-01T00:00:0{created}Z"'
        texts.append(
            f"apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}{age},"
            " annotations: {pod-group-name: pg}}\nspec: {containers: [], nodeName: n}\n"
        )
    assert 0 == run(["gang", "show", "--format-type", "json", write(tmp_path, "---\n".join(texts))])
    (gang,) = json.loads(capsys.readouterr().out)["gangs"]
    assert ["old", "young", "silent", "mute"] == [*gang["core"], *gang["surplus"]]


def test_what_a_gang_lacks_is_said_in_one_line(tmp_path, capsys):
    pod_group = "apiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: empty}\n"
    assert 0 == run(["gang", "show", write(tmp_path, f"{pod_group}spec: {{minMember: 4}}\n")])
    line = capsys.readouterr().out.splitlines()[0]
    assert "empty: lacks pods: empty has 0 of 4" == line


def test_files_without_gangs_are_no_error(tmp_path, capsys):
    node = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
    assert 0 == run(["gang", "show", write(tmp_path, node)])
    assert "no gangs\n" == capsys.readouterr().out


def test_a_set_of_subgroups_is_shown_with_its_members(tmp_path, capsys):
    text = """
apiVersion: scheduling.run.ai/v2alpha2
kind: PodGroup
metadata: {name: pg}
spec:
  subGroups: [{name: a, minMember: 1}, {name: b, minMember: 1}, {name: c, minMember: 1}]
  topologyConstraints:
    subGroupSets: [{subGroups: [a, c], constraint: {requiredTopologyLevel: rack}}]
"""
    assert 0 == run(["gang", "show", write(tmp_path, text)])
    assert "a + c: rack" in capsys.readouterr().out
