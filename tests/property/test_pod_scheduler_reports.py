"""What a leader reports step by step is what a new leader would report, and sums are kept right."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.kube.client import KubeClient
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.model.policy import KAI
from bough.pod_scheduler import kinds, reporter
from bough.pod_scheduler.cluster import ClusterView
from bough.pod_scheduler.counters import Counters
from bough.pod_scheduler.queue_totals import QueueTotals
from bough.pod_scheduler.reporter import Reporter
from tests.property.test_pod_scheduler_cluster import CHANGES, KINDS, World, decode

#: The kind, the namespace and the name of an object, and what is written of it.
_Report = tuple[str, str, str, dict[str, Any]]


class Told(World):
    """A world whose apiserver takes what is reported, and in which others write as well."""

    def __init__(self) -> None:
        super().__init__()
        self.written: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.memo = Memo()
        self.kept = self.leader()

    def leader(self) -> Reporter:
        """A new leader; its threads are not started, so what it would send can be seen."""
        return Reporter(cast("KubeClient", None), Counters(), lambda: 0)

    def do(self, what: str, kind: str, value: Any) -> None:
        if what == "put":
            meta, value = value["metadata"], copy.deepcopy(value)
            key = (kind, meta.get("namespace", ""), meta["name"])
            if kind == "pods" and key[1:] in self.there[kind]:
                # Conditions of a pod that others leave alone stay.
                conditions = self.written[key]["status"].get("conditions", [])
                value["status"].setdefault("conditions", conditions)
            self.written[key] = value
        super().do(what, kind, value)

    def reports_of_new_leader(self) -> list[_Report]:
        """What a leader that begins now would write."""
        return _reports(self.leader(), self.anew(), Memo())

    def take_reports(self) -> None:
        """The leader that there is reports, and the apiserver takes it."""
        for name, namespace, own_name, body in _reports(self.kept, self.view, self.memo):
            known = self.written.get((name, namespace, own_name))
            if known is None or (namespace, own_name) not in self.there[name]:
                continue
            _merge(known, {key: body[key] for key in ("status",) if key in body})
            _merge(known["metadata"], {"annotations": body["metadata"].get("annotations", {})})
            decoded = decode(KINDS[name], known)
            self.there[name][namespace, own_name] = decoded
            self.view.hear(KINDS[name], WatchEvent(WatchEventKind.MODIFIED, decoded, "2"))


def _reports(leader: Reporter, view: ClusterView, memo: Memo) -> list[_Report]:
    """What a leader would write about pods and PodGroups now."""
    snapshot = view.take(5_000)
    decided = (snapshot, plan(snapshot, KAI, memo))
    leader.look(view, decided, KAI, memo, lambda _: "")
    due, leader._due = list(leader._due.values()), {}
    names = {kind: name for name, kind in KINDS.items()}
    return [
        (names[each.kind], each.namespace, each.name, each.body)
        for each in due
        if each.kind in (kinds.PODS, kinds.POD_GROUPS, kinds.NATIVE_POD_GROUPS)
    ]


def _merge(known: dict[str, Any], change: dict[str, Any]) -> None:
    """Merge as the apiserver does: conditions by their type."""
    for key, value in change.items():
        if key == "conditions":
            said = {each["type"]: each for each in [*known.get(key, []), *value]}
            known[key] = list(said.values())
        elif isinstance(value, dict):
            _merge(known.setdefault(key, {}), cast("dict[str, Any]", value))
        elif value is None:
            known.pop(key, None)
        else:
            known[key] = value


def _meta(name: str) -> dict[str, Any]:
    return {"name": name, "namespace": "ml", "uid": name}


def _pod(name: str, group: str, node: str, phase: str) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1"}
    spec: dict[str, Any] = {
        "schedulerName": "bough",
        "containers": [{"resources": {"limits": limits}}],
    }
    annotations = {"pod-group-name": group} if group else {}
    return {
        "metadata": {**_meta(name), "annotations": annotations},
        "spec": {**spec, **({"nodeName": node} if node else {})},
        "status": {"phase": phase if node else "Pending"},
    }


def _group(name: str, least: int, queue: str) -> dict[str, Any]:
    return {"metadata": _meta(name), "spec": {"queue": queue, "minMember": least}}


def _node(gpus: int) -> dict[str, Any]:
    room = {"nvidia.com/gpu": str(gpus), "pods": "9"}
    return {"metadata": {"name": "n1"}, "status": {"allocatable": room}}


_QUEUE = {"metadata": {"name": "team"}, "spec": {"resources": {}}}
_PODS = st.builds(
    _pod,
    st.sampled_from(["a", "b", "c", "d", "e"]),
    st.sampled_from(["g", "g", "h", ""]),
    st.sampled_from(["n1", "n1", ""]),
    st.sampled_from(["Running", "Running", "Succeeded"]),
)
_GROUPS = st.builds(
    _group, st.sampled_from(["g", "h"]), st.integers(1, 2), st.sampled_from(["team", "none"])
)
#: Some gangs that run, wait or end, in a small cluster.
STEPS = st.one_of(
    st.tuples(st.just("put"), st.just("pods"), _PODS),
    st.tuples(st.just("put"), st.just("pods"), _PODS),
    st.tuples(st.just("put"), st.just("podgroups"), _GROUPS),
    st.tuples(st.just("put"), st.just("nodes"), st.builds(_node, st.integers(0, 3))),
    st.tuples(st.just("delete"), st.sampled_from(["pods", "podgroups"]), st.integers(0, 9)),
    st.tuples(st.just("bind"), st.just("n1"), st.integers(0, 9)),
    st.tuples(st.just("overwrite"), st.just("podgroups"), st.integers(0, 9)),
)


@given(st.lists(STEPS, max_size=20))
def test_once_a_leader_has_reported_a_new_one_finds_nothing_to_report(
    changes: list[tuple[str, str, Any]],
) -> None:
    world = Told()
    with pytest.MonkeyPatch.context() as patch:
        # No pauses between looks, nor before a number is written again.
        for name in ("GANGS_EVERY_S", "QUEUES_EVERY_S", "NUMBERS_S"):
            patch.setattr(reporter, name, 0.0)
        world.do("put", "queues", _QUEUE)
        world.do("put", "nodes", _node(2))
        for what, kind, value in changes:
            if what == "overwrite":
                _overwrite(world, value)
            else:
                world.do(what, kind, value)
            # What is refused, as the first time here, is written again.
            _reports(world.kept, world.view, world.memo)
            for _ in range(2):
                world.take_reports()
            assert [] == world.reports_of_new_leader()


def _overwrite(world: Told, number: int) -> None:
    """Another program writes a status of its own."""
    names = sorted(world.there["podgroups"])
    if names:
        namespace, name = names[number % len(names)]
        known = world.written["podgroups", namespace, name]
        world.do("put", "podgroups", {**known, "status": {"phase": "Lost", "running": 77}})


@given(st.lists(CHANGES, max_size=40))
def test_sums_that_are_kept_equal_those_made_anew(changes: list[tuple[str, str, Any]]) -> None:
    world, kept = World(), QueueTotals()
    for change in changes:
        world.do(*change)
        snapshot, queues = world.view.take(5_000), world.view.queues.queues
        assert QueueTotals().statuses(snapshot, queues) == kept.statuses(snapshot, queues)
