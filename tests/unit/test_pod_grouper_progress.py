"""Gangs of owners that are partly over need what is left; and none needs more than can be said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.formats.live.owners import LiveOwner, controller_of
from bough.model.problem import MAXIMUM_TEXT
from bough.pod_grouper.job_progress import JobProgress
from bough.pod_grouper.owner_gangs import MOST_PODS, Progress
from tests.unit.test_pod_grouper import Objects, Written, _owner, leaves, thing

REPLICATED = "jobset.sigs.k8s.io/replicatedjob-name"
ROLE = "training.kubeflow.org/replica-type"


def job_set(status: Written | None = None, **more: Any) -> Written:
    """Two Jobs of four pods each, and a driver."""
    jobs = [
        {"name": "driver", "template": {"spec": {}}},
        {"name": "workers", "replicas": 2, "template": {"spec": {"parallelism": 4}}},
    ]
    spec = {"replicatedJobs": jobs, **more}
    return thing("JobSet", "set", spec=spec, **({} if status is None else {"status": status}))


def job_of(above: Written, number: int, status: Written, name: str = "workers") -> Written:
    spec = {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}
    labels = {REPLICATED: name}
    return thing("Job", f"set-{name}-{number}", above, spec=spec, status=status, labels=labels)


def needed(above: Written, *jobs: Written) -> dict[str, int | None]:
    pod = thing("Pod", "set-workers-0-3-x", jobs[0], labels={REPLICATED: "workers"})
    return leaves(Objects(above, *jobs).grouped(pod))


def test_a_job_set_does_not_wait_for_pods_that_have_completed():
    above = job_set()
    started = job_of(above, 1, {})
    assert {"driver": 1, "workers": 8} == needed(above, job_of(above, 0, {}), started)
    assert {"driver": 1, "workers": 5} == needed(above, job_of(above, 0, {"succeeded": 3}), started)
    given_up = {"succeeded": 1, "failedIndexes": "0,2"}
    assert {"driver": 1, "workers": 5} == needed(above, job_of(above, 0, given_up), started)


def test_a_job_that_is_over_counts_once_whoever_tells_of_it_first():
    over = {"succeeded": 4}
    status = {"replicatedJobsStatus": [{"name": "workers", "succeeded": 1}]}
    for above in (job_set(), job_set(status)):
        left = job_of(above, 1, {"succeeded": 2})
        assert {"driver": 1, "workers": 2} == needed(above, left, job_of(above, 0, over))
    # The Job itself may be gone already.
    above = job_set(status)
    assert {"driver": 1, "workers": 2} == needed(above, job_of(above, 1, {"succeeded": 2}))


def test_the_jobs_of_a_set_that_start_in_order_need_what_is_left_of_each():
    above = job_set(startupPolicy={"startupPolicyOrder": "InOrder"})
    job = job_of(above, 0, {"succeeded": 3})
    pod = thing("Pod", "p", job, labels={REPLICATED: "workers"})
    assert 5 == Objects(above, job).grouped(pod).group.min_member


def test_the_jobs_of_other_owners_and_namespaces_do_not_count():
    above, other = job_set(), thing("JobSet", "other")
    far = job_of(above, 1, {"succeeded": 3})
    far["metadata"]["namespace"] = "elsewhere"
    broken = job_of(above, 2, {"failedIndexes": "a-b"})
    other_job = thing("Job", "else", other, spec={"parallelism": 4, "completions": 4})
    other_job["status"] = {"succeeded": 3}
    alone = thing("Job", "alone", spec={"completions": 3}, status={"succeeded": 3})
    first = job_of(above, 0, {})
    assert {"driver": 1, "workers": 8} == needed(above, first, far, broken, other_job, alone)


@pytest.mark.parametrize(
    ("more", "done", "expected"),
    [
        ({}, {}, {"master": 1, "worker": 7}),
        ({}, {"Worker": 6}, {"master": 1, "worker": 1}),
        ({}, {"Master": 1, "Worker": 2}, {"worker": 5}),
        ({"elasticPolicy": {"minReplicas": 3}}, {"Worker": 2}, {"master": 1, "worker": 3}),
        ({"elasticPolicy": {"minReplicas": 3}}, {"Worker": 5}, {"master": 1, "worker": 2}),
    ],
)
def test_a_pytorch_job_does_not_wait_for_pods_that_have_completed(
    more: Written, done: dict[str, int], expected: dict[str, int]
):
    assert expected == leaves(Objects(made := torch(more, done)).grouped(worker(made)))


@pytest.mark.parametrize(("done", "expected"), [({}, 6), ({"Worker": 1}, 6), ({"Worker": 5}, 3)])
def test_a_pytorch_job_needs_no_more_than_is_left_whatever_it_says(
    done: dict[str, int], expected: int
):
    made = torch({"runPolicy": {"schedulingPolicy": {"minAvailable": 6}}}, done)
    assert expected == Objects(made).grouped(worker(made)).group.min_member


def torch(more: Written, done: dict[str, int]) -> Written:
    specs = {"Master": {}, "Worker": {"replicas": 7}}
    status = {"replicaStatuses": {role: {"succeeded": count} for role, count in done.items()}}
    return thing("PyTorchJob", "t", spec={"pytorchReplicaSpecs": specs, **more}, status=status)


def worker(of: Written) -> Written:
    return thing("Pod", "p", of, labels={ROLE: "worker"})


HUGE = 2**20


@pytest.mark.parametrize(
    ("kind", "spec", "labels", "said"),
    [
        (
            "JobSet",
            {"replicatedJobs": [{"name": "w", "replicas": HUGE, "template": {"spec": {}}}]},
            {REPLICATED: "w"},
            f"{HUGE * HUGE} pods of 'w'",
        ),
        ("Job", {"parallelism": MOST_PODS + 1}, {}, f"{MOST_PODS + 1} pods"),
        (
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"size": 10**12}},
            {"leaderworkerset.sigs.k8s.io/group-index": "0"},
            f"{10**12} pods",
        ),
        (
            "RayCluster",
            {"workerGroupSpecs": [{"groupName": "w", "replicas": HUGE, "numOfHosts": HUGE}]},
            {"ray.io/group": "w"},
            f"{HUGE * HUGE} pods of 'w'",
        ),
        (
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Worker": {"replicas": 2**40}}},
            {ROLE: "worker"},
            f"{2**40} pods of 'worker'",
        ),
    ],
)
def test_more_pods_than_kubernetes_counts_are_refused_in_a_sentence(
    kind: str, spec: Written, labels: dict[str, str], said: str
):
    if kind == "JobSet":
        spec["replicatedJobs"][0]["template"]["spec"]["parallelism"] = HUGE
    owner = thing(kind, "huge", spec=spec)
    verdict = Objects(owner).judge(thing("Pod", "p", owner, labels=labels))
    assert verdict.grouped is None
    assert (
        f"the PodGroup of {kind}/huge, which cannot be made: it needs {said}, but a PodGroup has "
        f"at most {MOST_PODS}"
    ) == verdict.waits


def test_a_clique_of_too_many_pods_is_refused_in_the_same_sentence():
    top = thing("PodCliqueSet", "infer")
    clique = thing("PodClique", "infer-0", top)
    cliques = [{"name": "decode", "minReplicas": MOST_PODS + 1, "podReferences": []}]
    gang = thing("PodGang", "infer-0", top, spec={"podgroups": cliques})
    labels = {"grove.io/podgang": "infer-0", "grove.io/podclique": "decode"}
    verdict = Objects(top, clique, gang).judge(thing("Pod", "p", clique, labels=labels))
    assert f"it needs {MOST_PODS + 1} pods of 'decode'" in verdict.waits


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("decode", "decode"), "spec.subGroups[1].name: 'decode' is the name of subGroups[0], too"),
        (("decode", ""), "spec.subGroups[1].name: '' cannot be the value of a label"),
    ],
)
def test_cliques_that_break_a_rule_of_pod_groups_are_refused_in_its_sentence(
    names: tuple[str, ...], said: str
):
    top = thing("PodCliqueSet", "infer")
    clique = thing("PodClique", "infer-0", top)
    cliques = [{"name": name, "minReplicas": 1, "podReferences": []} for name in names]
    gang = thing("PodGang", "infer-0", top, spec={"podgroups": cliques})
    labels = {"grove.io/podgang": "infer-0", "grove.io/podclique": "decode"}
    verdict = Objects(top, clique, gang).judge(thing("Pod", "p", clique, labels=labels))
    assert verdict.grouped is None
    assert f"the PodGroup of PodGang/infer-0, which cannot be made: {said}" in verdict.waits


def test_a_sentence_about_long_names_is_cut():
    groups = [{"groupName": "long" * 1_000, "replicas": 1}]
    ray = thing("RayCluster", "r", spec={"workerGroupSpecs": groups})
    waits = Objects(ray).judge(thing("Pod", "p", ray, labels={"ray.io/group": "g"})).waits
    assert "it needs no pods of 'g' now (only of: headgroup, longlong" in waits
    assert len(waits) <= MAXIMUM_TEXT


def test_as_many_pods_as_kubernetes_counts_are_a_gang():
    job = thing("Job", "large", spec={"parallelism": MOST_PODS})
    assert MOST_PODS == Objects(job).grouped(thing("Pod", "p", job)).group.min_member


@pytest.mark.parametrize("text", ["1" * 5000, "0-" + "9" * 5000])
def test_indexes_that_no_job_has_are_refused_in_a_sentence(text: str):
    job = thing("Job", "j", spec={"completions": 3}, status={"failedIndexes": text})
    verdict = Objects(job).judge(thing("Pod", "p", job))
    assert f"status.failedIndexes: {text[:60]!r} are not indexes" in verdict.waits


jobs = st.builds(
    job_of,
    st.sampled_from([job_set(), thing("JobSet", "other")]),
    st.integers(0, 3),
    st.builds(lambda count: {"succeeded": count}, st.integers(0, 4)),
    st.sampled_from(["workers", "driver"]),
)


@given(st.lists(st.tuples(st.booleans(), jobs), max_size=30))
def test_sums_of_progress_are_those_of_the_jobs_that_are_there(steps: list[tuple[bool, Written]]):
    kept, there = JobProgress(), dict[str, LiveOwner]()
    for stays, written in steps:
        job = _owner(written)
        uid = job.metadata.uid or ""
        before = sums(there)
        there.pop(uid, None)
        if stays:
            there[uid] = job
        told = kept.put(job) if stays else kept.remove(uid)
        for above in ("set", "other"):
            assert sums(there)[above] == kept.of(_owner(thing("JobSet", above)))
            if sums(there)[above] != before[above]:
                assert f"uid-JobSet-{above}" in told


def sums(there: dict[str, LiveOwner]) -> dict[str, dict[str, Progress]]:
    found: dict[str, dict[str, Progress]] = {"set": {}, "other": {}}
    for job in there.values():
        above = controller_of(job.metadata)
        assert above is not None
        name = (job.metadata.labels or {})[REPLICATED]
        one = JobProgress()
        one.put(job)
        more = one.of(_owner(thing("JobSet", above.name))).get(name)
        if more is not None:
            before = found[above.name].get(name, Progress())
            found[above.name][name] = Progress(
                before.finished + more.finished, before.spared + more.spared
            )
    return found
