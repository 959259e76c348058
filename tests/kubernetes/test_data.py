"""Data between tasks on a real apiserver: a folder of this machine is what all nodes mount.

Kubelets of the bed run no containers. So what the containers before tasks, and the pods that drop
folders, would run is read from the apiserver and run here, by a real shell.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.errors import Invalid
from bough.kube.objects import PODS
from tests.e2e.local import resources
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.conftest import fresh_namespace
from tests.kubernetes.served import Clustered, clustered

PREPARE = {"name": "prepare", "image": "bed", "args": ["{{output}}"]}
TRAIN = {"name": "train", "image": "bed", "inputs": [{"task": "prepare"}], "args": ["{{input:0}}"]}


@pytest.fixture
def keeping(eight_bed: Bed, tmp_path: Path) -> Iterator[Clustered]:
    """A server with a claim."""
    more = ("--kube-volume", "shared", "--kube-volume-image", "tools")
    with clustered(tmp_path, eight_bed, fresh_namespace(), more=more) as host:
        made = host.start()
        made.pool("team", 64)
        yield made


def two(**changed: Any) -> dict[str, Any]:
    """A workflow of two tasks, the second of which reads what the first left."""
    return {"name": "data", "resources": resources(1), "tasks": [PREPARE | changed, TRAIN]}


def run(container: dict[str, Any], claim: Path) -> subprocess.CompletedProcess[str]:
    """What a container would run, on a folder in the place of the claim."""
    assert [{"name": "bough-data", "mountPath": "/bough"}] == [
        {key: mount[key] for key in ("name", "mountPath")} for mount in container["volumeMounts"]
    ]
    command = [each.replace("$$(", "$(") for each in container["command"]]
    assert "/bough" == command[4]
    command[4] = str(claim)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def begin(server: Clustered, claim: Path, task: str) -> tuple[str, dict[str, Path]]:
    """Wait for the pod of a task and do what its kubelet would; its name, and what it mounts."""

    def found() -> list[dict[str, Any]]:
        return [
            each
            for each in server.pods()
            if each["metadata"]["labels"]["osmo.task_name"] == task
            and each["status"]["phase"] == "Running"
        ]

    server.until(lambda: bool(found()), server.pods)
    (pod,) = found()
    (before,) = pod["spec"]["initContainers"]
    assert (0, "") == ((said := run(before, claim)).returncode, said.stderr)
    claims = [each["persistentVolumeClaim"]["claimName"] for each in pod["spec"]["volumes"]]
    assert ["shared"] == claims
    (container,) = pod["spec"]["containers"]
    mounts = {each["mountPath"]: claim / each["subPath"] for each in container["volumeMounts"]}
    return pod["metadata"]["name"], mounts


def end(server: Clustered, name: str, code: int) -> None:
    server.annotate(name, {"bed.bough/run-for": "1ms", "bed.bough/exit-code": str(code)})


def drop(server: Clustered, claim: Path) -> list[str]:
    """Wait for the pod that drops folders, and do what its kubelet would; what it dropped."""

    def cleaners() -> list[dict[str, Any]]:
        pods = server.all_pods()
        return [each for each in pods if "bough.cleaner" in each["metadata"]["labels"]]

    server.until(lambda: bool(cleaners()), server.all_pods)
    (pod,) = cleaners()
    (container,) = pod["spec"]["containers"]
    assert 0 == run(container, claim).returncode
    end(server, pod["metadata"]["name"], 0)
    server.until(lambda: not cleaners(), cleaners)
    return container["command"][6:]


def test_a_task_reads_what_another_left_when_it_completed(keeping: Clustered, tmp_path: Path):
    name = keeping.send("team", "NORMAL", two())
    first, mounts = begin(keeping, tmp_path / "claim", "prepare")
    (mounts["/osmo/data/output"] / "model").write_text("weights")
    end(keeping, first, 0)
    second, seen = begin(keeping, tmp_path / "claim", "train")

    assert "weights" == (seen["/osmo/data/input/0"] / "model").read_text()
    assert mounts["/osmo/data/output"] == seen["/osmo/data/input/0"] != seen["/osmo/data/output"]
    end(keeping, second, 0)
    keeping.over(name)
    assert "COMPLETED" == keeping.status(name)
    # Nothing is dropped of what completed.
    assert "weights" == (seen["/osmo/data/input/0"] / "model").read_text()


def test_what_failed_leaves_nothing_for_the_next_attempt_nor_for_others(
    keeping: Clustered, tmp_path: Path
):
    claim = tmp_path / "claim"
    keeping.done("config", "set", "WORKFLOW", "max_retry_per_task=1")
    name = keeping.send("team", "NORMAL", two(exitActions={"RESCHEDULE": "5"}))
    first, mounts = begin(keeping, claim, "prepare")
    half = mounts["/osmo/data/output"] / "model"
    half.write_text("half")
    end(keeping, first, 5)
    assert [f"{half.parent.relative_to(claim)}"] == drop(keeping, claim)
    keeping.until(lambda: 2 == len(keeping.tasks(name)["prepare"]), lambda: keeping.shown(name))
    second, again = begin(keeping, claim, "prepare")

    assert not half.exists()
    assert [] == list(again["/osmo/data/output"].iterdir())
    end(keeping, second, 1)
    drop(keeping, claim)
    keeping.over(name)
    assert "FAILED" == keeping.status(name)
    assert [] == [each for each in claim.rglob("*") if each.is_file()]


def test_the_pod_of_what_failed_stays_until_its_folder_is_dropped(
    keeping: Clustered, tmp_path: Path
):
    name = keeping.send("team", "NORMAL", two())
    first, _ = begin(keeping, tmp_path / "claim", "prepare")
    end(keeping, first, 1)
    keeping.until(lambda: "FAILED" == keeping.status(name), lambda: keeping.shown(name))

    assert [first] == [each["metadata"]["name"] for each in keeping.pods()]
    drop(keeping, tmp_path / "claim")
    keeping.over(name)


def test_what_went_while_no_server_ran_is_dropped_by_the_next(eight_bed: Bed, tmp_path: Path):
    claim = tmp_path / "claim"
    more = ("--kube-volume", "shared", "--kube-volume-image", "tools")
    with clustered(tmp_path, eight_bed, fresh_namespace(), more=more) as host:
        server = host.start()
        server.pool("team", 64)
        server.done("config", "set", "WORKFLOW", "max_lost_retries=0")
        lost = server.send("team", "NORMAL", two())
        first, mounts = begin(server, claim, "prepare")
        cancelled = server.send("team", "NORMAL", {**two(), "tasks": [PREPARE | {"name": "alone"}]})
        second, others = begin(server, claim, "alone")
        for each in (mounts, others):
            (each["/osmo/data/output"] / "model").write_text("half")
        # It takes its time to end, and goes when no server is there to see it.
        server.annotate(second, {"bed.bough/stop-after": "8s"})
        server.done("workflow", "cancel", cancelled)
        server.until(lambda: any("deletionTimestamp" in each["metadata"] for each in server.pods()))
        host.stop(signal.SIGKILL)
        server.admin.delete(PODS, first, server.namespace, grace_s=1)
        server.until(lambda: not server.pods(), server.pods)

        server = host.start()
        wanted = {str(each["/osmo/data/output"].relative_to(claim)) for each in (mounts, others)}
        dropped: set[str] = set()
        while dropped < wanted:
            dropped |= set(drop(server, claim))
        server.over(lost, cancelled)

        assert wanted == dropped
        assert ["FAILED_BACKEND_ERROR", "FAILED_CANCELED"] == server.statuses(lost, cancelled)
        assert [] == [each for each in claim.rglob("*") if each.is_file()]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"inputs": [{"url": "s3://a/b"}]}, "inputs[0]: s3://a/b cannot be read: backend default"),
        ({"outputs": [{"url": "s3://a/b"}]}, "outputs[0].url: s3://a/b cannot be written"),
        (
            {"checkpoint": [{"path": "/x", "url": "s3://a/b", "frequency": "1m"}]},
            "checkpoint[0].url: s3://a/b cannot be written",
        ),
        ({"inputs": [{"task": "train", "regex": "x"}]}, "inputs[0].regex: 'x' cannot be used"),
    ],
)
def test_urls_and_parts_of_what_tasks_left_are_refused(keeping: Clustered, changed, message):
    train = {"name": "train", "image": "bed"}
    spec = {"name": "data", "resources": resources(1), "tasks": [train, PREPARE | changed]}
    text = Path(keeping.write(spec)).read_text()
    with pytest.raises(Invalid) as refused:
        keeping.client.workflows.submit("team", text)
    assert refused.value.message.startswith(f"Task prepare: {message}")
    assert [] == keeping.alive()
