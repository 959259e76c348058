"""Two schedulers of which the one that decides is killed, or stopped and let go again, at random.

Meanwhile gangs start and others are preempted. What happened is judged by the apiserver's own log
(which pod was bound how often) and by all versions of all pods, as a watch tells them in order.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.objects import untyped
from bough.kube.watching import Follower, Relisted
from tests.kubernetes.bed.audit import iterate_audit
from tests.kubernetes.bed.objects import node
from tests.kubernetes.bed.process import Process
from tests.kubernetes.scheduler.scheduled import (
    ACCOUNT,
    SYSTEM,
    Scheduled,
    gpus_of,
    member,
    pod_group,
    queue,
)
from tests.kubernetes.waiting import wait_for

SIZE = 8
#: A leader relies on it for three fifths of that: on a machine that is busy with other work, less
#: would not do to renew it.
LEASE_S = 5
_PODS = untyped("api/v1", "pods")


class Load(NamedTuple):
    """How much happens."""

    gangs: int = 200
    preemptors: int = 40
    kills: int = 30
    seed: int = 20_261_117


class Moment(NamedTuple):
    """One pod in one version."""

    name: str
    node: str
    gpus: int
    #: Whether it holds its node.
    holds: bool


def live_and_judge(cluster: Scheduled, load: Load) -> list[str]:
    """All that must never happen and did."""
    where = cluster.namespace()
    nodes = {f"n{number:03}": SIZE for number in range(load.gangs)}
    cluster.apply(queue("low", 0), queue("high", load.preemptors * SIZE))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: cluster.create(node(*each)), nodes.items()))
    with _followed(cluster, where) as moments:
        chance = random.Random(load.seed)
        schedulers = [cluster.start(f"--lease-duration={LEASE_S}") for _ in range(2)]
        with ThreadPoolExecutor(8) as pool:
            made = [pool.submit(_make, cluster, where, "low", n) for n in range(load.gangs)]
            for number in range(load.kills):
                if number == load.kills // 2:
                    for each in made:
                        each.result()
                    _wait_for_bound(cluster, where, "low", load.gangs // 2)
                    made = [
                        pool.submit(_make, cluster, where, "high", n)
                        for n in range(load.preemptors)
                    ]
                _strike(cluster, schedulers, chance)
            for each in made:
                each.result()
        _wait_for_bound(cluster, where, "high", load.preemptors)
        _wait_for_bound(cluster, where, "low", load.gangs - load.preemptors)
        wait_for(lambda: _is_settled(cluster, where), "all to be whole or gone")
        bound = _bound_by_group(cluster, where)
        wait_for(lambda: _is_caught_up(cluster, where, moments), "the watch")
    return [
        *_bound_twice(cluster, where),
        *_overcommitted(moments, nodes),
        *(f"{group} has {count} of {SIZE}" for group, count in bound.items() if count != SIZE),
    ]


def _make(cluster: Scheduled, where: str, kind: str, number: int) -> None:
    name = f"{kind}-{number:03}"
    priority = {"priorityClassName": "build"} if kind == "high" else {}
    cluster.create(pod_group(name, kind, minMember=SIZE, **priority), where)
    for each in range(SIZE):
        cluster.create(member(f"{name}-{each}", name), where)


def _strike(cluster: Scheduled, schedulers: list[Process], chance: random.Random) -> None:
    """Kill the scheduler that decides, or stop it for longer than its Lease."""
    time.sleep(chance.uniform(0.2, 2.0))
    leader = wait_for(lambda: _leader(cluster, schedulers), "a leader")
    at = schedulers.index(leader)
    if chance.random() < 0.5:
        leader.kill()
        time.sleep(chance.uniform(0.0, 1.0))
        schedulers[at] = cluster.start(f"--lease-duration={LEASE_S}")
        return
    before = cluster.leader()
    leader.pause()
    wait_for(lambda: cluster.leader() not in ("", before), "another leader")
    time.sleep(chance.uniform(0.0, 1.0))
    leader.go_on()


def _leader(cluster: Scheduled, schedulers: list[Process]) -> Process | None:
    found = [each for each in cluster.list("Lease", SYSTEM) if each["metadata"]["name"] == ACCOUNT]
    address = found[0]["metadata"].get("annotations", {}).get("bough.address", "") if found else ""
    for each in schedulers:
        if not each.ended and address.endswith(f":{cluster.port_of(each)}"):
            return each
    return None


# What is so at the end


def _bound_by_group(cluster: Scheduled, where: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for name in cluster.places(where):
        found[name.rpartition("-")[0]] += 1
    return found


def _wait_for_bound(cluster: Scheduled, where: str, kind: str, count: int) -> None:
    def whole() -> bool:
        found = _bound_by_group(cluster, where)
        return sum(n == SIZE and name.startswith(kind) for name, n in found.items()) >= count

    try:
        wait_for(whole, f"{count} gangs of {kind}")
    except AssertionError as vain:
        raise AssertionError(f"{vain}: {_tell_waiting(cluster, where, kind)}") from vain


def _tell_waiting(cluster: Scheduled, where: str, kind: str) -> str:
    """Which gangs are not whole, and what their PodGroups say of that."""
    bound = _bound_by_group(cluster, where)
    waiting = [
        f"{name} has {bound[name]} pods bound, {each.get('status')}"
        for each in cluster.list("PodGroup", where)
        if (name := each["metadata"]["name"]).startswith(kind) and bound[name] != SIZE
    ]
    return f"{len(waiting)} wait. " + "; ".join(waiting[:5])


def _is_settled(cluster: Scheduled, where: str) -> bool:
    whole = all(count == SIZE for count in _bound_by_group(cluster, where).values())
    ending = any(each["metadata"].get("deletionTimestamp") for each in cluster.list("Pod", where))
    return whole and not ending


# The judge


@contextmanager
def _followed(cluster: Scheduled, where: str) -> Iterator[list[Moment]]:
    """All versions of all pods, in order."""
    moments: list[Moment] = []

    def hear(heard: Relisted[dict[str, Any]] | WatchEvent[dict[str, Any]]) -> None:
        if isinstance(heard, Relisted):
            assert not moments, "the watch was broken, and what came between is not known"
            return
        each = heard.object
        place = each["spec"].get("nodeName", "")
        over = each.get("status", {}).get("phase") in ("Succeeded", "Failed")
        gone = heard.kind is WatchEventKind.DELETED or over
        moments.append(
            Moment(each["metadata"]["name"], place, gpus_of(each), bool(place) and not gone)
        )

    follower = Follower(cluster.admin, _PODS, hear, namespace=where)
    follower.start()
    assert follower.wait_until_listed(60)
    try:
        yield moments
    finally:
        follower.stop()


def _is_caught_up(cluster: Scheduled, where: str, moments: list[Moment]) -> bool:
    last = {each.name: each for each in moments}
    holding = {name for name, each in last.items() if each.holds}
    return holding == cluster.places(where).keys()


def _overcommitted(moments: list[Moment], capacity: dict[str, int]) -> list[str]:
    """Add up what is on each node, version by version."""
    used: Counter[str] = Counter()
    last: dict[str, Moment] = {}
    faults: list[str] = []
    for each in moments:
        before = last.get(each.name)
        if before is not None and before.holds:
            used[before.node] -= before.gpus
        last[each.name] = each
        if each.holds:
            used[each.node] += each.gpus
            if used[each.node] > capacity[each.node]:
                faults.append(f"{each.node} has {used[each.node]} GPUs in use with {each.name}")
    return faults


def _bound_twice(cluster: Scheduled, where: str) -> list[str]:
    """By the log of the apiserver: each uid was bound once."""
    bound: dict[str, list[str]] = defaultdict(list)
    for each in iterate_audit(cluster.bed.audit_log, where):
        if each.resource == "pods/binding" and each.succeeded:
            bound[each.sent["metadata"]["uid"]].append(each.sent["target"]["name"])
    if not bound:
        return ["the log tells of no bindings"]
    return [f"{uid} was bound to {places}" for uid, places in bound.items() if len(places) > 1]
