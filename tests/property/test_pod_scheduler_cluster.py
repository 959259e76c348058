"""A snapshot that is kept in step with a watch equals one that is made anew of all there is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.objects import Kind
from bough.kube.watching import Relisted
from bough.model.policy import KAI, KAI_FAIR
from bough.pod_scheduler import kinds
from bough.pod_scheduler.cluster import ClusterView
from bough.pod_scheduler.pod_view import SeenPod
from bough.pod_scheduler.pods_without_gang import OTHERS

NAMES = st.sampled_from(["a", "b", "c", "d"])
NAMESPACES = st.sampled_from(["default", "ml"])
UIDS = st.sampled_from(["1", "2"])
NATIVE = "native podgroups"
KINDS = {NATIVE if kind is kinds.NATIVE_POD_GROUPS else kind.plural: kind for kind in kinds.WATCHED}


@st.composite
def pods(draw: st.DrawFn) -> dict[str, Any]:
    bound = draw(st.booleans())
    metadata: dict[str, Any] = {
        "name": draw(NAMES),
        "namespace": draw(NAMESPACES),
        "uid": draw(UIDS),
        "creationTimestamp": draw(
            st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"])
        ),
        "labels": {"kai.scheduler/queue": draw(st.sampled_from(["team", "other", "none"]))},
    }
    if draw(st.booleans()):
        metadata["annotations"] = {"pod-group-name": draw(NAMES)}
    if draw(st.booleans()):
        metadata["labels"]["kai.scheduler/subgroup-name"] = draw(st.sampled_from(["x", "y"]))
    if draw(st.integers(0, 4)) == 0:
        metadata["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    limits = {"nvidia.com/gpu": str(draw(st.integers(0, 2))), "rdma/hca": "1"}
    spec: dict[str, Any] = {
        "schedulerName": draw(st.sampled_from(["bough", "bough", "default-scheduler"])),
        "containers": [{"name": "main", "resources": {"limits": limits}}],
    }
    if draw(st.booleans()):
        spec["schedulingGroup"] = {"podGroupName": draw(NAMES)}
    if draw(st.integers(0, 3)) == 0:
        claim = {"claimName": draw(st.sampled_from(["x", "y"]))}
        spec["volumes"] = [{"name": "v", "persistentVolumeClaim": claim}]
    if bound:
        spec["nodeName"] = draw(st.sampled_from(["n1", "n2", "gone"]))
    phases = ["Running", "Running", "Succeeded", "Failed"] if bound else ["Pending"]
    status = {"phase": draw(st.sampled_from(phases))}
    if draw(st.booleans()):
        status["nominatedNodeName"] = draw(st.sampled_from(["n1", "n2", "gone"]))
    return {"metadata": metadata, "spec": spec, "status": status}


@st.composite
def groups(draw: st.DrawFn) -> dict[str, Any]:
    spec: dict[str, Any] = {"queue": draw(st.sampled_from(["team", "other", "none"]))}
    kind = draw(st.integers(0, 3))
    if kind == 0:
        spec["minMember"] = draw(st.integers(0, 2))
    elif kind == 1:
        spec["minSubGroup"] = draw(st.integers(1, 3))
        spec["subGroups"] = [{"name": "x", "minMember": 1}, {"name": "y", "minMember": 1}]
    elif kind == 2:
        spec["minMember"] = 1
        spec["topologyConstraint"] = {"requiredTopologyLevel": "rack"}
    else:
        spec |= {"minMember": 1, "stalenessGracePeriod": "5s"}
    if draw(st.booleans()):
        spec["priorityClassName"] = draw(st.sampled_from(["build", "own"]))
    return {
        "metadata": {"name": draw(NAMES), "namespace": draw(NAMESPACES), "uid": draw(UIDS)},
        "spec": spec,
    }


@st.composite
def native_groups(draw: st.DrawFn) -> dict[str, Any]:
    policy = st.sampled_from([{"basic": {}}, {"gang": {"minCount": 1}}, {"gang": {"minCount": 2}}])
    spec: dict[str, Any] = {"schedulingPolicy": draw(policy)}
    if draw(st.booleans()):
        spec["schedulingConstraints"] = {"topology": [{"key": "rack"}]}
    if draw(st.booleans()):
        spec["disruptionMode"] = "PodGroup"
    if draw(st.booleans()):
        spec |= {"priorityClassName": "own", "priority": 120}
    labels = {"kai.scheduler/queue": "team"} if draw(st.booleans()) else {}
    metadata = {"name": draw(NAMES), "namespace": draw(NAMESPACES), "uid": draw(UIDS)}
    return {"metadata": {**metadata, "labels": labels}, "spec": spec}


@st.composite
def nodes(draw: st.DrawFn) -> dict[str, Any]:
    allocatable = {"nvidia.com/gpu": str(draw(st.integers(1, 4))), "rdma/hca": "4", "pods": "9"}
    return {
        "metadata": {
            "name": draw(st.sampled_from(["n1", "n2"])),
            "labels": {"rack": draw(st.sampled_from(["r", "s"]))},
        },
        "spec": {"unschedulable": draw(st.booleans())},
        "status": {"allocatable": allocatable},
    }


@st.composite
def queues(draw: st.DrawFn) -> dict[str, Any]:
    gpu = {"quota": draw(st.sampled_from([0, 1, 3, -1, -7])), "limit": -1, "overQuotaWeight": 1}
    rest = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    spec = {"resources": {"gpu": gpu, "cpu": rest, "memory": rest}}
    parent = draw(st.sampled_from(["", "team", "nowhere"]))
    return {
        "metadata": {"name": draw(st.sampled_from(["team", "other", "third"]))},
        "spec": {**spec, "parentQueue": parent},
    }


OBJECTS = {
    "pods": pods(),
    "podgroups": groups(),
    NATIVE: native_groups(),
    "nodes": nodes(),
    "queues": queues(),
    "persistentvolumeclaims": st.builds(
        lambda name, where, phase: {
            "metadata": {"name": name, "namespace": where},
            "status": {"phase": phase},
        },
        st.sampled_from(["x", "y"]),
        NAMESPACES,
        st.sampled_from(["Bound", "Pending"]),
    ),
    "topologies": st.builds(
        lambda label: {
            "metadata": {"name": "t"},
            "spec": {"levels": [{"nodeLabel": label, "alias": "rack"}]},
        },
        st.sampled_from(["rack", "hall", ""]),
    ),
    "priorityclasses": st.builds(
        lambda value: {"metadata": {"name": "own"}, "value": value}, st.sampled_from([1, 200])
    ),
}
KIND_NAMES = st.sampled_from(["pods"] * 5 + ["podgroups", NATIVE] * 3 + list(OBJECTS))
CHANGES = st.one_of(
    KIND_NAMES.flatmap(lambda kind: st.tuples(st.just("put"), st.just(kind), OBJECTS[kind])),
    st.tuples(st.just("delete"), KIND_NAMES, st.integers(0, 9)),
    st.tuples(st.just("again"), KIND_NAMES, st.integers(0, 9)),
    st.tuples(st.just("relist"), KIND_NAMES, st.integers(0, 9)),
    st.tuples(st.just("bind"), st.sampled_from(["n1", "n2"]), st.integers(0, 9)),
    st.tuples(st.just("unbind"), st.just(""), st.integers(0, 9)),
    st.tuples(st.just("end"), st.just(""), st.integers(0, 9)),
    st.tuples(st.just("stay"), st.just(""), st.integers(0, 9)),
    st.tuples(st.just("take"), st.just(""), st.just(0)),
)


class World:
    """What an apiserver has, and a view that hears of it."""

    def __init__(self) -> None:
        self.there: dict[str, dict[tuple[str, str], Any]] = {name: {} for name in KINDS}
        self.view = ClusterView("bough")
        self.memos = {policy.name: Memo() for policy in (KAI, KAI_FAIR)}

    def do(self, what: str, kind: str, value: Any) -> None:
        if what == "put":
            key = (value["metadata"].get("namespace", ""), value["metadata"]["name"])
            decoded = decode(KINDS[kind], value)
            known = key in self.there[kind]
            self.there[kind][key] = decoded
            said = WatchEventKind.MODIFIED if known else WatchEventKind.ADDED
            self.view.hear(KINDS[kind], WatchEvent(said, decoded, "1"))
        elif what in ("bind", "unbind", "end", "stay"):
            self.decide(what, kind, value)
        elif what == "take":
            self.view.take(5_000)
        elif what == "relist":
            # What happened to some was never told.
            for key in list(self.there[kind])[: value % 3]:
                del self.there[kind][key]
            self.view.hear(KINDS[kind], Relisted(list(self.there[kind].values()), "1"))
        elif self.there[kind]:
            key = sorted(self.there[kind])[value % len(self.there[kind])]
            each = self.there[kind][key]
            if what == "delete":
                del self.there[kind][key]
                self.view.hear(KINDS[kind], WatchEvent(WatchEventKind.DELETED, each, "1"))
            else:
                self.view.hear(KINDS[kind], WatchEvent(WatchEventKind.MODIFIED, each, "1"))

    def decide(self, what: str, node: str, number: int) -> None:
        pods = self.view.pods.seen
        if pods:
            pod = pods[sorted(pods)[number % len(pods)]]
            arguments = (pod.name, pod.uid, node) if what == "bind" else (pod.name, pod.uid)
            getattr(self.view, what)(*arguments)

    def anew(self) -> ClusterView:
        made = ClusterView("bough")
        for name in sorted(KINDS):
            listed = [self.there[name][key] for key in sorted(self.there[name])]
            made.hear(KINDS[name], Relisted(listed, "1"))
        for pod, (uid, node) in self.view.pods._bound.items():
            made.bind(pod, uid, node)
        for pod, uid in self.view.pods._ended.items():
            made.end(pod, uid)
        return made


def decode(kind: Kind[Any], value: Any) -> Any:
    return msgspec.json.decode(json.dumps(value).encode(), type=kind.type)


@given(st.lists(CHANGES, max_size=40))
def test_a_kept_snapshot_equals_one_made_anew(changes: list[tuple[str, str, Any]]) -> None:
    world = World()
    for change in changes:
        world.do(*change)
        kept = world.view.take(5_000)
        fresh = world.anew().take(5_000)
        assert msgspec.structs.replace(fresh, version=0) == msgspec.structs.replace(kept, version=0)
        again = world.view.take(5_000)
        assert again.gangs is kept.gangs
        assert again.nodes is kept.nodes


@given(st.lists(CHANGES, max_size=30))
def test_the_plan_of_a_kept_snapshot_is_that_of_one_made_anew(
    changes: list[tuple[str, str, Any]],
) -> None:
    world = World()
    for change in changes:
        world.do(*change)
        for policy in (KAI, KAI_FAIR):
            kept = plan(world.view.take(5_000), policy, world.memos[policy.name])
            fresh = plan(world.anew().take(5_000), policy)
            assert msgspec.structs.replace(fresh, version=0) == msgspec.structs.replace(
                kept, version=0
            )
            named = {each.workload for each in (*kept.binds, *kept.evictions)}
            assert not any(name.startswith(OTHERS) for name in named)


@given(st.lists(CHANGES, max_size=30), pods())
def test_what_no_gang_has_holds_its_room(changes: list[tuple[str, str, Any]], pod: Any) -> None:
    world = World()
    for change in [*changes, ("put", "pods", pod)]:
        world.do(*change)
    snapshot = world.view.take(5_000)
    held = {
        (gang.queue == OTHERS, pod.name)
        for row in snapshot.gangs.values()
        for gang in row
        for pod in gang.pods
    }
    counted = sum(gang.pods[0].requests.pods for gang in snapshot.gangs.get(OTHERS, ()))
    members = [world.view.pods.member(seen) for seen in world.view.pods.seen.values()]
    holding = [
        each.pod.name
        for each in members
        if (each.pod.node is not None and each.pod.state not in ("succeeded", "failed"))
        or is_nominated_by_others(world.view.pods.seen[each.pod.name])
    ]
    in_gangs = [name for name in holding if (False, name) in held]
    assert len(holding) == len(in_gangs) + counted


def is_nominated_by_others(seen: SeenPod) -> bool:
    return bool(seen.nominated) and not seen.ours and seen.member.pod.state == "pending"


def test_a_heartbeat_of_a_node_and_a_report_of_a_kubelet_change_nothing() -> None:
    view = ClusterView("bough")
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4"}}}
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "namespace": "ml", "uid": "1"},
        "spec": {"schedulerName": "bough", "nodeName": "n"},
        "status": {"phase": "Running"},
    }
    for kind, value in ((kinds.NODES, node), (kinds.PODS, pod)):
        view.hear(kind, Relisted([decode(kind, value)], "1"))
    before = view.take(1)
    beat = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}
    node["status"]["conditions"] = [beat]
    pod["status"] |= {"podIP": "10.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    for kind, value in ((kinds.NODES, node), (kinds.PODS, pod)):
        view.hear(kind, WatchEvent(WatchEventKind.MODIFIED, decode(kind, value), "2"))
    after = view.take(1)
    assert after.gangs is before.gangs
    assert after.nodes is before.nodes
    assert after.queues is before.queues
