"""`bough quota` as people see it."""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from bough.cli.main import run

EXAMPLE = str(files("bough") / "examples" / "organisation")

API = "apiVersion: kueue.x-k8s.io/v1beta2\n"


@pytest.fixture
def bough(capsys: pytest.CaptureFixture[str]):
    """Run a command; exit code, standard output, standard error."""

    def run_command(*arguments: str) -> tuple[int, str, str]:
        code = run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_command


@pytest.fixture
def write(tmp_path: Path):
    def write_text(text: str) -> str:
        path = tmp_path / "objects.yaml"
        path.write_text(text)
        return str(path)

    return write_text


def test_show_draws_the_tree_with_a_line_for_each_resource(bough):
    code, output, errors = bough("quota", "show", EXAMPLE)
    assert (code, errors) == (0, "")
    lines = [re.sub(r" +", " ", line) for line in output.splitlines()]
    assert lines[0] == "NODE FLAVOR RESOURCE OWNS SUBTREE USED LENDS BORROWS CAN ADMIT"
    assert "company h100 nvidia.com/gpu 8 44 32 - 0 12" in lines
    assert "├─ production h100 nvidia.com/gpu 0 16 0 12/12 0 16" in lines
    assert "│ └─ serving h100 nvidia.com/gpu 16 16 12 0/0 0 20" in lines
    assert " ├─ sandbox a100 nvidia.com/gpu 0 0 8 0 8/8 0" in lines


def test_show_fits_into_110_columns(bough):
    _, output, _ = bough("quota", "show", EXAMPLE)
    assert max(len(line) for line in output.splitlines()) <= 110


def test_show_gives_json_in_plain_integers(bough):
    code, output, _ = bough("quota", "show", EXAMPLE, "--format-type", "json")
    nodes = {node["name"]: node for node in json.loads(output)["nodes"]}
    (cpu,) = [each for each in nodes["language"]["resources"] if each["resource"] == "cpu"]
    assert (code, cpu["nominal"], cpu["used"]) == (0, 512_000, 430_000)


def test_show_writes_amounts_as_people_do(bough, write):
    resources = "[{name: cpu, nominalQuota: 1.5}, {name: memory, nominalQuota: 64Gi}]"
    file = write(
        f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec:\n  resourceGroups:\n"
        f"  - coveredResources: [cpu, memory]\n    flavors: [{{name: f, resources: {resources}}}]\n"
    )
    _, output, _ = bough("quota", "show", file)
    assert re.search(r"^a +f +cpu +1500m +1500m +0 +- +0 +1500m$", output, re.MULTILINE)
    assert re.search(r"^ +f +memory +64Gi +64Gi +0 +- +0 +64Gi$", output, re.MULTILINE)


CYCLE = (
    f"{API}kind: Cohort\nmetadata: {{name: a}}\nspec: {{parentName: b}}\n---\n"
    f"{API}kind: Cohort\nmetadata: {{name: b}}\nspec: {{parentName: a}}\n"
)


def test_show_marks_a_tangled_tree_and_warns(bough, write):
    code, output, errors = bough("quota", "show", write(CYCLE))
    assert code == 0
    assert output.count("cycle: a → b → a") == 2
    assert "warning: Cohort/a: spec.parentName: its cohorts form a cycle" in errors


def test_show_marks_a_node_over_its_quota(bough, write):
    file = write(
        f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec:\n  resourceGroups:\n"
        "  - coveredResources: [gpu]\n"
        "    flavors: [{name: f, resources: [{name: gpu, nominalQuota: 2}]}]\n---\n"
        f"{API}kind: Workload\nmetadata: {{name: w}}\nspec:\n"
        "  podSets: [{count: 1, template: {spec: {containers: []}}}]\n"
        "status: {admission: {clusterQueue: a, podSetAssignments: [\n"
        "  {name: main, flavors: {gpu: f}, resourceUsage: {gpu: 5}}]}}\n"
    )
    _, output, _ = bough("quota", "show", file)
    assert re.search(r"^a .* over by 3$", output, re.MULTILINE)


def test_show_without_objects_says_so(bough, write):
    assert bough("quota", "show", write("---\n"))[:2] == (0, "no cohorts and no queues\n")


def test_show_of_bad_files_lists_the_errors(bough, write):
    code, output, errors = bough("quota", "show", write(CYCLE.replace("parentName", "parnt")))
    assert (code, output) == (2, "")
    assert errors.splitlines()[0] == "error: 2 errors in what was read"
    assert "objects.yaml:4: Cohort/a: spec.parnt: unknown field" in errors
    assert errors.splitlines()[-1] == "hint: --lenient turns unknown fields into warnings"


def test_show_reads_standard_input(bough, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(CYCLE.encode())))
    assert bough("quota", "show", "-")[0] == 0


def test_admit_says_yes(bough):
    code, output, _ = bough(
        "quota", "admit", EXAMPLE, "--queue", "serving", "--request", "gpu=24", "--request", "cpu=8"
    )
    assert (code, output) == (
        0,
        "yes: queue serving can take 24 nvidia.com/gpu on a100 and 8 cpu on any\n",
    )


def test_admit_says_no_with_the_inequality_and_the_holders(bough):
    code, output, _ = bough("quota", "admit", EXAMPLE, "--queue", "language", "--request", "gpu=16")
    assert code == 1
    assert output.splitlines()[:7] == [
        "no: queue language cannot take 16 nvidia.com/gpu",
        "",
        "  on h100: 8 would fit, 8 too many",
        "  T(x) - n >= -borrowingLimit fails at cohort research: -8 - 16 = -24 < -16",
        "",
        "    QUEUE     USED  OWNS  BORROWS  WORKLOAD              USES  PRIORITY",
        "    language    32    16       16  language/pretrain-7b    32       100",
    ]


def test_admit_says_when_a_request_can_never_fit(bough):
    _, output, _ = bough("quota", "admit", EXAMPLE, "--queue", "sandbox", "--request", "gpu=12")
    assert "it would not fit even if nothing ran" in output


def test_admit_says_what_the_nodes_below_serve_themselves(bough):
    _, output, _ = bough(
        "quota", "admit", EXAMPLE, "--queue", "serving", "--request", "gpu=24", "--flavor", "h100"
    )
    assert "  (n is the request without the 8 that nodes below serve themselves)" in output


def test_admit_says_that_a_queue_does_not_list_a_flavor(bough):
    code, output, _ = bough(
        "quota", "admit", EXAMPLE, "--queue", "sandbox", "--request", "gpu=1", "--flavor", "h100"
    )
    assert (code, output.splitlines()[-1]) == (
        1,
        "  queue sandbox does not list h100/nvidia.com/gpu",
    )


def test_admit_says_that_a_queue_is_stopped(bough, write):
    file = write(
        f"{API}kind: ClusterQueue\nmetadata: {{name: a}}\nspec:\n  stopPolicy: HoldAndDrain\n"
        "  resourceGroups:\n  - coveredResources: [gpu]\n"
        "    flavors: [{name: f, resources: [{name: gpu, nominalQuota: 2}]}]\n"
    )
    code, output, _ = bough("quota", "admit", file, "--queue", "a", "--request", "gpu=1")
    assert (code, output) == (1, "no: queue a is stopped (stopPolicy HoldAndDrain)\n")


def test_admit_gives_json(bough):
    code, output, _ = bough(
        "quota", "admit", EXAMPLE, "--queue", "vision", "--request", "gpu=9", "--flavor", "h100",
        "--format-type", "json",
    )  # fmt: skip
    answer = json.loads(output)
    assert (code, answer["admitted"]) == (1, False)
    assert answer["groups"][0]["tried"][0]["refusal"]["deficit"] == 1


def test_admit_needs_a_queue_and_a_request(bough):
    assert bough("quota", "admit", EXAMPLE, "--queue", "vision")[0] == 2
    assert bough("quota", "admit", EXAMPLE, "--request", "gpu=1")[0] == 2


def test_check_of_good_files_ends_with_0(bough):
    assert bough("quota", "check", EXAMPLE) == (0, "30 objects, 0 errors, 0 warnings\n", "")


def test_check_lists_problems_with_file_and_line_and_ends_with_1(bough, write):
    file = write(f"{API}kind: Cohort\nmetadata: {{name: A}}\nspec:\n  parent: b\n  x: 1\n")
    code, output, _ = bough("quota", "check", file)
    name, field, total = output.splitlines()
    assert code == 1
    assert name.startswith(f"{file}:3: error: Cohort/A: metadata.name: 'A' is not a valid name")
    assert field == f"{file}:6: error: Cohort/A: spec.x: unknown field"
    assert total == "1 object, 2 errors, 0 warnings"


def test_check_is_lenient_when_asked(bough, write):
    file = write(f"{API}kind: Cohort\nmetadata: {{name: a}}\nspec: {{x: 1}}\n")
    code, output, _ = bough("quota", "check", file, "--lenient")
    assert (code, output.splitlines()[-1]) == (0, "1 object, 0 errors, 1 warning")


def test_check_gives_json(bough, write):
    code, output, _ = bough("quota", "check", write("a: b: c"), "--format-type", "json")
    answer = json.loads(output)
    assert (code, answer["errors"], answer["problems"][0]["line"]) == (1, 1, 1)
