"""Groups as pods of a real apiserver: how many for each second, and what that costs whom.

Beside it, in the same run, a program creates the same pods blindly: it decides nothing, watches
nothing and stores nothing.
"""

from __future__ import annotations

import calendar
import json
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from bough.kube.objects import NODES, PODS, SERVICES
from tests.bench.report import Report
from tests.e2e.local import gang, resources
from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace, node
from tests.kubernetes.served import Clustered, ClusterHosting, clustered

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
        ours = _decided(bed, Path(folder))
        blind = _blindly(bed, admin, pool)
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


def _decided(bed: Bed, folder: Path) -> _Cost:
    """All groups wait for quota; then there is enough for all of them, and they are planned."""
    with clustered(folder, bed, OWN) as host:
        server = host.start()
        server.pool("team", SIZE)
        members = [{"name": f"task-{number}", "image": "bed"} for number in range(SIZE)]
        spec = {**gang(members, ignoreNonleadStatus=False), "resources": resources(1)}
        text = Path(server.write(spec)).read_text()
        first = server.client.workflows.submit("team", text, priority="NORMAL").name
        server.settle(RUNNING=[first])
        for _ in range(GROUPS):
            server.client.workflows.submit("team", text, priority="NORMAL")
        before = _Usage.read(bed, _pid(host))
        since = time.time()
        server.done("pool", "update", "team", "--quota", str((GROUPS + 1) * SIZE))
        _wait(lambda: _created(bed, OWN) >= (GROUPS + 1) * SIZE)
        seconds = _last_creation(bed, OWN) - since
        _wait(lambda: _running(server) >= GROUPS + 1)
        used = before.until(_Usage.read(bed, _pid(host)))
        return _Cost(GROUPS * SIZE, seconds, *used)


def _blindly(bed: Bed, admin: KubeClient, pool: ThreadPoolExecutor) -> _Cost:
    """The same pods, with their Services, in another namespace."""
    bed.ask("POST", "/api/v1/namespaces", namespace(BLIND))
    # The first group ran before the others were planned.
    bodies, services = _sent(bed, "pods")[SIZE:], _sent(bed, "services")[1:]
    for each in (*bodies, *services):
        each["metadata"].pop("namespace", None)
    before = _Usage.read(bed, os.getpid())
    since = time.time()
    made = pool.map(lambda body: admin.create(SERVICES, body, BLIND), services)
    pods = pool.map(lambda body: admin.create(PODS, body, BLIND), bodies)
    list(made)
    count = len(list(pods))
    seconds = time.time() - since
    _wait(lambda: _count_running(bed, BLIND) >= count)
    return _Cost(count, seconds, *before.until(_Usage.read(bed, os.getpid())))


class _Usage(NamedTuple):
    """Processor time until now: of who makes the pods, of the apiserver and of etcd."""

    own: float
    apiserver: float
    etcd: float

    @classmethod
    def read(cls, bed: Bed, pid: int) -> _Usage:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
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


def _pid(host: ClusterHosting) -> int:
    assert host._process is not None
    return host._process.pid


def _wait(so: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not so():
        if time.monotonic() > until:
            raise TimeoutError("not all pods were made")
        time.sleep(1.0)


def _events(bed: Bed, where: str, verb: str, resource: str) -> list[dict[str, Any]]:
    """What was asked of the apiserver, by its log: to ask it would cost it something."""
    found: list[dict[str, Any]] = []
    wanted = f'"verb":"{verb}"'.encode()
    for line in bed.audit_log.read_bytes().splitlines():
        if wanted not in line:
            continue
        event = json.loads(line)
        on = event.get("objectRef", {})
        asked = on.get("resource") == resource and on.get("namespace") == where
        if asked and event["responseStatus"]["code"] < 300:
            found.append(event)
    return found


def _created(bed: Bed, where: str) -> int:
    return len(_events(bed, where, "create", "pods"))


def _last_creation(bed: Bed, where: str) -> float:
    last = max(each["stageTimestamp"] for each in _events(bed, where, "create", "pods"))
    moment = time.strptime(last[:19], "%Y-%m-%dT%H:%M:%S")
    return calendar.timegm(moment) + float(f"0{last[19:-1]}")


def _sent(bed: Bed, resource: str) -> list[dict[str, Any]]:
    return [each["requestObject"] for each in _events(bed, OWN, "create", resource)]


def _count_running(bed: Bed, where: str) -> int:
    patched = _events(bed, where, "patch", "pods")
    return sum(each["requestObject"]["status"].get("phase") == "Running" for each in patched)


def _running(server: Clustered) -> int:
    page = server.client.workflows.list(limit=1_000, query={"statuses": ["RUNNING"]})
    return len(page.workflows)
