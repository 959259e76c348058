"""A right that is missing is named; the scheduler goes on, and decides once it has it."""

from __future__ import annotations

import pytest

from tests.kubernetes.scheduler.scheduled import (
    Scheduled,
    member,
    native_group,
    native_member,
    pod_group,
    printed_roles,
    queue,
    without,
)
from tests.kubernetes.waiting import wait_for

ROLES = printed_roles("--no-group")
#: Nothing reads single objects of these: the rule gives the three verbs of reading together.
NOT_USED = {("get", name) for name in ("nodes", "priorityclasses", "podgroups", "queues")} | {
    ("get", "topologies"),
    ("get", "persistentvolumeclaims"),
    # Only asked where a binding was answered by a conflict.
    ("get", "pods"),
}


def used_rights() -> list[tuple[str, str, str, str]]:
    """Each verb of each resource that is printed and used: kind of role, group, resource, verb."""
    found = [
        (role["kind"], rule["apiGroups"][0], resource, verb)
        for role in ROLES
        for rule in role["rules"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        if (verb, resource) not in NOT_USED
    ]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("right", used_rights(), ids=" ".join)
def test_a_missing_right_is_named_and_nothing_ends(
    cluster: Scheduled, right: tuple[str, str, str, str]
) -> None:
    kind, group, resource, verb = right
    role = next(each for each in ROLES if each["kind"] == kind)
    where = cluster.namespace()
    prepare(cluster, where)
    if (resource, verb) == ("configmaps", "update"):
        # A record that is there is written over; otherwise it is made.
        cluster.record_decision("none", {})
    try:
        cluster.apply(without(role, group, resource, verb))
        scheduler = cluster.start("--no-group")
        wait_for(lambda: is_said(scheduler.last_words(), resource), f"a word about {right}")
        assert (200, "ok\n") == cluster.ask_scheduler(scheduler, "/healthz")
    finally:
        cluster.apply(role)
    # With the right back it decides, without another start.
    wait_for(lambda: is_decided(cluster, where), "all to be decided")
    assert not scheduler.ended


def prepare(cluster: Scheduled, where: str) -> None:
    """Something to start, to evict, to write a status of and an event about, to call stale."""
    cluster.add_nodes({"n1": 1, "n2": 4, "n3": 2})
    cluster.apply(queue("team", 7), queue("other", 0))
    victim = member("victim", nodeName="n1")
    victim["metadata"]["labels"]["kai.scheduler/queue"] = "other"
    cluster.create(victim, where)
    # Each has a node of its own, so that it does not matter which is tried first again.
    one, two = ({"kubernetes.io/hostname": name} for name in ("n1", "n2"))
    cluster.create(member("owner", nodeSelector=one), where)
    cluster.apply(pod_group("two", minMember=2), pod_group("three", minMember=3), where=where)
    cluster.create(native_group("own", 2), where)
    cluster.apply(pod_group("stale", minMember=2), where=where)
    cluster.create(native_group("old", 2), where)
    cluster.create(member("stale-0", "stale", nodeName="n3"), where)
    cluster.create(native_member("old-0", "old", nodeName="n3"), where)
    for number in range(2):
        cluster.create(member(f"two-{number}", "two", nodeSelector=two), where)
        cluster.create(member(f"three-{number}", "three", nodeSelector=two), where)
        cluster.create(native_member(f"own-{number}", "own", nodeSelector=two), where)


def is_decided(cluster: Scheduled, where: str) -> bool:
    started = cluster.places(where).keys() - {"stale-0", "old-0"}
    return {"owner", "two-0", "two-1", "own-0", "own-1"} == started


def is_said(log: str, resource: str) -> bool:
    return any("forbidden" in line and f'"{resource}"' in line for line in log.splitlines())
