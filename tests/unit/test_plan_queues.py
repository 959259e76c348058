"""Queues of Kueue and KAI, their namespaces and flavors, through the commands that plan them."""

from __future__ import annotations

import pytest

from bough.cli.main import run
from bough.errors import Invalid
from tests.objects import cluster_queue, group, kueue, node, pod, queue, workload
from tests.printed import starts, waits, warnings


def test_gangs_go_to_the_queues_of_kueue_with_their_cohorts_limits(ask):
    limited = cluster_queue("team", gpus=1).replace(
        "nominalQuota: 1", "borrowingLimit: 1, nominalQuota: 1"
    )
    found = ask(
        "plan FILE",
        kueue("ResourceFlavor", "h100"),
        kueue("Cohort", "c"),
        limited,
        cluster_queue("other", gpus=8),
        node(),
        *(group(f"g{at}", queue="team").replace("build", "train") for at in range(3)),
        *(pod(f"g{at}-0") for at in range(3)),
    )

    assert {"g0": ["n"]} == starts(found)
    assert ["g1", "g2"] == sorted(waits(found))
    assert [] == warnings(found)


SELECTING = cluster_queue("team").replace(
    "namespaceSelector: {}", "namespaceSelector: {matchLabels: {team: research}}"
)


NAMES = ("team", "other")


IN_NAMESPACES = (
    kueue("ResourceFlavor", "h100"),
    SELECTING,
    SELECTING.replace("name: team", "name: other"),
    kueue("LocalQueue", "team, namespace: ns", "clusterQueue: team"),
    kueue("LocalQueue", "team, namespace: bad", "clusterQueue: other"),
    workload("good", "team"),
    workload("bad", "team").replace("namespace: ns", "namespace: bad"),
)


def namespace(name: str, labels: str = "") -> str:
    return (
        f"{{apiVersion: v1, kind: Namespace, metadata: {{name: {name}, labels: {{{labels}}}}}, "
        "spec: {finalizers: [kubernetes]}, status: {phase: Active}}"
    )


def test_a_queue_lets_in_the_namespaces_that_it_selects(ask):
    found = ask("plan FILE", *IN_NAMESPACES, namespace("ns", "team: research"), namespace("bad"))

    assert ["ns/good"] == [*starts(found)]
    assert {"bad/bad": "queue other does not let the namespace bad in"} == waits(found)
    assert [] == warnings(found)


def test_a_namespace_has_the_label_that_kubernetes_gives_to_all(ask):
    by_name = "kubernetes.io/metadata.name: ns"
    objects = [each.replace("team: research", by_name) for each in IN_NAMESPACES]
    found = ask("plan FILE", *objects, namespace("ns"), namespace("bad"))

    assert ["ns/good"] == [*starts(found)]


def test_selectors_are_named_where_no_namespace_was_read_and_let_all_in(ask):
    found = ask("plan FILE", *IN_NAMESPACES)
    again = ask("why FILE ns/good", *IN_NAMESPACES)

    message = "is not looked at: no Namespace was read, so every one may use the queue"
    expected = [(f"ClusterQueue/{name}", "spec.namespaceSelector", message) for name in NAMES]
    assert (expected, expected) == (warnings(found), warnings(again))
    assert ["bad/bad", "ns/good"] == sorted(starts(found))


def test_queues_of_kai_take_every_namespace(ask):
    found = ask("plan FILE", queue(), node(), group("a"), pod("a-0"), namespace("other"))

    assert ({"a": ["n"]}, {}) == (starts(found), waits(found))


def test_a_namespace_that_is_declared_twice_is_an_error(tmp_path, capsys):
    path = tmp_path / "objects.yaml"
    path.write_text("\n---\n".join([queue(), namespace("a"), namespace("a")]), encoding="utf-8")
    assert 2 == run(["plan", str(path)])
    assert "Namespace/a: metadata.name: is declared twice" in capsys.readouterr().err


def test_both_families_of_queues_stand_side_by_side(ask):
    found = ask(
        "plan FILE",
        kueue("ResourceFlavor", "h100", "nodeLabels: {gpu: h100}"),
        cluster_queue("team", gpus=1),
        queue("q", gpus="1"),
        node("n", labels="gpu: h100"),
        *(group(f"k{at}") for at in range(2)),
        *(group(f"c{at}", queue="team") for at in range(2)),
        *(pod(f"{name}-0") for name in ("k0", "k1", "c0", "c1")),
    )

    assert {"k0": ["n"], "c0": ["n"]} == starts(found)
    assert {"k1", "c1"} == {*waits(found)}


def test_a_gang_of_an_unknown_queue_waits_among_the_queues_of_kueue(ask):
    objects = cluster_queue("team"), node(), group("a", queue="tema"), pod("a-0")
    found = ask("plan FILE", kueue("ResourceFlavor", "h100"), *objects)

    message = "the gang waits: queue 'tema' does not exist"
    assert [("PodGroup/a", "spec.queue", message)] == warnings(found)
    assert {"a": "queue tema does not exist"} == waits(found)


@pytest.mark.parametrize(
    ("above", "why"),
    [
        ("gone", "queue 'q' is stopped: the queue 'gone' above it does not exist"),
        ("q", "queue 'q' is stopped: a cycle above it, q"),
    ],
)
def test_a_gang_whose_only_queue_hangs_nowhere_waits_and_is_told_why(ask, above: str, why: str):
    found = ask("plan FILE", queue(more=f", parentQueue: {above}"), node(), group("a"), pod("a-0"))

    assert [("PodGroup/a", "spec.queue", f"the gang waits: {why}")] == warnings(found)
    assert ["a"] == list(waits(found))


def test_the_reason_says_that_a_queue_above_is_missing_not_the_queue_itself(ask):
    orphan = queue(more=", parentQueue: gone")
    found = ask("plan FILE", orphan, node(), group("a"), pod("a-0"))

    assert {"a": "queue 'q' is stopped: the queue 'gone' above it does not exist"} == waits(found)


def test_shares_of_queues_of_kai_are_what_the_preset_divides(ask):
    """Each has its GPU; the six that are left go by weight, two of three to the heavy one."""
    names = ("heavy", "light")
    heavy = queue("heavy", gpus="1").replace("gpu: {quota", "gpu: {overQuotaWeight: 2, quota")
    light = queue("light", gpus="1").replace("gpu: {quota", "gpu: {overQuotaWeight: 1, quota")
    pods = (pod(f"{name}-0").replace('gpu: "1"', 'gpu: "8"') for name in names)
    groups = (group(name, queue=name) for name in names)
    found = ask("quota show FILE", heavy, light, node("n"), *groups, *pods)

    gpus = {
        each["name"]: [portion[key] for key in ("deserved", "used", "asked", "fair")]
        for each in found["nodes"]
        for portion in each["share"]["portions"]
        if portion["resource"] == "gpu"
    }
    assert {"(cluster)": [8, 0, 16, 8], "heavy": [1, 0, 8, 5], "light": [1, 0, 8, 3]} == gpus
    assert {"heavy": "2", "light": "1"} == {
        each["name"]: each["weight"] for each in found["nodes"] if each["name"] in names
    }
    assert [] == warnings(found)


def test_a_node_has_the_flavor_with_most_labels_that_it_carries(scene):
    snapshot = scene(
        kueue("ResourceFlavor", "any-gpu"),
        kueue("ResourceFlavor", "zoned", "nodeLabels: {gpu: h100, zone: a}"),
        kueue("ResourceFlavor", "h100", "nodeLabels: {gpu: h100}"),
        kueue("ResourceFlavor", "also-h100", "nodeLabels: {gpu: h100}"),
        cluster_queue("team"),
        node("n1", labels="gpu: h100, zone: a"),
        node("n2", labels="gpu: h100, zone: b"),
        node("n3", labels="gpu: a100"),
    ).snapshot

    assert {"n1": "zoned", "n2": "also-h100", "n3": "any-gpu"} == {
        each.name: each.flavor for each in snapshot.nodes
    }


def test_a_mixed_file_becomes_one_snapshot(scene):
    admission = (
        "status: {conditions: [{type: QuotaReserved, status: 'True'}], admission: {clusterQueue: "
        "team, podSetAssignments: [{name: main, count: 8, flavors: {nvidia.com/gpu: h100}, "
        "resourceUsage: {nvidia.com/gpu: 8}}]}}"
    )
    snapshot = scene(
        kueue("Cohort", "c"),
        kueue("ResourceFlavor", "h100"),
        cluster_queue("team"),
        kueue("LocalQueue", "team, namespace: ns", "clusterQueue: team"),
        workload("running", "team", 8) + admission,
        workload("waiting", "team", 2),
        group("gang", queue="team"),
        node(),
        pod("gang-0"),
    ).snapshot

    assert (["c"], ["team"], ["n"]) == (
        [each.name for each in snapshot.cohorts],
        [each.name for each in snapshot.queues],
        [each.name for each in snapshot.nodes],
    )
    assert {"team": ["gang", "ns/running", "ns/waiting"]} == {
        queue: [each.name for each in row] for queue, row in snapshot.gangs.items()
    }


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        (cluster_queue("team"), "ClusterQueue"),
        (kueue("Cohort", "team"), "Cohort"),
        (kueue("Cohort", "x", "parentName: team"), "Cohort"),
        (cluster_queue("x").replace("cohortName: c", "cohortName: team"), "Cohort"),
    ],
)
def test_queues_of_both_families_have_different_names(scene, other: str, kind: str):
    with pytest.raises(Invalid) as error:
        scene(other, queue("team"), node())

    (line,) = error.value.details
    message = f"is the name of a {kind}, too; give one of them another name"
    assert f"Queue/team: metadata.name: {message}" == line.partition(": ")[2]


def test_a_flavor_is_not_called_by_the_word_for_all_of_them(scene):
    with pytest.raises(Invalid) as error:
        scene(kueue("ResourceFlavor", "any"), cluster_queue("team"), node())

    assert "'any' means nodes of every flavor here" in error.value.details[0]


def test_a_pod_of_a_workload_is_no_gang_while_it_waits_and_holds_its_room_once_it_runs(scene):
    mark = "kueue.x-k8s.io/podset: main"
    gate = "schedulingGates: [{name: kueue.x-k8s.io/admission}],"
    pods = pod("w", gate, labels=mark), pod("r", "nodeName: n,", labels=mark)
    found = scene(kueue("ResourceFlavor", "h100"), cluster_queue("team"), node(), *pods)

    gangs = [gang for row in found.snapshot.gangs.values() for gang in row]
    assert [("r", "n")] == [(gang.name, gang.pods[0].node) for gang in gangs]
    assert [] == found.problems


def test_a_queue_of_kai_brings_its_priority_and_minimum_runtimes(scene):
    above = queue("top", more=", reclaimMinRuntime: 1h, preemptMinRuntime: 10m")
    below = queue("q", more=", parentQueue: top, priority: 200, reclaimMinRuntime: 10h")
    (found,) = scene(above, below, node()).snapshot.queues

    runtimes = found.reclaim_min_runtime_ms, found.preempt_min_runtime_ms
    assert (200, 36_000_000, 600_000) == (found.priority, *runtimes)


def test_a_gang_has_the_namespace_of_its_pod_group_or_pod(scene):
    """A queue that selects namespaces asks for it."""
    label = "labels: {kai.scheduler/queue: q}"
    there = (
        group("g").replace("{name: g", "{namespace: ns, name: g"),
        pod("alone").replace("labels: {}", f"namespace: ns, {label}"),
        group("h"),
        pod("single").replace("labels: {}", label),
    )
    found = scene(queue(), node(), *there).snapshot.gangs["q"]

    expected = {"ns/g": "ns", "ns/alone": "ns", "h": "default", "single": "default"}
    assert expected == {gang.name: gang.namespace for gang in found}
