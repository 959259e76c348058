"""What a task of a workflow is made of, as it is written."""

from __future__ import annotations

from typing import Any

import pytest

from bough.control.workflows.specs import read_spec
from bough.errors import Invalid
from bough.formats.workflow.workflow import read_workflow
from bough.model.problem import Severity
from bough.model.task_template import (
    CheckpointSpec,
    CredentialUse,
    FileSpec,
    InputSpec,
    OutputSpec,
    TaskTemplate,
)
from bough.model.workflow import TaskSpec

TASK = "workflow: {name: x, tasks: [{name: before}, {name: a, %s}]}"


def task(fields: str) -> TaskSpec:
    return read_spec(TASK % fields).groups[1].tasks[0]


def template(fields: str) -> TaskTemplate:
    found = task(fields).launch
    assert found is not None
    return found


def complaints(fields: str, severity: Severity = Severity.ERROR) -> list[tuple[str, str]]:
    read = read_workflow(TASK % fields)
    start = "workflow.tasks[1]."
    return [
        (each.field.removeprefix(start), each.message)
        for each in read.problems
        if each.severity is severity
    ]


def test_a_command_is_read_word_by_word():
    found = template("image: u, command: [bash, -c], args: [run, 4, 0.5]")

    assert ("u", ("bash", "-c"), ("run", "4", "0.5")) == (found.image, found.command, found.args)
    assert [("args[0]", "expected text or a number, not true; put it in quotes")] == complaints(
        "args: [true]"
    )


def test_files_have_contents():
    found = template(
        "files: [{path: /etc/a, contents: 'b'}, {path: c/d, contents: aGk=, base64: true},"
        " {path: e, contents: 4}, {path: f, contents: ''}]"
    )

    assert (
        FileSpec("/etc/a", "b"),
        FileSpec("c/d", "aGk=", base64=True),
        FileSpec("e", "4"),
        FileSpec("f", ""),
    ) == found.files


def test_a_local_file_is_known_only_while_it_is_uploaded():
    text = TASK % "files: [{path: a, localpath: ../b}]"

    assert None is read_workflow(text).spec
    assert () == read_workflow(text, uploading=True).problems
    both = TASK % "files: [{path: a, localpath: b, contents: c}]"
    assert None is read_workflow(both, uploading=True).spec


def test_inputs_are_of_tasks_of_this_workflow_or_another_or_at_a_url():
    found = template(
        "inputs: [{task: before, regex: .*}, {task: 'old-3:train'},"
        " {url: 's3://b/{{ workflow_id }}'}]"
    )

    assert (
        InputSpec(task="before", regex=".*"),
        InputSpec(task="train", workflow="old-3"),
        InputSpec(url="s3://b/{{ workflow_id }}"),
    ) == found.inputs
    spec = read_spec(TASK % "inputs: [{task: before}, {task: 'old-3:train'}]")
    assert ("before-group",) == spec.groups[1].upstream


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ("inputs: [{}]", ("inputs[0].task", "an input is either a task or a url")),
        ("inputs: [{task: before, url: s3://b}]",
         ("inputs[0].task", "an input is either a task or a url")),
        ("inputs: [{dataset: {name: d}}]",
         ("inputs[0].dataset", "there are no datasets on this server; name a url")),
        ("inputs: [{task: befor}]",
         ("inputs[0].task", "there is no task 'befor'; did you mean before?")),
        ("outputs: [{dataset: {name: d}, url: s3://b}]",
         ("outputs[0].dataset", "there are no datasets on this server; name a url")),
        ("outputs: [{}]", ("outputs[0].url", "is missing")),
        ("checkpoint: [{path: a, url: s3://b}]",
         ("checkpoint[0].frequency", "is missing; say how often, as 10m")),
        ("credentials: {a: {A: k}, b: {A: k}}",
         ("credentials.b.A", "A is set by the credential a already")),
        ("environment: {A: b}, credentials: {a: {A: k}}",
         ("credentials.a.A", "A is set by the environment already")),
        ("credentials: {a: 5}",
         ("credentials.a", "expected text, not the number 5; put it in quotes")),
        ("credentials: {'a/b': /x}",
         ('credentials["a/b"]', "'a/b' is not the name of a credential")),
        ("replicas: 0", ("replicas", "is 0, but must be at least 1")),
        ("replicas: {min: 0, max: 4}", ("replicas.min", "is 0, but must be at least 1")),
        ("replicas: {min: 3, max: 2}",
         ("replicas.max", "is 2, but must be at least min, which is 3")),
        ("replicas: {min: 3}", ("replicas.max", "is missing")),
        ("replicas: many", ("replicas", "expected a whole number, not the text 'many'")),
        ("subGroup: x", ("subGroup", "group a-group has no subGroups")),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_task_is_said_where_it_stands(fields: str, complaint: Any):
    assert complaint in complaints(fields)


def test_results_and_checkpoints_go_to_urls():
    found = template(
        "outputs: [{url: s3://b/o, regex: '.*[.]pt'}],"
        " checkpoint: [{path: '{{output}}/m', url: s3://b/c, frequency: PT1M30S}]"
    )

    assert (OutputSpec("s3://b/o", ".*[.]pt"),) == found.outputs
    assert (CheckpointSpec("{{output}}/m", "s3://b/c", 90),) == found.checkpoints


def test_credentials_are_folders_or_variables():
    found = template("credentials: {s3: /root/s3, wandb: {WANDB_KEY: key, WANDB_USER: user}}")

    assert (
        CredentialUse("s3", mount="/root/s3"),
        CredentialUse("wandb", variables={"WANDB_KEY": "key", "WANDB_USER": "user"}),
    ) == found.credentials


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("15m", 900), ("8h", 28_800), ("2d", 172_800), ("1h30m", 5_400),
        ("PT8H", 28_800), ("P1DT2H", 93_600), ("P1W", 604_800), ("PT90S", 90),
    ],
)  # fmt: skip
def test_durations_are_simple_or_iso(text: str, seconds: int):
    spec = read_spec(
        f"workflow: {{name: x, timeout: {{exec_timeout: {text}}}, tasks: [{{name: a}}]}}"
    )

    assert seconds == spec.exec_timeout_s


@pytest.mark.parametrize("text", ["P", "PT", "P1Y", "P1M", "8", "h", "-1h", "PT-1H", "1.5d", "0s"])
def test_what_is_no_duration_is_refused(text: str):
    with pytest.raises(Invalid, match="exec_timeout"):
        read_spec(
            f"workflow: {{name: x, timeout: {{exec_timeout: '{text}'}}, tasks: [{{name: a}}]}}"
        )


def test_replicas_are_tasks_with_numbers():
    spec = read_spec("workflow: {name: x, tasks: [{name: w, replicas: 3, environment: {A: b}}]}")
    tasks = spec.groups[0].tasks

    assert ["w-0", "w-1", "w-2"] == [each.name for each in tasks]
    assert [True, False, False] == [each.lead for each in tasks]
    assert (None, ()) == (spec.groups[0].minimum, spec.groups[0].subgroups)
    environment = tasks[2].launch and tasks[2].launch.environment
    assert {"A": "b", "BOUGH_REPLICA": "2", "BOUGH_REPLICAS": "3"} == environment


def test_one_replica_is_named_where_something_is_read_from_it():
    text = "workflow: {name: x, tasks: [{name: w, replicas: 2}, {name: a, inputs: [{task: %s}]}]}"

    assert ("w-group",) == read_spec(text % "w-1").groups[1].upstream
    with pytest.raises(Invalid, match="'w' is there several times; name one of them, as w-0"):
        read_spec(text % "w")


def test_names_are_used_once_whatever_their_case():
    text = "workflow: {name: x, groups: [{name: g, tasks: [%s]}]}"
    for first, second in (("a", "A"), ("a_b", "a-b"), ("G", "b"), ("a", "a")):
        tasks = f"{{name: {first}, lead: true}}, {{name: {second}}}"
        with pytest.raises(Invalid, match="is the name of another task or group"):
            read_spec(text % tasks)
    with pytest.raises(Invalid, match="'a-group' is the name of another"):
        read_spec("workflow: {name: x, tasks: [{name: a}, {name: a-group}]}")


def test_what_has_no_effect_here_is_a_warning_only_if_it_would_change_something():
    assert [] == complaints("downloadType: download, cacheSize: 1Gi, kpis: [], hostNetwork: false")
    assert [] == complaints("backend: lab")
    assert [] == complaints("cacheSize: 1Gi, hostNetwork: false", Severity.WARNING)
    assert [("privileged", "has no effect on this server")] == complaints(
        "privileged: true", Severity.WARNING
    )


@pytest.mark.parametrize(
    ("key", "value", "ok"),
    [
        ("team", "vision", True), ("example.com/team", "a.b_c-d", True), ("k", "", False),
        ("k", 5, True), ("-k", "v", False), ("k", "v-", False), ("a/b/c", "v", False),
        ("E.com/k", "v", False), ("k" * 64, "v", False), ("k", "v" * 64, False), ("k", "é", False),
    ],
)  # fmt: skip
def test_labels_are_those_of_kubernetes_and_not_empty(key: str, value: Any, ok: bool):
    text = f"workflow: {{name: x, labels: {{'{key}': {value!r}}}, tasks: [{{name: a}}]}}"

    assert ok == (read_workflow(text).spec is not None)


def test_only_the_first_hundred_problems_are_told():
    read = read_workflow("workflow:\n" + "".join(f"  k{n}: 1\n" for n in range(1_000)))

    assert (None, 100) == (read.spec, len(read.problems))
