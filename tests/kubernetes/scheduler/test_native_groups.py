"""PodGroups of Kubernetes itself (`scheduling.k8s.io/v1alpha2`) on a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.conftest import make_bed
from tests.kubernetes.scheduler.scheduled import (
    NATIVE_VERSION,
    Scheduled,
    bough,
    member,
    native_group,
    native_member,
    pod_group,
    queue,
)
from tests.kubernetes.waiting import wait_for


def test_a_native_gang_starts_whole_in_one_domain_of_its_label_or_not_at_all(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"a1": 2, "a2": 1}, rack="a")
    cluster.add_nodes({"b1": 2, "b2": 2}, rack="b")
    cluster.apply(queue("team"))
    together = {"topology": [{"key": "rack"}]}
    cluster.create(native_group("wide", 4, schedulingConstraints=together), where)
    cluster.create(native_group("large", 9), where)
    for number in range(4):
        cluster.create(native_member(f"wide-{number}", "wide"), where)
    for number in range(8):
        cluster.create(native_member(f"large-{number}", "large"), where)
    cluster.start()
    found = cluster.wait_for_places(where, [f"wide-{number}" for number in range(4)])
    assert ["b1", "b1", "b2", "b2"] == sorted(found.values())
    told = wait_for(lambda: condition_of(cluster, where, "large", "False"), "a reason")
    assert "Unschedulable" == told["reason"]
    answer = json.loads(
        bough("kube", "why", "podgroup/large", "-n", where, "-t", "json", kubeconfig(cluster))
    )
    assert "Pods: " + answer["sentence"] == told["message"]
    assert wait_for(lambda: condition_of(cluster, where, "wide", "True"), "that it runs")
    (record,) = cluster.records()
    decision = json.loads(record["decisions"])[f"{where}/wide (native)"]
    assert set(found.values()) == {each["node"] for each in decision.values()}
    events = [each for each in cluster.list("Event", where) if involves(each, "large")]
    assert ["Unschedulable"] == [each["reason"] for each in events]


def test_pods_of_a_basic_group_start_one_by_one(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 2})
    cluster.apply(queue("team"))
    cluster.create(native_group("loose"), where)
    for number in range(3):
        cluster.create(native_member(f"loose-{number}", "loose"), where)
    cluster.start()
    wait_for(lambda: len(cluster.places(where)) == 2, "as many as there is room for")


def test_a_gang_that_is_disrupted_whole_ends_whole_for_one_with_a_higher_priority(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 3})
    cluster.apply(queue("team", 3))
    important = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 90}
    cluster.apply({**important, "metadata": {"name": "important"}})
    cluster.create(native_group("whole", 1, disruptionMode="PodGroup"), where)
    for number in range(3):
        cluster.create(native_member(f"whole-{number}", "whole"), where)
    cluster.start()
    cluster.wait_for_places(where, [f"whole-{number}" for number in range(3)])
    cluster.create(native_group("urgent", 1, priorityClassName="important"), where)
    cluster.create(native_member("urgent-0", "urgent"), where)
    cluster.wait_for_places(where, ["urgent-0"])
    told = wait_for(
        lambda: condition_of(cluster, where, "whole", "True", "DisruptionTarget"), "a condition"
    )
    assert "PreemptionByScheduler" == told["reason"]
    assert "urgent" in told["message"]
    cluster.create(native_member("whole-3", "whole"), where)
    cluster.wait_for_places(where, ["urgent-0", "whole-3"])
    wait_for(
        lambda: condition_of(cluster, where, "whole", "False", "DisruptionTarget"),
        "that it is over",
    )


def test_what_the_leader_before_began_of_a_native_gang_is_finished(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 4, "n2": 4})
    cluster.apply(queue("team"))
    cluster.create(native_group("half", 2), where)
    first = cluster.create(native_member("half-0", "half", nodeName="n1"), where)
    second = cluster.create(native_member("half-1", "half"), where)
    decision = {
        f"{where}/{each['metadata']['name']}": {"uid": each["metadata"]["uid"], "node": place}
        for each, place in ((first, "n1"), (second, "n2"))
    }
    cluster.record_decision(f"{where}/half (native)", decision)
    cluster.start()
    assert {"half-0": "n1", "half-1": "n2"} == cluster.wait_for_places(where, ["half-0", "half-1"])


def test_groups_of_both_kinds_may_have_one_name_and_a_pod_names_one_of_them(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    cluster.apply(pod_group("same", minMember=2), where=where)
    cluster.create(native_group("same", 2), where)
    cluster.create(member("kai-0", "same"), where)
    cluster.create(native_member("own-0", "same"), where)
    both = member("both", "same", schedulingGroup={"podGroupName": "same"})
    cluster.create(both, where)
    cluster.start()
    told = wait_for(lambda: condition_of(cluster, where, "same", "False"), "a reason")
    assert "same (native) needs 2 pods and there is 1" in told["message"]
    cluster.create(native_member("own-1", "same"), where)
    cluster.wait_for_places(where, ["own-0", "own-1"])
    cluster.create(member("kai-1", "same"), where)
    cluster.wait_for_places(where, ["own-0", "own-1", "kai-0", "kai-1"])


def test_a_workload_and_what_was_made_from_it_is_checked_in_files_as_the_apiserver_has_it(
    cluster: Scheduled, tmp_path: Path
) -> None:
    where = cluster.namespace()
    template = {"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}
    workload = {
        "apiVersion": NATIVE_VERSION,
        "kind": "Workload",
        "metadata": {"name": "train"},
        "spec": {"podGroupTemplates": [template]},
    }
    cluster.create(workload, where)
    reference = {"workload": {"workloadName": "train", "podGroupTemplateName": "workers"}}
    wait_for(lambda: cluster.list("Workload", where), "the Workload")
    cluster.create(native_group("train-1", 2, podGroupTemplateRef=reference), where)
    cluster.create(native_member("train-1-0", "train-1"), where)
    documents = [
        {"apiVersion": version, "kind": kind.removeprefix("Native"), **each}
        for kind, version in (
            ("Workload", NATIVE_VERSION),
            ("NativePodGroup", NATIVE_VERSION),
            ("Pod", "v1"),
        )
        for each in cluster.list(kind, where)
    ]
    file = tmp_path / "dump.yaml"
    file.write_text("\n---\n".join(json.dumps(each) for each in documents))
    assert ", 0 errors, 0 warnings" in bough("gang", "check", str(file))


@pytest.fixture
def older() -> Iterator[Scheduled]:
    """A cluster that does not know these objects, as most do not."""
    for bed in make_bed(native_groups=False):
        made = Scheduled(bed)
        yield made
        made.clear()
        made.admin.close()


def test_a_cluster_without_these_objects_is_scheduled_as_before(older: Scheduled) -> None:
    assert [] == older.list("NativePodGroup")
    where = older.namespace()
    older.add_nodes({"n1": 2})
    older.apply(queue("team"))
    older.apply(pod_group("two", minMember=2), where=where)
    for number in range(2):
        older.create(member(f"two-{number}", "two"), where)
    scheduler = older.start()
    older.wait_for_places(where, ["two-0", "two-1"])
    wait_for(lambda: older.ask_scheduler(scheduler, "/readyz")[0] == 200, "readiness")


def condition_of(
    cluster: Scheduled, where: str, name: str, status: str, kind: str = "PodGroupScheduled"
) -> dict[str, Any] | None:
    """A condition of a native PodGroup, if it has that status."""
    found = cluster.get("NativePodGroup", name, where).get("status", {})
    for each in found.get("conditions", ()):
        if (each["type"], each["status"]) == (kind, status):
            return each
    return None


def involves(event: dict[str, Any], name: str) -> bool:
    about = event["involvedObject"]
    return (about["name"], about["apiVersion"]) == (name, NATIVE_VERSION)


def kubeconfig(cluster: Scheduled) -> str:
    return f"--kubeconfig={cluster.bed.kubeconfig}"
