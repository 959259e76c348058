"""Queues of KAI that follow Bough's, on a real apiserver: made, changed, repaired, removed."""

from __future__ import annotations

import json

import pytest

from bough.backends.kubernetes.kai.gang_manifest import pod_group
from bough.backends.kubernetes.kai.manifests import all_manifests
from bough.backends.kubernetes.kai.wanted_objects import Owner, wanted_objects
from bough.kube.client import KubeClient, path
from bough.kube.failures import KubeRefused
from bough.kube.objects import PODS
from bough.model.backend import GangTerms
from bough.model.gang import SubGroup, TopologyConstraint
from bough.model.names import QueueName
from bough.model.queue_tree import LeafQueue, PoolQueue, QueueTree
from tests.kubernetes.bed.objects import pod
from tests.kubernetes.kai.clusters import KINDS, RevisionJudge
from tests.kubernetes.kai.story import Story
from tests.kubernetes.pods import launch, start
from tests.kubernetes.waiting import wait_for

QUEUE, TOPOLOGY, CLASS = KINDS["Queue"], KINDS["Topology"], KINDS["PriorityClass"]


def test_queues_follow_pools_and_subpools_and_never_have_too_much(story: Story):
    judge = RevisionJudge(story.admin, story.prefix)
    server = story.server
    server.pool("team", 100)
    story.expect(team=100, team__shared=100)
    server.done("pool", "subpool", "create", "team", "a", "--quota", "30")
    story.expect(team=100, team__shared=70, team__a=30)
    server.done("pool", "subpool", "create", "team", "b", "--quota", "70")
    story.expect(team=100, team__shared=0, team__a=30, team__b=70)
    server.done("pool", "subpool", "update", "team", "a", "--quota", "10")
    server.done("pool", "subpool", "update", "team", "b", "--quota", "90")
    story.expect(team=100, team__shared=0, team__a=10, team__b=90)
    server.done("pool", "subpool", "delete", "team", "b")
    story.expect(team=100, team__shared=90, team__a=10)

    assert [] == judge.faults()
    root = story.admin.get(QUEUE, f"osmo-default-{story.host.namespace}")
    assert "" == root["spec"]["parentQueue"]
    leaf = story.admin.get(QUEUE, f"{story.prefix}team---shared")
    assert f"{story.prefix}team--_shared" == leaf["metadata"]["labels"]["bough.queue"]
    unbounded = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    assert [unbounded] * 2 == [leaf["spec"]["resources"][each] for each in ("cpu", "memory")]
    assert [] == story.drift()["repairs"]


def test_priorities_and_topologies_are_there_and_a_used_topology_waits(story: Story):
    story.server.pool("team", 8)
    told = {"topology_keys": [{"key": "rack", "label": "example.com/rack"}]}
    story.server.client.pools.update("team", told)
    name = f"{story.prefix}team-topology"

    def levels() -> list[str]:
        found = [
            each for each in story.admin.list(TOPOLOGY).items if each["metadata"]["name"] == name
        ]
        return [level["nodeLabel"] for each in found for level in each["spec"]["levels"]]

    wait_for(lambda: ["example.com/rack"] == levels())
    values = {each["metadata"]["name"]: each["value"] for each in story.admin.list(CLASS).items}
    assert (125, 100, 50) == tuple(values[f"osmo-{each}"] for each in ("high", "normal", "low"))

    group = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "user"},
        "spec": {"queue": "x", "topologyConstraint": {"topology": name}},
    }
    story.admin.create(KINDS["PodGroup"], group, story.host.namespace)
    told = {"topology_keys": [{"key": "zone", "label": "example.com/zone"}]}
    story.server.client.pools.update("team", told)
    wait_for(lambda: any(name in each for each in story.drift()["troubles"]), "the trouble")
    assert ["example.com/rack"] == levels()
    story.admin.delete(KINDS["PodGroup"], "user", story.host.namespace)
    wait_for(lambda: ["example.com/zone"] == levels())
    wait_for(lambda: [] == story.drift()["troubles"])


def test_what_others_change_or_delete_is_repaired_and_reported_once(story: Story):
    story.server.pool("team", 8)
    story.server.done("pool", "subpool", "create", "team", "a", "--quota", "3")
    story.expect(team=8, team__shared=5, team__a=3)
    leaf = f"{story.prefix}team--a"
    damage = {"spec": {"preemptMinRuntime": "1h", "resources": {"gpu": {"quota": 99}}}}
    story.admin.patch(QUEUE, leaf, damage)
    wait_for(lambda: [f"Queue/{leaf}"] == story.repaired(), "the repair")
    story.expect(team=8, team__shared=5, team__a=3)
    assert "preemptMinRuntime" not in story.admin.get(QUEUE, leaf)["spec"]
    (repair,) = story.drift()["repairs"]
    assert "resources.gpu.quota is 99.0, not 3.0" in repair["message"]

    story.admin.delete(QUEUE, leaf)
    wait_for(lambda: 2 == len(story.repaired()), "the second repair")
    story.expect(team=8, team__shared=5, team__a=3)
    entries = story.server.client.audit.list(subject=f"Queue/{leaf}")
    assert ["kube:Repair"] * 2 == [each.action for each in entries]


def test_objects_of_others_are_left_alone_also_if_they_have_our_name(story: Story):
    name = f"{story.prefix}team"
    theirs = {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"resources": {"gpu": {"quota": 1, "limit": 2, "overQuotaWeight": 3}}},
    }
    made = story.admin.create(QUEUE, theirs)
    story.server.pool("team", 8)
    wait_for(lambda: any(name in each for each in story.drift()["troubles"]), "the trouble")

    assert made == story.admin.get(QUEUE, name)
    assert f"{name}---shared" not in {
        each["metadata"]["name"] for each in story.admin.list(QUEUE).items
    }
    story.admin.delete(QUEUE, name)
    story.expect(team=8, team__shared=8)
    wait_for(lambda: [] == story.drift()["troubles"])


def test_a_queue_goes_only_when_no_pod_names_it(story: Story):
    story.server.pool("team", 8)
    story.server.done("pool", "subpool", "create", "team", "a", "--quota", "3")
    story.expect(team=8, team__shared=5, team__a=3)
    leaf = f"{story.prefix}team--a"
    user = pod("user", "node-0")
    user["metadata"]["labels"] = {"kai.scheduler/queue": leaf}
    story.admin.create(PODS, user, story.host.namespace)

    story.server.done("pool", "subpool", "delete", "team", "a")
    story.expect(team=8, team__shared=8, team__a=0)
    wait_for(lambda: any(leaf in each for each in story.drift()["troubles"]), "the trouble")
    story.admin.delete(PODS, "user", story.host.namespace, grace_s=0)
    story.expect(team=8, team__shared=8)


def test_all_that_is_sent_to_a_cluster_is_known_to_the_definitions_of_kai(admin: KubeClient):
    pool = QueueName("fields", "Team")
    leaves = (LeafQueue(QueueName("fields", "Team", "_shared"), 5),)
    tree = QueueTree(QueueName("fields"), (PoolQueue(pool, 8, 9, 2, leaves, ("zone", "rack")),))
    wanted = wanted_objects(tree, Owner("site", "default"))
    near = TopologyConstraint("osmo-topology", "zone", "rack")
    parts = (
        SubGroup("All", minimum=2, constraint=near),
        SubGroup("one", "All", 1),
        SubGroup("two", "All", 2, constraint=near),
    )
    several = GangTerms("queue", "osmo-low", 1, parts, near)
    groups = [
        pod_group("site", start(launch()), terms)
        for terms in (several, GangTerms("queue", "osmo-high", 4))
    ]

    for each in (*all_manifests(wanted), *groups):
        kind = KINDS[each["kind"]]
        strict = f"{path(kind, 'default')}?dryRun=All&fieldValidation=Strict"
        # Other tests of this cluster left objects with the names that ours always have.
        sent = {**each, "metadata": {**each["metadata"], "name": "of-this-test"}}
        kept = admin.ask("POST", strict, sent)
        assert json.loads(json.dumps(each.get("spec"))) == kept.get("spec")
        with pytest.raises(KubeRefused, match="unknown field"):
            admin.ask("POST", strict, {**sent, "unheard": 1})
