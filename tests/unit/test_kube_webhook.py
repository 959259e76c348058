"""The webhook: what an apiserver is told about objects, with the sentences of the file commands."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from bough.errors import Invalid
from bough.kube_webhook.checks import check
from bough.kube_webhook.reviews import LONGEST_ERROR, MOST_NAMED, answer_review
from bough.model.cluster import Topology, TopologyLevel
from bough.model.fair_queue import FairQueue
from bough.model.pod_group import PodGroup, SubGroupSpec
from bough.model.quota import Cohort
from bough.tools.gang import check as check_files
from tests.webhook_reviews import Cluster, cohort, pod, pod_group, queue, review

LEAVES = ("decode", "prefill")


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def answered(body: bytes, cluster: Cluster) -> dict[str, Any]:
    return json.loads(answer_review(body, cluster))["response"]


# PodGroups


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"minMember": 1, "minSubGroup": 1, "subGroups": [{"name": "a", "minMember": 1}]},
            "spec.minMember: minMember (1) and minSubGroup (1) cannot be used together",
        ),
        (
            {"minSubGroup": 2, "subGroups": [{"name": "a", "minMember": 1}]},
            "spec.minSubGroup: is 2, but there is only 1 child subgroup",
        ),
        ({"minSubGroup": 0}, "spec.minSubGroup: is 0, but must be greater than 0"),
        (
            {"minSubGroup": 1, "subGroups": [{"name": "a"}]},
            "spec.subGroups[0].minMember: is missing",
        ),
        (
            {"minMember": 1, "subGroups": [{"name": "a", "parent": "a", "minMember": 1}]},
            "spec.subGroups[0].parent: is in a cycle: a → a",
        ),
        (
            {"subGroups": [{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}]},
            "spec.subGroups[1].name: 'a' is the name of subGroups[0], too",
        ),
        ({"minMember": "two"}, "spec.minMember: expected a whole number, not the text 'two'"),
    ],
)
def test_a_pod_group_that_breaks_a_rule_is_refused(cluster, spec, error):
    response = answered(review(pod_group(**spec)), cluster)

    assert not response["allowed"]
    assert error in response["status"]["message"]


def test_the_sentences_are_those_of_the_command_on_files(cluster, tmp_path):
    written = pod_group(minSubGroup=3, subGroups=[{"name": "a", "minMember": 0}, {"name": "B!"}])
    file = tmp_path / "group.json"
    file.write_text(json.dumps(written))

    found = check(written, cluster)

    told = check_files([str(file)])
    expected = [f"{each.field}: {each.message}" for each in told.problems]
    assert sorted(expected) == sorted([*found.errors, *found.warnings])


def test_what_is_right_is_kept_and_what_is_odd_is_told(cluster):
    right = pod_group(minSubGroup=1, subGroups=[{"name": each, "minMember": 1} for each in LEAVES])
    older = pod_group(minMember=1, subGroups=[{"name": each, "minMember": 1} for each in LEAVES])

    assert {"uid": "u", "allowed": True} == answered(review(right), cluster)
    response = answered(review(older), cluster)
    assert response["allowed"]
    assert ["spec.minMember: counts the 2 child subgroups, an older form;"] == [
        text.partition(" write")[0] for text in response["warnings"]
    ]


def test_a_field_that_a_newer_apiserver_adds_is_told_and_does_not_refuse(cluster):
    response = answered(review(pod_group(minMember=1, newest=1)), cluster)

    assert response["allowed"]
    assert ["spec.newest: unknown field"] == response["warnings"]


def test_levels_are_those_of_the_clusters_topology(cluster):
    constraint = {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rock"}}
    levels = (TopologyLevel("example.com/rack", "rack"),)
    assert () == check(pod_group(minMember=1, **constraint), cluster).errors
    cluster.known_topologies = (Topology("t", levels),)

    (error,) = check(pod_group(minMember=1, **constraint), cluster).errors

    assert "rock" in error


# Pods


def test_a_pod_names_a_leaf_of_its_gang(cluster):
    subgroups = tuple(SubGroupSpec(name=each, min_member=1) for each in LEAVES)
    cluster.pod_groups["ns/g"] = PodGroup("g", "ns", min_sub_group=1, subgroups=subgroups)

    assert () == check(pod(subgroup="decode"), cluster).errors
    label = 'metadata.labels["kai.scheduler/subgroup-name"]'
    sentence = "PodGroup ns/g has no subgroup 'x'; its leaves are decode, prefill"
    assert (f"{label}: {sentence}",) == check(pod(subgroup="x"), cluster).errors


def test_a_gang_that_was_changed_a_moment_ago_counts_as_it_is(cluster):
    cluster.earlier["ns/g"] = PodGroup("g", "ns", min_member=1)
    subgroups = (SubGroupSpec(name="new", min_member=1),)
    cluster.pod_groups["ns/g"] = PodGroup("g", "ns", min_sub_group=1, subgroups=subgroups)

    assert () == check(pod(subgroup="new"), cluster).errors


def test_a_pod_may_come_before_its_gang_and_is_told_so(cluster):
    response = answered(review(pod()), cluster)

    assert response["allowed"]
    assert "there is no PodGroup 'ns/g'; the pod waits for it" in response["warnings"][0]
    assert {"uid": "u", "allowed": True} == answered(review(pod(group=None)), cluster)


# Queues and cohorts


def test_a_queue_below_itself_is_refused(cluster):
    cluster.queues["b"] = FairQueue("b", parent="a")

    response = answered(review(queue("a", "b")), cluster)

    assert not response["allowed"]
    assert response["status"]["message"].startswith("spec.parentQueue: ")


def test_a_queue_may_come_before_its_parent(cluster):
    response = answered(review(queue("a", "later")), cluster)

    assert response["allowed"]
    assert "later" in response["warnings"][0]


def test_a_cycle_of_cohorts_is_kept_and_told_as_the_design_has_it(cluster):
    cluster.cohorts["b"] = Cohort("b", parent="a")

    response = answered(review(cohort("a", "b")), cluster)

    assert response["allowed"]
    (warning,) = response["warnings"]
    assert warning.startswith("spec.parentName: ")
    assert warning.endswith("; nothing new is admitted below them")


def test_limits_of_a_cohort_without_a_parent_are_refused_as_the_command_does(cluster):
    quota = {"name": "nvidia.com/gpu", "nominalQuota": 1, "borrowingLimit": 1}
    groups = [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{"name": "f", "resources": [quota]}],
        }
    ]

    response = answered(review(cohort("a", resourceGroups=groups)), cluster)

    assert not response["allowed"]
    assert "borrowingLimit" in response["status"]["message"]


# Reviews


def test_what_ends_and_what_stays_as_it_is_is_not_judged(cluster):
    bad = pod_group(minSubGroup=0)
    with_status = {**bad, "status": {"phase": "Running"}}

    assert answered(review(None, bad, operation="DELETE"), cluster)["allowed"]
    assert answered(review(with_status, bad, operation="UPDATE"), cluster)["allowed"]
    assert not answered(review(bad, pod_group(minMember=1), operation="UPDATE"), cluster)["allowed"]


def test_other_objects_are_as_they_should_be(cluster):
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}

    assert {"uid": "u", "allowed": True} == answered(review(other), cluster)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "v1", "kind": "AdmissionReview", "request": {"uid": ""}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_review_is_refused(cluster, body):
    with pytest.raises(Invalid, match="the body is"):
        answer_review(body, cluster)


def below_each_other(count: int) -> list[dict[str, Any]]:
    """Subgroups, each the parent of the next; in order but for the depth."""
    above = [
        {"name": f"s{i}", "minSubGroup": 1, **({"parent": f"s{i - 1}"} if i else {})}
        for i in range(count)
    ]
    return [*above, {"name": "leaf", "parent": f"s{count - 1}", "minMember": 1}]


@pytest.mark.parametrize(
    "written",
    [
        pod_group(
            minMember=1, subGroups=[{"name": f"s{i}", "minMember": 0} for i in range(10_000)]
        ),
        pod_group(minSubGroup=1, subGroups=below_each_other(10_000)),
        pod_group(minSubGroup=1, subGroups=below_each_other(10_000)[::-1]),
        pod_group(
            minSubGroup=1,
            subGroups=[{"name": f"s{i}", "parent": f"s{(i + 1) % 10_000}"} for i in range(10_000)],
        ),
        pod_group(
            minSubGroup=1,
            subGroups=[{"name": f"s{i}", "parent": f"s{i ^ 1}"} for i in range(10_000)],
        ),
        pod_group(minSubGroup=1, subGroups=[{"name": "same", "minMember": 1}] * 10_000),
        pod_group(minMember=1, subGroups=[{"name": "x" * 100_000}] * 100),
        pod_group(minMember="4"),
        pod_group(minMember=1.5),
        pod_group(minMember=True),
        pod_group(subGroups={"a": 1}),
        pod_group(subGroups=["a", 1, None]),
        {**pod_group(), "spec": []},
        {**pod_group(), "metadata": 7},
        {**pod_group(), "metadata": {"name": "x", "labels": [1], "annotations": "x"}},
    ],
    ids=[
        "many",
        "deep",
        "deep, leaf first",
        "one long cycle",
        "many short cycles",
        "one name",
        "long",
        "text for a number",
        "half a pod",
        "true for a number",
        "mapping for a list",
        "list of anything",
        "no spec",
        "no metadata",
        "no labels",
    ],
)
def test_hostile_objects_are_refused_in_few_words(cluster, written):
    response = answered(review(written), cluster)

    assert not response["allowed"]
    message = response["status"]["message"]
    assert len(message.split("; ")) <= 3 * MOST_NAMED
    assert len(message) <= (MOST_NAMED + 1) * (LONGEST_ERROR + len("; "))


def test_huge_labels_are_no_reason_to_refuse(cluster):
    labels = {f"label-{number}": "x" * 63 for number in range(10_000)}
    written = {**pod_group(), "metadata": {"name": "x", "labels": labels}}

    assert answered(review(written), cluster)["allowed"]


@pytest.mark.parametrize(
    "written",
    [
        pod_group(minMember=8),
        pod_group(minSubGroup=20, subGroups=[{"name": f"s{i}", "minMember": 4} for i in range(40)]),
        pod(subgroup="decode"),
        queue("team", "org"),
        cohort("team", "org"),
    ],
    ids=["PodGroup", "PodGroup with 40 subgroups", "Pod", "Queue", "Cohort"],
)
def test_an_ordinary_object_costs_less_than_five_milliseconds_of_the_processor(cluster, written):
    body = review(written)

    def cost_s() -> float:
        began_s = time.thread_time()
        answer_review(body, cluster)
        return time.thread_time() - began_s

    # The least of some: caches that other processes emptied are no cost of ours.
    assert min(cost_s() for _ in range(10)) < 0.005


def test_an_object_nested_deeper_than_files_may_be_is_refused(cluster):
    deep: Any = 1
    for _ in range(200):
        deep = [deep]

    response = answered(review(pod_group(minMember=1, deep=deep)), cluster)

    assert "the object is nested deeper than 64 levels, the limit" == response["status"]["message"]
