"""`quota` as plain data: show, admit, check."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from bough.errors import Invalid, NotFound
from bough.tools import admit as admit_tool
from bough.tools import quota as quota_tool
from tests.printed import as_json
from tests.unit.conftest import Osmo

show, check = as_json(quota_tool.show), as_json(quota_tool.check)
admit = as_json(admit_tool.admit)
EXAMPLE = str(files("bough") / "examples" / "organisation")

NODES = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {name: org}
spec:
  parentName: root
  resourceGroups:
  - coveredResources: [gpu]
    flavors:
    - {name: f, resources: [{name: gpu, nominalQuota: 2, borrowingLimit: 1, lendingLimit: 3}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  cohortName: org
  resourceGroups:
  - coveredResources: [gpu]
    flavors: [{name: f, resources: [{name: gpu, nominalQuota: 5, lendingLimit: 2}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: c}
spec:
  cohortName: root
  resourceGroups:
  - coveredResources: [gpu]
    flavors: [{name: f, resources: [{name: gpu, nominalQuota: 4}]}]
"""


def running(name: str, queue: str, gpus: int) -> str:
    return f"""
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {{name: {name}, namespace: n}}
spec:
  priority: 5
  podSets: [{{count: 1, template: {{spec: {{containers: []}}}}}}]
status:
  admission:
    clusterQueue: {queue}
    podSetAssignments: [{{name: main, flavors: {{gpu: f}}, resourceUsage: {{gpu: {gpus}}}}}]
"""


@pytest.fixture
def write(tmp_path: Path):
    def write_text(text: str) -> list[str]:
        path = tmp_path / "objects.yaml"
        path.write_text(text)
        return [str(path)]

    return write_text


def resource(answer: Any, name: str) -> Any:
    (node,) = [node for node in answer["nodes"] if node["name"] == name]
    (only,) = node["resources"]
    return only


def test_the_tree_is_listed_as_it_is_drawn(write):
    answer = show(write(NODES))
    assert [(node["kind"], node["name"], node["depth"]) for node in answer["nodes"]] == [
        ("cohort", "root", 0),
        ("cohort", "org", 1),
        ("queue", "a", 2),
        ("queue", "c", 1),
    ]
    assert [node["implicit"] for node in answer["nodes"]] == [True, False, False, False]


def test_each_node_says_what_it_owns_uses_lends_borrows_and_can_admit(write):
    answer = show(write(NODES + running("w", "a", 6) + running("v", "c", 1)))
    assert resource(answer, "a") == {
        "flavor": "f",
        "resource": "gpu",
        "nominal": 5,
        "borrowing_limit": None,
        "lending_limit": 2,
        "subtree_quota": 5,
        "used": 6,
        "balance": -1,
        "lends": 0,
        "borrows": 1,
        "available": 2,
        "debt": 0,
    }
    org = resource(answer, "org")
    # 2 of its own and the 2 that a lends, of which a uses 6 - 3 = 3 beyond what it keeps
    assert (org["subtree_quota"], org["used"], org["balance"], org["lends"]) == (4, 3, 1, 1)
    root = resource(answer, "root")
    assert (root["nominal"], root["subtree_quota"], root["used"]) == (None, 7, 3)
    assert (root["lends"], root["available"]) == (None, 4)
    assert resource(answer, "c")["lends"] == 3


def test_a_node_over_its_quota_says_by_how_much(write):
    answer = show(write(NODES + running("w", "a", 9)))
    assert (resource(answer, "org")["debt"], resource(answer, "a")["available"]) == (1, 0)


def test_a_tangled_tree_is_listed_with_its_cycle_and_admits_nothing(write):
    cycle = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: root}\n"
    answer = show(write(f"{NODES}{cycle}spec: {{parentName: org}}\n"))
    assert [(node["name"], node["depth"], node["cycle"]) for node in answer["nodes"]] == [
        ("org", 0, ["org", "root"]),
        ("root", 1, ["org", "root"]),
        ("c", 2, ["org", "root"]),
        ("a", 1, ["org", "root"]),
    ]
    assert resource(answer, "c")["available"] == 0
    (condition,) = answer["nodes"][0]["conditions"]
    assert (condition["status"], condition["reason"]) == (False, "CohortCycle")
    assert [problem["severity"] for problem in answer["problems"]] == ["warning", "warning"]


def test_errors_in_the_files_are_listed_in_the_error(write):
    with pytest.raises(Invalid, match="an error in what was read") as caught:
        show(write(NODES.replace("cohortName: root", "cohortNme: root")))
    (line,) = caught.value.details
    assert line.endswith(
        "objects.yaml:24: ClusterQueue/c: spec.cohortNme: unknown field; did you mean cohortName?"
    )
    assert "--lenient" in caught.value.hint


def test_unknown_fields_are_warnings_when_lenient(write):
    answer = show(
        write(NODES.replace("cohortName: root", "x: 1\n  cohortName: root")), lenient=True
    )
    assert [(each["severity"], each["line"]) for each in answer["problems"]] == [("warning", 24)]


def test_an_answer_is_ready_for_json():
    assert json.loads(json.dumps(show([EXAMPLE]))) == show([EXAMPLE])
    answer = admit([EXAMPLE], "language", ["gpu=16"])
    assert json.loads(json.dumps(answer)) == answer


def test_the_example_has_no_problems_and_shows_lending_borrowing_and_a_full_queue():
    assert check([EXAMPLE])["problems"] == []
    resources = [
        (node["kind"], each)
        for node in show([EXAMPLE])["nodes"]
        for each in node["resources"]
        if each["resource"] == "nvidia.com/gpu"
    ]
    assert any(each["borrows"] for _, each in resources)
    assert any(each["lends"] for _, each in resources)
    assert any(kind == "queue" and each["available"] == 0 for kind, each in resources)
    assert not any(each["debt"] for _, each in resources)


def test_a_request_that_fits_is_admitted_on_the_first_flavor_that_fits():
    answer = admit([EXAMPLE], "serving", ["gpu=24", "cpu=1500m"])
    assert answer["admitted"] is True
    assert answer["requests"] == {"nvidia.com/gpu": 24, "cpu": 1500}
    assert [(group["flavor"], len(group["tried"])) for group in answer["groups"]] == [
        ("a100", 2),
        ("any", 1),
    ]


def test_a_flavor_can_be_asked_for():
    answer = admit([EXAMPLE], "serving", ["gpu=24", "cpu=1"], flavor="h100")
    assert answer["admitted"] is False
    assert [group["flavor"] for group in answer["groups"]] == [None, "any"]


def test_a_refusal_names_inequality_node_deficit_and_holders(write):
    answer = admit(write(NODES + running("w", "a", 6) + running("v", "c", 1)), "a", ["gpu=3"])
    ((tried,),) = [group["tried"] for group in answer["groups"]]
    refusal = tried["refusal"]
    del refusal["sentence"]
    assert (answer["admitted"], refusal) == (
        False,
        {
            "kind": "over_quota",
            "resource": "gpu",
            "cycle": [],
            "requested": 3,
            "available": 2,
            "deficit": 1,
            "potential": 8,
            "never": False,
            "node": {"kind": "cohort", "name": "org"},
            "balance": 1,
            "passed": 3,
            "borrowing_limit": 1,
            "holders": [
                {
                    "queue": "a",
                    "used": 6,
                    "nominal": 5,
                    "borrows": 1,
                    "workloads": [{"name": "n/w", "amount": 6, "priority": 5}],
                }
            ],
        },
    )


def test_a_request_for_nothing_fits(write):
    assert admit(write(NODES), "a", ["gpu=0"])["admitted"] is True


def test_a_stopped_queue_takes_nothing(write):
    text = NODES.replace("cohortName: org", "cohortName: org\n  stopPolicy: Hold")
    answer = admit(write(text), "a", ["gpu=1"])
    assert (answer["admitted"], answer["held"]) == (False, "Hold")


def test_a_tangled_queue_takes_nothing(write):
    cycle = "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: root}\n"
    answer = admit(write(f"{NODES}{cycle}spec: {{parentName: org}}\n"), "a", ["gpu=1"])
    (group,) = answer["groups"]
    refusal = group["tried"][0]["refusal"]
    assert (refusal["kind"], refusal["cycle"]) == ("tangled", ["org", "root"])


def test_a_resource_that_only_others_list_is_refused():
    answer = admit([EXAMPLE], "sandbox", ["gpu=1"], flavor="h100")
    (group,) = answer["groups"]
    assert group["tried"][0]["refusal"]["kind"] == "not_listed"


def test_a_resource_that_the_queue_covers_with_no_flavor_is_refused(write):
    other = NODES.replace("[gpu]", "[tpu]").replace("name: gpu", "name: tpu")
    extra = other.replace("name: org", "name: org2").replace("name: a", "name: a2")
    extra = extra.replace("name: c}", "name: c2}").replace("{name: f,", "{name: g,")
    answer = admit(write(f"{NODES}---\n{extra}"), "a", ["tpu=1"])
    (group,) = answer["groups"]
    assert group["tried"][0]["refusal"]["sentence"] == "queue a does not list tpu"
    assert answer["admitted"] is False


@pytest.mark.parametrize(
    ("queue", "request_text", "flavor", "message"),
    [
        ("lanuage", "gpu=1", None, "there is no queue called lanuage; did you mean language?"),
        ("language", "gpu", None, "'gpu' is not a request; write it like gpu=4"),
        ("language", "=4", None, "'=4' is not a request; write it like gpu=4"),
        ("language", "gpus=4", None, "no queue lists a resource called gpus"),
        ("language", "gpu=1.5", None, "'1.5' is finer than a whole unit of nvidia.com/gpu"),
        ("language", "gpu=-1", None, "'gpu=-1' asks for less than none"),
        ("language", "gpu=1", "h10", "there is no flavor called h10; did you mean h100?"),
    ],
)
def test_a_bad_question_is_an_error(
    queue: str, request_text: str, flavor: str | None, message: str
):
    with pytest.raises((Invalid, NotFound)) as caught:
        admit([EXAMPLE], queue, [request_text], flavor=flavor)
    assert caught.value.message.startswith(message)


def test_a_resource_asked_for_twice_is_an_error():
    with pytest.raises(Invalid, match="is requested twice"):
        admit([EXAMPLE], "language", ["gpu=1", "nvidia.com/gpu=2"])


def test_a_short_name_that_may_mean_two_resources_is_an_error(write):
    groups = "[{name: x/gpu, nominalQuota: 1}, {name: y/gpu, nominalQuota: 1}]"
    text = (
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: a}\nspec:\n"
        f"  resourceGroups: [{{coveredResources: [x/gpu, y/gpu], "
        f"flavors: [{{name: f, resources: {groups}}}]}}]\n"
    )
    with pytest.raises(Invalid, match="gpu may mean x/gpu or y/gpu; write it out"):
        admit(write(text), "a", ["gpu=1"])


def test_check_counts_objects_errors_and_warnings(write):
    text = NODES.replace("nominalQuota: 4", "nominalQuota: -4") + running("w", "nowhere", 1)
    answer = check(write(text))
    assert answer["objects"] == {
        "cohorts": 1,
        "cluster_queues": 2,
        "resource_flavors": 0,
        "local_queues": 0,
        "workloads": 1,
    }
    assert (answer["errors"], answer["warnings"]) == (2, 0)
    assert [(each["line"], each["field"]) for each in answer["problems"]] == [
        (27, "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota"),
        (38, "status.admission.clusterQueue"),
    ]


def test_check_reports_a_file_that_is_no_yaml_and_reads_the_others(tmp_path: Path):
    (tmp_path / "a.yaml").write_text("a: [\n")
    (tmp_path / "b.yaml").write_text(NODES)
    answer = check([str(tmp_path)])
    assert answer["objects"]["cluster_queues"] == 2
    (problem,) = answer["problems"]
    assert (problem["file"], problem["line"]) == (str(tmp_path / "a.yaml"), 2)
    assert problem["message"].startswith("no valid YAML")


def test_a_very_long_text_is_cut_in_answers(write):
    name = "x" * 1_000_000
    answer = check(write(NODES.replace("name: org", f"name: {name}")))
    assert answer["errors"] == 1
    assert all(len(str(value)) <= 400 for each in answer["problems"] for value in each.values())


WEIGHED = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: a}
spec:
  cohortName: root
  fairSharing: {weight: 2}
  resourceGroups:
  - coveredResources: [gpu]
    flavors: [{name: f, resources: [{name: gpu, nominalQuota: 4}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: b}
spec:
  cohortName: root
  fairSharing: {weight: 0}
  resourceGroups:
  - coveredResources: [gpu]
    flavors: [{name: f, resources: [{name: gpu, nominalQuota: 1}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: a, namespace: n}
spec: {clusterQueue: a}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: waits, namespace: n}
spec:
  queueName: a
  podSets:
  - count: 3
    template:
      spec:
        containers: [{name: c, image: i, resources: {requests: {gpu: 1}}}]
"""


def test_every_node_says_its_share_and_what_is_fair_now(tmp_path: Path) -> None:
    path = tmp_path / "weighed.yaml"
    path.write_text(WEIGHED + running("x", "a", 2) + running("y", "b", 2))
    found = {each["name"]: each for each in show([str(path)])["nodes"]}

    def told(name: str) -> list[object]:
        node = found[name]
        (gpu,) = node["share"]["portions"]
        amounts = [gpu[key] for key in ("deserved", "used", "asked", "fair")]
        return [node["weight"], node["share"]["share"], node["share"]["resource"], *amounts]

    assert ["2", "0", "", 4, 2, 5, 4] == told("a")
    assert ["0", "infinite", "gpu", 1, 2, 2, 1] == told("b")
    assert ["1", "0", "", 5, 4, 7, 5] == told("root")


def test_shares_are_shown_as_a_table(tmp_path: Path, bough: Osmo) -> None:
    path = tmp_path / "weighed.yaml"
    path.write_text(WEIGHED + running("x", "a", 2) + running("y", "b", 2))
    ended = bough("quota", "show", str(path), "--shares")
    lines = [line.split() for line in ended.output.splitlines()]

    assert 0 == ended.code
    assert ["root", "1", "-", "gpu", "5", "4", "7", "5"] == lines[1]
    assert ["├─", "a", "2", "0", "gpu", "4", "2", "5", "4"] == lines[2]
    assert ["└─", "b", "0", "infinite", "gpu*", "1", "2", "2", "1"] == lines[3]


KAI_QUEUES = """\
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec:
  resources:
    gpu: {quota: 1, limit: -1, overQuotaWeight: 0.5}
    cpu: {quota: 0, limit: -1, overQuotaWeight: 1}
    memory: {quota: 0, limit: -1, overQuotaWeight: 1}
---
apiVersion: v1
kind: Node
metadata: {name: n}
status: {allocatable: {nvidia.com/gpu: "8", cpu: "8", memory: 8Gi, pods: "10"}}
"""


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        # What it uses beyond its own, 0 of 5 and 1 of 5, the latter without weight.
        ("kueue-fair", ("share", ("0", 4), ("infinite", 1))),
        # What it uses of what it may have: 2 of 4, and 2 of 1.
        ("kai-fair", ("fair_share", ("0.5", 4), ("2", 1))),
        ("ours.yaml", ("dominant_share", ("0", None), ("infinite", None))),
    ],
)
def test_shares_are_told_as_a_policy_compares_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, expected: tuple[object, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ours.yaml").write_text("preset: osmo\ngangs: {share_idle_by: dominant_share}\n")
    Path("weighed.yaml").write_text(WEIGHED + running("x", "a", 2) + running("y", "b", 2))
    answer = show(["weighed.yaml"], policy=policy)

    found = {each["name"]: each["share"] for each in answer["nodes"]}
    shares = ((found[name]["share"], found[name]["portions"][0]["fair"]) for name in ("a", "b"))
    assert expected == (answer["compares"], *shares)
    asked = [found[name]["portions"][0]["asked"] for name in ("a", "b", "root")]
    assert [5, 2, 7] == asked


def test_the_table_says_what_its_shares_are(tmp_path: Path, bough: Osmo) -> None:
    path, ours = tmp_path / "weighed.yaml", tmp_path / "ours.yaml"
    path.write_text(KAI_QUEUES)
    ours.write_text("gangs: {share_idle_by: dominant_share}\n")
    ended = bough("quota", "show", str(path), "--shares", "--policy", str(ours))

    assert 0 == ended.code
    assert "SHARE: the largest of what it uses beyond its own part of GPUs" in ended.output
    weight = next(line.split()[2] for line in ended.output.splitlines() if "team" in line)
    assert "0.5" == weight
    assert (
        "SHARE: what it uses of what it may have"
        in bough("quota", "show", str(path), "--shares", "--policy", "kai-fair").output
    )
    refused = bough("quota", "show", str(path), "--policy", "kai-fair")
    assert 2 == refused.code
    assert "--policy needs --shares" in refused.errors
