"""The bed itself: its kubelets do with pods what a test says, and it ends with what started it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound
from bough.kube.objects import NODES, PODS, KubePod
from tests.kubernetes.bed import build
from tests.kubernetes.bed.audit import read_audit
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import GPU, pod
from tests.kubernetes.waiting import wait_for


def ended(client: KubeClient, namespace: str, name: str) -> KubePod | None:
    seen = client.get(PODS, name, namespace)
    return seen if seen.status.phase in ("Succeeded", "Failed") else None


def test_the_versions_are_those_of_the_module(bed: Bed) -> None:
    assert build.KUBERNETES == bed.ask("GET", "/version")["gitVersion"]
    assert f"k8s.io/kubernetes {build.KUBERNETES} " in (build.FOLDER / "go.mod").read_text()
    assert f"sigs.k8s.io/kwok {build.KWOK} " in (build.FOLDER / "go.mod").read_text()


def test_nodes_are_ready_and_have_their_gpus(client: KubeClient) -> None:
    def ready() -> bool:
        return all(
            ("Ready", "True") in {(each.type, each.status) for each in node.status.conditions}
            for node in client.list(NODES).items
        )

    wait_for(ready, "ready nodes")
    assert ["8"] * 4 == [
        (node.status.allocatable or {}).get(GPU) for node in client.list(NODES).items
    ]


@pytest.mark.parametrize(
    ("said", "phase", "code", "number", "reason"),
    [
        ({}, "Succeeded", 0, None, "Completed"),
        ({"exit_code": "3"}, "Failed", 3, None, "Error"),
        ({"signal": "9"}, "Failed", 137, 9, "Error"),
        ({"exit_code": "137", "reason": "OOMKilled"}, "Failed", 137, None, "OOMKilled"),
    ],
)
def test_a_pod_ends_as_its_annotations_say(
    client: KubeClient,
    fresh: str,
    said: dict[str, str],
    phase: str,
    code: int,
    number: int | None,
    reason: str,
) -> None:
    client.create(PODS, pod("a", "node-0", 0, run_for="50ms", **said), fresh)

    seen = wait_for(lambda: ended(client, fresh, "a"), "the end of a pod")

    how = seen.status.container_statuses[0].state.terminated
    assert how is not None
    assert (phase, code, number, reason) == (
        seen.status.phase,
        how.exit_code,
        how.signal,
        how.reason,
    )


def test_a_pod_says_by_a_variable_what_it_cannot_by_an_annotation(
    client: KubeClient, fresh: str
) -> None:
    body = pod("a", "node-0")
    variables = {"BED_RUN_FOR": "50ms", "BED_EXIT_CODE": "7"}
    body["spec"]["containers"][0]["env"] = [
        {"name": name, "value": value} for name, value in variables.items()
    ]
    client.create(PODS, body, fresh)

    seen = wait_for(lambda: ended(client, fresh, "a"), "the end of a pod")

    how = seen.status.container_statuses[0].state.terminated
    assert how is not None
    assert 7 == how.exit_code


def test_an_evicted_pod_and_one_that_is_refused_have_the_reason_themselves(
    client: KubeClient, fresh: str
) -> None:
    evicted = pod("a", "node-0", run_for="50ms", exit_code="137", pod_reason="Evicted")
    client.create(PODS, evicted, fresh)
    client.create(PODS, pod("b", "node-0", refused="OutOfcpu", message="no room"), fresh)

    seen = [wait_for(lambda name=name: ended(client, fresh, name)) for name in ("a", "b")]

    expected = [("Failed", "Evicted", ""), ("Failed", "OutOfcpu", "no room")]
    assert expected == [(p.status.phase, p.status.reason, p.status.message) for p in seen]
    assert () == seen[1].status.container_statuses


def test_a_pod_waits_with_a_reason(client: KubeClient, fresh: str) -> None:
    client.create(PODS, pod("a", "node-0", waiting="ImagePullBackOff", message="no image"), fresh)

    statuses = wait_for(lambda: client.get(PODS, "a", fresh).status.container_statuses)

    waiting = statuses[0].state.waiting
    assert waiting is not None
    assert ("ImagePullBackOff", "no image") == (waiting.reason, waiting.message)


def test_a_pod_that_runs_and_is_deleted_ends_first_and_then_goes(
    client: KubeClient, fresh: str
) -> None:
    client.create(PODS, pod("a", "node-0", stop_after="100ms"), fresh)
    wait_for(lambda: client.get(PODS, "a", fresh).status.phase == "Running", "a running pod")
    version = client.list(PODS, fresh).version
    client.delete(PODS, "a", fresh)

    phases = []
    for event in client.watch(PODS, version, fresh):
        phases.append((str(event.kind), event.object.status.phase))
        if event.kind == "DELETED":
            break

    assert ("MODIFIED", "Running") == phases[0]
    assert ("DELETED", "Failed") == phases[-1]


def test_the_audit_log_says_what_was_asked(bed: Bed, client: KubeClient, fresh: str) -> None:
    made = client.create(PODS, pod("a", "node-1"), fresh)
    client.delete(PODS, "a", fresh, uid=made.metadata.uid)

    asked = [each for each in read_audit(bed.audit_log) if each.namespace == fresh]

    mine = [
        (each.verb, each.resource, each.name, each.status) for each in asked if each.user == "admin"
    ]
    assert [("create", "pods", "a", 201), ("delete", "pods", "a", 200)] == mine
    assert "node-1" == asked[0].sent["spec"]["nodeName"]
    assert made.metadata.uid == asked[0].answered["metadata"]["uid"]


def test_logs_of_pods_can_be_read(client: KubeClient, fresh: str) -> None:
    client.create(PODS, pod("a", "node-0"), fresh)
    wait_for(lambda: client.get(PODS, "a", fresh).status.phase == "Running", "a running pod")

    lines = list(client.log("a", fresh))

    assert [b"2026-01-01T00:00:00.000000000Z a line of the bed\n"] == lines


def test_what_is_not_there_is_not_found(client: KubeClient, fresh: str) -> None:
    with pytest.raises(KubeNotFound, match='pods "a" not found'):
        client.get(PODS, "a", fresh)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _children(pid: int) -> list[int]:
    """The programs that a process started, by whichever of its threads."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_bed_for_ones_own_hands_ends_with_its_process_however_that_ends(
    bed: Bed,
    how: signal.Signals,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.kubernetes.bed"], stdout=subprocess.PIPE, text=True
    ) as started:
        assert started.stdout is not None
        said = started.stdout.readline()
        assert said.startswith("export KUBECONFIG=")
        kubeconfig = Path(said.strip().partition("=")[2])
        assert bed.kubeconfig != kubeconfig
        assert kubeconfig.is_file()
        programs = _children(started.pid)
        started.send_signal(how)
        started.wait()
    assert 3 == len(programs)
    wait_for(lambda: not any(map(_alive, programs)), "the end of the programs")
    assert (how is signal.SIGKILL) == kubeconfig.exists()
    if kubeconfig.exists():
        shutil.rmtree(kubeconfig.parent)
