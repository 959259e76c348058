"""Gangs of users who wrote no PodGroup: made of Jobs and other owners of pods."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from bough.kube.objects import untyped
from tests.kubernetes.bed.process import Process
from tests.kubernetes.scheduler.others import OwnerMaker, define_owners
from tests.kubernetes.scheduler.scheduled import Scheduled, member, pod_group, queue
from tests.kubernetes.scheduler.test_schedule import condition_of, why
from tests.kubernetes.waiting import wait_for

JOBS = untyped("apis/batch/v1", "jobs")


@pytest.fixture
def owners(cluster: Scheduled) -> OwnerMaker:
    """Two nodes of two GPUs, a queue, and a namespace in which owners can be made."""
    define_owners(cluster)
    cluster.add_nodes({"n1": 2, "n2": 2})
    cluster.apply(queue("team"))
    return OwnerMaker(cluster, cluster.namespace())


def group_of(cluster: Scheduled, where: str, pod: str) -> dict[str, Any]:
    """The PodGroup that a pod names, once it does."""

    def look() -> str:
        annotations = cluster.get("Pod", pod, where)["metadata"].get("annotations", {})
        return annotations.get("pod-group-name", "")

    return cluster.get("PodGroup", wait_for(look, f"the PodGroup of {pod}"), where)


def owner_of(group: dict[str, Any]) -> tuple[str, str]:
    found = group["metadata"]["ownerReferences"]
    assert 1 == len(found)
    return found[0]["kind"], found[0]["name"]


def test_a_job_starts_whole_or_not_at_all_and_changes_with_its_parallelism(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    cluster.start()
    large, small = owners.job("large", parallelism=5), owners.job("small", parallelism=3)
    for number in range(5):
        owners.pod(f"large-{number}", large)
    for number in range(3):
        owners.pod(f"small-{number}", small)
    cluster.wait_for_places(where, [f"small-{number}" for number in range(3)])
    made = group_of(cluster, where, "large-0")
    assert ("Job", "large") == owner_of(made)
    assert (f"pg-large-{large['metadata']['uid']}", 5) == (
        made["metadata"]["name"],
        made["spec"]["minMember"],
    )
    # What no longer fits becomes smaller: one GPU is left.
    cluster.admin.patch(JOBS, "large", {"spec": {"parallelism": 1}}, where)
    wait_for(lambda: len(cluster.places(where)) == 4, "one pod of the smaller job")
    assert 1 == group_of(cluster, where, "large-0")["spec"]["minMember"]


def test_no_pod_of_a_gang_is_bound_before_its_pod_group_is_there(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    cluster.start()
    # The first pods fit by themselves, so a scheduler that did not wait would bind them.
    job = owners.job("train", parallelism=4, completions=4, completionMode="Indexed")
    for number in range(3):
        owners.pod(f"train-{number}", job)
        group_of(cluster, where, f"train-{number}")
    wait_for(lambda: condition_of(cluster, where, "train-0"), "a reason")
    answer = wait_for(
        lambda: (found := why(cluster, "pod/train-0", where))["reason"] == "pods" and found,
        "the reason",
    )
    assert 1 == answer["certificate"]["shortages"][0]["missing"]
    assert {} == cluster.places(where)
    owners.pod("train-3", job)
    cluster.wait_for_places(where, [f"train-{number}" for number in range(4)])


def test_a_pod_that_a_job_set_loses_does_not_wait_for_those_that_have_completed(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    cluster.start()
    jobs = [{"name": "workers", "template": {"spec": {"parallelism": 4, "completions": 4}}}]
    job_set = owners.make("jobset.x-k8s.io", "JobSet", "set", spec={"replicatedJobs": jobs})
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": "workers"}
    job = owners.job(
        "set-workers-0", job_set, metadata={"labels": labels}, parallelism=4, completions=4
    )
    pods = [f"set-{number}" for number in range(4)]
    for pod in pods:
        owners.pod(pod, job, labels)
    cluster.wait_for_places(where, pods)
    assert {"workers": 4} == _needs(group_of(cluster, where, "set-0"))

    for pod in pods:
        cluster.delete("Pod", pod, where, grace_s=0)
    body = {"status": {"succeeded": 3}}
    cluster.admin.patch(JOBS, "set-workers-0", body, where, below="status")
    owners.pod("set-again", job, labels)
    cluster.wait_for_places(where, ["set-again"])
    assert {"workers": 1} == _needs(group_of(cluster, where, "set-again"))


def test_each_kind_of_owner_makes_its_gang_through_any_number_of_owners(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    wrapper = owners.make("example.org", "Wrapper", "wrapper")
    wrapped = owners.make("example.org", "Wrapper", "wrapped", wrapper)
    jobs = [
        {"name": "driver", "template": {"spec": {}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 2}}},
    ]
    job_set = owners.make(
        "jobset.x-k8s.io", "JobSet", "set", wrapped, spec={"replicatedJobs": jobs}
    )
    job = owners.job("set-workers-0", job_set, parallelism=2)
    owners.pod("set-pod", job, {"jobset.sigs.k8s.io/replicatedjob-name": "workers"})
    lws = owners.make(
        "leaderworkerset.x-k8s.io",
        "LeaderWorkerSet",
        "lws",
        spec={"leaderWorkerTemplate": {"size": 3}},
    )
    index = {"leaderworkerset.sigs.k8s.io/group-index": "2"}
    outer = owners.make("apps", "StatefulSet", "lws", lws, spec=_stateful())
    leader = owners.pod("lws-2", outer, index)
    inner = owners.make(
        "apps", "StatefulSet", "lws-2", {**leader, "apiVersion": "v1"}, spec=_stateful()
    )
    owners.pod("lws-2-1", inner, index)
    ray_job = owners.make("ray.io", "RayJob", "tune")
    groups = [{"groupName": "gpu", "replicas": 2, "minReplicas": 1}]
    ray = owners.make("ray.io", "RayCluster", "tune-x", ray_job, spec={"workerGroupSpecs": groups})
    owners.pod("ray-pod", ray, {"ray.io/node-type": "worker", "ray.io/group": "gpu"})
    specs = {"Master": {"replicas": 1}, "Worker": {"replicas": 2}}
    torch = owners.make("kubeflow.org", "PyTorchJob", "t", spec={"pytorchReplicaSpecs": specs})
    owners.pod("torch-pod", torch, {"training.kubeflow.org/replica-type": "master"})
    cluster.start()

    found = {
        pod: (
            owner_of(made := group_of(cluster, where, pod)),
            _needs(made),
            _leaf(cluster, where, pod),
        )
        for pod in ("set-pod", "lws-2", "lws-2-1", "ray-pod", "torch-pod")
    }
    assert {
        # What is above a kind that is not known is beyond its rights: that one counts as topmost.
        "set-pod": (("Wrapper", "wrapped"), {"driver": 1, "workers": 4}, "workers"),
        "lws-2": (("LeaderWorkerSet", "lws"), 3, ""),
        "lws-2-1": (("LeaderWorkerSet", "lws"), 3, ""),
        "ray-pod": (("RayJob", "tune"), {"headgroup": 1, "gpu": 1}, "gpu"),
        "torch-pod": (("PyTorchJob", "t"), {"master": 1, "worker": 2}, "master"),
    } == found
    assert (
        group_of(cluster, where, "lws-2")["metadata"]["name"]
        == group_of(cluster, where, "lws-2-1")["metadata"]["name"]
    )


def _stateful() -> dict[str, Any]:
    labels = {"app": "lws"}
    container = {"name": "main", "image": "bed"}
    return {
        "serviceName": "lws",
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }


def _needs(group: dict[str, Any]) -> Any:
    subgroups = group["spec"].get("subGroups")
    if subgroups is None:
        return group["spec"]["minMember"]
    assert len(subgroups) == group["spec"]["minSubGroup"]
    return {each["name"]: each["minMember"] for each in subgroups}


def _leaf(cluster: Scheduled, where: str, pod: str) -> str:
    labels = cluster.get("Pod", pod, where)["metadata"]["labels"]
    return labels.get("kai.scheduler/subgroup-name", "")


def test_a_pod_gang_of_grove_is_placed_by_its_cliques_and_their_topology(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    topology = {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": "wires"},
        "spec": {"levels": [{"nodeLabel": "kubernetes.io/hostname"}]},
    }
    cluster.apply(topology)
    cliques = [
        {"name": name, "minReplicas": count, "podReferences": []}
        for name, count in (("decode", 1), ("leader", 1), ("router", 1))
    ]
    pack = {"packConstraint": {"required": "kubernetes.io/hostname"}}
    together = {
        "name": "decoders",
        "podGroupNames": ["decode", "leader"],
        "topologyConstraint": pack,
    }
    spec = {"podgroups": cliques, "topologyConstraintGroupConfigs": [together]}
    top = owners.make("grove.io", "PodCliqueSet", "infer")
    clique = owners.make("grove.io", "PodClique", "infer-0", top)
    pods = {"decode-0": "decode", "leader-0": "leader", "router-0": "router"}
    cluster.start()
    for pod, name in pods.items():
        labels = {"grove.io/podgang": "infer-0", "grove.io/podclique": name}
        owners.pod(pod, clique, labels)

    def said() -> str:
        return (condition_of(cluster, where, "decode-0") or {}).get("message", "")

    wait_for(lambda: "PodGang/infer-0, which is not there yet" in said(), "the reason")
    owners.make(
        "scheduler.grove.io",
        "PodGang",
        "infer-0",
        top,
        spec=spec,
        metadata={"annotations": {"grove.io/topology-name": "wires"}},
    )
    places = cluster.wait_for_places(where, pods)
    assert places["decode-0"] == places["leader-0"]
    made = group_of(cluster, where, "router-0")
    assert ("PodCliqueSet", "infer") == owner_of(made)
    assert ["decoders", "decode", "leader", "router"] == [
        each["name"] for each in made["spec"]["subGroups"]
    ]


def test_what_is_known_of_no_owner_is_a_gang_of_one_and_what_people_wrote_stays(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    job = owners.job("train", parallelism=2)
    name = f"pg-train-{job['metadata']['uid']}"
    own = pod_group(name, minMember=1)
    cluster.apply(own, pod_group("mine", minMember=1), where=where)
    before = {each: cluster.get("PodGroup", each, where) for each in (name, "mine")}
    cluster.start()
    wrapper = owners.make("example.org", "Wrapper", "w")
    owners.pod("alone", wrapper)
    owners.pod("train-0", job)
    chosen = member("chosen", "mine")
    chosen["metadata"]["ownerReferences"] = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": job["metadata"]["uid"]}
    ]
    cluster.create(chosen, where)
    gone = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "no", "uid": "none"}}
    owners.pod("orphan", gone)
    cluster.wait_for_places(where, ["alone", "train-0", "chosen", "orphan"])
    assert {name, "mine"} == {each["metadata"]["name"] for each in cluster.list("PodGroup", where)}
    for each, was in before.items():
        assert was["spec"] == cluster.get("PodGroup", each, where)["spec"]
    assert "mine" == group_of(cluster, where, "chosen")["metadata"]["name"]


def test_a_pod_group_that_is_deleted_comes_again_and_goes_when_its_job_is_gone(
    cluster: Scheduled, owners: OwnerMaker
) -> None:
    where = owners.where
    cluster.start()
    wrapper = owners.make("example.org", "Wrapper", "w")
    job = owners.job("train", wrapper, parallelism=2)
    owners.pod("train-0", job)
    first = group_of(cluster, where, "train-0")
    assert ("Wrapper", "w") == owner_of(first)
    name = first["metadata"]["name"]
    cluster.delete("PodGroup", name, where)

    def again() -> bool:
        there = cluster.list("PodGroup", where)
        return [name] == [each["metadata"]["name"] for each in there] and (
            there[0]["metadata"]["uid"] != first["metadata"]["uid"]
        )

    wait_for(again, "the PodGroup")
    # As kubectl does it: by default an apiserver would keep the Job until its pods are orphans.
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    cluster.admin.ask("DELETE", f"/apis/batch/v1/namespaces/{where}/jobs/train", options)
    assert [name] == [each["metadata"]["name"] for each in cluster.list("PodGroup", where)]
    cluster.delete("Pod", "train-0", where, grace_s=0)
    wait_for(lambda: not cluster.list("PodGroup", where), "its end")


@pytest.fixture
def grouper(cluster: Scheduled) -> Iterator[Process]:
    command = [sys.executable, "-m", "bough", "kube", "group"]
    command += [f"--kubeconfig={cluster.kubeconfig}"]
    process = Process(command, cluster.bed.folder / "group.log")
    process.start()
    yield process
    process.stop()


def test_groups_are_made_without_a_scheduler_and_a_scheduler_need_not_make_them(
    cluster: Scheduled, owners: OwnerMaker, grouper: Process
) -> None:
    where = owners.where
    job = owners.job("train", parallelism=2)
    owners.pod("train-0", job)
    assert 2 == group_of(cluster, where, "train-0")["spec"]["minMember"]
    grouper.stop()
    cluster.start("--no-group")
    owners.pod("other-0", owners.job("other", parallelism=2))
    cluster.wait_for_places(where, ["other-0"])
    assert "pod-group-name" not in cluster.get("Pod", "other-0", where)["metadata"].get(
        "annotations", {}
    )
