"""`bough kube schedule` on a real apiserver: pods for each second, and what a large cluster costs.

Beside it, in the same run, a program binds the same pods blindly with the same client: it decides
nothing and watches nothing.
"""

from __future__ import annotations

import datetime
import os
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from bough.kube.objects import PODS
from tests.bench.kubernetes import _seconds
from tests.bench.report import Report
from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import node
from tests.kubernetes.bed.process import Process
from tests.kubernetes.scheduler.scheduled import Scheduled, member, pod_group, queue

NODE_COUNT, SIZE, WORKERS = 500, 8, 16
GANGS = (200, 500)
LARGE_NODES, LARGE_PODS, BEATS_S = 5_000, 20_000, 20
PATIENCE_S = 900.0


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


class _Cost(NamedTuple):
    pods: int
    seconds: float
    own: float
    apiserver: float
    etcd: float

    @property
    def rate(self) -> float:
        return self.pods / self.seconds


def _race(report: Report, cluster: Scheduled, pool: ThreadPoolExecutor, gangs: int) -> None:
    nodes = [f"n{number:03}" for number in range(NODE_COUNT)]
    list(pool.map(lambda name: cluster.create(node(name, SIZE)), nodes))
    costs: dict[str, _Cost] = {}
    for name in ("blindly", "decided"):
        where = cluster.namespace()
        list(pool.map(lambda number, where=where: _make(cluster, where, number), range(gangs)))
        bound = _blindly if name == "blindly" else _decided
        costs[name] = bound(cluster, pool, where, nodes, gangs * SIZE)
        cluster.bed.ask("DELETE", f"/api/v1/namespaces/{where}/pods?gracePeriodSeconds=0")
        cluster.bed.ask("DELETE", f"/apis/scheduling.run.ai/v2alpha2/namespaces/{where}/podgroups")
    for name, cost in costs.items():
        report.line(
            f"{gangs} gangs of {SIZE}, {name}: {cost.pods} pods in {cost.seconds:.1f} s, "
            f"{cost.rate:.0f}/s; CPU seconds: {cost.own:.1f} who binds, {cost.apiserver:.1f} the "
            f"apiserver, {cost.etcd:.1f} etcd"
        )
    ratio = costs["decided"].rate / costs["blindly"].rate
    report.goal(f"{gangs} gangs, to blindly", f"{ratio:.2f}", "at least 0.9", met=ratio >= 0.9)
    share = costs["decided"].own / costs["decided"].apiserver
    report.goal(f"{gangs} gangs, CPU to apiserver", f"{share:.2f}", "at most 0.5", met=share <= 0.5)


def _make(cluster: Scheduled, where: str, number: int) -> None:
    name = f"g{number:03}"
    leaves = [{"name": "leader", "minMember": 1}, {"name": "workers", "minMember": SIZE - 1}]
    cluster.create(pod_group(name, subGroups=leaves), where)
    for each in range(SIZE):
        cluster.create(member(f"{name}-{each}", name, 1, "workers" if each else "leader"), where)


def _blindly(
    cluster: Scheduled, pool: ThreadPoolExecutor, where: str, nodes: list[str], count: int
) -> _Cost:
    client = KubeClient(find_access(str(cluster.kubeconfig)), WORKERS)
    before, since = _usage(cluster.bed, os.getpid()), time.time()
    pods = client.list(PODS, where).items
    assert count == len(pods)

    def bind(at: int) -> None:
        meta = pods[at].metadata
        client.bind(meta.name, where, nodes[at // SIZE], meta.uid)

    list(pool.map(bind, range(count)))
    seconds = time.time() - since
    client.close()
    return _Cost(count, seconds, *_less(_usage(cluster.bed, os.getpid()), before))


def _decided(
    cluster: Scheduled, _pool: ThreadPoolExecutor, where: str, _nodes: list[str], count: int
) -> _Cost:
    log = _Bindings(cluster.bed, where)
    scheduler = cluster.start()
    # From the first list on: to start a program is no part of it.
    _wait(lambda: _decides(scheduler), every_s=0.01)
    before = _usage(cluster.bed, scheduler.pid)
    _wait(lambda: log.read().count >= count)
    # Statuses are written once all is bound: they are no part of it.
    used = _less(_usage(cluster.bed, scheduler.pid), before)
    seconds = log.last_at - _began(scheduler)
    scheduler.stop()
    return _Cost(count, seconds, *used)


def _decides(scheduler: Process) -> re.Match[str] | None:
    """The line that it writes when it gets the Lease."""
    return re.search(r"^(\S+ \S+) INFO .* decides now$", scheduler.last_words(), re.MULTILINE)


def _began(scheduler: Process) -> float:
    """When it began to list: right after it got the Lease."""
    found = _decides(scheduler)
    assert found is not None
    return datetime.datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S,%f").timestamp()


def _usage(bed: Bed, pid: int) -> tuple[float, float, float]:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own, bed.apiserver.cpu_s(), bed.etcd.cpu_s()


def _less(
    later: tuple[float, float, float], before: tuple[float, float, float]
) -> tuple[float, float, float]:
    own, apiserver, etcd = (b - a for a, b in zip(before, later, strict=True))
    return own, apiserver, etcd


class _Bindings:
    """Bindings of one namespace in the apiserver's log, read on as it is written."""

    def __init__(self, bed: Bed, where: str) -> None:
        self._path = bed.audit_log
        self._position = self._path.stat().st_size
        self._marks = (f'"namespace":"{where}"'.encode(), b'"subresource":"binding"')
        self.count = 0
        self.last_at = 0.0

    def read(self) -> _Bindings:
        """Take in what is new."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            *lines, rest = log.read().split(b"\n")
            self._position = log.tell() - len(rest)
        for line in lines:
            if all(mark in line for mark in self._marks):
                self.count += 1
                found = re.search(rb'"stageTimestamp":"([^"]+)"', line)
                assert found is not None
                self.last_at = _seconds(found[1].decode())
        return self


def _wait(so: Callable[[], object], every_s: float = 0.2) -> None:
    until = time.monotonic() + PATIENCE_S
    while not so():
        if time.monotonic() > until:
            raise TimeoutError("not all pods were bound")
        time.sleep(every_s)


# A large cluster


def _large(report: Report, cluster: Scheduled, pool: ThreadPoolExecutor) -> None:
    count, pods = (500, 2_000) if report.quick else (LARGE_NODES, LARGE_PODS)
    where = cluster.namespace()
    nodes = [f"n{number:04}" for number in range(count)]
    list(pool.map(lambda name: cluster.create(node(name, SIZE)), nodes))
    list(pool.map(lambda at: _make_running(cluster, where, nodes, at), range(pods // SIZE)))
    scheduler = cluster.start("--lease-duration=60")
    before = _usage(cluster.bed, scheduler.pid)[0]
    _wait(lambda: _metric(cluster, scheduler, "cycles_total") > 0)
    took = time.time() - _began(scheduler)
    cpu = _usage(cluster.bed, scheduler.pid)[0] - before
    report.line(f"{count} nodes, {pods} pods: first plan after {cpu:.1f} s of CPU")
    report.goal("start to first plan", f"{took:.1f} s", "at most 10 s", met=took <= 10)
    _settle(cluster, scheduler)
    idle = _heartbeats(cluster, pool, scheduler, nodes)
    report.goal("CPU of heartbeats", f"{idle:.1%} of a core", "at most 5 %", met=idle <= 0.05)
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
    before, since = _usage(cluster.bed, scheduler.pid)[0], time.monotonic()
    for second in range(BEATS_S):
        chosen = nodes[second * rate : (second + 1) * rate]
        list(pool.map(lambda name, second=second: _beat(cluster, name, second), chosen))
        time.sleep(max(0.0, since + second + 1 - time.monotonic()))
    return (_usage(cluster.bed, scheduler.pid)[0] - before) / (time.monotonic() - since)


def _beat(cluster: Scheduled, name: str, second: int) -> None:
    condition = {
        "type": "Ready",
        "status": "True",
        "lastHeartbeatTime": f"2026-01-01T00:00:{second:02}Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    cluster.patch("Node", name, {"status": {"conditions": [condition]}}, below="status")


def _arrival(cluster: Scheduled, scheduler: Process, where: str, number: int) -> float:
    """CPU from a gang's creation until it is bound, in ms, without the ticks of that time."""
    log = _Bindings(cluster.bed, where)
    started = _metric(cluster, scheduler, "cpu_seconds_total")
    time.sleep(5.0)
    ticks = (_metric(cluster, scheduler, "cpu_seconds_total") - started) / 5.0
    before, since = _metric(cluster, scheduler, "cpu_seconds_total"), time.monotonic()
    _make(cluster, where, 900 + number)
    _wait(lambda: log.read().count >= SIZE)
    used = _metric(cluster, scheduler, "cpu_seconds_total") - before
    return 1000 * (used - ticks * (time.monotonic() - since))
