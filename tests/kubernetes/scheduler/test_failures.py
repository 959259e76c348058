"""What goes wrong around a scheduler: what vanishes, what restarts, which leader dies."""

from __future__ import annotations

import json
from typing import Any

from tests.kubernetes.bed.audit import read_audit
from tests.kubernetes.scheduler.scheduled import (
    SLOTS,
    SYSTEM,
    Scheduled,
    member,
    pod_group,
    queue,
)
from tests.kubernetes.waiting import wait_for


def make_half_bound(
    cluster: Scheduled, where: str, second_node: str, *, recorded: bool = True, **group: Any
) -> None:
    """A gang of two as a leader leaves it that dies after the first of its bindings."""
    cluster.create(pod_group("half", minMember=2, **group), where)
    first = cluster.create(member("half-0", "half", nodeName="n1"), where)
    second = cluster.create(member("half-1", "half"), where)
    decision = {
        f"{where}/{each['metadata']['name']}": {"uid": each["metadata"]["uid"], "node": place}
        for each, place in ((first, "n1"), (second, second_node))
    }
    if recorded:
        cluster.record_decision(f"{where}/half", decision)
        return
    notes = {"bough.decision": json.dumps(decision), "bough.decision-seal": "0" * 64}
    cluster.patch("PodGroup", "half", {"metadata": {"annotations": notes}}, where)


def test_what_the_leader_before_began_is_finished_where_it_was_decided(cluster: Scheduled) -> None:
    where = cluster.namespace()
    # A plan made anew would fill n1 first.
    cluster.add_nodes({"n1": 4, "n2": 4})
    cluster.apply(queue("team"))
    make_half_bound(cluster, where, "n2")
    cluster.start()
    assert {"half-0": "n1", "half-1": "n2"} == cluster.wait_for_places(where, ["half-0", "half-1"])


def test_a_decision_written_on_a_pod_group_counts_for_nothing(cluster: Scheduled) -> None:
    """By a user, or by an older version."""
    where = cluster.namespace()
    cluster.add_nodes({"n1": 4, "n2": 4})
    cluster.apply(queue("team"))
    make_half_bound(cluster, where, "n2", recorded=False)
    cluster.start()
    # A plan fills n1 first; only what was written there leads to n2.
    assert {"half-0": "n1", "half-1": "n1"} == cluster.wait_for_places(where, ["half-0", "half-1"])


def test_what_is_half_bound_without_a_record_and_has_no_room_is_ended_after_its_grace(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team"))
    make_half_bound(cluster, where, "n1", recorded=False, stalenessGracePeriod="2s")
    cluster.start()
    wait_for(lambda: "half-0" not in names(cluster, where), "what was bound to be ended")
    assert {} == cluster.places(where)


def test_all_gangs_of_a_plan_are_recorded_with_one_write_before_the_first_is_bound(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    cluster.create(member("alone"), where)
    groups = ["a", "b", "c"]
    for group in groups:
        cluster.apply(pod_group(group, minMember=2), where=where)
        for number in range(2):
            cluster.create(member(f"{group}-{number}", group), where)
    cluster.start()
    wait_for(lambda: len(cluster.places(where)) == 7, "all to run")
    (record,) = cluster.records()
    assert {f"{where}/{group}" for group in groups} == json.loads(record["decisions"]).keys()
    ours = {(SYSTEM, "configmaps"), (where, "pods/binding")}
    written = [
        each.resource
        for each in read_audit(cluster.bed.audit_log)
        if (each.namespace, each.resource) in ours and each.succeeded and each.sent
    ]
    assert ["configmaps", *["pods/binding"] * 7] == written[-8:]


def test_a_record_that_no_scheduler_wrote_is_left_aside_and_written_over(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 2})
    cluster.apply(queue("team"), pod_group("two", minMember=2), where=where)
    for each in SLOTS:
        damaged = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": each}}
        cluster.apply({**damaged, "data": {"decisions": "zlib:####", "term": "x"}}, where=SYSTEM)
    for number in range(2):
        cluster.create(member(f"two-{number}", "two"), where)
    scheduler = cluster.start()
    cluster.wait_for_places(where, ["two-0", "two-1"])
    assert 4 == scheduler.last_words().count("ignoring a record that no scheduler wrote")
    assert 1 == sum("number" in each for each in cluster.records())


def test_what_cannot_be_finished_is_taken_back_whole(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team"))
    make_half_bound(cluster, where, "gone")
    cluster.start()
    wait_for(lambda: "half-0" not in names(cluster, where), "what was bound to be ended")
    assert {} == cluster.places(where)


def test_a_gang_below_its_minimum_is_ended_after_its_grace_and_one_that_ends_well_is_not(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    groups = {"stale": 2, "done": 2}
    for group, size in groups.items():
        spec = {"minMember": size, "stalenessGracePeriod": "2s"}
        cluster.apply(pod_group(group, **spec), where=where)
        for number in range(size):
            cluster.create(member(f"{group}-{number}", group), where)
    replicas = [{"name": name, "minMember": 1} for name in ("a", "b", "c")]
    spec = {"minSubGroup": 2, "subGroups": replicas, "stalenessGracePeriod": "2s"}
    cluster.apply(pod_group("elastic", **spec), where=where)
    for name in ("a", "b", "c"):
        cluster.create(member(f"elastic-{name}", "elastic", subgroup=name), where)
    cluster.start()
    wait_for(lambda: len(cluster.places(where)) == 7, "all to run")
    succeeded = {"status": {"phase": "Succeeded"}}
    cluster.patch("Pod", "done-0", succeeded, where, below="status")
    cluster.delete("Pod", "elastic-c", where, grace_s=0)
    cluster.delete("Pod", "stale-0", where, grace_s=0)
    wait_for(lambda: "stale-1" not in names(cluster, where), "the stale gang to be ended")
    left = names(cluster, where)
    assert {"done-0", "done-1", "elastic-a", "elastic-b"} <= left


def test_objects_that_vanish_under_running_pods_take_nothing_with_them(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 5})
    cluster.apply(queue("team"), queue("gone"))
    for group, door in (("one", "team"), ("two", "gone")):
        cluster.apply(pod_group(group, door, minMember=2), where=where)
        for number in range(2):
            cluster.create(member(f"{group}-{number}", group), where)
    cluster.start()
    cluster.wait_for_places(where, ["one-0", "one-1", "two-0", "two-1"])
    cluster.delete("PodGroup", "one", where)
    cluster.delete("Queue", "gone")
    # All room but one GPU is still held.
    cluster.apply(pod_group("three", minMember=1), where=where)
    cluster.create(member("three-0", "three"), where)
    wait_for(lambda: "three-0" in cluster.places(where), "the last GPU")
    cluster.create(member("four", gpus=1), where)
    cluster.delete("Node", "n1")
    cluster.add_nodes({"n4": 1})
    # As the garbage collector does with pods whose node is gone; quota is held until then.
    cluster.delete("Pod", "three-0", where, grace_s=0)
    found = cluster.wait_for_places(where, ["one-0", "one-1", "two-0", "two-1", "four"])
    assert "n4" == found["four"]


def test_restarts_of_apiserver_and_etcd_and_forgotten_versions_are_lived_through(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    scheduler = cluster.start()
    for number, fail in enumerate((restart_apiserver, restart_etcd, forget_versions)):
        cluster.create(member(f"before-{number}"), where)
        fail(cluster)
        cluster.create(member(f"after-{number}"), where)
        wanted = {f"{word}-{n}" for word in ("before", "after") for n in range(number + 1)}
        wait_for(lambda wanted=wanted: wanted == cluster.places(where).keys(), f"{sorted(wanted)}")
    assert not scheduler.ended


def test_a_scheduler_that_is_told_to_end_gives_the_lease_back(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 2})
    cluster.apply(queue("team"))
    first = cluster.start("--lease-duration=600")
    wait_for(cluster.leader, "a leader")
    cluster.start("--lease-duration=600")
    first.stop()
    # The other one has it long before the lease would have run out.
    cluster.create(member("a"), where)
    cluster.wait_for_places(where, ["a"])


def test_definitions_that_are_removed_leave_what_runs_and_may_come_back(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 3})
    cluster.apply(queue("team"))
    cluster.apply(pod_group("one", minMember=2), where=where)
    for number in range(2):
        cluster.create(member(f"one-{number}", "one"), where)
    cluster.start()
    cluster.wait_for_places(where, ["one-0", "one-1"])
    for name in ("podgroups.scheduling.run.ai", "queues.scheduling.run.ai"):
        cluster.delete("CustomResourceDefinition", name)
    wait_for(lambda: not cluster.list("Queue"), "the definitions to be gone")
    cluster.create(member("alone"), where)
    wait_for(lambda: "does not exist" in told_of(cluster, where, "alone"), "a reason")
    assert {"one-0", "one-1"} == cluster.places(where).keys()
    cluster.define()
    cluster.apply(queue("team"))
    cluster.wait_for_places(where, ["one-0", "one-1", "alone"])


def test_a_gang_whose_pod_is_deleted_while_it_is_bound_is_judged_as_any_other(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    spec = {"minMember": 3, "stalenessGracePeriod": "2s"}
    cluster.apply(pod_group("three", **spec), where=where)
    for number in range(3):
        cluster.create(member(f"three-{number}", "three"), where)
    scheduler = cluster.start()
    # As early as can be: some of them are bound by then, or none, or all.
    wait_for(lambda: is_recorded(cluster, where, "three"), "a decision")
    cluster.delete("Pod", "three-1", where, grace_s=0)
    wait_for(lambda: is_judged(cluster, where), "what is left to be ended")
    assert not scheduler.ended


def test_what_is_asked_for_and_not_understood_is_refused_in_words(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    near = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [near]}
    spread = {**near, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    claim = {"name": "c", "resourceClaimName": "device"}
    asked: dict[str, tuple[dict[str, Any], str]] = {
        "near": ({"affinity": {"podAffinity": required}}, "required pod affinity"),
        "apart": ({"affinity": {"podAntiAffinity": required}}, "required pod anti-affinity"),
        "spread": ({"topologySpreadConstraints": [spread]}, "topology spread constraint"),
        "volume": ({"volumes": [volume]}, "which is not bound to any yet"),
        "claim": ({"resourceClaims": [claim]}, "a resource claim"),
        "part": ({}, "parts of a GPU are not supported"),
    }
    for name, (spec, _) in asked.items():
        made = member(name, **spec)
        if name == "part":
            made["metadata"]["annotations"]["gpu-fraction"] = "0.5"
        cluster.create(made, where)
    cluster.create(member("orphan", "nowhere"), where)
    cluster.create(member("plain"), where)
    cluster.start()
    cluster.wait_for_places(where, ["plain"])
    for name, (_, words) in asked.items():
        wait_for(lambda name=name, words=words: words in told_of(cluster, where, name), words)
    wait_for(lambda: "nowhere, to which it belongs, does not" in told_of(cluster, where, "orphan"))
    assert {"plain"} == cluster.places(where).keys()


def test_a_leader_that_is_killed_or_stopped_is_followed_by_the_other_and_may_come_back(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 8})
    cluster.apply(queue("team"))
    first = cluster.start()
    was = wait_for(cluster.leader, "a leader")
    second = cluster.start()
    first.pause()
    cluster.create(member("a"), where)
    cluster.wait_for_places(where, ["a"])
    other = cluster.leader()
    assert other != was
    # Let go again, it sees that another one decides, and sends nothing.
    first.go_on()
    cluster.create(member("b"), where)
    cluster.wait_for_places(where, ["a", "b"])
    assert other == cluster.leader()
    second.kill()
    cluster.create(member("c"), where)
    cluster.wait_for_places(where, ["a", "b", "c"])
    assert was == cluster.leader()
    bound = [each for each in read_audit(cluster.bed.audit_log) if each.namespace == where]
    answers = [each.status for each in bound if each.resource == "pods/binding"]
    assert [201, 201, 201] == answers


def is_judged(cluster: Scheduled, where: str) -> bool:
    """Nothing is bound, and what waits is told why."""
    # In one look: pods go meanwhile.
    there = [each for each in cluster.list("Pod", where) if is_staying(each)]
    bound = any(each["spec"].get("nodeName") for each in there)
    return not bound and all("needs 3 pods" in messages_of(each) for each in there)


def is_recorded(cluster: Scheduled, where: str, name: str) -> bool:
    return any(f"{where}/{name}" in each["decisions"] for each in cluster.records())


def told_of(cluster: Scheduled, where: str, name: str) -> str:
    return messages_of(cluster.get("Pod", name, where))


def messages_of(pod: dict[str, Any]) -> str:
    return " ".join(each.get("message", "") for each in pod["status"].get("conditions", ()))


def restart_apiserver(cluster: Scheduled) -> None:
    cluster.bed.apiserver.kill()
    cluster.bed.apiserver.start()
    cluster.bed.wait_until_ready()


def restart_etcd(cluster: Scheduled) -> None:
    cluster.bed.etcd.kill()
    cluster.bed.etcd.start()
    cluster.bed.wait_until_ready()


def forget_versions(cluster: Scheduled) -> None:
    """Watches that go on from an old version are told that it is gone."""
    cluster.bed.apiserver.kill()
    cluster.bed.compact()
    cluster.bed.apiserver.start()
    cluster.bed.wait_until_ready()


def names(cluster: Scheduled, where: str) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.list("Pod", where) if is_staying(each)}


def is_staying(pod: dict[str, Any]) -> bool:
    return not pod["metadata"].get("deletionTimestamp")
