"""A server that is killed at random while gangs come, run and are preempted on a bed.

What happened is judged by the log of the apiserver, and not by what Bough says of itself.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bough.errors import BoughError
from tests.e2e.local import gang, resources
from tests.kubernetes.bed.audit import Asked, iterate_audit
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.served import ClusterHosting, attempt_of, clustered, gpus_of

#: Tasks of a group.
SIZE = 8
PATIENCE_S = 900
LEAD = "task-0"
#: Gangs that have room at once.
FIRST = 8
#: GPUs that belong to the pool of higher priority.
SHARE = 32


class Load(NamedTuple):
    """How much happens."""

    groups: int
    kills: int
    #: How often the apiserver, and etcd, are restarted.
    restarts: int
    seed: int = int(os.environ.get("BOUGH_KILLS_SEED", "0"))


def live_and_judge(
    bed: Bed, folder: Path, database: str, load: Load, request: pytest.FixtureRequest
) -> str:
    """Play the load on one database; nothing is lost, made twice, or left in part. Its figures."""
    begun = time.monotonic()
    address = None
    if database == "postgresql":
        address = request.getfixturevalue("postgres").make(migrated=False)
    namespace = f"kills-{database}"
    with clustered(folder, bed, namespace, database=address) as host:
        names = live_through(host, bed, load)
        server = host.start()

        assert load.groups == len(names) == len(set(names))
        assert {"COMPLETED"} == set(server.statuses(*names)), server.shown(*names)
        ends = Counter(
            each.status
            for name in names
            for attempts in server.tasks(name).values()
            for each in attempts
        )
        assert set() == set(ends) - {"COMPLETED", "FAILED_PREEMPTED", "RESCHEDULED"}
        # Gangs of low priority filled all nodes, and a share of these belongs to others.
        assert ends["FAILED_PREEMPTED"] >= SIZE, ends
        server.until(lambda: not server.pods(), server.pods)
    capacity = {f"node-{number}": 8 for number in range(8)}
    assert [] == judge(bed, namespace, capacity)
    attempts = ", ".join(f"{count} {status}" for status, count in sorted(ends.items()))
    return (
        f"{database}, seed {load.seed}: {load.kills} kills of the server, {load.restarts} of the "
        f"apiserver and of etcd; {len(names)} groups of {SIZE}, attempts {attempts}, "
        f"{time.monotonic() - begun:.0f} s: nothing lost, nothing twice"
    )


def spec(number: int, run_ms: int) -> dict[str, Any]:
    """A gang whose tasks have a GPU and a file each, and end by themselves."""
    said = {"BED_RUN_FOR": f"{run_ms}ms", "BED_STOP_AFTER": "50ms"}
    files = [{"path": "/job/run.sh", "contents": f"echo {number}"}]
    members = [
        {"name": f"task-{each}", "image": "bed", "environment": said, "files": files}
        for each in range(SIZE)
    ]
    made = gang(members, name="gang", ignoreNonleadStatus=False)
    return {**made, "resources": resources(1)}


def live_through(host: ClusterHosting, bed: Bed, load: Load) -> list[str]:
    """Play the load, until every group has finished; the names of the workflows."""
    chance = random.Random(load.seed)
    server = host.start()
    server.pool("low", 0)
    server.pool("team", SHARE)
    names: list[str] = []
    lock = threading.Lock()
    enough = threading.Event()

    def feed() -> None:
        for number in range(load.groups):
            if number == FIRST:
                # Nothing is killed yet: those that come now find no room and must preempt.
                server.until(lambda: "PENDING" not in server.statuses(*names), lambda: names)
            low, run_ms = _kind(number, chance)
            text = Path(server.write(spec(number, run_ms))).read_text()
            while not enough.is_set():
                try:
                    pool, priority = ("low", "LOW") if low else ("team", "NORMAL")
                    found = server.client.workflows.submit(pool, text, priority=priority)
                except (BoughError, OSError):
                    time.sleep(0.1)
                    continue
                with lock:
                    names.append(found.name)
                break

    feeding = threading.Thread(target=feed, daemon=True)
    feeding.start()
    try:
        server.until(lambda: len(names) > 2 * FIRST, lambda: names)
        _disturb(host, bed, load, chance)
        feeding.join(PATIENCE_S)
        assert not feeding.is_alive(), "not everything could be submitted"
        until = time.monotonic() + PATIENCE_S
        while alive := server.alive():
            assert time.monotonic() < until, server.shown(*alive[:3])
            time.sleep(0.5)
    finally:
        enough.set()
    return names


def _kind(number: int, chance: random.Random) -> tuple[bool, int]:
    """Whether a gang has a low priority, and how long it runs.

    The first fill the cluster for a while, and those after them take their share back.
    """
    if number < 2 * FIRST:
        return (True, 40_000) if number < FIRST else (False, 1_000)
    low = chance.random() < 0.7
    return low, chance.randint(500, 5_000 if low else 2_000)


def _disturb(host: ClusterHosting, bed: Bed, load: Load, chance: random.Random) -> None:
    moments = ["kill"] * load.kills + ["apiserver", "etcd"] * load.restarts
    chance.shuffle(moments)
    for each in moments:
        time.sleep(chance.uniform(0.2, 3.0))
        if each == "kill":
            host.stop(signal.SIGKILL)
            time.sleep(chance.uniform(0.0, 1.0))
            host.start()
            continue
        process = bed.apiserver if each == "apiserver" else bed.etcd
        process.kill()
        time.sleep(chance.uniform(0.0, 1.0))
        process.start()
        bed.wait_until_ready()


# The judge


class Life(NamedTuple):
    """One pod, from its creation until its kubelet said that it is over, in versions of etcd."""

    attempt: str
    group: str
    task: str
    retry: int
    node: str
    gpus: int
    begun: int
    #: `None`: nothing says that it ended.
    over: int | None
    completed: bool


def judge(bed: Bed, namespace: str, capacity: dict[str, int]) -> list[str]:
    """All that must never happen and did, by the log of the apiserver."""
    asked = [_slim(each) for each in iterate_audit(bed.audit_log, namespace)]
    lives = read_lives(asked)
    if not lives:
        return ["the log tells of no pods"]
    return [
        *_twice(lives.values()),
        *_overcommitted(lives.values(), capacity),
        *_ownerless(asked, set(lives)),
        *_partial(lives.values()),
    ]


def _slim(asked: Asked) -> Asked:
    """Only what is judged: a long log would not fit into memory."""
    answered, sent = asked.answered, asked.sent
    if answered.get("kind") == "Pod":
        metadata, spec = answered["metadata"], answered["spec"]
        kept = ("uid", "name", "labels", "resourceVersion", "deletionTimestamp")
        answered = {
            "kind": "Pod",
            "metadata": {key: metadata[key] for key in kept if key in metadata},
            "spec": {
                "nodeName": spec.get("nodeName", ""),
                "containers": [{"resources": each["resources"]} for each in spec["containers"]],
            },
            "status": {"phase": answered["status"]["phase"]},
        }
    if asked.resource != "secrets":
        sent = {}
    return asked._replace(answered=answered, sent=sent)


def read_lives(asked: Iterable[Asked]) -> dict[str, Life]:
    """All pods, by uid.

    Answers are logged in another order than that of what they answer, and an apiserver that is
    killed does not log the last of them: what it did is seen in later answers.
    """
    told: dict[str, list[Asked]] = defaultdict(list)
    for each in asked:
        if each.succeeded and each.answered.get("kind") == "Pod":
            told[each.answered["metadata"]["uid"]].append(each)
    return {uid: _life(sorted(of, key=_version)) for uid, of in told.items()}


def _version(each: Asked) -> int:
    """Some answers to a deletion have none: there nothing comes after."""
    return int(each.answered["metadata"].get("resourceVersion", sys.maxsize))


def _life(told: list[Asked]) -> Life:
    first = told[0].answered
    labels = first["metadata"]["labels"]
    return Life(
        attempt_of(first),
        labels["osmo.group_uuid"],
        labels["osmo.task_name"],
        int(labels["osmo.retry_id"]),
        first["spec"]["nodeName"],
        gpus_of(first),
        _version(told[0]),
        _over(told),
        any(each.answered["status"]["phase"] == "Succeeded" for each in told),
    )


def _over(told: list[Asked]) -> int | None:
    before = _version(told[0])
    for each in told:
        if each.answered["status"]["phase"] in ("Succeeded", "Failed"):
            # If this is not how it ended, that was not logged: at some time after the last answer.
            ends = each.resource == "pods/status"
            return _version(each) if ends else before
        if (each.verb, each.resource, each.user) == ("delete", "pods", "kwok"):
            # Only the kubelets of the bed take a pod away at once.
            return _version(each)
        before = _version(each)
    return None


def _twice(lives: Iterable[Life]) -> Iterable[str]:
    counts = Counter(each.attempt for each in lives)
    return [f"attempt {attempt} has {count} pods" for attempt, count in counts.items() if count > 1]


def _overcommitted(lives: Iterable[Life], capacity: dict[str, int]) -> Iterable[str]:
    """Add up what is on each node, in the order in which it came and went."""
    moments = [(each.begun, each.node, each.gpus) for each in lives]
    moments += [(each.over, each.node, -each.gpus) for each in lives if each.over is not None]
    used: Counter[str] = Counter()
    faults: list[str] = []
    for version, node, gpus in sorted(moments):
        used[node] += gpus
        if used[node] > capacity[node]:
            faults.append(f"{node} has {used[node]} of {capacity[node]} GPUs at {version}")
    return faults


def _ownerless(asked: Iterable[Asked], uids: set[str]) -> Iterable[str]:
    """A pod's identity is known only once it is there: a Secret that names one came after it."""
    faults: list[str] = []
    for each in asked:
        if (each.verb, each.resource) == ("create", "secrets") and each.succeeded:
            owners = {one["uid"] for one in each.sent["metadata"].get("ownerReferences", ())}
            if not owners or owners - uids:
                faults.append(f"Secret {each.name} has no pod that it goes with")
    return faults


def _partial(lives: Iterable[Life]) -> Iterable[str]:
    """The last attempts of a group are all of them, and of the same number.

    Pods of the bed do not wait for one another. So the lead of a group may complete while no server
    runs to make the others, and with it the group is over.
    """
    groups: dict[str, dict[int, list[Life]]] = defaultdict(lambda: defaultdict(list))
    for each in lives:
        groups[each.group][each.retry].append(each)
    return [
        f"group {group} ran with {len(last)} of {SIZE} tasks at last"
        for group, retries in groups.items()
        for last in (retries[max(retries)],)
        if len(last) != SIZE and not any(each.task == LEAD and each.completed for each in last)
    ]
