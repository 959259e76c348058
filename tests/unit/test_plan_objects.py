"""Objects as an API server prints them, through the commands that plan them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bough.cli.main import run
from bough.errors import Invalid
from tests.objects import cluster_queue, group, kueue, node, pod, queue, topology, workload


def starts(answer: Any) -> dict[str, list[str]]:
    """By workload: the nodes of its pods."""
    return {each["workload"]: [pod["node"] for pod in each["pods"]] for each in answer["starts"]}


def waits(answer: Any) -> dict[str, str]:
    return {each["workload"]: each["sentence"] for each in answer["waits"]}


def warnings(answer: Any) -> list[tuple[str, str, str]]:
    assert {"warning"} >= {each["severity"] for each in answer["problems"]}
    return [(each["subject"], each["field"], each["message"]) for each in answer["problems"]]


FPGA = (
    queue(),
    node(),
    group("a"),
    group("b"),
    group("c"),
    pod("a-0"),
    pod("b-0", requests=", example.com/fpga: 1"),
    pod("c-0"),
)


def test_a_pod_that_asks_for_what_no_node_has_leaves_the_others_alone(ask):
    found = ask("plan FILE", *FPGA)

    assert {"a": ["n"], "c": ["n"]} == starts(found)
    assert {"b": "no node has example.com/fpga"} == waits(found)


def test_why_names_what_no_node_has(ask):
    found = ask("why FILE b --remedies", *FPGA)["certificate"]

    assert "no node has example.com/fpga" == found["sentence"]
    assert [["example.com/fpga"]] == [each["absent"] for each in found["lacks"]]


def test_place_names_what_no_node_has(ask):
    found = {each["name"]: each for each in ask("place --nodes FILE FILE", *FPGA)["gangs"]}

    assert (None, None) == (found["a"]["refusal"], found["c"]["refusal"])
    assert [["example.com/fpga"]] == [each["absent"] for each in found["b"]["refusal"]["lacks"]]


def test_a_resource_of_which_every_node_has_none_is_one_that_no_node_has(ask):
    empty = node().replace("pods:", "example.com/fpga: 0, pods:")
    found = ask("plan FILE", queue(), empty, group("b"), FPGA[6])

    assert {"b": "no node has example.com/fpga"} == waits(found)


@pytest.mark.parametrize(
    "closed",
    [
        node("n", spec="unschedulable: true"),
        node("n", ready="False"),
        node("n", ready="Unknown"),
    ],
)
def test_a_node_that_is_cordoned_or_not_ready_is_read_and_not_used(ask, closed: str):
    found = ask("plan FILE", queue(), closed, node("m"), group("a"), pod("a-0"))
    alone = ask("plan FILE", queue(), closed, group("a"), pod("a-0"))

    assert {"a": ["m"]} == starts(found)
    sentence = "1 of 1 pod of a (1 gpu, 1 cpu each) has no place: of the nodes 1 is "
    assert {"a": f"{sentence}cordoned or not ready"} == waits(alone)
    assert [] == warnings(alone)


KUBECTL = Path(__file__).parent / "objects" / "kubectl-get.yaml"


def test_what_kubectl_prints_is_read_without_a_word(ask):
    training = group("pg-training-5f1c, namespace: ml")
    found = ask("plan FILE", KUBECTL.read_text(encoding="utf-8"), queue(), training)

    assert [] == found["problems"]
    assert [] == found["starts"]
    assert {"ml/pg-training-5f1c": "ml/pg-training-5f1c needs 1 pod and there are 0: 1 short"} == (
        waits(found)
    )


TERMS = "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: x}]}"
ANTI = f"affinity: {{podAntiAffinity: {TERMS}}},"
SPREAD = "topologySpreadConstraints: [{topologyKey: x, whenUnsatisfiable: DoNotSchedule}],"


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        (
            ANTI,
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "required pod anti-affinity",
        ),
        (
            ANTI.replace("Anti", ""),
            "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution",
            "required pod affinity",
        ),
        (
            SPREAD,
            "spec.topologySpreadConstraints[0]",
            "a topology spread constraint of DoNotSchedule",
        ),
        (
            "resourceClaims: [{name: g, resourceClaimTemplateName: t}],",
            "spec.resourceClaims",
            "a resource claim",
        ),
    ],
)
def test_a_pod_waits_for_what_it_demands_and_cannot_be_planned(ask, spec, field, what):
    objects = queue(), node(), group("a"), group("b"), pod("a-0", spec), pod("b-0")
    found = ask("plan FILE", *objects)

    assert {"b": ["n"]} == starts(found)
    assert {"a": f"a asks for {what}, which cannot be planned"} == waits(found)
    assert [("Pod/a-0", field, f"{what} is not supported: the pod waits")] == warnings(found)
    assert what == ask("why FILE a", *objects)["certificate"]["lacks"][0]["unsupported"]
    (refused, _) = ask("place --nodes FILE FILE", *objects)["gangs"]
    assert [what] == [each["unsupported"] for each in refused["refusal"]["lacks"]]


@pytest.mark.parametrize(
    ("spec", "field", "what"),
    [
        (
            ANTI.replace("required", "preferred"),
            "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution",
            "preferred pod anti-affinity",
        ),
        (
            ANTI.replace("required", "preferred").replace("podAnti", "node"),
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution",
            "preferred node affinity",
        ),
        (
            SPREAD.replace("DoNotSchedule", "ScheduleAnyway"),
            "spec.topologySpreadConstraints[0]",
            "a topology spread constraint of ScheduleAnyway",
        ),
    ],
)
def test_what_a_pod_only_prefers_is_named_and_no_obstacle(ask, spec, field, what):
    found = ask("plan FILE", queue(), node(), group("a"), pod("a-0", spec))

    assert {"a": ["n"]} == starts(found)
    assert [("Pod/a-0", field, f"{what} is not looked at")] == warnings(found)


def test_lists_without_entries_and_gates_are_no_warnings(ask):
    empty = "affinity: {podAntiAffinity: {}, podAffinity: {}}, resourceClaims: [], "
    gated = "topologySpreadConstraints: [], schedulingGates: [{name: g}],"
    found = ask("plan FILE", queue(), node(), group("a"), pod("a-0", empty + gated))

    assert [] == warnings(found)
    assert {"a": "a needs 1 pod and there are 0: 1 short"} == waits(found)


def test_a_pod_that_runs_keeps_its_place_whatever_it_demands(ask):
    runs = pod("a-0", ANTI + " nodeName: n,")
    found = ask("plan FILE", queue(), node(), group("a"), runs, group("b"), pod("b-0"))

    assert {"b": ["n"]} == starts(found)
    ((_, _, message),) = warnings(found)
    assert (
        "required pod anti-affinity is not supported: other pods are placed without regard to it"
        == message
    )


def test_of_a_pod_that_has_ended_nothing_is_said(ask):
    ended = pod("a-0", ANTI).removesuffix("}") + ", status: {phase: Succeeded}}"

    assert [] == warnings(ask("plan FILE", queue(), node(), group("a"), ended))


@pytest.mark.parametrize(("quota", "counts"), [("0.5", "0"), ("1.5", "1"), ('"2500m"', "2")])
def test_parts_of_a_gpu_in_a_quota_are_named_where_they_do_not_count(ask, quota, counts):
    found = ask("plan FILE", queue(gpus=quota), node(), group("a"), pod("a-0"))

    message = f"{quota.strip(chr(34))} counts as {counts}: only whole GPUs are counted"
    assert [("Queue/q", "spec.resources.gpu.quota", message)] == warnings(found)
    assert {"0": {}, "1": {"a": ["n"]}, "2": {"a": ["n"]}}[counts] == starts(found)


def test_fair_sharing_is_named_where_the_policy_does_not_use_it(ask):
    fair = ", fairSharing: {weight: 1}"
    found = ask(
        "plan FILE",
        kueue("ResourceFlavor", "h100"),
        kueue("Cohort", "c", "fairSharing: {weight: 2}"),
        cluster_queue("a", more=fair),
        cluster_queue("b"),
        kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a" + fair),
    )

    message = "is not looked at: the policy does not share by weight"
    assert [
        ("Cohort/c", "spec.fairSharing", message),
        ("ClusterQueue/a", "spec.fairSharing", message),
        ("LocalQueue/ns/a", "spec.fairSharing", message),
    ] == warnings(found)
    file = Path(found["problems"][0]["file"]).read_text(encoding="utf-8")
    lines = [line for line, text in enumerate(file.splitlines(), 1) if "fairSharing" in text]
    assert lines == [each["line"] for each in found["problems"]]


def test_a_workload_is_planned_by_its_quota_whatever_else_its_pods_demand(ask):
    found = ask(
        "plan FILE",
        kueue("ResourceFlavor", "h100"),
        cluster_queue("a"),
        kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a"),
        workload("w", "a", spec=ANTI),
    )

    assert {"ns/w": []} == starts(found)
    ((subject, _, message),) = warnings(found)
    assert "Workload/ns/w" == subject
    assert "required pod anti-affinity is not looked at: what counts here is quota" == message


def test_a_required_set_of_optional_subgroups_blocks_none_of_the_others(ask):
    subgroups = ", ".join(f"{{name: s{at}, minMember: 1}}" for at in range(3))
    constraint = "{topology: t, requiredTopologyLevel: rack}"
    spec = (
        f"minSubGroup: 1, subGroups: [{subgroups}], topologyConstraints: "
        f"{{subGroupSets: [{{subGroups: [s0, s1], constraint: {constraint}}}]}}"
    )
    found = ask(
        "plan FILE",
        topology("block", "rack"),
        queue(),
        node(labels="block: b0"),
        group("g", spec),
        *(pod(f"g-{at}", labels=f"kai.scheduler/subgroup-name: s{at}") for at in range(3)),
    )

    assert [["g-2"]] == [[pod["pod"] for pod in each["pods"]] for each in found["starts"]]
    assert {} == waits(found)


RACKS = ("example.com/block", "example.com/rack")
TOGETHER = "minMember: 1, topologyConstraint: {requiredTopologyLevel: rack}"


def test_a_level_may_be_called_by_what_stands_behind_the_slash_of_its_label(ask):
    labels = "example.com/block: b, example.com/rack: r"
    objects = queue(), node("m"), node("n", labels=labels), group("a", TOGETHER), pod("a-0")
    found = ask("plan FILE", topology(*RACKS), *objects)

    assert {"a": ["n"]} == starts(found)
    assert [] == warnings(found)


def test_a_level_that_may_be_one_of_two_is_an_error(tmp_path, capsys):
    path = tmp_path / "objects.yaml"
    documents = topology("a.com/rack", "b.com/rack"), group("a", TOGETHER)
    path.write_text("\n---\n".join(documents), encoding="utf-8")

    assert 1 == run(["gang", "check", str(path)])
    assert (
        f"{path}:3: error: PodGroup/a: spec.topologyConstraint.requiredTopologyLevel: 'rack' may "
        "mean a.com/rack or b.com/rack of topology 't'; write one of them out"
    ) == capsys.readouterr().out.splitlines()[0]


@pytest.mark.parametrize("command", ["plan FILE", "quota check FILE", "quota show FILE"])
def test_local_queues_alone_are_no_error(ask, command: str):
    found = ask(command, kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a"))

    message = "there is no ClusterQueue called a"
    assert [("LocalQueue/ns/a", "spec.clusterQueue", message)] == warnings(found)


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
