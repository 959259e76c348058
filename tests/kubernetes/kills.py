"""A server that is killed at random while gangs come, run and are preempted on a bed.

What happened is judged by the log of the apiserver, and not by what Bough says of itself.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from bough.errors import BoughError
from tests.e2e.local import gang, resources
from tests.kubernetes.bed.audit import Asked, read_audit
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.served import ClusterHosting, attempt_of, gpus_of

#: Tasks of a group.
SIZE = 8
PATIENCE_S = 900


class Load(NamedTuple):
    """How much happens."""

    groups: int
    kills: int
    #: How often the apiserver, and etcd, are restarted.
    restarts: int
    seed: int = 0


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
    server.pool("team", 32)
    names: list[str] = []
    lock = threading.Lock()
    enough = threading.Event()

    def feed() -> None:
        for number in range(load.groups):
            low = chance.random() < 0.7
            text = Path(server.write(spec(number, chance.randint(500, 4_000)))).read_text()
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


def judge(bed: Bed, namespace: str, capacity: dict[str, int]) -> list[str]:
    """All that must never happen and did, by the log of the apiserver."""
    told = [each for each in read_audit(bed.audit_log) if each.namespace == namespace]
    asked = list(_with_untold(told))
    made = [each for each in asked if _is(each, "create", "pods")]
    return [
        *_twice(made),
        *_overcommitted(asked, capacity),
        *_ownerless(asked),
        *_partial(made),
    ]


def _with_untold(asked: Iterable[Asked]) -> Iterable[Asked]:
    """An apiserver that is killed tells nothing of pods that it just made: they are seen later."""
    seen: set[str] = set()
    for each in asked:
        uid = each.answered.get("metadata", {}).get("uid")
        if each.succeeded and each.answered.get("kind") == "Pod" and uid not in seen:
            seen.add(uid)
            if each.verb != "create":
                yield each._replace(verb="create", resource="pods")
        yield each


def _is(each: Asked, verb: str, resource: str) -> bool:
    return (each.verb, each.resource) == (verb, resource) and each.succeeded


def _twice(made: Iterable[Asked]) -> Iterable[str]:
    counts = Counter(attempt_of(each.answered) for each in made)
    return [f"attempt {attempt} has {count} pods" for attempt, count in counts.items() if count > 1]


def _overcommitted(asked: Iterable[Asked], capacity: dict[str, int]) -> Iterable[str]:
    """Add up what is on each node: from a pod's creation until its kubelet reports its end."""
    held: dict[str, tuple[str, int]] = {}
    used: Counter[str] = Counter()
    faults: list[str] = []
    for each in asked:
        if _is(each, "create", "pods"):
            node = each.answered["spec"]["nodeName"]
            held[each.name] = (node, gpus_of(each.answered))
            used[node] += held[each.name][1]
            if used[node] > capacity[node]:
                faults.append(f"{node} has {used[node]} of {capacity[node]} GPUs, by {each.name}")
        elif each.name in held and _ends(each):
            node, gpus = held.pop(each.name)
            used[node] -= gpus
    return faults


def _ends(each: Asked) -> bool:
    if not each.succeeded:
        return False
    if each.resource == "pods/status":
        return each.sent.get("status", {}).get("phase") in ("Succeeded", "Failed")
    # Only the kubelets of the bed take a pod away at once.
    return (each.verb, each.resource, each.user) == ("delete", "pods", "kwok")


def _ownerless(asked: Iterable[Asked]) -> Iterable[str]:
    """A pod's identity is known only once it is there: a Secret that names one came after it."""
    asked = list(asked)
    uids = {each.answered["metadata"]["uid"] for each in asked if _is(each, "create", "pods")}
    faults: list[str] = []
    for each in asked:
        if _is(each, "create", "secrets"):
            owners = {one["uid"] for one in each.sent["metadata"].get("ownerReferences", ())}
            if not owners or owners - uids:
                faults.append(f"Secret {each.name} has no pod that it goes with")
    return faults


def _partial(made: Iterable[Asked]) -> Iterable[str]:
    """The last attempts of a group are all of them, and of the same number."""
    groups: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for each in made:
        labels = each.answered["metadata"]["labels"]
        retry = int(labels["osmo.retry_id"])
        groups[labels["osmo.group_uuid"]][retry].add(labels["osmo.task_name"])
    return [
        f"group {group} ran with {len(tasks)} of {SIZE} tasks at last"
        for group, retries in groups.items()
        for tasks in (retries[max(retries)],)
        if len(tasks) != SIZE
    ]
