"""Quota from the objects of Kueue, on a real apiserver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bough.core.quota.tree import QuotaTree
from bough.kube.client import Patch
from bough.kube.objects import Kind, untyped
from bough.kube.watching import Relisted
from bough.pod_scheduler import kinds
from bough.pod_scheduler.cluster import ClusterView
from tests.kubernetes.bed.objects import GPU
from tests.kubernetes.scheduler.others import OwnerMaker, define_owners, definition
from tests.kubernetes.scheduler.scheduled import Scheduled, member, pod_group
from tests.kubernetes.scheduler.test_schedule import ask, condition_of
from tests.kubernetes.waiting import wait_for
from tests.scenario_file import read_scenario
from tests.scenarios.test_quota_scenarios import FILES, take

VERSION = "kueue.x-k8s.io/v1beta2"
RAW: dict[str, Kind[dict[str, Any]]] = {
    name: untyped(kind.api, kind.plural, namespaced=kind.namespaced)
    for name, kind in kinds.KUEUES.items()
}


@pytest.fixture
def kueue(cluster: Scheduled) -> Scheduled:
    """A cluster that knows the objects of Kueue, and has none of them."""
    for name, kind in kinds.KUEUES.items():
        scope = "Namespaced" if kind.namespaced else "Cluster"
        cluster.apply(definition("kueue.x-k8s.io", "v1beta2", name, kind.plural, scope=scope))
    for kind in RAW.values():
        wait_for(lambda kind=kind: cluster.is_served(kind), f"the definition of {kind.plural}")
    cluster.grant_kueue()
    for kind in RAW.values():
        for each in cluster.admin.list(kind).items:
            meta = each["metadata"]
            cluster.admin.delete(kind, meta["name"], meta.get("namespace", ""))
    return cluster


def put(cluster: Scheduled, kind: str, name: str, where: str = "", **spec: Any) -> None:
    body = {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    cluster.admin.patch(RAW[kind], name, body, where, Patch.APPLY, manager="test")


def cluster_queue(cluster: Scheduled, name: str, gpus: int, cohort: str, **spec: Any) -> None:
    flavor = {"name": "h100", "resources": [{"name": GPU, "nominalQuota": gpus}]}
    groups = [{"coveredResources": [GPU], "flavors": [flavor]}]
    spec = {"cohortName": cohort, "resourceGroups": groups, "namespaceSelector": {}, **spec}
    put(cluster, "ClusterQueue", name, **spec)


def organise(cluster: Scheduled) -> str:
    """Two queues of two GPUs in one cohort, a door to each, and nodes of their flavor."""
    where = cluster.namespace()
    cluster.add_nodes({"n1": 2, "n2": 2}, gpu="h100")
    put(cluster, "ResourceFlavor", "h100", nodeLabels={"gpu": "h100"})
    put(cluster, "Cohort", "org")
    cluster_queue(cluster, "vision", 2, "org")
    cluster_queue(cluster, "speech", 2, "org", preemption={"reclaimWithinCohort": "Any"})
    for name in ("vision", "speech"):
        put(cluster, "LocalQueue", name, where, clusterQueue=name)
    return where


def test_what_borrows_from_a_cohort_gives_it_back(kueue: Scheduled) -> None:
    define_owners(kueue)
    where = organise(kueue)
    owners = OwnerMaker(kueue, where)
    kueue.start("--quota=kueue")
    # The door of a Job is named by its owner, that of a PodGroup by itself, that of a pod by it.
    label = {"labels": {"kueue.x-k8s.io/queue-name": "vision"}}
    job = owners.job("borrows", metadata=label, parallelism=3)
    for number in range(3):
        owners.pod(f"borrows-{number}", job)
    kueue.wait_for_places(where, [f"borrows-{number}" for number in range(3)])
    group = pod_group("owns", minMember=2)
    group["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "speech"}
    kueue.apply(group, where=where)
    for number in range(2):
        kueue.create(member(f"owns-{number}", "owns"), where)
    wait_for(lambda: {"owns-0", "owns-1"} == kueue.places(where).keys(), "what is owned")
    shown = {each["name"]: each for each in ask(kueue, "queues")["nodes"]}
    assert {"org", "vision", "speech"} == shown.keys()
    assert [2] == [each["used"] for each in shown["speech"]["resources"]]
    alone = member("alone", gpus=3)
    alone["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "vision"
    kueue.create(alone, where)
    told = wait_for(lambda: condition_of(kueue, where, "alone"), "a reason")
    assert "2 are left of all that cohort org has" in told["message"]
    nowhere = member("nowhere")
    nowhere["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "none"
    kueue.create(nowhere, where)
    told = wait_for(lambda: condition_of(kueue, where, "nowhere"), "a reason")
    assert f"{where}/none" in told["message"]


def active(cluster: Scheduled, name: str) -> tuple[str, str] | None:
    """What a Cohort says about itself."""
    status = cluster.admin.get(RAW["Cohort"], name).get("status", {})
    for each in status.get("conditions", ()):
        if each["type"] == "Active":
            return each["status"], each["reason"]
    return None


def test_a_cycle_of_cohorts_stops_what_is_below_and_says_so(kueue: Scheduled) -> None:
    where = organise(kueue)
    put(kueue, "Cohort", "research", parentName="org")
    cluster_queue(kueue, "far", 2, "elsewhere")
    put(kueue, "LocalQueue", "far", where, clusterQueue="far")
    kueue.start("--quota=kueue")

    def send(name: str, door: str) -> None:
        made = member(name)
        made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = door
        kueue.create(made, where)

    send("early", "vision")
    kueue.wait_for_places(where, ["early"])
    put(kueue, "Cohort", "org", parentName="research")
    for name in ("org", "research"):
        wait_for(lambda name=name: active(kueue, name) == ("False", "CohortCycle"), name)
    events = wait_for(
        lambda: [
            each
            for each in kueue.list("Event", "default")
            if each["reason"] == "CohortCycle" and each["involvedObject"]["kind"] == "Cohort"
        ],
        "an event",
    )
    assert {"Warning"} == {each["type"] for each in events}
    send("late", "vision")
    # A cohort that no object declares has no part in it.
    send("other", "far")
    kueue.wait_for_places(where, ["early", "other"])
    told = wait_for(lambda: condition_of(kueue, where, "late"), "a reason")
    assert "org" in told["message"]
    kueue.admin.patch(RAW["Cohort"], "org", {"spec": {"parentName": None}})
    kueue.wait_for_places(where, ["early", "other", "late"])
    wait_for(lambda: active(kueue, "org") == ("True", "Ready"), "the end of it")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_objects_of_the_design_are_decided_as_designed(kueue: Scheduled, path: Path) -> None:
    scenario = read_scenario(str(path))
    for document in scenario.objects:
        written = document.value
        assert isinstance(written, dict)
        kind = RAW[str(written["kind"])]
        kueue.admin.create(kind, _plain(written))
    view = ClusterView("bough", kueue=True)
    for kind in kinds.KUEUES.values():
        view.hear(kind, Relisted(kueue.admin.list(kind).items, "1"))
    snapshot = view.take(0)
    assert len(scenario.objects) == len(snapshot.cohorts) + len(snapshot.queues)
    assert {} == snapshot.closed
    tree = QuotaTree.of(snapshot.cohorts, snapshot.queues)
    for step in scenario.steps:
        take(tree, step)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list) else value
