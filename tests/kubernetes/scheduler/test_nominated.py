"""Room that is being freed is kept for the pod that it is freed for."""

from __future__ import annotations

from bough.kube.failures import KubeNotFound
from tests.kubernetes.scheduler.scheduled import (
    Scheduled,
    member,
    printed_roles,
    queue,
    without,
)
from tests.kubernetes.waiting import wait_for


def test_what_another_scheduler_frees_room_for_holds_that_room(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team"))
    cluster.create(member("other", schedulerName="default-scheduler"), where)
    cluster.patch("Pod", "other", {"status": {"nominatedNodeName": "n1"}}, where, "status")
    cluster.create(member("ours"), where)
    cluster.start()
    wait_for(lambda: told_of(cluster, where, "ours"), "a reason")
    assert {} == cluster.places(where)
    cluster.delete("Pod", "other", where, grace_s=0)
    cluster.wait_for_places(where, ["ours"])


def test_room_that_is_freed_is_kept_for_the_preemptor_also_by_the_next_leader(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1, "n2": 1})
    cluster.apply(queue("team", 1), queue("other", 0))
    for number in range(2):
        victim = member(f"victim-{number}")
        victim["metadata"]["labels"] |= {"kai.scheduler/queue": "other", "app": "victim"}
        cluster.create(victim, where)
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "victim"}}},
    }
    cluster.create(budget, where)
    first = cluster.start()
    found = cluster.wait_for_places(where, ["victim-0", "victim-1"])
    cluster.create(member("owner"), where)
    node = wait_for(lambda: nominated(cluster, where, "owner"), "a nomination")
    first.kill()
    cluster.start()
    ending = next(name for name, place in found.items() if place == node)
    (staying,) = found.keys() - {ending}
    # What comes later does not get what was freed for the first.
    late = member("late")
    late["metadata"]["labels"]["kai.scheduler/queue"] = "other"
    cluster.create(late, where)
    wait_for(lambda: told_of(cluster, where, "late"), "a decision of the next leader")
    assert node == nominated(cluster, where, "owner")
    assert {ending, staying} == cluster.places(where).keys()
    cluster.delete("PodDisruptionBudget", "keep", where)
    places = cluster.wait_for_places(where, ["owner", staying])
    assert node == places["owner"]


def test_room_that_was_freed_stays_promised_while_the_binding_is_refused(
    cluster: Scheduled,
) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team", 1), queue("late", 1), queue("other", 0))
    victim = member("victim", nodeName="n1")
    victim["metadata"]["labels"]["kai.scheduler/queue"] = "other"
    cluster.create(victim, where)
    whole = next(each for each in printed_roles() if each["kind"] == "ClusterRole")
    try:
        cluster.apply(without(whole, "", "pods/binding", "create"))
        scheduler = cluster.start()
        owner = member("owner")
        owner["metadata"]["labels"]["priorityClassName"] = "build"
        cluster.create(owner, where)
        wait_for(lambda: "owner was not bound" in scheduler.last_words(), "a refusal")
        # It would come first, if nothing had been freed for the other.
        late = member("late")
        late["metadata"]["labels"] = {
            "kai.scheduler/queue": "late",
            "priorityClassName": "inference",
        }
        cluster.create(late, where)
        wait_for(lambda: told_of(cluster, where, "late"), "a reason")
    finally:
        cluster.apply(whole)
    cluster.wait_for_places(where, ["owner"])


def test_a_nomination_that_is_not_true_any_more_is_taken_back(cluster: Scheduled) -> None:
    where = cluster.namespace()
    cluster.add_nodes({"n1": 1})
    cluster.apply(queue("team"))
    cluster.create(member("large", gpus=2), where)
    cluster.patch("Pod", "large", {"status": {"nominatedNodeName": "n1"}}, where, "status")
    cluster.start()
    wait_for(lambda: told_of(cluster, where, "large"), "a reason")
    wait_for(lambda: not nominated(cluster, where, "large"), "the nomination to be gone")
    # It holds nothing: what fits starts.
    cluster.create(member("small"), where)
    cluster.wait_for_places(where, ["small"])


def nominated(cluster: Scheduled, where: str, name: str) -> str:
    try:
        return cluster.get("Pod", name, where)["status"].get("nominatedNodeName", "")
    except KubeNotFound:
        return ""


def told_of(cluster: Scheduled, where: str, name: str) -> str:
    status = cluster.get("Pod", name, where)["status"]
    return " ".join(each.get("message", "") for each in status.get("conditions", ()))
