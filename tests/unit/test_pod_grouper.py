"""From a pod and what it belongs to, to the PodGroup that is made for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from bough.core.gang.validation import check_pod_group
from bough.formats.live.objects import LiveOwnerReference, LivePod, LivePodGroup
from bough.formats.live.owners import LiveOwner, reduced
from bough.pod_grouper.job_progress import JobProgress
from bough.pod_grouper.manifest import is_current, is_made, new_pod_group, pod_group_spec
from bough.pod_grouper.owner_chain import LONGEST, owners_of
from bough.pod_grouper.owner_gangs import Progress, subgroup_name
from bough.pod_grouper.pod_grouping import Grouped, Verdict, group_name, judge

Written = dict[str, Any]


class Objects:
    """Owners as if an apiserver had them."""

    def __init__(self, *objects: Written) -> None:
        self.written = {each["metadata"]["uid"]: each for each in objects}

    def find(self, reference: LiveOwnerReference, namespace: str) -> LiveOwner | None:
        del namespace
        found = self.written.get(reference.uid)
        return None if found is None else _owner(found)

    def named(self, key: tuple[str, str], namespace: str, name: str) -> LiveOwner | None:
        for each in self.written.values():
            meta = each["metadata"]
            here = (each["apiVersion"].rpartition("/")[0], each["kind"]) == key
            if here and (meta["namespace"], meta["name"]) == (namespace, name):
                return _owner(each)
        return None

    def progress(self, job_set: LiveOwner) -> Mapping[str, Progress]:
        seen = JobProgress()
        for each in self.written.values():
            if each["kind"] == "Job":
                seen.put(_owner(each))
        return seen.of(job_set)

    def judge(self, pod: Written) -> Verdict:
        return judge(_live(pod, LivePod), self)

    def grouped(self, pod: Written) -> Grouped:
        verdict = self.judge(pod)
        assert verdict.grouped is not None, verdict.waits
        assert () == check_pod_group(verdict.grouped.group)
        return verdict.grouped


def _owner(written: Written) -> LiveOwner:
    return reduced(_live(written, LiveOwner), written["kind"])


def _live(written: Written, as_type: type[Any]) -> Any:
    return msgspec.json.decode(json.dumps(written), type=as_type)


def thing(kind: str, name: str, above: Written | None = None, **more: Any) -> Written:
    """An object of any kind, which belongs to another one."""
    versions = {
        "Job": "batch/v1",
        "CronJob": "batch/v1",
        "StatefulSet": "apps/v1",
        "ReplicaSet": "apps/v1",
        "JobSet": "jobset.x-k8s.io/v1alpha2",
        "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
        "RayCluster": "ray.io/v1",
        "RayJob": "ray.io/v1",
        "PyTorchJob": "kubeflow.org/v1",
        "PodGang": "scheduler.grove.io/v1alpha1",
        "PodClique": "grove.io/v1alpha1",
        "PodCliqueSet": "grove.io/v1alpha1",
        "Pod": "v1",
    }
    meta: Written = {"name": name, "namespace": "ml", "uid": f"uid-{kind}-{name}"}
    meta |= {key: more.pop(key) for key in ("labels", "annotations") if key in more}
    if above is not None:
        meta["ownerReferences"] = [reference(above)]
    version = versions.get(kind, "example.org/v1")
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


def reference(to: Written) -> Written:
    meta = to["metadata"]
    return {
        "apiVersion": to["apiVersion"],
        "kind": to["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def leaves(grouped: Grouped) -> dict[str, int | None]:
    return {each.name: each.min_member for each in grouped.group.subgroups}


def test_a_job_is_a_gang_of_all_pods_that_it_runs_at_once():
    job = thing("Job", "train", spec={"parallelism": 4, "completions": 10})
    found = Objects(job).grouped(thing("Pod", "train-x", job))
    assert ("pg-train-uid-Job-train", 4) == (found.group.name, found.group.min_member)
    assert ("Job", "train") == (found.owner.kind, found.owner.name)

    ends = thing(
        "Job", "train", spec={"parallelism": 4, "completions": 10}, status={"succeeded": 8}
    )
    assert 2 == Objects(ends).grouped(thing("Pod", "train-x", ends)).group.min_member


def test_indexes_that_are_given_up_are_not_waited_for():
    spec = {"parallelism": 8, "completions": 8, "completionMode": "Indexed"}
    spec |= {"backoffLimitPerIndex": 0}

    def needed(status: Written) -> int | None:
        job = thing("Job", "sweep", spec=spec, status=status)
        return Objects(job).grouped(thing("Pod", "sweep-0-x", job)).group.min_member

    assert 8 == needed({"failedIndexes": ""})
    assert 7 == needed({"failedIndexes": "3"})
    assert 2 == needed({"failedIndexes": "1,3-5", "succeeded": 2})
    job = thing("Job", "sweep", spec=spec, status={"failedIndexes": "1-x"})
    waits = Objects(job).judge(thing("Pod", "sweep-0-x", job)).waits
    assert "status.failedIndexes: '1-x' are not indexes" in waits


@pytest.mark.parametrize(
    ("spec", "needed"),
    [
        ({}, 1),
        ({"parallelism": 3}, 3),
        ({"parallelism": 8, "completions": 2, "completionMode": "Indexed"}, 2),
        ({"parallelism": 0, "completions": 2}, 1),
    ],
)
def test_a_job_without_limits_of_its_own_needs_what_kubernetes_makes_of_it(
    spec: Written, needed: int
):
    job = thing("Job", "j", spec=spec)
    assert needed == Objects(job).grouped(thing("Pod", "p", job)).group.min_member


def test_each_job_of_a_cron_job_goes_by_itself():
    cron = thing("CronJob", "nightly")
    job = thing("Job", "nightly-1", cron, spec={})
    found = Objects(cron, job).grouped(thing("Pod", "p", job))
    assert "Job" == found.owner.kind


def test_a_job_set_is_one_gang_with_a_subgroup_for_each_kind_of_its_jobs():
    jobs = [
        {"name": "driver", "template": {"spec": {}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 3}}},
    ]
    above = thing("JobSet", "set", spec={"replicatedJobs": jobs})
    job = thing("Job", "set-workers-0", above, spec={"parallelism": 3})
    pod = thing("Pod", "p", job, labels={"jobset.sigs.k8s.io/replicatedjob-name": "workers"})
    found = Objects(above, job).grouped(pod)
    assert {"driver": 1, "workers": 6} == leaves(found)
    assert ("workers", 2, "JobSet") == (
        found.subgroup,
        found.group.min_sub_group,
        found.owner.kind,
    )

    done = {"replicatedJobsStatus": [{"name": "driver", "succeeded": 1}]}
    assert {"workers": 6} == leaves(Objects({**above, "status": done}, job).grouped(pod))


@pytest.mark.parametrize("how", ["order", "dependsOn"])
def test_jobs_of_a_job_set_that_start_one_after_the_other_are_gangs_of_their_own(how: str):
    jobs: list[Written] = [
        {"name": "first", "template": {"spec": {}}},
        {"name": "second", "template": {"spec": {"parallelism": 2}}},
    ]
    spec: Written = {"replicatedJobs": jobs}
    if how == "order":
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    else:
        jobs[1]["dependsOn"] = [{"name": "first", "status": "Ready"}]
    above = thing("JobSet", "set", spec=spec)
    pod = thing("Pod", "p", above, labels={"jobset.sigs.k8s.io/replicatedjob-name": "second"})
    found = Objects(above).grouped(pod)
    assert ("pg-set-uid-JobSet-set-second", 2) == (found.group.name, found.group.min_member)


def test_each_leader_with_its_workers_is_a_gang_found_through_five_owners():
    above = thing("LeaderWorkerSet", "lws", spec={"leaderWorkerTemplate": {"size": 3}})
    outer = thing("StatefulSet", "lws", above)
    label = {"leaderworkerset.sigs.k8s.io/group-index": "1"}
    leader = thing("Pod", "lws-1", outer, labels=label)
    inner = thing("StatefulSet", "lws-1", leader)
    worker = thing("Pod", "lws-1-2", inner, labels=label)
    objects = Objects(above, outer, leader, inner)
    for pod in (leader, worker):
        found = objects.grouped(pod)
        assert ("pg-lws-uid-LeaderWorkerSet-lws-group-1", 3) == (
            found.group.name,
            found.group.min_member,
        )
        assert "LeaderWorkerSet" == found.owner.kind


def test_a_leader_whose_workers_come_later_starts_alone():
    spec = {"leaderWorkerTemplate": {"size": 3}, "startupPolicy": "LeaderReady"}
    above = thing("LeaderWorkerSet", "lws", spec=spec)
    label = "leaderworkerset.sigs.k8s.io/"
    needed = [
        Objects(above)
        .grouped(
            thing(
                "Pod",
                f"p{worker}",
                above,
                labels={f"{label}group-index": "0", f"{label}worker-index": worker},
            )
        )
        .group.min_member
        for worker in ("0", "1")
    ]
    assert [1, 3] == needed


def ray(**spec: Any) -> tuple[Written, Written]:
    job = thing("RayJob", "tune")
    groups = [
        {"groupName": "GPU_workers", "replicas": 4, "minReplicas": 2, "numOfHosts": 2},
        {"groupName": "cpu", "replicas": 1},
        {"groupName": "off", "replicas": 3, "suspend": True},
    ]
    return job, thing("RayCluster", "tune-x", job, spec={"workerGroupSpecs": groups, **spec})


def test_a_ray_cluster_needs_its_head_and_the_fewest_workers_of_each_group():
    job, cluster = ray()
    name = subgroup_name("GPU_workers")
    label = {"ray.io/node-type": "worker", "ray.io/group": "GPU_workers"}
    found = Objects(job, cluster).grouped(thing("Pod", "w", cluster, labels=label))
    assert {"headgroup": 1, name: 4, "cpu": 1} == leaves(found)
    assert (name, "RayJob") == (found.subgroup, found.owner.kind)
    head = thing("Pod", "h", cluster, labels={"ray.io/node-type": "head"})
    assert "headgroup" == Objects(job, cluster).grouped(head).subgroup


def test_what_submits_a_ray_job_waits_for_its_cluster_and_is_no_part_of_its_gang():
    job, cluster = ray()
    submits = thing("Job", "tune-submit", job, spec={})
    found = Objects(job, cluster, submits).grouped(thing("Pod", "s", submits))
    assert (1, ()) == (found.group.min_member, found.group.subgroups)


def test_a_worker_of_a_group_that_needs_none_waits_and_says_so():
    job, cluster = ray()
    label = {"ray.io/node-type": "worker", "ray.io/group": "off"}
    verdict = Objects(job, cluster).judge(thing("Pod", "w", cluster, labels=label))
    assert "RayCluster/tune-x, which cannot be made: it needs no pods of 'off'" in verdict.waits


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"master": 1, "worker": 7}),
        ({"elasticPolicy": {"minReplicas": 3}}, {"master": 1, "worker": 3}),
    ],
)
def test_a_pytorch_job_needs_its_master_and_its_workers(more: Written, expected: Written):
    specs = {"Master": {}, "Worker": {"replicas": 7}}
    job = thing("PyTorchJob", "t", spec={"pytorchReplicaSpecs": specs, **more})
    pod = thing("Pod", "p", job, labels={"training.kubeflow.org/replica-type": "worker"})
    found = Objects(job).grouped(pod)
    assert (expected, "worker") == (leaves(found), found.subgroup)


def test_a_pytorch_job_may_say_itself_how_many_pods_it_needs():
    policy = {"schedulingPolicy": {"minAvailable": 5}}
    job = thing("PyTorchJob", "t", spec={"runPolicy": policy})
    assert 5 == Objects(job).grouped(thing("Pod", "p", job)).group.min_member


def grove(**more: Any) -> tuple[Written, Written, Written]:
    top = thing("PodCliqueSet", "infer")
    clique = thing("PodClique", "infer-0-decode", top)

    def pack(level: str) -> Written:
        return {"packConstraint": {"required": level}}

    spec = {
        "podgroups": [
            {
                "name": "decode",
                "minReplicas": 4,
                "podReferences": [{"namespace": "ml", "name": "d-0"}],
                "topologyConstraint": pack("rack"),
            },
            {"name": "leader", "minReplicas": 1, "podReferences": []},
            {"name": "router", "minReplicas": 1, "podReferences": []},
        ],
        "topologyConstraintGroupConfigs": [
            {
                "name": "decoders",
                "podGroupNames": ["decode", "leader"],
                "topologyConstraint": pack("block"),
            }
        ],
        "topologyConstraint": {"packConstraint": {"preferred": "zone"}},
        "priorityClassName": "inference",
        **more,
    }
    notes = {"grove.io/topology-name": "wires"}
    return top, clique, thing("PodGang", "infer-0", top, spec=spec, annotations=notes)


def test_cliques_become_subgroups_and_sets_of_cliques_their_parents():
    top, clique, gang = grove()
    pod = thing("Pod", "d-0", clique, labels={"grove.io/podgang": "infer-0"})
    found = Objects(top, clique, gang).grouped(pod)
    assert ("decode", "PodCliqueSet") == (found.subgroup, found.owner.kind)
    assert {
        "minSubGroup": 2,
        "priorityClassName": "inference",
        "topologyConstraint": {"topology": "wires", "preferredTopologyLevel": "zone"},
        "subGroups": [
            {
                "name": "decoders",
                "minSubGroup": 2,
                "topologyConstraint": {"topology": "wires", "requiredTopologyLevel": "block"},
            },
            {
                "name": "decode",
                "parent": "decoders",
                "minMember": 4,
                "topologyConstraint": {"topology": "wires", "requiredTopologyLevel": "rack"},
            },
            {"name": "leader", "parent": "decoders", "minMember": 1},
            {"name": "router", "minMember": 1},
        ],
    } == new_pod_group(found)["spec"]

    other = {"grove.io/podgang": "infer-0", "grove.io/podclique": "router"}
    assert (
        "router"
        == Objects(top, clique, gang).grouped(thing("Pod", "r-0", clique, labels=other)).subgroup
    )


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([("router", ["decode"])], {"router-0-5c370b4d": ["decode"]}),
        ([("one", ["decode", "gone"]), ("none", ["gone"])], {"one": ["decode"]}),
        (
            [("one", ["decode", "leader"]), ("two", ["leader"])],
            {"one": ["decode"], "two": ["leader"]},
        ),
    ],
    ids=["named like a clique", "cliques that are not there", "a clique in two sets"],
)
def test_a_set_of_cliques_counts_the_cliques_that_it_has(sets: list[Any], expected: Written):
    configs = [{"name": name, "podGroupNames": cliques} for name, cliques in sets]
    top, clique, gang = grove(topologyConstraintGroupConfigs=configs)
    pod = thing("Pod", "d-0", clique, labels={"grove.io/podgang": "infer-0"})
    group = Objects(top, clique, gang).grouped(pod).group
    parents: dict[str, list[str]] = {}
    for each in group.subgroups:
        if each.parent is not None:
            parents.setdefault(each.parent, []).append(each.name)
    assert expected == parents
    counted = {each.name: each.min_sub_group for each in group.subgroups if each.min_sub_group}
    assert {name: len(cliques) for name, cliques in expected.items()} == counted


def test_pods_of_a_pod_gang_wait_until_it_is_there_and_can_be_read():
    top, clique, gang = grove(podgroups=[{"name": "decode", "minReplicas": 0}])
    pod = thing("Pod", "d-0", clique, labels={"grove.io/podgang": "infer-0"})
    assert "PodGang/infer-0, which is not there yet" == Objects(top, clique).judge(pod).waits
    assert "minReplicas of clique 'decode' is 0" in Objects(top, clique, gang).judge(pod).waits


def test_a_pod_of_owners_that_are_not_known_is_a_gang_of_one():
    one = thing("ReplicaSet", "r")
    assert Verdict(owners=("uid-ReplicaSet-r",)) == Objects(one).judge(thing("Pod", "p", one))
    assert Verdict() == Objects().judge(thing("Pod", "p"))


def test_an_owner_that_is_gone_makes_no_gang():
    job = thing("Job", "gone", spec={"parallelism": 4})
    assert None is Objects().judge(thing("Pod", "p", job)).grouped


def test_a_pod_group_is_owned_by_the_topmost_owner_also_if_that_cannot_be_read():
    top = thing("AppWrapper", "wrapper")
    job = thing("Job", "j", top, spec={"parallelism": 2})
    found = Objects(job).grouped(thing("Pod", "p", job))
    assert ("AppWrapper", 2) == (found.owner.kind, found.group.min_member)


def test_owners_in_a_circle_and_endless_chains_come_to_an_end():
    one, two = thing("Job", "one", spec={"parallelism": 2}), thing("Job", "two", spec={})
    one["metadata"]["ownerReferences"] = [reference(two)]
    two["metadata"]["ownerReferences"] = [reference(one)]
    found = Objects(one, two).grouped(thing("Pod", "p", one))
    assert "two" == found.owner.name
    circle = owners_of(_live(thing("Pod", "p", one), LivePod).metadata, Objects(one, two))
    assert ["one", "two"] == [each.reference.name for each in circle]

    links = [thing("Wrapper", "w0")]
    for number in range(1, 3 * LONGEST):
        links.append(thing("Wrapper", f"w{number}", links[-1]))
    pod = _live(thing("Pod", "p", links[-1]), LivePod)
    assert LONGEST == len(owners_of(pod.metadata, Objects(*links)))


def test_the_topmost_label_names_queue_and_priority_and_annotations_the_topology():
    top = thing("AppWrapper", "w", labels={"kai.scheduler/queue": "team"})
    notes = {"kai.scheduler/topology": "t", "kai.scheduler/topology-required-placement": "rack"}
    labels = {"kai.scheduler/queue": "other", "priorityClassName": "build"}
    job = thing("Job", "j", top, spec={}, labels=labels, annotations=notes)
    pod = thing("Pod", "p", job, labels={"kai.scheduler/preemptibility": "non-preemptible"})
    group = Objects(top, job).grouped(pod).group
    assert {
        "queue": "team",
        "minMember": 1,
        "minSubGroup": None,
        "subGroups": None,
        "topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rack"},
        "priorityClassName": "build",
        "preemptibility": "non-preemptible",
    } == pod_group_spec(group)


def test_what_cannot_be_read_in_an_owner_is_named():
    job = thing("Job", "j", spec={"parallelism": "many"})
    waits = Objects(job).judge(thing("Pod", "p", job)).waits
    assert "Job/j, which cannot be made: spec: Expected `int | null`, got `str`" in waits


def test_a_made_pod_group_is_current_until_its_owner_changes_and_people_s_own_are_told_apart():
    job = thing("Job", "j", spec={"parallelism": 4})
    found = Objects(job).grouped(thing("Pod", "p", job))
    made = _live(new_pod_group(found), LivePodGroup)
    assert is_made(made)
    assert is_current(made, found.group)
    more = thing("Job", "j", spec={"parallelism": 5})
    changed = Objects(more).grouped(thing("Pod", "p", more)).group
    assert not is_current(made, changed)
    written = new_pod_group(found)
    del written["metadata"]["annotations"]
    assert not is_made(_live(written, LivePodGroup))


def test_names_fit_into_what_kubernetes_allows():
    assert 253 >= len(group_name("x" * 253, "u" * 36, "group-12"))
    for text in ("A_b", "x" * 80, "ok", "-", "é"):
        made = subgroup_name(text)
        assert 0 < len(made) <= 63
        assert made == made.strip("-").lower()
    assert "ok" == subgroup_name("ok")
    assert subgroup_name("A_b") != subgroup_name("a-b")
