"""Objects as an API server prints them, through the commands that plan them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.cli.main import run
from bough.core.cycle.claim import shape_of
from bough.core.cycle.plan import plan
from bough.core.cycle.waits import Waits
from bough.model.reason import WaitReason
from tests.objects import cluster_queue, group, kueue, node, pod, queue, topology, workload
from tests.printed import starts, waits, warnings

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


@pytest.mark.parametrize("policy", ["kueue-fair", "kai-fair", "kai", "osmo"])
def test_fair_sharing_of_queues_and_cohorts_is_not_named_where_the_policy_uses_it(ask, policy):
    """Where gangs are served in turn, weights share out what is idle."""
    fair = ", fairSharing: {weight: 1}"
    found = ask(
        f"plan FILE --policy {policy}",
        kueue("ResourceFlavor", "h100"),
        kueue("Cohort", "c", "fairSharing: {weight: 2}"),
        cluster_queue("a", more=fair),
        kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a" + fair),
    )

    assert ["LocalQueue/ns/a"] == [subject for subject, _, _ in warnings(found)]


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


def test_a_weight_that_helps_is_told_in_the_field_in_which_it_is_written(ask, tmp_path):
    """Three GPUs are there; x wants two of them and y, which would have more, all three."""
    policy = tmp_path / "fair.yaml"
    policy.write_text("preset: kueue-fair\n")
    three = "{name: nvidia.com/gpu, nominalQuota: 3}"
    flavors = f"[{{name: h100, resources: [{three}]}}]"

    def world(more: str = "") -> list[str]:
        return [
            kueue("ResourceFlavor", "h100"),
            kueue(
                "Cohort",
                "c",
                f"resourceGroups: [{{coveredResources: [nvidia.com/gpu], flavors: {flavors}}}]",
            ),
            cluster_queue("a", 0),
            cluster_queue("b", 0, more),
            kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a"),
            kueue("LocalQueue", "b, namespace: ns", "clusterQueue: b"),
            workload("x", "a", 2),
            workload("y", "b", 3),
        ]

    asked = f"why FILE ns/y --policy {policy}"
    found = ask(f"{asked} --remedies", *world())["remedies"]["found"]
    (change,) = next(each for each in found if each["kind"] == "raise_weight")["changes"]

    expected = ["ClusterQueue", "b", "spec.fairSharing.weight", 1, 2]
    assert expected == [change[key] for key in ("kind", "name", "field", "before", "after")]
    assert "waits" == ask(asked, *world())["certificate"]["verdict"]
    after = world(", fairSharing: {weight: 2}")
    assert "starts" == ask(asked, *after)["certificate"]["verdict"]


def test_a_pod_on_a_node_that_was_not_read_is_named_and_counts_for_its_queue(ask):
    """One GPU is its queue's, so that of the two only the one that runs elsewhere has it."""
    objects = (queue(gpus="1"), group("a"), pod("a-0", "nodeName: gone,"), group("b"), pod("b-0"))
    found = ask("plan FILE", node(), *objects)
    message = "there is no Node 'gone'; the pod counts for its queue, on no node"

    assert [("Pod/a-0", "spec.nodeName", message)] == warnings(found)
    assert {} == starts(found)
    assert [] == warnings(ask("plan FILE", node(), node("gone"), *objects))


@pytest.mark.parametrize("queueing", ["StrictFIFO", "BestEffortFIFO"])
@pytest.mark.parametrize(
    ("flavor", "more", "why"),
    [
        ("h100", ", stopPolicy: Hold", "its stopPolicy is Hold"),
        ("h100", ", stopPolicy: HoldAndDrain", "its stopPolicy is HoldAndDrain"),
        ("other", "", "there is no flavor h100"),
    ],
)
def test_all_in_the_line_of_a_stopped_queue_are_told_that_it_is_stopped(
    ask, queueing: str, flavor: str, more: str, why: str
):
    """Whatever their shape: none of them waits for the one before it."""
    objects = (
        kueue("ResourceFlavor", flavor),
        cluster_queue("a", more=f"{more}, queueingStrategy: {queueing}"),
        kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a"),
        *(workload(f"w{pods}", "a", pods) for pods in (1, 2, 3)),
    )
    sentence = f"queue a is stopped: {why}"

    assert dict.fromkeys(("ns/w1", "ns/w2", "ns/w3"), sentence) == waits(ask("plan FILE", *objects))
    for name in ("ns/w1", "ns/w3"):
        assert sentence == ask(f"why FILE {name}", *objects)["certificate"]["sentence"]


def test_what_is_said_by_shape_in_a_stopped_queue_is_what_is_said_of_each(scene):
    loaded = scene(
        kueue("ResourceFlavor", "h100"),
        cluster_queue("a", more=", stopPolicy: Hold, queueingStrategy: StrictFIFO"),
        kueue("LocalQueue", "a, namespace: ns", "clusterQueue: a"),
        *(workload(f"w{pods}", "a", pods) for pods in (1, 2)),
    )
    waits = Waits(loaded.snapshot, loaded.policy, plan(loaded.snapshot, loaded.policy))
    gang = loaded.snapshot.gangs["a"][1]

    by_shape = waits.of_shape(gang.name, gang.queue, shape_of(gang, loaded.policy))
    assert WaitReason.STOPPED == by_shape.reason
    assert waits.of(gang) == by_shape
