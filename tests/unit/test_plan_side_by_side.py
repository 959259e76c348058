"""Objects of several kinds in one file: names that two of them have, pods without their PodGroup.

Nothing that holds room is forgotten, nothing that waits is, and each is told what is true of it.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.objects import cluster_queue, group, kueue, node, pod, queue, workload
from tests.printed import starts, waits, warnings

FLAVOR = kueue("ResourceFlavor", "h100")
DOOR = kueue("LocalQueue", "team, namespace: ns", "clusterQueue: team")
IN_QUEUE = "kai.scheduler/queue: q"
NAMESPACED = ("metadata: {name: ", "metadata: {namespace: ns, name: ")


def sentences(answer: Any) -> list[str]:
    return [each["sentence"] for each in answer["remedies"]["found"]]


def test_a_pod_and_a_pod_group_of_one_name_are_both_planned(ask):
    objects = queue(), node(), group("a"), pod("a-0"), pod("a", labels=IN_QUEUE)
    found = ask("plan FILE", *objects)

    assert {"a": ["n"], "a (pod)": ["n"]} == starts(found)


def test_a_remedy_names_the_pod_as_it_is_written(ask):
    labels = f"{IN_QUEUE}, priorityClassName: build"
    runs = pod("a", spec="nodeName: n,", labels=labels, requests=", memory: 200Gi")
    large = pod("b-0", requests=", memory: 200Gi")
    objects = queue(), node(), group("a"), pod("a-0"), runs, group("b"), large
    found = ask("why FILE b --remedies", *objects)

    (ends,) = [each for each in found["remedies"]["found"] if each["kind"] == "wait"]
    assert [("Pod", "a", "a")] == [
        (each["kind"], each["name"], each["before"]) for each in ends["changes"]
    ]


def test_a_workload_and_a_pod_group_of_one_name_are_both_planned(ask):
    ours = group("a", queue="team").replace(*NAMESPACED), pod("a-0").replace(*NAMESPACED)
    queues = FLAVOR, cluster_queue("team", gpus=1), DOOR
    found = ask("plan FILE", *queues, node(), *ours, workload("a", "team", pods=3))

    assert {"ns/a": ["n"]} == starts(found)
    assert ["ns/a (workload)"] == list(waits(found))


@pytest.mark.parametrize("state", ["Running", "Pending"])
def test_a_pod_whose_pod_group_is_gone_keeps_its_room(ask, state: str):
    """It was bound already; to give its GPUs to another would use them twice."""
    bound = pod("gone-0", spec="nodeName: n,").replace('nvidia.com/gpu: "1"', 'nvidia.com/gpu: "8"')
    bound = f"{bound[:-1]}, status: {{phase: {state}}}}}"
    found = ask("plan FILE", queue(), node(), bound, group("a"), pod("a-0"))

    assert {} == starts(found)
    assert ["a"] == list(waits(found))
    messages = [message for _, _, message in warnings(found)]
    assert "there is no PodGroup 'gone'; the pod counts by itself" in messages
    assert any(each.startswith("what it uses counts for no queue: ") for each in messages)


def test_a_pod_that_waits_for_its_pod_group_is_no_gang(ask):
    found = ask("plan FILE", queue(), node(), pod("gone-0"), group("a"), pod("a-0"))

    assert {"a": ["n"]} == starts(found)
    assert ["there is no PodGroup 'gone'; the pod waits for it"] == [
        message for _, _, message in warnings(found)
    ]


def test_a_priority_that_stands_for_nothing_is_named(ask):
    odd = group("a").replace("priorityClassName: build", "priorityClassName: urgent")
    alone = pod("b", labels=f"{IN_QUEUE}, priorityClassName: later")
    found = ask("plan FILE", queue(), node(), odd, pod("a-0"), alone)

    message = "there is no PriorityClass '{}'; 50 counts, the default"
    expected = [
        ("PodGroup/a", "spec.priorityClassName", message.format("urgent")),
        ("Pod/b", None, message.format("later")),
    ]
    assert expected == warnings(found)
    known = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 7"
    )
    assert [] == warnings(ask("plan FILE", known, queue(), node(), odd, pod("a-0")))


def test_a_gang_in_a_cohort_that_owns_nothing_is_told_to_raise_the_quota_of_its_queue(ask):
    """What the cohort has is what its queues have; it has no quota of its own to raise."""
    gang = group("a", queue="team").replace("build", "train"), pod("a-0")
    found = ask("why FILE a --remedies", FLAVOR, cluster_queue("team", gpus=0), node(), *gang)

    assert "cohort c" in found["certificate"]["sentence"]
    raised = "raise nominalQuota of ClusterQueue team from 0 to 1 h100/nvidia.com/gpu"
    assert raised in sentences(found)
    assert {"a": ["n"]} == starts(
        ask("plan FILE", FLAVOR, cluster_queue("team", gpus=1), node(), *gang)
    )


def test_a_gang_of_a_flavor_without_nodes_is_told_so_and_what_a_node_of_it_carries(ask):
    objects = (
        kueue("ResourceFlavor", "h100", "nodeLabels: {gpu: h100}"),
        kueue("ResourceFlavor", "a100", "nodeLabels: {gpu: a100}"),
        cluster_queue("team"),
        group("a", queue="team"),
        pod("a-0"),
        node(labels="gpu: a100"),
    )
    found = ask("why FILE a --remedies", *objects)

    assert "of the nodes 1 is not for its queue" in found["certificate"]["sentence"]
    assert ["add 1 node like n, but with the label gpu=h100"] == sentences(found)
    (added,) = found["remedies"]["found"]
    assert ("metadata.labels.gpu", "a100", "h100") == tuple(
        added["changes"][1][key] for key in ("field", "before", "after")
    )
    more = node("n-new-1", labels="gpu: h100")
    assert {"a": ["n-new-1"]} == starts(ask("plan FILE", *objects, more))


def test_a_gang_behind_one_that_waits_for_victims_waits(ask):
    """Where heads are judged together, the plan of one says nothing of those behind it."""
    queues = cluster_queue("team", 1, ", preemption: {withinClusterQueue: LowerPriority}"), DOOR
    low = group("low", queue="team").replace("build", "train")
    runs = low, pod("low-0", spec="nodeName: n,")
    first = workload("first", "team").replace("queueName", "priority: 1000, queueName")
    objects = FLAVOR, *queues, node(), *runs, first, group("b", queue="team"), pod("b-0")

    found = ask("why FILE b", *objects)["certificate"]

    assert "waits" == found["verdict"]
    assert "ns/first is first in queue team and waits for quota" == found["sentence"]


def test_a_gang_whose_pods_have_all_ended_has_ended(ask):
    ended = f"{pod('a-0', spec='nodeName: n,')[:-1]}, status: {{phase: Succeeded}}}}"
    found = ask("why FILE a", queue(), node(), group("a"), ended)["certificate"]

    assert ("ended", "none of its pods waits or runs") == (found["verdict"], found["sentence"])


@pytest.mark.parametrize(("parent", "cycle"), [("q", "q → q"), ("r", "q → r → q")])
def test_a_gang_whose_queue_is_below_itself_is_told_the_cycle(ask, parent: str, cycle: str):
    queues = [queue(more=f", parentQueue: {parent}")]
    if parent != "q":
        queues.append(queue(parent, more=", parentQueue: q"))
    found = ask("why FILE a --remedies", *queues, node(), group("a"), pod("a-0"))

    expected = f"cohort q is stopped: its cohorts form a cycle: {cycle}"
    assert expected == found["certificate"]["sentence"]
    assert [f"take Queue {parent} out of the cycle: it must have no parent"] == sentences(found)
