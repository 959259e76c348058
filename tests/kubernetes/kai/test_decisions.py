"""Every answer of the other side: bound, late, never, evicted, deleted, bound to no node."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from bough.kube.objects import PODS
from tests.e2e.local import Attempt, gang, resources
from tests.kubernetes.kai.clusters import KINDS
from tests.kubernetes.kai.story import Story
from tests.kubernetes.waiting import wait_for


def nodes_of(story: Story, name: str) -> list[str | None]:
    """Where the last attempts of a workflow are, as Bough says."""
    return [
        task["node_name"]
        for group in story.server.workflow(name)["groups"]
        for task in group["tasks"]
    ]


@pytest.fixture
def team(story: Story) -> Story:
    story.server.pool("team", 16)
    return story


def test_a_gang_is_one_pod_group_and_bough_says_where_kai_bound_it(team: Story):
    members = [{"name": each, "image": "bed"} for each in ("one", "two")]
    name = team.server.send("team", "NORMAL", {**gang(members), "resources": resources(2)})
    one, two = team.pods(name, 2)
    assert ["", ""] == [pod["spec"].get("nodeName", "") for pod in (one, two)]
    (group,) = team.kai.groups()
    assert group == team.kai.group_of(one) == team.kai.group_of(two)
    spec = {
        "minMember": 2,
        "priorityClassName": "osmo-normal",
        "queue": f"{team.prefix}team---shared",
    }
    assert spec == group["spec"]

    team.kai.bind(one, node="node-3")
    wait_for(lambda: "node-3" in nodes_of(team, name), "the node of the first")
    team.kai.bind(two, node="node-4")
    team.server.settle(RUNNING=[name])
    # A workflow runs as soon as one of its tasks does.
    wait_for(lambda: {"node-3", "node-4"} == set(nodes_of(team, name)), "the nodes of both")
    team.server.finish(name)
    wait_for(lambda: not team.kai.groups(), "the end of the PodGroup")


def test_what_waits_in_kai_says_why_in_its_words_and_is_bound_late(team: Story):
    name = team.server.submit("team", 4, "NORMAL")
    (pod,) = team.pods(name)
    said = "Resources were not found for pod: no nodes with enough GPUs"
    team.kai.refuse(pod, said)

    def why() -> str:
        return team.server.done("workflow", "why", name)

    wait_for(lambda: said in why(), "what KAI says")
    assert why().rstrip().rstrip(".").endswith(said)
    assert "INITIALIZING" == team.server.attempts(name)[0].status
    team.kai.bind(pod)
    team.server.settle(RUNNING=[name])
    assert said not in json.dumps(team.server.workflow(name))


def test_what_kai_never_places_can_be_cancelled_and_leaves_nothing(team: Story):
    name = team.server.submit("team", 4, "NORMAL")
    team.pods(name)
    team.server.done("workflow", "cancel", name)
    team.server.over(name)

    assert "FAILED_CANCELED" == team.server.status(name)
    wait_for(lambda: not team.kai.groups(), "the end of the PodGroup")


@pytest.mark.parametrize("event_first", [True, False])
def test_what_kai_evicts_is_preempted_and_comes_again_with_its_submit_time(
    team: Story, event_first: bool
):
    name = team.run("team", 4, "LOW")
    submitted = team.server.workflow(name)["submit_time"]
    team.kai.evict(*team.pods(name), message="reclaimed for gang b", event_first=event_first)
    team.server.until(lambda: 2 == len(team.server.attempts(name)), team.server.pods)

    first, again = team.server.attempts(name)
    assert Attempt(0, "FAILED_PREEMPTED", 3006) == first
    assert 1 == again.retry
    assert "reclaimed for gang b" in json.dumps(team.server.workflow(name))
    team.kai.bind(*team.pods(name))
    team.server.settle(RUNNING=[name])
    assert submitted == team.server.workflow(name)["submit_time"]


def test_what_people_delete_soon_after_an_eviction_is_lost_and_not_preempted(team: Story):
    name = team.run("team", 4, "LOW")
    team.kai.evict(*team.pods(name), message="reclaimed for gang b")
    team.server.until(lambda: 2 == len(team.server.attempts(name)), team.server.pods)
    (pod,) = team.pods(name)
    team.kai.bind(pod)
    team.server.settle(RUNNING=[name])
    team.admin.delete(PODS, pod["metadata"]["name"], team.host.namespace, grace_s=1)
    team.server.until(lambda: 3 == len(team.server.attempts(name)), team.server.pods)

    ends = [(each.status, each.code) for each in team.server.attempts(name)[:2]]
    assert [("FAILED_PREEMPTED", 3006), ("FAILED_BACKEND_ERROR", 3001)] == ends


def test_evictions_and_deletions_that_no_server_saw_are_told_apart_as_well(team: Story):
    evicted, deleted = (team.run("team", 4, "LOW") for _ in range(2))
    (first,), (second,) = team.pods(evicted), team.pods(deleted)
    team.host.stop(signal.SIGKILL)
    team.kai.evict(first, message="reclaimed for gang b")
    team.admin.delete(PODS, second["metadata"]["name"], team.host.namespace, grace_s=1)
    gone = {first["metadata"]["name"], second["metadata"]["name"]}
    wait_for(
        lambda: not gone & {each["metadata"]["name"] for each in team.server.all_pods()},
        "the end of both pods",
    )
    team.server = team.host.start()
    for name in (evicted, deleted):
        team.server.until(lambda name=name: 2 == len(team.server.attempts(name)), team.server.pods)

    ends = [team.server.attempts(name)[0] for name in (evicted, deleted)]
    assert Attempt(0, "FAILED_PREEMPTED", 3006) == ends[0]
    assert Attempt(0, "FAILED_BACKEND_ERROR", 3001) == ends[1]


def test_what_people_delete_is_lost_and_comes_again(team: Story):
    name = team.run("team", 4, "LOW")
    (pod,) = team.pods(name)
    team.admin.delete(PODS, pod["metadata"]["name"], team.host.namespace, grace_s=1)
    team.server.until(lambda: 2 == len(team.server.attempts(name)), team.server.pods)

    assert Attempt(0, "FAILED_BACKEND_ERROR", 3001) == team.server.attempts(name)[0]


def test_what_is_bound_to_a_node_that_is_not_there_is_lost_and_comes_again(team: Story):
    name = team.server.submit("team", 4, "NORMAL")
    team.kai.bind(*team.pods(name), node="gone")
    team.server.until(lambda: 2 == len(team.server.attempts(name)), team.server.pods)

    assert Attempt(0, "FAILED_BACKEND_ERROR", 3001) == team.server.attempts(name)[0]
    team.kai.bind(*team.pods(name))
    team.server.settle(RUNNING=[name])


def test_subgroups_and_topologies_are_said_in_words_of_kai(team: Story):
    keys = [{"key": "rack", "label": "example.com/rack"}]
    team.server.client.pools.update("team", {"topology_keys": keys})
    members = [
        {"name": f"{part}-{each}", "image": "bed", "subGroup": part}
        for part in ("Prefill", "decode")
        for each in range(2)
    ]
    wanted = gang(members, minSubGroup=2)
    wanted["groups"][0]["subGroups"] = [
        {
            "name": "Prefill",
            "minMember": 1,
            "topologyConstraint": {"requiredTopologyLevel": "rack"},
        },
        {"name": "decode", "minMember": 2},
    ]
    name = team.server.send("team", "NORMAL", {**wanted, "resources": resources(1)})
    pods = team.pods(name, 4)

    spec = team.kai.group_of(pods[0])["spec"]
    prefill, decode = spec["subGroups"]
    assert 2 == spec["minSubGroup"]
    assert "minMember" not in spec
    assert {"name": "decode", "minMember": 2} == decode
    topology = f"{team.prefix}team-topology"
    level = {"topology": topology, "requiredTopologyLevel": "example.com/rack"}
    assert (1, level) == (prefill["minMember"], prefill["topologyConstraint"])
    labels = {pod["metadata"]["labels"]["kai.scheduler/subgroup-name"] for pod in pods}
    assert {prefill["name"], "decode"} == labels
    wait_for(
        lambda: (
            topology in {e["metadata"]["name"] for e in team.admin.list(KINDS["Topology"]).items}
        )
    )


def test_a_pod_group_that_others_change_or_delete_is_put_right_and_told_once(team: Story):
    """While KAI has not placed it and when it runs, also while no server is there to see it."""
    name = team.server.submit("team", 4, "NORMAL")
    (pod,) = team.pods(name)
    made = team.kai.group_of(pod)
    subject = f"PodGroup/{made['metadata']['name']}"

    def is_right() -> bool:
        found = team.kai.groups()
        return [made["spec"]] == [each["spec"] for each in found] and all(
            made["metadata"]["labels"] == each["metadata"]["labels"] for each in found
        )

    def hurt(**changes: Any) -> None:
        where = made["metadata"]["name"], changes, team.host.namespace
        team.admin.patch(KINDS["PodGroup"], *where)

    def lose() -> None:
        team.admin.delete(KINDS["PodGroup"], made["metadata"]["name"], team.host.namespace)

    hurt(spec={"minMember": 3, "preemptibility": "preemptible"})
    wait_for(lambda: [subject] == team.repaired(), "the first repair")
    assert is_right()
    (repair,) = team.drift()["repairs"]
    assert "minMember is 3, not 1; preemptibility is preemptible" in repair["message"]
    lose()
    wait_for(lambda: 2 == len(team.repaired()), "the second repair")
    assert is_right()
    hurt(metadata={"labels": {"kai.scheduler/queue": "lost", "osmo.group_uuid": "lost"}})
    wait_for(lambda: 3 == len(team.repaired()), "the third repair")
    assert is_right()

    team.kai.bind(pod)
    team.server.settle(RUNNING=[name])
    team.host.stop(signal.SIGKILL)
    hurt(spec={"queue": "lost"})
    team.server = team.host.start()
    wait_for(lambda: 4 == len(team.repaired()), "the fourth repair")
    assert is_right()
    team.host.stop(signal.SIGKILL)
    lose()
    team.server = team.host.start()
    wait_for(lambda: 5 == len(team.repaired()), "the fifth repair")
    assert is_right()

    hurt(metadata={"labels": {"bough.site": "another"}})
    wait_for(lambda: any(subject[9:] in each for each in team.drift()["troubles"]), "the trouble")
    assert "another" == team.kai.group_of(pod)["metadata"]["labels"]["bough.site"]
    lose()
    wait_for(lambda: [] == team.drift()["troubles"], "the end of the trouble")
    assert is_right()
    assert "RUNNING" == team.server.status(name)
    assert {subject} == set(team.repaired())
    team.server.finish(name)
    wait_for(lambda: not team.kai.groups(), "the end of the PodGroup")
