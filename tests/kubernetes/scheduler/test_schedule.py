"""Pods, PodGroups and Queues of a cluster, decided by `bough kube schedule`."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.kubernetes.bed.audit import read_audit
from tests.kubernetes.bed.objects import pod
from tests.kubernetes.scheduler.scheduled import Scheduled, bough, member, pod_group, queue
from tests.kubernetes.waiting import wait_for


def test_a_gang_starts_whole_or_not_at_all(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 2, "n2": 2})
    cluster.apply(queue("team"))
    cluster.apply(pod_group("large", minMember=5), pod_group("small", minMember=4), where=where)
    for number in range(5):
        cluster.create(member(f"large-{number}", "large"), where)
    cluster.start()
    for number in range(4):
        cluster.create(member(f"small-{number}", "small"), where)
    found = cluster.wait_for_places(where, [f"small-{number}" for number in range(4)])
    assert ["n1", "n1", "n2", "n2"] == sorted(found.values())


def test_a_pod_without_a_pod_group_is_a_gang_of_one_and_others_keep_their_room(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 4})
    cluster.apply(queue("team"))
    cluster.create(pod("foreign", "n1", gpus=3), where)
    other = member("other")
    other["spec"]["schedulerName"] = "default-scheduler"
    cluster.create(other, where)
    cluster.start()
    for name in ("a", "b"):
        cluster.create(member(name), where)
    wait_for(lambda: len(cluster.places(where)) == 2, "one of two")
    told = wait_for(lambda: condition_of(cluster, where, "b") or condition_of(cluster, where, "a"))
    assert "Unschedulable" == told["reason"]
    assert why(cluster, "pod/b", where)["sentence"] == told["message"]
    assert {"foreign", "a"} == cluster.places(where).keys()


def test_what_is_guaranteed_takes_from_what_borrows_and_surplus_goes_first(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 4})
    cluster.apply(queue("team", 2), queue("other", 2))
    cluster.apply(pod_group("elastic", "other", minMember=1), where=where)
    for number in range(4):
        cluster.create(member(f"elastic-{number}", "elastic"), where)
    cluster.start()
    cluster.wait_for_places(where, [f"elastic-{number}" for number in range(4)])
    cluster.apply(pod_group("owner", minMember=2, priorityClassName="build"), where=where)
    for number in range(2):
        cluster.create(member(f"owner-{number}", "owner"), where)
    wait_for(lambda: {"owner-0", "owner-1"} <= cluster.places(where).keys(), "the owner")
    found = cluster.places(where)
    assert 2 == sum(name.startswith("elastic") for name in found)
    ended = [
        each
        for each in read_audit(cluster.bed.audit_log)
        if each.resource == "pods/status"
        and each.namespace == where
        and "DisruptionTarget" in str(each.sent)
    ]
    reasons = {each.sent["status"]["conditions"][0]["reason"] for each in ended}
    assert {"PreemptionByScheduler"} == reasons


def test_a_budget_that_forbids_an_eviction_is_respected_and_told(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team", 1), queue("other", 0))
    held = member("held")
    held["metadata"]["labels"] |= {"kai.scheduler/queue": "other", "app": "held"}
    cluster.create(held, where)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "held"}}},
    }
    cluster.create(budget, where)
    cluster.start()
    cluster.wait_for_places(where, ["held"])
    cluster.create(member("owner"), where)
    answer = wait_for(
        lambda: (found := why(cluster, "pod/owner", where))["notes"] and found, "a note"
    )
    assert "pod " + f"{where}/held cannot be evicted yet" in answer["notes"][0]
    assert {"held"} == cluster.places(where).keys()
    cluster.delete("PodDisruptionBudget", "keep", where)
    cluster.wait_for_places(where, ["owner"])


def test_by_another_name_it_takes_over_what_another_scheduler_left(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 3})
    cluster.apply(queue("team"))
    cluster.apply(pod_group("begun", minMember=2), where=where)
    cluster.create(member("begun-0", "begun", schedulerName="kai-scheduler", nodeName="n1"), where)
    cluster.create(member("begun-1", "begun", schedulerName="kai-scheduler"), where)
    cluster.create(member("not-meant"), where)
    name = "--scheduler-name=kai-scheduler"
    for document in yaml.safe_load_all(bough("kube", "install", "--no-definitions", name)):
        cluster.apply(document)
    kubeconfig = cluster.kubeconfig_of("bough-scheduler-kai-scheduler")
    cluster.start(name, f"--kubeconfig={kubeconfig}")
    cluster.wait_for_places(where, ["begun-0", "begun-1"])


def test_questions_need_the_token_and_health_does_not(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team", 1))
    cluster.apply(pod_group("two", minMember=2), where=where)
    cluster.create(member("two-0", "two"), where)
    scheduler = cluster.start()
    wait_for(lambda: cluster.ask_scheduler(scheduler, "/readyz")[0] == 200, "readiness")
    assert (200, "ok\n") == cluster.ask_scheduler(scheduler, "/healthz")
    wait_for(lambda: "bough_scheduler_leads 1" in cluster.ask_scheduler(scheduler, "/metrics")[1])
    assert 401 == cluster.ask_scheduler(scheduler, "/why?kind=podgroup&name=two")[0]
    assert 404 == cluster.ask_scheduler(scheduler, "/nothing")[0]
    found = wait_for(lambda: why(cluster, "podgroup/two", where), "an answer")
    assert "pods" == found["reason"]
    assert 1 == found["certificate"]["shortages"][0]["missing"]
    shown = ask(cluster, "queues")
    assert ["(cluster)", "team"] == [each["name"] for each in shown["nodes"]]
    text = bough("kube", "why", "podgroup/none", f"--kubeconfig={cluster.bed.kubeconfig}", code=2)
    assert "there is no PodGroup none" in text


def condition_of(cluster: Scheduled, where: str, name: str) -> dict[str, Any] | None:
    """The condition PodScheduled=False of a pod."""
    status = cluster.get("Pod", name, where)["status"]
    for each in status.get("conditions", ()):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            return each
    return None


def why(cluster: Scheduled, subject: str, where: str) -> dict[str, Any]:
    return ask(cluster, "why", subject, "-n", where)


def ask(cluster: Scheduled, *arguments: str) -> dict[str, Any]:
    given = ["kube", *arguments, "-t", "json", f"--kubeconfig={cluster.bed.kubeconfig}"]
    return json.loads(bough(*given))


def test_people_who_only_have_kubectl_see_the_same_sentence(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 2})
    cluster.apply(queue("org", 2), queue("team", 2, "org"))
    cluster.apply(pod_group("first", minMember=2), pod_group("second", minMember=2), where=where)
    for group in ("first", "second"):
        for number in range(2):
            cluster.create(member(f"{group}-{number}", group), where)
    cluster.start()
    cluster.wait_for_places(where, ["first-0", "first-1"])
    waiting = wait_for(lambda: status_of(cluster, where, "second", "False"), "a reason")
    running = wait_for(lambda: status_of(cluster, where, "first", "True"), "that it runs")
    sentence = why(cluster, "podgroup/second", where)["sentence"]
    assert ("Pending", 0, 2) == (waiting["phase"], waiting["running"], waiting["pending"])
    assert sentence == waiting["conditions"][0]["message"]
    assert "OverLimit" == waiting["schedulingConditions"][0]["reasons"][0]["reason"]
    assert ("Running", 2, 0) == (running["phase"], running["running"], running["pending"])
    assert "2" == running["resourcesStatus"]["allocated"]["nvidia.com/gpu"]
    told = wait_for(lambda: condition_of(cluster, where, "second-1"), "a condition")
    assert ("Unschedulable", sentence) == (told["reason"], told["message"])
    queues = wait_for(lambda: queue_status(cluster, "org", "2"), "the status of a queue")
    assert (["team"], "4") == (queues["childQueues"], queues["requested"]["nvidia.com/gpu"])
    events = events_of(cluster, where, "second")
    cluster.add_nodes({"n2": 2})
    cluster.wait_for_places(where, ["first-0", "first-1", "second-0", "second-1"])
    wait_for(lambda: len(events_of(cluster, where, "second")) > len(events), "another event")
    assert ["Unschedulable", "Scheduled"] == [
        each["reason"] for each in events_of(cluster, where, "second")
    ]
    assert sentence in events[0]["message"]


def events_of(cluster: Scheduled, where: str, name: str) -> list[dict[str, Any]]:
    found = [
        each for each in cluster.list("Event", where) if each["involvedObject"]["name"] == name
    ]
    return sorted(found, key=lambda each: each["metadata"]["creationTimestamp"])


def status_of(cluster: Scheduled, where: str, name: str, scheduled: str) -> dict[str, Any] | None:
    status = cluster.get("PodGroup", name, where).get("status", {})
    conditions = status.get("conditions") or [{"status": ""}]
    return status if conditions[0]["status"] == scheduled else None


def queue_status(cluster: Scheduled, name: str, gpus: str) -> dict[str, Any] | None:
    status = cluster.get("Queue", name).get("status", {})
    return status if status.get("allocated", {}).get("nvidia.com/gpu") == gpus else None
