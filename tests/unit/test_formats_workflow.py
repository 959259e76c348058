from __future__ import annotations

import re
from pathlib import Path

import pytest

from bough.control.workflows.rendering import render
from bough.control.workflows.specs import read_spec
from bough.errors import Invalid
from bough.formats.workflow.workflow import read_workflow
from bough.model.cluster import Resources
from bough.model.gang import TopologyConstraint

SERIAL = """
version: 2
workflow:
  name: serial-tasks
  timeout: {exec_timeout: 8h, queue_timeout: 2d}
  labels: {team: vision}
  resources:
    default: {cpu: 1, memory: 1Gi, storage: 2Gi}
    large: {gpu: 8, cpu: 500m, platform: h100, topology: [{key: rack}]}
  tasks:
  - {name: task1, image: ubuntu, command: [sh], args: [-c, "sleep 30"]}
  - {name: task2, image: ubuntu, resource: large, inputs: [{task: task1}, {url: s3://x}]}
  - {name: task3, image: ubuntu, inputs: [{task: task1}, {task: task2}],
     exitActions: {RESCHEDULE: 3, COMPLETE: "0,1-10"}, environment: {N: 4, T: x}}
"""


def test_lone_tasks_are_groups_that_wait_for_those_they_read_from():
    spec = read_spec(SERIAL)

    assert [("task1-group", ()), ("task2-group", ("task1-group",))] == [
        (group.name, group.upstream) for group in spec.groups[:2]
    ]
    assert ("task1-group", "task2-group") == spec.groups[2].upstream
    assert [True, True, True] == [group.tasks[0].lead for group in spec.groups]
    assert (8 * 3600, 2 * 86_400) == (spec.exec_timeout_s, spec.queue_timeout_s)
    assert {"team": "vision"} == spec.labels
    assert spec.text == SERIAL


def test_a_task_asks_for_the_resources_that_it_names_or_the_default():
    one, two, three = (group.tasks[0] for group in read_spec(SERIAL).groups)

    assert Resources(0, 1_000, 2**30) == one.requests == three.requests
    assert (Resources(8, 500), "h100") == (two.requests, two.platform)
    assert 2 * 2**30 == one.storage_bytes
    assert TopologyConstraint(required="rack") == read_spec(SERIAL).groups[1].constraint


def test_a_task_that_only_sleeps_holds_its_gpus_for_so_long():
    one, two, _ = (group.tasks[0] for group in read_spec(SERIAL).groups)

    assert (30, None) == (one.hold_s, two.hold_s)


def test_numbers_are_written_as_text_where_text_is_meant():
    task = read_spec(SERIAL).groups[2].tasks[0]

    assert {"RESCHEDULE": "3", "COMPLETE": "0,1-10"} == task.exit_actions
    assert {"N": "4", "T": "x"} == task.launch.environment


def test_a_group_has_one_lead():
    text = "workflow: {name: x, groups: [{name: g, tasks: [{name: a%s}, {name: b%s}]}]}"

    assert read_spec(text % (", lead: true", "")).groups[0].tasks[0].lead
    for leads in (("", ""), (", lead: true", ", lead: true")):
        with pytest.raises(Invalid, match="exactly one task is the lead of a group"):
            read_spec(text % leads)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workflow: {name: x}", "a workflow has either tasks or groups"),
        ("workflow: {name: x, tasks: [], groups: []}", "a workflow has either tasks or groups"),
        ("workflow: {name: 1x, tasks: [{name: a}]}", "'1x' is not valid"),
        ("workflow: {name: x, tasks: [{name: a/b}]}", "'a/b' is not valid"),
        ("workflow: {name: x, tasks: [{name: a, imag: u}]}", "did you mean image?"),
        ("workflow: {name: x, tasks: [{name: a, resource: r}]}", "not among the resources"),
        (
            "workflow: {name: x, resources: {default: {gpu: -1}}, tasks: [{name: a}]}",
            "must not be negative",
        ),
        (
            "workflow: {name: x, resources: {default: {gpu: 0.5}}, tasks: [{name: a}]}",
            "finer than a whole unit of gpu",
        ),
        ("workflow: {name: x, groups: [{name: g, tasks: []}]}", "at least one task"),
        ("workflow: {name: x, timeout: {exec_timeout: soon}, tasks: [{name: a}]}", "a duration"),
        ("{}", "workflow: is missing"),
        ("a: 1\n---\nb: 2", "one YAML document, not 2"),
        ("", "one YAML document, not 0"),
        ("{% for x in y %}", "line 1, column 2: no valid YAML"),
        (
            "workflow: {name: x, tasks: [{name: a, exitActions: {EXPLODE: 1}}]}",
            "'EXPLODE' does not exist",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text, message):
    with pytest.raises(Invalid) as caught:
        read_spec(text)

    assert message in caught.value.message or any(message in line for line in caught.value.details)


def test_all_problems_of_a_workflow_are_told_at_once():
    read = read_workflow("workflow:\n  name: 1x\n  tasks:\n  - {nam: a}\n")

    assert read.spec is None
    assert [("workflow.tasks[0].name", 4), ("workflow.name", 2), ("workflow.tasks[0].nam", 4)] == [
        (problem.field, problem.line) for problem in read.problems
    ]


def test_labels_of_the_submission_come_on_top():
    assert {"team": "robots", "x": "y"} == read_spec(SERIAL, {"team": "robots", "x": "y"}).labels


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "workflow-spec.md"


def test_the_workflows_of_the_reference_are_valid():
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    names = [read_spec(render(block).text).name for block in blocks]

    expected = ["train", "two-racks", "evaluate", "sweep", "gang", "serving", "sweep"]
    assert expected == names
