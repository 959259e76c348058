"""Workflow files as OSMO reads them: what it accepts, what it refuses, and where Bough is wider."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bough.control.workflows.specs import read_spec
from bough.errors import Invalid
from bough.formats.workflow.workflow import read_workflow
from bough.formats.yaml.composer import LinedDict, RepeatedKey, Unreadable, compose
from bough.model.problem import Severity
from bough.model.workflow import WorkflowSpec

TASK = "workflow: {name: x, tasks: [{name: a, image: i, command: [run], %s}]}"
GANG = (
    "workflow: {name: x, groups: [{name: g, minMember: 1, tasks: [{name: a, image: i, "
    "command: [run]}]}]}"
)
WORKFLOW = "workflow: {name: x, %s, tasks: [{name: a, image: i, command: [run]}]}"


def errors(text: str, *, strict_osmo: bool = False) -> list[str]:
    read = read_workflow(text, uploading=True, strict_osmo=strict_osmo)
    return [each.field for each in read.problems if each.severity is Severity.ERROR]


def environment(spec: WorkflowSpec) -> dict[str, str]:
    launch = spec.groups[0].tasks[0].launch
    assert launch is not None
    return launch.environment


# What stands twice, and what is taken over


def test_of_a_field_that_stands_twice_the_last_one_counts_and_both_lines_are_told():
    text = "workflow:\n  name: x\n  tasks:\n  - name: a\n    command: [one]\n    command: [two]\n"
    spec = read_spec(text)

    launch = spec.groups[0].tasks[0].launch
    assert launch is not None
    assert ("two",) == launch.command
    told = "workflow.tasks[0].command: stands here twice, on lines 5 and 6; the last one counts."
    assert (told,) == spec.warnings


def test_a_whole_workflow_that_stands_twice_is_refused():
    with pytest.raises(Unreadable, match="'workflow' stands here twice, first on line 1"):
        read_workflow("workflow: {}\nworkflow: {}\n")


def test_a_task_takes_over_the_fields_of_another_and_its_own_are_stronger():
    text = (
        "workflow:\n  name: x\n  tasks:\n"
        "  - &one {name: a, command: [run], environment: {A: '1'}, resource: default}\n"
        "  - {<<: *one, name: b, environment: {B: '2'}}\n"
    )
    first, second = (group.tasks[0] for group in read_spec(text).groups)

    assert ("a", "b") == (first.name, second.name)
    assert first.launch is not None
    assert second.launch is not None
    assert first.launch.command == second.launch.command
    assert {"B": "2"} == second.launch.environment


KEYS = st.sampled_from("abcde")
SMALL = st.dictionaries(KEYS, st.integers(0, 9), max_size=4)


@st.composite
def merging(draw: st.DrawFn) -> str:
    """A document whose mappings have merge keys and keys that stand twice."""
    anchored = [draw(SMALL) for _ in range(3)]
    lines = [f"m{number}: &m{number} {_flow(each)}" for number, each in enumerate(anchored)]
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            parts.append(f"{draw(KEYS)}: {draw(st.integers(0, 9))}")
            continue
        names = draw(st.lists(st.sampled_from(["*m0", "*m1", "*m2"]), min_size=1, max_size=3))
        parts.append(f"<<: {names[0]}" if len(names) == 1 else f"<<: [{', '.join(names)}]")
    return "\n".join([*lines, f"whole: {{{', '.join(parts)}}}", ""])


def _flow(values: dict[str, int]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"


@given(merging())
def test_merge_keys_and_repeated_keys_mean_what_the_usual_reader_makes_of_them(text: str):
    repeated: list[RepeatedKey] = []
    (value, _), *_ = compose(text, "x", repeated=repeated)

    assert yaml.safe_load(text) == value
    assert isinstance(value, LinedDict)
    whole = value["whole"]
    assert isinstance(whole, LinedDict)
    assert len(whole) == len(whole.lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {b: 1, b: 2}", "stands here twice, first on line 1"),
        ("a: &x {b: 1}\nc: {<<: *x}", "merge keys"),
    ],
)
def test_all_other_files_refuse_both(text: str, message: str):
    with pytest.raises(Unreadable, match=message):
        list(compose(text, "x"))


# Single fields


def test_what_is_true_or_false_in_an_environment_is_written_as_osmo_writes_it():
    spec = read_spec(TASK % "environment: {A: true, B: false, C: 5, D: 1.50, E: ''}")

    assert {"A": "True", "B": "False", "C": "5", "D": "1.50", "E": ""} == environment(spec)


@pytest.mark.parametrize("version", ["2", '"2"', "2.0"])
def test_the_version_is_two_however_it_is_written(version: str):
    assert [] == errors(f"version: {version}\n{TASK % 'args: []'}")


@pytest.mark.parametrize("version", ["1", '"1"', "3", "2.5", "true", "[2]", "two"])
def test_another_version_is_refused(version: str):
    assert ["version"] == errors(f"version: {version}\n{TASK % 'args: []'}")


def test_a_timeout_can_be_a_number_of_seconds():
    spec = read_spec(WORKFLOW % "timeout: {exec_timeout: 600, queue_timeout: 90}")

    assert (600, 90) == (spec.exec_timeout_s, spec.queue_timeout_s)


def test_the_default_resource_is_there_where_no_resources_are_written():
    assert [] == errors(TASK % "resource: default")
    assert ["workflow.tasks[0].resource"] == errors(TASK % "resource: large")


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ("environment: {A: null}", "environment.A"),
        ("environment: {A: [1]}", "environment.A"),
        ("downloadType: mount", "downloadType"),
        ("downloadType: 5", "downloadType"),
        ("volumeMounts: ['/a:/b:/c']", "volumeMounts[0]"),
        ("volumeMounts: [/a, '/b:']", "volumeMounts[1]"),
        ("volumeMounts: [':/b']", "volumeMounts[0]"),
        ("volumeMounts: [5]", "volumeMounts[0]"),
        ("volumeMounts: /a", "volumeMounts"),
    ],
)
def test_what_osmo_refuses_is_refused_where_it_stands(fields: str, place: str):
    assert [f"workflow.tasks[0].{place}"] == errors(TASK % fields)


def test_what_osmo_accepts_there_is_accepted():
    fields = "downloadType: download, volumeMounts: [/a, '/a:/b'], environment: {}"

    assert [] == errors(TASK % fields)
    assert [] == errors(TASK % fields, strict_osmo=True)


def test_an_empty_label_is_refused():
    assert ["workflow.labels.team"] == errors(WORKFLOW % "labels: {team: ''}")


def test_an_empty_command_is_refused():
    text = "workflow: {name: x, tasks: [{name: a, command: []}]}"

    assert ["workflow.tasks[0].command"] == errors(text)


# What only OSMO refuses


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("workflow: {name: x, tasks: [{name: a, command: [run]}]}", "workflow.tasks[0].image"),
        ("workflow: {name: x, tasks: [{name: a, image: i}]}", "workflow.tasks[0].command"),
        (TASK % "replicas: 2", "workflow.tasks[0].replicas"),
        (TASK % "args: null", "workflow.tasks[0].args"),
        (TASK % "cacheSize: [1]", "workflow.tasks[0].cacheSize"),
        (TASK % "kpis: [{index: a}]", "workflow.tasks[0].kpis[0].path"),
        (TASK % "files: [{path: /osmo/x, contents: a}]", "workflow.tasks[0].files[0].path"),
        (WORKFLOW % "resources: {default: {cpu: 500m}}", "workflow.resources.default.cpu"),
        (WORKFLOW % "resources: {default: {memory: 1Pi}}", "workflow.resources.default.memory"),
        (WORKFLOW % "timeout: {exec_timeout: 1h30m}", "workflow.timeout.exec_timeout"),
        (WORKFLOW % "resources: {large: {gpu: 1}}", "workflow.tasks[0].resource"),
        (GANG, "workflow.groups[0].minMember"),
        (
            "workflow: {name: x, tasks: [{name: OSMO_ctrl, image: i, command: [run]}]}",
            "workflow.tasks[0].name",
        ),
    ],
)
def test_strictly_what_an_osmo_server_would_refuse_is_refused(text: str, place: str):
    assert [] == errors(text)
    assert [place] == errors(text, strict_osmo=True)


def test_strictly_a_problem_says_that_it_is_one_of_osmo():
    with pytest.raises(Invalid, match=r"image: is missing \(OSMO\)"):
        read_spec("workflow: {name: x, tasks: [{name: a, command: [r]}]}", strict_osmo=True)


def test_strictly_the_backend_of_a_task_is_known_as_osmo_knows_it():
    assert [] == errors(TASK % "backend: lab", strict_osmo=True)
    assert ["workflow.tasks[0].backend"] == errors(TASK % "backend: [lab]", strict_osmo=True)
