"""Parts of `bough kube schedule` that need no cluster; tests/kubernetes/scheduler has the whole."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bough.errors import Invalid, NotLeading
from bough.formats.live.objects import LiveCondition, LivePodGroupStatus
from bough.kube.client import KubeClient
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.failures import Unreachable
from bough.kube.http_server import parse_listen
from bough.kube.watching import Follower, Relisted
from bough.model.snapshot import Progress
from bough.pod_scheduler import kinds
from bough.pod_scheduler.binder import Binder, BindResult
from bough.pod_scheduler.cluster import ClusterView
from bough.pod_scheduler.decisions import (
    Batch,
    PlacedPod,
    read_decisions,
    unfinished,
    write_decisions,
)
from bough.pod_scheduler.evictor import Ending, EndResult, Evictor
from bough.pod_scheduler.lease import LeaseHolder, LeaseTimes
from bough.pod_scheduler.status_text import native_status, telling
from tests.scripted_apiserver import (
    Exchange,
    ScriptedApiserver,
    client_of,
    close_connections,
    wait_for,
)


@pytest.fixture(autouse=True)
def _close_connections() -> Iterator[None]:
    yield
    close_connections()


# Decisions


def test_decisions_are_read_as_they_were_written_and_other_texts_say_nothing() -> None:
    decisions = {
        "ml/g": (PlacedPod("ml/a", "1", "n"), PlacedPod("ml/b", "2", "m")),
        "ml/h (native)": (PlacedPod("ml/c", "3", "n"),),
    }
    assert decisions == read_decisions(write_decisions(decisions))
    assert [None] * 3 == [read_decisions(text) for text in ("", "{", '{"a": 1}')]


def decided(node_of_second: str = "n") -> dict[str, tuple[PlacedPod, ...]]:
    return {"ml/g": (PlacedPod("ml/a", "1", "n"), PlacedPod("ml/b", "2", node_of_second))}


def half_bound(gpus: int = 2, **second: Any) -> ClusterView:
    """A gang of two of which the first pod is bound."""
    view = ClusterView("bough")
    pods = [pod("a", "1", nodeName="n"), pod("b", "2", **second)]
    group = {
        "metadata": {
            "name": "g",
            "namespace": "ml",
            "uid": "g",
        },
        "spec": {"queue": "team", "minMember": 2},
    }
    node = {"metadata": {"name": "n"}, "status": {"allocatable": {"nvidia.com/gpu": gpus}}}
    for kind, items in ((kinds.NODES, [node]), (kinds.POD_GROUPS, [group]), (kinds.PODS, pods)):
        view.hear(kind, Relisted([msgspec.convert(each, kind.type) for each in items], "1"))
    return view


def pod(name: str, uid: str, **spec: Any) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": "1"}
    return {
        "metadata": {
            "name": name,
            "namespace": "ml",
            "uid": uid,
            "annotations": {"pod-group-name": "g"},
        },
        "spec": {
            "schedulerName": "bough",
            "containers": [{"resources": {"limits": limits}}],
            **spec,
        },
        "status": {"phase": "Pending"},
    }


def left_of(view: ClusterView, node_of_second: str = "n") -> list[tuple[list[str], str]]:
    found = unfinished(view, view.take(0), decided(node_of_second))
    return [([each.pod for each in one.left], one.obstacle) for one in found]


def test_what_was_begun_and_fits_is_to_be_finished() -> None:
    assert [(["ml/b"], "")] == left_of(half_bound())


def test_what_has_no_room_any_more_is_to_be_taken_back() -> None:
    assert [(["ml/b"], "node n has no room any more")] == left_of(half_bound(gpus=1))
    gone = left_of(half_bound(), "gone")
    assert [(["ml/b"], "node gone takes no pods any more")] == gone


def test_what_was_finished_is_left_alone() -> None:
    assert [] == left_of(half_bound(nodeName="n"))


def test_a_decision_says_nothing_about_a_later_pod_of_the_name_or_a_group_that_is_gone() -> None:
    view = half_bound()
    renewed = {"ml/g": (PlacedPod("ml/a", "1", "n"), PlacedPod("ml/b", "another", "n"))}
    assert [] == list(unfinished(view, view.take(0), renewed))
    view.hear(kinds.POD_GROUPS, Relisted([], "2"))
    assert [] == left_of(view)


# The lease


class Lease:
    """A Lease of an apiserver, and a clock that only tests move."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}
        self.version = 0
        self.now_s = 100.0
        #: Whether what is written next is kept, and not answered.
        self.silent = False

    def answer(self, exchange: Exchange) -> None:
        if exchange.command == "GET":
            if self.kept:
                exchange.answer(self.kept)
            else:
                exchange.refuse(404, "NotFound")
            return
        sent = msgspec.json.decode(exchange.read_body())
        if sent["metadata"].get("resourceVersion", "0") != str(self.version):
            exchange.refuse(409, "Conflict")
            return
        self.version += 1
        sent["metadata"]["resourceVersion"] = str(self.version)
        self.kept = sent
        if self.silent:
            self.silent = False
            exchange.hang_up()
            return
        exchange.answer(sent)

    def holder(self, client: KubeClient, name: str) -> LeaseHolder:
        times = LeaseTimes(10)
        return LeaseHolder(client, "ns", "lease", name, times=times, clock=lambda: self.now_s)


def test_a_leader_stops_before_another_one_begins(tmp_path: Path) -> None:
    lease = Lease()
    with ScriptedApiserver(tmp_path, lease.answer) as server:
        one, two = (lease.holder(client_of(server), name) for name in ("one", "two"))
        one._step()
        two._step()
        assert (True, False) == (one.leads, two.leads)
        begun: list[float] = []
        for _ in range(30):
            lease.now_s += 0.5
            two._step()
            assert not (one.leads and two.leads)
            if two.leads:
                begun.append(lease.now_s)
        assert 110.0 < begun[0] < 112.0
        with pytest.raises(NotLeading):
            one.demand()
        two.demand()


def test_a_lease_that_is_renewed_is_not_taken_whatever_its_times_say(tmp_path: Path) -> None:
    lease = Lease()
    with ScriptedApiserver(tmp_path, lease.answer) as server:
        one, two = (lease.holder(client_of(server), name) for name in ("one", "two"))
        for _ in range(30):
            one._step()
            # The clock of the other machine is wrong by years.
            lease.kept["spec"]["renewTime"] = "1990-01-01T00:00:00.000000Z"
            two._step()
            lease.now_s += 2.0
        assert (True, False) == (one.leads, two.leads)


def test_a_lease_is_renewed_with_one_request_while_no_one_else_writes_it(tmp_path: Path) -> None:
    lease = Lease()
    with ScriptedApiserver(tmp_path, lease.answer) as server:
        one = lease.holder(client_of(server), "one")
        one._step()
        server.asked.clear()
        for _ in range(5):
            lease.now_s += 5.0
            one._step()
            assert one.leads
        assert ["PUT"] * 5 == [method for method, _ in server.asked]


def test_a_renewal_without_an_answer_is_followed_by_a_look_at_the_lease(tmp_path: Path) -> None:
    lease = Lease()
    with ScriptedApiserver(tmp_path, lease.answer) as server:
        one = lease.holder(client_of(server), "one")
        one._step()
        lease.silent = True
        with pytest.raises(Unreachable):
            one._step()
        lease.now_s += 5.0
        one._step()
        lease.now_s += 5.0
        assert one.leads


def test_a_leader_that_slept_does_not_renew_the_lease_that_another_has_by_then(
    tmp_path: Path,
) -> None:
    lease = Lease()
    with ScriptedApiserver(tmp_path, lease.answer) as server:
        one, two = (lease.holder(client_of(server), name) for name in ("one", "two"))
        one._step()
        two._step()
        lease.now_s += 11.0
        two._step()
        one._step()
        assert (False, True) == (one.leads, two.leads)


def test_a_lease_that_was_given_back_is_taken_at_once(tmp_path: Path) -> None:
    lease = Lease()
    with ScriptedApiserver(tmp_path, lease.answer) as server:
        one, two = (lease.holder(client_of(server), name) for name in ("one", "two"))
        one._step()
        one.stop()
        two._step()
        assert (False, True) == (one.leads, two.leads)


# Binding


def bind_with(
    tmp_path: Path, answer: Any, batch: Batch, count: int
) -> tuple[list[BindResult], list[tuple[str, str]]]:
    results: list[BindResult] = []
    with ScriptedApiserver(tmp_path, answer) as server:
        binder = Binder(client_of(server), results.append, lambda *_: None, in_flight=2)
        binder.start()
        binder.bind(batch)
        wait_for(lambda: len(results) >= count)
        binder.stop(5)
        return results, list(server.asked)


PLACED = (PlacedPod("ml/a", "1", "n"), PlacedPod("ml/b", "2", "n"))


def test_a_binding_without_an_answer_is_asked_for_again_and_may_have_happened(
    tmp_path: Path,
) -> None:
    tries = threading.Semaphore(1)

    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        if exchange.command == "GET":
            pod_there = {"metadata": {"name": "a", "uid": "1"}, "spec": {"nodeName": "n"}}
            exchange.answer(pod_there)
        elif tries.acquire(blocking=False):
            exchange.hang_up()
        else:
            exchange.refuse(409, "Conflict", "pod a is already assigned to node n")

    results, _ = bind_with(tmp_path, answer, Batch("ml/a", PLACED[:1]), 1)
    assert ("n", "") == (results[0].node, results[0].message)


def test_a_pod_that_is_gone_is_an_answer(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.refuse(404, "NotFound", "gone")

    results, asked = bind_with(tmp_path, answer, Batch("ml/a", PLACED[:1]), 1)
    assert ("", "gone", False) == (results[0].node, results[0].message, results[0].lasting)
    assert 1 == len(asked)


def test_a_pod_that_another_one_bound_elsewhere_counts_where_it_is(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        if exchange.command == "GET":
            there = {"metadata": {"name": "a", "uid": "1"}, "spec": {"nodeName": "elsewhere"}}
            exchange.answer(there)
        else:
            exchange.refuse(409, "Conflict", "pod a is already assigned to node elsewhere")

    results, _ = bind_with(tmp_path, answer, Batch("ml/a", PLACED[:1]), 1)
    assert "elsewhere" == results[0].node


def test_another_pod_of_the_name_is_not_taken_for_the_one_that_was_planned(tmp_path: Path) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        if exchange.command == "GET":
            exchange.answer({"metadata": {"name": "a", "uid": "9"}, "spec": {"nodeName": "n"}})
        else:
            exchange.refuse(409, "Conflict", "the uid in the precondition is another")

    results, _ = bind_with(tmp_path, answer, Batch("ml/a", PLACED[:1]), 1)
    assert ("", "the uid in the precondition is another") == results[0][2:4]


def test_what_must_not_be_evicted_for_want_of_a_right_is_tried_again_later(tmp_path: Path) -> None:
    results: list[EndResult] = []

    def answer(exchange: Exchange) -> None:
        exchange.read_body()
        exchange.refuse(403, "Forbidden", "pods is forbidden")

    with ScriptedApiserver(tmp_path, answer) as server:
        evictor = Evictor(client_of(server), results.append)
        evictor.start()
        evictor.end(Ending("ml/g", "ml/a", "1", "ml/h", "why"))
        wait_for(lambda: bool(results))
        evictor.stop(5)
    assert (False, "pods is forbidden", False) == results[0][1:]


# Listening


def test_where_to_listen_is_a_host_and_a_port() -> None:
    assert [("", 8270), ("127.0.0.1", 0), ("::1", 1)] == [
        parse_listen(text) for text in (":8270", "127.0.0.1:0", "[::1]:1")
    ]
    for text in ("8270", ":x", ":70000", ""):
        with pytest.raises(Invalid, match="--listen"):
            parse_listen(text)


# What is sent, and what is counted


def test_nothing_is_written_once_the_lease_may_be_another_s(tmp_path: Path) -> None:
    def refuse() -> None:
        raise NotLeading("lost")

    with ScriptedApiserver(tmp_path, lambda exchange: exchange.answer({})) as server:
        client = KubeClient(client_of(server).access, guard=refuse)
        with pytest.raises(NotLeading):
            client.bind("a", "ml", "n", "1")
        with pytest.raises(NotLeading):
            client.evict("a", "ml", "1")
        client.ask("GET", "/version")
        client.close()
        assert [("GET", "/version")] == server.asked


def test_what_was_decided_counts_until_the_watch_says_so() -> None:
    view = half_bound()
    view.bind("ml/b", "2", "n")
    view.end("ml/a", "1")
    (gang,) = view.take(0).gangs["team"]
    assert [("ml/a", "releasing", "n"), ("ml/b", "running", "n")] == [
        (each.name, each.state.value, each.node) for each in gang.pods
    ]
    view.unbind("ml/b", "2")
    view.stay("ml/a", "1")
    (gang,) = view.take(0).gangs["team"]
    assert ["running", "pending"] == [each.state.value for each in gang.pods]
    view.bind("ml/b", "another", "n")
    assert "pending" == view.take(0).gangs["team"][0].pods[1].state.value


def test_a_kind_that_the_cluster_does_not_know_has_no_objects(tmp_path: Path) -> None:
    heard: list[object] = []
    with ScriptedApiserver(tmp_path, lambda exchange: exchange.refuse(404)) as server:
        follower = Follower(client_of(server), kinds.QUEUES, heard.append)
        follower.start()
        assert follower.wait_until_listed(30)
        follower.stop()
    assert Relisted([], "") == heard[0]


def test_an_object_that_cannot_be_read_hides_no_others(tmp_path: Path) -> None:
    """As where the definition of a kind was replaced by one that allows anything."""
    good = {"metadata": {"name": "good", "resourceVersion": "1"}, "spec": {"minMember": 1}}
    bad = {"metadata": {"name": "bad", "resourceVersion": "2"}, "spec": {"minMember": "two"}}
    worse = {**bad, "metadata": {"name": "good", "resourceVersion": "3"}}
    heard: list[Any] = []

    def answer(exchange: Exchange) -> None:
        if "watch=1" not in exchange.path:
            exchange.answer({"metadata": {"resourceVersion": "2"}, "items": [good, bad]})
            return
        exchange.begin_lines()
        exchange.line({"type": "MODIFIED", "object": worse})
        exchange.end_lines()

    with ScriptedApiserver(tmp_path, answer) as server:
        follower = Follower(client_of(server), kinds.POD_GROUPS, heard.append)
        follower.start()
        wait_for(lambda: len(heard) > 1)
        follower.stop()
    assert ["good"] == [each.metadata.name for each in heard[0].items]
    assert ("DELETED", "good") == (heard[1].kind, heard[1].object.metadata.name)


def test_where_a_scheduler_before_freed_room_the_next_one_goes_on() -> None:
    view = half_bound()
    written = pod("b", "2")
    written["status"]["nominatedNodeName"] = "n"
    view.hear(
        kinds.PODS,
        WatchEvent(WatchEventKind.MODIFIED, msgspec.convert(written, kinds.PODS.type), "2"),
    )
    (gang,) = view.take(0).gangs["team"]
    assert {gang.name: Progress(nominated=True, places={"ml/b": "n"})} == view.promised()
    view.hear(kinds.NODES, Relisted([], "3"))
    view.take(0)
    assert {} == view.promised()


def test_a_pod_waits_for_the_volume_of_a_claim_that_is_not_bound() -> None:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    view = half_bound(volumes=[volume])
    claim = {"metadata": {"name": "data", "namespace": "ml"}, "status": {"phase": "Pending"}}

    def unsupported() -> str:
        view.hear(kinds.CLAIMS, Relisted([msgspec.convert(claim, kinds.CLAIMS.type)], "1"))
        return view.take(0).gangs["team"][0].pods[1].unsupported

    assert "the volume of claim ml/data, which is not bound to any yet" == unsupported()
    claim["status"]["phase"] = "Bound"
    assert "" == unsupported()


def test_a_pod_waits_for_the_claim_that_is_made_with_it() -> None:
    view = half_bound(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}])
    waits = view.take(0).gangs["team"][0].pods[1].unsupported
    assert "-v, which is not bound to any yet" in waits


# Statuses


def test_a_native_gang_is_disrupted_until_one_of_its_pods_runs_again() -> None:
    before = LivePodGroupStatus(conditions=(LiveCondition("DisruptionTarget", "True"),))
    told = telling("scheduled", "it has what it needs", waits=False)
    said = [
        {each["type"]: each["status"] for each in status["conditions"]}
        for status in (native_status(told, "", before, runs=runs) for runs in (False, True))
    ]
    assert [None, "False"] == [each.get("DisruptionTarget") for each in said]
