"""Groups as pods of a real apiserver: how many for each second, and what that costs whom.

Beside it, in the same run, a program creates the same pods blindly: it decides nothing, watches
nothing and stores nothing.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from bough.kube.objects import NODES, PODS, SERVICES
from tests.bench.report import Report
from tests.crash.server import children
from tests.e2e.local import gang, resources
from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace, node
from tests.kubernetes.served import Clustered, ClusterHosting

NODE_COUNT = 500
GROUPS = 200
SIZE = 8
#: As many requests in flight as the backend has.
WORKERS = 16
PATIENCE_S = 600.0
OWN, BLIND = "bench", "blind"


def run(report: Report) -> None:
    """Both, one after the other, on one bed."""
    try:
        bed = Bed()
    except NoGo as missing:
        report.line(f"left out: {missing}")
        return
    with (
        bed,
        tempfile.TemporaryDirectory(prefix="bough-bench-") as folder,
        closing(KubeClient(find_access(str(bed.kubeconfig)), WORKERS)) as admin,
        ThreadPoolExecutor(WORKERS) as pool,
    ):
        names = [f"node-{number}" for number in range(NODE_COUNT)]
        list(pool.map(lambda name: admin.create(NODES, node(name)), names))
        ours, sent = _decided(bed, Path(folder))
        blind = _blindly(bed, admin, pool, sent)
    _tell(report, ours, blind)


class _Cost(NamedTuple):
    """What it took to make pods."""

    pods: int
    seconds: float
    #: CPU seconds.
    own: float
    apiserver: float
    etcd: float

    @property
    def rate(self) -> float:
        return self.pods / self.seconds


def _decided(bed: Bed, folder: Path) -> tuple[_Cost, _Log]:
    """All groups wait for quota; then there is enough for all of them, and they are planned."""
    bed.ask("POST", "/api/v1/namespaces", namespace(OWN))
    host = ClusterHosting(folder, bed, OWN)
    try:
        server = host.start()
        server.pool("team", SIZE)
        members = [{"name": f"task-{number}", "image": "bed"} for number in range(SIZE)]
        spec = {**gang(members, ignoreNonleadStatus=False), "resources": resources(1)}
        text = Path(server.write(spec)).read_text()
        first = server.client.workflows.submit("team", text, priority="NORMAL").name
        server.settle(RUNNING=[first])
        for _ in range(GROUPS):
            server.client.workflows.submit("team", text, priority="NORMAL")
        log = _Log(bed, OWN)
        before, since = _Usage.read(bed, _pid(host)), time.time()
        # Not by a command: to start that takes as long as to make a hundred pods.
        gpu = {"guarantee": (GROUPS + 1) * SIZE}
        server.client.pools.update("team", {"resources": {"gpu": gpu}})
        _wait(lambda: len(log.read().made["pods"]) >= GROUPS * SIZE)
        seconds = log.last_pod_at - since
        _wait(lambda: _running(server) > GROUPS)
        used = before.until(_Usage.read(bed, _pid(host)))
        return _Cost(GROUPS * SIZE, seconds, *used), log
    finally:
        host.stop(signal.SIGKILL)
        host.close()
        bed.ask("DELETE", f"/api/v1/namespaces/{OWN}/pods?gracePeriodSeconds=0")


def _blindly(bed: Bed, admin: KubeClient, pool: ThreadPoolExecutor, sent: _Log) -> _Cost:
    """The same pods, with their Services, in another namespace."""
    bed.ask("POST", "/api/v1/namespaces", namespace(BLIND))
    pods, services = sent.made["pods"], sent.made["services"]
    for each in (*pods, *services):
        each["metadata"].pop("namespace", None)
    log = _Log(bed, BLIND)
    before, since = _Usage.read(bed, os.getpid()), time.time()
    making = [pool.submit(admin.create, SERVICES, body, BLIND) for body in services]
    making += [pool.submit(admin.create, PODS, body, BLIND) for body in pods]
    for each in making:
        each.result()
    seconds = time.time() - since
    used = before.until(_Usage.read(bed, os.getpid()))
    _wait(lambda: log.read().running >= len(pods))
    later = before.until(_Usage.read(bed, os.getpid()))
    return _Cost(len(pods), seconds, used[0], *later[1:])


class _Usage(NamedTuple):
    """Processor time until now: of who makes the pods, of the apiserver and of etcd."""

    own: float
    apiserver: float
    etcd: float

    @classmethod
    def read(cls, bed: Bed, pid: int) -> _Usage:
        own = sum(map(_process_s, (pid, *children(pid))))
        return cls(own, bed.apiserver.cpu_s(), bed.etcd.cpu_s())

    def until(self, later: _Usage) -> tuple[float, float, float]:
        own, apiserver, etcd = (b - a for a, b in zip(self, later, strict=True))
        return own, apiserver, etcd


def _tell(report: Report, ours: _Cost, blind: _Cost) -> None:
    for what, cost in (("decided", ours), ("blindly", blind)):
        report.line(
            f"{what}: {cost.pods} pods in {cost.seconds:.1f} s, {cost.rate:.0f}/s; CPU seconds "
            f"until all run: {cost.own:.1f} who makes them, {cost.apiserver:.1f} the apiserver, "
            f"{cost.etcd:.1f} etcd"
        )
    ratio = ours.rate / blind.rate
    report.target(f"pods for each second, to blindly: {ratio:.2f} (at least 0.8)", met=ratio >= 0.8)
    share = ours.own / ours.apiserver
    report.target(f"CPU of the server to the apiserver's: {share:.2f} (below 1)", met=share < 1)


def _process_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pid(host: ClusterHosting) -> int:
    assert host._process is not None
    return host._process.pid


def _wait(so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not so():
        if time.monotonic() > until:
            raise TimeoutError("not all pods were made")
        time.sleep(1.0)


class _Log:
    """What was asked of an apiserver in one namespace, read on as it is written.

    To ask the apiserver itself would cost it something.
    """

    def __init__(self, bed: Bed, where: str) -> None:
        self._path = bed.audit_log
        self._where = where
        self._position = self._path.stat().st_size
        #: What was sent to make objects, by their kind.
        self.made: dict[str, list[dict[str, Any]]] = {"pods": [], "services": []}
        self.last_pod_at = 0.0
        self.running = 0

    def read(self) -> _Log:
        """Take in what is new."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            *lines, rest = log.read().split(b"\n")
            self._position = log.tell() - len(rest)
        namespace = f'"namespace":"{self._where}"'.encode()
        for line in lines:
            if namespace in line:
                self._take(json.loads(line))
        return self

    def _take(self, event: dict[str, Any]) -> None:
        kind, verb = event["objectRef"]["resource"], event["verb"]
        if event["responseStatus"]["code"] >= 300:
            return
        if verb == "create" and kind in self.made:
            self.made[kind].append(event["requestObject"])
            if kind == "pods":
                self.last_pod_at = _seconds(event["stageTimestamp"])
        elif verb == "patch" and kind == "pods":
            self.running += event["requestObject"]["status"].get("phase") == "Running"


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _running(server: Clustered) -> int:
    page = server.client.workflows.list(limit=1_000, query={"statuses": ["RUNNING"]})
    return len(page.workflows)
