"""`bough plan` and `bough why`: files in, text or JSON out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bough.cli.main import run
from bough.model.policy import OSMO
from bough.model.quota import Quota, quotas_of
from bough.tools.load_snapshot import load_scene

ROOT = Path(__file__).parents[2]
BUSY = str(ROOT / "docs/examples/busy.yaml")
ORGANISATION = str(ROOT / "src/bough/examples/organisation")

NODE = """
apiVersion: v1
kind: Node
metadata: {name: node}
status: {allocatable: {nvidia.com/gpu: "4", cpu: "8", memory: 8Gi}}
"""
QUEUE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: team}
spec: {resources: {gpu: {quota: 1, limit: 2}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: alone, labels: {kai.scheduler/queue: team}}
spec: {containers: [{name: main, resources: {requests: {nvidia.com/gpu: "1"}}}]}
"""


@pytest.fixture
def answer(capsys: pytest.CaptureFixture[str]):
    def ask(*arguments: str) -> Any:
        assert run([*arguments, "--format-type", "json"]) == 0
        return json.loads(capsys.readouterr().out)

    return ask


@pytest.fixture
def file(tmp_path: Path):
    def write(*documents: str) -> str:
        path = tmp_path / "objects.yaml"
        path.write_text("\n---\n".join(documents))
        return str(path)

    return write


def test_a_plan_shows_what_starts_what_ends_and_what_waits(answer):
    found = answer("plan", BUSY)

    assert "osmo" == found["policy"]
    assert [] == found["starts"]
    (eviction,) = found["evictions"]
    assert ("vision-sweep", "reclaim", "language-pretrain") == (
        eviction["workload"],
        eviction["rule"],
        eviction["preemptor"],
    )
    assert {"kind": "cohort", "name": "research"} == eviction["level"]
    assert ["language-pretrain"] == [each["workload"] for each in found["nominations"]]
    assert {
        "vision-next": "quota",
        "vision-late": "behind",
        "language-probe": "pods",
        "product-batch": "limit",
        "language-scan": "place",
    } == {each["workload"]: each["reason"] for each in found["waits"]}
    assert all(each["sentence"] for each in found["waits"])


def test_a_plan_of_kueues_objects_uses_its_preset(answer):
    found = answer("plan", ORGANISATION)

    assert "kueue" == found["policy"]
    assert ["language/pretrain-13b"] == [each["workload"] for each in found["nominations"]]
    assert ["sandbox/distill-trial"] == [each["workload"] for each in found["waits"]]


def test_a_policy_file_changes_the_plan(answer, tmp_path: Path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("gangs: {reclaim: false}\n")

    found = answer("plan", BUSY, "--policy", str(policy))

    assert [] == found["evictions"]
    assert "language-pretrain" in {each["workload"] for each in found["waits"]}


def test_a_certificate_has_the_inequality_the_holders_and_the_remedies(answer):
    found = answer("why", BUSY, "vision-next", "--remedies")

    refusal = found["certificate"]["refusal"]
    assert {"kind": "queue", "name": "vision"} == refusal["node"]
    assert (4, 0, 4) == (refusal["requested"], refusal["available"], refusal["deficit"])
    assert ["vision-train"] == [each["workload"] for each in found["certificate"]["holders"]]
    assert ["wait", "run_as_low", "move", "move", "raise_quota"] == [
        each["kind"] for each in found["remedies"]["found"]
    ]
    assert [] == found["remedies"]["given_up"]


def test_remedies_are_only_searched_for_on_request(answer):
    assert answer("why", BUSY, "vision-next")["remedies"] is None


def test_a_namespace_may_be_left_out_where_only_one_fits(answer):
    found = answer("why", ORGANISATION, "distill-trial")

    assert "sandbox/distill-trial" == found["certificate"]["workload"]


def test_an_eviction_is_explained_to_its_victim(answer):
    found = answer("why", BUSY, "vision-sweep")

    assert "runs" == found["certificate"]["verdict"]
    assert -20 == found["eviction"]["excesses"][0]["balance"]


@pytest.mark.parametrize("workload", ["vision-nxt", "nobody"])
def test_an_unknown_workload_is_an_error(workload: str, capsys: pytest.CaptureFixture[str]):
    assert run(["why", BUSY, workload]) == 2

    printed = capsys.readouterr().err
    assert f"there is no workload called {workload}" in printed
    assert ("did you mean vision-next?" in printed) == (workload == "vision-nxt")


def test_text_names_domains_nodes_and_holders(capsys: pytest.CaptureFixture[str]):
    assert run(["why", BUSY, "language-scan"]) == 0

    printed = capsys.readouterr().out
    assert printed.startswith("language-scan waits (place): 2 pods of language-scan (4 gpu each)")
    assert "2 pods in one rack: a has room for 1, c has room for 1, b has room for 0" in printed
    assert "4 nodes without enough gpus" in printed
    assert "WORKLOAD           QUEUE     HAS  GUARANTEED  BORROWED  EVICTABLE" in printed


def test_a_quiet_cluster_is_said_to_be_quiet(file, capsys: pytest.CaptureFixture[str]):
    assert run(["plan", file(NODE, QUEUE)]) == 0

    assert "nothing waits and nothing changes\n" == capsys.readouterr().out


def test_where_no_queue_was_read_every_queue_may_use_all(file, capsys: pytest.CaptureFixture[str]):
    assert run(["plan", file(NODE, POD)]) == 0

    printed = capsys.readouterr()
    assert "starts\n  alone (queue team): 1 pod on node (1)\n" == printed.out
    assert "no Queue was read: every queue may use all that there is" in printed.err


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ((POD,), "there is no Node in what was read"),
        ((NODE,), "there is nothing to plan"),
        (("apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\n",), "nothing"),
        (
            (
                "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: a}\n",
                "\napiVersion: scheduling.run.ai/v2alpha2\nkind: PodGroup\nmetadata: {name: b}\n",
            ),
            "there is no Node in what was read",
        ),
        (("{",), "no valid YAML"),
    ],
)
def test_what_cannot_be_planned_is_an_error_and_no_traceback(
    documents: tuple[str, ...], message: str, file, capsys: pytest.CaptureFixture[str]
):
    assert run(["plan", file(*documents)]) == 2

    printed = capsys.readouterr().err
    assert message in printed
    assert "bug" not in printed


def test_an_organisation_of_kai_becomes_one_tree():
    snapshot, policy, *_ = load_scene([BUSY])

    gpus = {
        each.name: quotas_of(each.resource_groups)["any", "gpu"]
        for each in (*snapshot.cohorts, *snapshot.queues)
    }
    assert OSMO is policy
    assert {
        "(cluster)": Quota(20),
        "research": Quota(0),
        "vision": Quota(8),
        "language": Quota(12),
        "product": Quota(8, 4),
    } == gpus
    assert ["research", "research", "(cluster)"] == [each.cohort for each in snapshot.queues]


def test_a_file_without_a_workload_is_told_what_is_missing(capsys: pytest.CaptureFixture[str]):
    for arguments, missing in (
        ([BUSY], "WORKLOAD"),
        (["-"], "WORKLOAD"),
        (["vision-next"], "FILE..."),
        ([], "FILE..."),
    ):
        assert 2 == run(["why", *arguments])
        assert f"error: Missing argument '{missing}'." in capsys.readouterr().err


CPU_QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: team}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [cpu]
    flavors:
    - {name: spot, resources: [{name: cpu, nominalQuota: 2}]}
    - {name: reserved, resources: [{name: cpu, nominalQuota: 2500m}]}
"""
FLAVORS = [
    f"{{apiVersion: kueue.x-k8s.io/v1beta1, kind: ResourceFlavor, metadata: {{name: {name}}}}}"
    for name in ("spot", "reserved")
]
DOOR = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {name: door, namespace: ns}
spec: {clusterQueue: team}
"""
CPU_WORKLOAD = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata: {name: large, namespace: ns}
spec:
  queueName: door
  podSets:
  - name: main
    count: 3
    template: {spec: {containers: [{name: c, resources: {requests: {cpu: "1"}}}]}}
"""


def test_cpu_is_written_as_people_write_it(file, capsys: pytest.CaptureFixture[str]):
    assert 0 == run(["why", file(*FLAVORS, CPU_QUEUE, DOOR, CPU_WORKLOAD), "large"])

    shown = capsys.readouterr().out
    assert "on spot: queue team is short of 1 spot/cpu: 2 are left, 3 are asked for" in shown
    assert "on reserved: queue team is short of 500m reserved/cpu: 2500m are left, 3 are" in shown


def test_a_remedy_says_in_which_unit_a_queue_of_kai_is_written(
    file, capsys: pytest.CaptureFixture[str]
):
    queue = QUEUE.replace("limit: 2}", "limit: 2}, cpu: {quota: 1000, limit: 2000}")
    pod = POD.replace('gpu: "1"', 'gpu: "1", cpu: "3"')
    assert 0 == run(["why", file(NODE, queue, pod), "alone", "--remedies"])

    assert "raise the limit of Queue team from 2000 to 3000 thousandths of a cpu" in (
        capsys.readouterr().out
    )


def test_an_unknown_queue_gets_the_nearest_name(file, capsys: pytest.CaptureFixture[str]):
    run(["plan", file(NODE, QUEUE.replace("name: team", "name: teams"), POD)])
    assert "queue 'team' does not exist; did you mean teams?" in capsys.readouterr().err

    run(["quota", "check", file(*FLAVORS, CPU_QUEUE, DOOR.replace(": team}", ": taem}"))])
    assert "there is no ClusterQueue called taem; did you mean team?" in capsys.readouterr().out
