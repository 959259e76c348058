"""Objects as an API server prints them, through the commands that plan them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bough.cli.main import run


@pytest.fixture
def ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Write documents to a file and give it to a command; `FILE` stands for its name."""

    def ask(command: str, *documents: str) -> Any:
        path = tmp_path / "objects.yaml"
        path.write_text("\n---\n".join(documents), encoding="utf-8")
        arguments = command.replace("FILE", str(path)).split()
        code = run([*arguments, "--format-type", "json"])
        found = capsys.readouterr()
        assert code in {0, 3}, found.err
        return json.loads(found.out)

    return ask


def queue(name: str = "q", gpus: str = "8", more: str = "") -> str:
    free = "{quota: -1, limit: -1}"
    amounts = f"{{gpu: {{quota: {gpus}, limit: -1}}, cpu: {free}, memory: {free}}}"
    return (
        f"{{apiVersion: scheduling.run.ai/v2, kind: Queue, metadata: {{name: {name}}}, "
        f"spec: {{resources: {amounts}{more}}}}}"
    )


def group(name: str, spec: str = "minMember: 1", queue: str = "q") -> str:
    return (
        "{apiVersion: scheduling.run.ai/v2alpha2, kind: PodGroup, "
        f"metadata: {{name: {name}}}, "
        f"spec: {{queue: {queue}, priorityClassName: build, {spec}}}}}"
    )


def node(name: str = "n", *, spec: str = "", labels: str = "", ready: str = "True") -> str:
    """A node of 8 GPUs."""
    return (
        f"{{apiVersion: v1, kind: Node, metadata: {{name: {name}, labels: {{{labels}}}}}, "
        f"spec: {{{spec}}}, status: {{allocatable: "
        f'{{nvidia.com/gpu: "8", cpu: "64", memory: 256Gi, pods: "110"}}, '
        f'conditions: [{{type: Ready, status: "{ready}"}}]}}}}'
    )


def pod(name: str, spec: str = "", *, labels: str = "", requests: str = "") -> str:
    """A pod of one GPU that is called after its group: `a-0` belongs to `a`."""
    amounts = f'nvidia.com/gpu: "1", cpu: "1"{requests}'
    return (
        f"{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, "
        f"annotations: {{pod-group-name: {name.rpartition('-')[0]}}}, labels: {{{labels}}}}}, "
        f"spec: {{{spec} containers: [{{name: main, resources: {{requests: {{{amounts}}}}}}}]}}}}"
    )


def starts(answer: Any) -> dict[str, list[str]]:
    """By workload: the nodes of its pods."""
    return {each["workload"]: [pod["node"] for pod in each["pods"]] for each in answer["starts"]}


def waits(answer: Any) -> dict[str, str]:
    return {each["workload"]: each["sentence"] for each in answer["waits"]}


def warnings(answer: Any) -> list[tuple[str, str, str]]:
    assert {"warning"} >= {each["severity"] for each in answer["problems"]}
    return [(each["subject"], each["field"], each["message"]) for each in answer["problems"]]


FPGA = (
    queue(),
    node(),
    group("a"),
    group("b"),
    group("c"),
    pod("a-0"),
    pod("b-0", requests=", example.com/fpga: 1"),
    pod("c-0"),
)


def test_a_pod_that_asks_for_what_no_node_has_leaves_the_others_alone(ask):
    found = ask("plan FILE", *FPGA)

    assert {"a": ["n"], "c": ["n"]} == starts(found)
    assert {"b": "no node has example.com/fpga"} == waits(found)


def test_why_names_what_no_node_has(ask):
    found = ask("why FILE b --remedies", *FPGA)["certificate"]

    assert "no node has example.com/fpga" == found["sentence"]
    assert [["example.com/fpga"]] == [each["absent"] for each in found["lacks"]]


def test_place_names_what_no_node_has(ask):
    found = {each["name"]: each for each in ask("place --nodes FILE FILE", *FPGA)["gangs"]}

    assert (None, None) == (found["a"]["refusal"], found["c"]["refusal"])
    assert [["example.com/fpga"]] == [each["absent"] for each in found["b"]["refusal"]["lacks"]]


def test_a_resource_of_which_every_node_has_none_is_one_that_no_node_has(ask):
    empty = node().replace("pods:", "example.com/fpga: 0, pods:")
    found = ask("plan FILE", queue(), empty, group("b"), FPGA[6])

    assert {"b": "no node has example.com/fpga"} == waits(found)


@pytest.mark.parametrize(
    "closed",
    [
        node("n", spec="unschedulable: true"),
        node("n", ready="False"),
        node("n", ready="Unknown"),
    ],
)
def test_a_node_that_is_cordoned_or_not_ready_is_read_and_not_used(ask, closed: str):
    found = ask("plan FILE", queue(), closed, node("m"), group("a"), pod("a-0"))
    alone = ask("plan FILE", queue(), closed, group("a"), pod("a-0"))

    assert {"a": ["m"]} == starts(found)
    sentence = "1 of 1 pod of a (1 gpu, 1 cpu each) has no place: of the nodes 1 is "
    assert {"a": f"{sentence}cordoned or not ready"} == waits(alone)
    assert [] == warnings(alone)


KUBECTL = Path(__file__).parent / "objects" / "kubectl-get.yaml"


def test_what_kubectl_prints_is_read_without_a_word(ask):
    training = group("pg-training-5f1c, namespace: ml")
    found = ask("plan FILE", KUBECTL.read_text(encoding="utf-8"), queue(), training)

    assert [] == found["problems"]
    assert [] == found["starts"]
    assert {"ml/pg-training-5f1c": "ml/pg-training-5f1c needs 1 pod and there are 0: 1 short"} == (
        waits(found)
    )
