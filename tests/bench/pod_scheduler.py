"""`bough kube schedule` on a real apiserver: pods for each second, and what a large cluster costs.

Beside it, in the same run and in turn, a program binds the same pods blindly with the same client:
it decides nothing, records nothing and watches nothing.
"""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from bough.kube.objects import PODS
from tests.bench.apiserver_cost import (
    CALM_S,
    AuditTail,
    Cost,
    Usage,
    clear,
    process_s,
    seconds_of,
    take_turns,
    tell,
    wait,
)
from tests.bench.report import Report
from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import node
from tests.kubernetes.bed.process import Process
from tests.kubernetes.scheduler.scheduled import Scheduled, member, pod_group, queue

NODE_COUNT, SIZE, WORKERS = 500, 8, 16
GANGS, ROUNDS = (200, 500), 3
LARGE_NODES, LARGE_PODS, BEATS_S = 5_000, 20_000, 20


def run(report: Report) -> None:
    """Both, on one bed each."""
    try:
        Bed()
    except NoGo as missing:
        report.line(f"left out: {missing}")
        return
    for gangs in GANGS[: 1 if report.quick else None]:
        _with_bed(lambda cluster, pool, gangs=gangs: _race(report, cluster, pool, gangs))
    _with_bed(lambda cluster, pool: _large(report, cluster, pool))


def _with_bed(work: Callable[[Scheduled, ThreadPoolExecutor], None]) -> None:
    with Bed() as bed, ThreadPoolExecutor(WORKERS) as pool:
        # Kubelets would answer each binding, and take of the same processors.
        bed.kwok.kill()
        cluster = Scheduled(bed)
        try:
            cluster.apply(queue("team"))
            work(cluster, pool)
        finally:
            cluster.clear_schedulers()
            cluster.admin.close()


def _race(report: Report, cluster: Scheduled, pool: ThreadPoolExecutor, gangs: int) -> None:
    nodes = [f"n{number:03}" for number in range(NODE_COUNT)]
    list(pool.map(lambda name: cluster.create(node(name, SIZE)), nodes))

    def bound(how: Callable[[_Race], Cost]) -> Cost:
        where = cluster.namespace()
        list(pool.map(lambda number: _make(cluster, where, number), range(gangs)))
        time.sleep(CALM_S)
        cost = how(_Race(cluster, pool, where, nodes, gangs * SIZE))
        groups = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{where}/podgroups"
        clear(cluster.bed, f"/api/v1/namespaces/{where}/pods", groups)
        return cost

    ways: dict[str, Callable[[], Cost]] = {
        "blindly": lambda: bound(_blindly),
        "decided": lambda: bound(_decided),
    }
    costs = take_turns(1 if report.quick else ROUNDS, ways)
    tell(report, f"{gangs} gangs of {SIZE}, ", costs)
    blindly, decided = costs.values()
    ratio = decided.rate / blindly.rate
    report.goal(f"{gangs} gangs, to blindly", f"{ratio:.2f}", "at least 0.9", met=ratio >= 0.9)
    share = decided.own / decided.apiserver
    report.goal(f"{gangs} gangs, CPU to apiserver", f"{share:.2f}", "at most 0.5", met=share <= 0.5)


class _Race(NamedTuple):
    """Pods that wait in a namespace, and who may bind them."""

    cluster: Scheduled
    pool: ThreadPoolExecutor
    where: str
    nodes: list[str]
    pods: int


def _make(cluster: Scheduled, where: str, number: int) -> None:
    name = f"g{number:03}"
    leaves = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": SIZE - 1}]
    cluster.create(pod_group(name, subGroups=leaves), where)
    for each in range(SIZE):
        cluster.create(member(f"{name}-{each}", name, 1, "workers" if each else "leader"), where)


def _blindly(race: _Race) -> Cost:
    cluster, where = race.cluster, race.where
    client = KubeClient(find_access(str(cluster.kubeconfig)), WORKERS)
    before, since = Usage.read(cluster.bed, os.getpid()), time.time()
    pods = client.list(PODS, where).items
    assert race.pods == len(pods)

    def bind(at: int) -> None:
        meta = pods[at].metadata
        client.bind(meta.name, where, race.nodes[at // SIZE], meta.uid)

    list(race.pool.map(bind, range(race.pods)))
    seconds = time.time() - since
    used = before.until(Usage.read(cluster.bed, os.getpid()))
    client.close()
    return Cost(race.pods, seconds, *used)


def _decided(race: _Race) -> Cost:
    cluster = race.cluster
    log = _Bindings(cluster.bed, race.where)
    scheduler = cluster.start()
    # From the first list on: to start a program is no part of it.
    wait(lambda: _decides(scheduler), every_s=0.01)
    before = Usage.read(cluster.bed, scheduler.pid)
    wait(lambda: log.read().count >= race.pods, every_s=0.05)
    # Statuses are written once all is bound: they are no part of it.
    used = before.until(Usage.read(cluster.bed, scheduler.pid))
    seconds = log.last_at - _began(scheduler)
    scheduler.stop()
    return Cost(race.pods, seconds, *used)


def _decides(scheduler: Process) -> re.Match[str] | None:
    """The line that it writes when it gets the Lease."""
    return re.search(r"^(\S+ \S+) INFO .* leads now$", scheduler.last_words(), re.MULTILINE)


def _began(scheduler: Process) -> float:
    """When it began to list: right after it got the Lease."""
    found = _decides(scheduler)
    assert found is not None
    return datetime.datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()


class _Bindings:
    """Bindings of one namespace in the apiserver's log, read on as it is written."""

    def __init__(self, bed: Bed, where: str) -> None:
        self._tail = AuditTail(bed)
        self._marks = (f'"namespace":"{where}"'.encode(), b'"subresource":"binding"')
        self.count = 0
        self.last_at = 0.0

    def read(self) -> _Bindings:
        """Take in what is new."""
        for line in self._tail.lines(*self._marks):
            self.count += 1
            found = re.search(rb'"stageTimestamp":"([^"]+)"', line)
            assert found is not None
            self.last_at = seconds_of(found[1].decode())
        return self


# A large cluster


def _large(report: Report, cluster: Scheduled, pool: ThreadPoolExecutor) -> None:
    count, pods = (500, 2_000) if report.quick else (LARGE_NODES, LARGE_PODS)
    where = cluster.namespace()
    nodes = [f"n{number:04}" for number in range(count)]
    list(pool.map(lambda name: cluster.create(node(name, SIZE)), nodes))
    list(pool.map(lambda at: _make_running(cluster, where, nodes, at), range(pods // SIZE)))
    scheduler = cluster.start("--lease-duration=60")
    before = process_s(scheduler.pid)
    wait(lambda: _metric(cluster, scheduler, "cycles_total") > 0)
    took = time.time() - _began(scheduler)
    cpu = process_s(scheduler.pid) - before
    report.line(f"{count} nodes, {pods} pods: first plan after {cpu:.1f} s of CPU")
    report.goal("start to first plan", f"{took:.1f} s", "at most 10 s", met=took <= 10)
    _settle(cluster, scheduler)
    idle = _heartbeats(cluster, pool, scheduler, nodes)
    report.goal("CPU of heartbeats", f"{idle:.1%} of a core", "at most 5 %", met=idle <= 0.05)
    node_ms = min(_change(cluster, scheduler, nodes[number]) for number in range(5))
    report.goal("CPU of a changed node", f"{node_ms:.1f} ms", "at most 5 ms", met=node_ms <= 5)
    gang = min(_arrival(cluster, scheduler, where, number) for number in range(5))
    report.goal("CPU of an arriving gang", f"{gang:.0f} ms", "at most 15 ms", met=gang <= 15)
    memory = _metric(cluster, scheduler, "resident_bytes") / 2**20
    report.goal("memory", f"{memory:.0f} MiB", "at most 600", met=memory <= 600)


def _make_running(cluster: Scheduled, where: str, nodes: list[str], at: int) -> None:
    name = f"r{at:04}"
    cluster.create(pod_group(name, minMember=SIZE), where)
    for each in range(SIZE):
        place = nodes[(at * SIZE + each) // 4 % len(nodes)]
        cluster.create(member(f"{name}-{each}", name, nodeName=place), where)


def _metric(cluster: Scheduled, scheduler: Process, name: str) -> float:
    text = cluster.ask_scheduler(scheduler, "/metrics")[1]
    found = re.search(rf"^bough_scheduler_{name} (\S+)$", text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def _settle(cluster: Scheduled, scheduler: Process) -> None:
    """Wait until all statuses are written."""
    last = -1.0
    while (now := _metric(cluster, scheduler, "status_writes_total")) != last or not now:
        last = now
        time.sleep(5.0)


def _heartbeats(
    cluster: Scheduled, pool: ThreadPoolExecutor, scheduler: Process, nodes: list[str]
) -> float:
    """CPU for each second while kubelets report: each node every 5 minutes, as they do."""
    rate = max(1, len(nodes) // 300)
    before, since = process_s(scheduler.pid), time.monotonic()
    for second in range(BEATS_S):
        chosen = nodes[second * rate : (second + 1) * rate]
        list(pool.map(lambda name, second=second: _beat(cluster, name, second), chosen))
        time.sleep(max(0.0, since + second + 1 - time.monotonic()))
    return (process_s(scheduler.pid) - before) / (time.monotonic() - since)


def _beat(cluster: Scheduled, name: str, second: int) -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": f"2026-01-01T00:00:{second:02}Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    cluster.patch("Node", name, {"status": {"conditions": [condition]}}, below="status")


def _change(cluster: Scheduled, scheduler: Process, name: str) -> float:
    """CPU of a node that is closed and opened again, for each of the two changes, in ms."""
    ticks, before, since = _ticks(scheduler)
    for closed in (True, False):
        cluster.patch("Node", name, {"spec": {"unschedulable": closed}})
        time.sleep(2.5)
    used = process_s(scheduler.pid) - before
    return 1000 * (used - ticks * (time.monotonic() - since)) / 2


def _arrival(cluster: Scheduled, scheduler: Process, where: str, number: int) -> float:
    """CPU from a gang's creation until it is bound, in ms, without the ticks of that time."""
    log = _Bindings(cluster.bed, where)
    ticks, before, since = _ticks(scheduler)
    _make(cluster, where, 900 + number)
    wait(lambda: log.read().count >= SIZE)
    used = process_s(scheduler.pid) - before
    return 1000 * (used - ticks * (time.monotonic() - since))


def _ticks(scheduler: Process) -> tuple[float, float, float]:
    """CPU for each second while nothing happens; then CPU until now, and the time.

    The process is not asked for it: an answer would cost a millisecond of what is measured.
    """
    started = process_s(scheduler.pid)
    time.sleep(5.0)
    now = process_s(scheduler.pid)
    return (now - started) / 5.0, now, time.monotonic()
