"""Groups as pods of a real apiserver: how many for each second, and what that costs whom.

Beside it, in the same run and in turn, a program creates the same pods blindly: it decides
nothing, watches nothing and stores nothing.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from bough.kube.objects import NODES, PODS, SERVICES
from tests.bench.apiserver_cost import (
    CALM_S,
    AuditTail,
    Cost,
    Usage,
    clear,
    seconds_of,
    take_turns,
    tell,
    wait,
)
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
ROUNDS = 3
OWN, BLIND = "bench", "blind"
#: What stands in the line of a log that tells of a new pod.
POD_MADE = (b'"verb":"create"', b'"resource":"pods"', b'"code":201')


def run(report: Report) -> None:
    """Both, one after the other, on one bed."""
    try:
        bed = Bed()
    except NoGo as missing:
        report.line(f"left out: {missing}")
        return
    with (
        bed,
        closing(KubeClient(find_access(str(bed.kubeconfig)), WORKERS)) as admin,
        ThreadPoolExecutor(WORKERS) as pool,
    ):
        names = [f"node-{number}" for number in range(NODE_COUNT)]
        list(pool.map(lambda name: admin.create(NODES, node(name)), names))
        race = _Race(bed, admin, pool)
        # Decided first, as the other sends again what was sent then.
        ways = {"decided": race.decided, "blindly": race.blindly}
        costs = take_turns(1 if report.quick else ROUNDS, ways)
    tell(report, "until all run, ", costs)
    ratio = costs["decided"].rate / costs["blindly"].rate
    report.target(f"pods for each second, to blindly: {ratio:.2f} (at least 0.8)", met=ratio >= 0.8)
    share = costs["decided"].own / costs["decided"].apiserver
    report.target(f"CPU of the server to the apiserver's: {share:.2f} (below 1)", met=share < 1)


class _Race:
    """One cluster, and the two who make the same pods in it."""

    def __init__(self, bed: Bed, admin: KubeClient, pool: ThreadPoolExecutor) -> None:
        self._bed = bed
        self._admin = admin
        self._pool = pool
        self._numbers = itertools.count()
        #: What the server sent last.
        self._sent: _Log | None = None

    def decided(self) -> Cost:
        """All groups wait for quota; then there is enough for all of them, and they are planned."""
        where = self._namespace(OWN)
        with tempfile.TemporaryDirectory(prefix="bough-bench-") as folder:
            host = ClusterHosting(Path(folder), self._bed, where)
            try:
                return self._serve(host, where)
            finally:
                host.stop(signal.SIGKILL)
                host.close()
                self._clear(where)

    def _serve(self, host: ClusterHosting, where: str) -> Cost:
        server = host.start()
        server.pool("team", SIZE)
        members = [{"name": f"task-{number}", "image": "bed"} for number in range(SIZE)]
        spec = {**gang(members, ignoreNonleadStatus=False), "resources": resources(1)}
        text = Path(server.write(spec)).read_text()
        first = server.client.workflows.submit("team", text, priority="NORMAL").name
        server.settle(RUNNING=[first])
        for _ in range(GROUPS):
            server.client.workflows.submit("team", text, priority="NORMAL")
        pid = _pid(host)
        pids = (pid, *children(pid))
        self._sent = log = self._quiet(where)
        before, since = Usage.read(self._bed, *pids), time.time()
        # Not by a command: to start that takes as long as to make a hundred pods.
        gpu = {"guarantee": (GROUPS + 1) * SIZE}
        server.client.pools.update("team", {"resources": {"gpu": gpu}})
        wait(lambda: log.hear().pods >= GROUPS * SIZE)
        log.read()
        self._bed.kwok.go_on()
        wait(lambda: _running(server) > GROUPS, every_s=1.0)
        used = before.until(Usage.read(self._bed, *pids))
        return Cost(GROUPS * SIZE, log.last_pod_at - since, *used)

    def blindly(self) -> Cost:
        """The same pods, with their Services, in another namespace."""
        assert self._sent is not None
        where = self._namespace(BLIND)
        pods, services = self._sent.made["pods"], self._sent.made["services"]
        for each in (*pods, *services):
            each["metadata"].pop("namespace", None)
        log = self._quiet(where)
        # Its own processor time alone: the apiserver and etcd are children of this process, too.
        before, since = Usage.read(self._bed, os.getpid()), time.time()
        create, submit = self._admin.create, self._pool.submit
        making = [submit(create, SERVICES, body, where) for body in services]
        making += [submit(create, PODS, body, where) for body in pods]
        for each in making:
            each.result()
        seconds, own = time.time() - since, before.until(Usage.read(self._bed, os.getpid()))[0]
        self._bed.kwok.go_on()
        wait(lambda: log.read().running >= len(pods), every_s=1.0)
        used = before.until(Usage.read(self._bed, os.getpid()))
        self._clear(where)
        return Cost(len(pods), seconds, own, *used[1:])

    def _quiet(self, where: str) -> _Log:
        """Let kubelets pause until all pods are made, and be calm.

        In a cluster they have processors of their own. Here more of what they do would fall into
        the longer one of the two times that are compared.
        """
        time.sleep(CALM_S)
        self._bed.kwok.pause()
        return _Log(self._bed, where)

    def _namespace(self, name: str) -> str:
        name = f"{name}-{next(self._numbers)}"
        self._bed.ask("POST", "/api/v1/namespaces", namespace(name))
        return name

    def _clear(self, where: str) -> None:
        clear(self._bed, f"/api/v1/namespaces/{where}/pods")


def _pid(host: ClusterHosting) -> int:
    assert host._process is not None
    return host._process.pid


class _Log:
    """What was asked of an apiserver in one namespace, read on as it is written."""

    def __init__(self, bed: Bed, where: str) -> None:
        self._tail = AuditTail(bed)
        self._mark = f'"namespace":"{where}"'.encode()
        #: Lines that are not read yet, and how many pods were made by all lines until now.
        self._lines: list[bytes] = []
        self.pods = 0
        #: What was sent to make objects, by their kind.
        self.made: dict[str, list[dict[str, Any]]] = {"pods": [], "services": []}
        self.last_pod_at = 0.0
        self.running = 0

    def hear(self) -> _Log:
        """Count pods in what is new, and no more: to read it would slow down what is measured."""
        for line in self._tail.lines(self._mark):
            self._lines.append(line)
            self.pods += all(mark in line for mark in POD_MADE)
        return self

    def read(self) -> _Log:
        """Take in what is new."""
        lines, self._lines = self.hear()._lines, []
        for line in lines:
            self._take(json.loads(line))
        return self

    def _take(self, event: dict[str, Any]) -> None:
        kind, verb = event["objectRef"]["resource"], event["verb"]
        if event["responseStatus"]["code"] >= 300:
            return
        if verb == "create" and kind in self.made:
            self.made[kind].append(event["requestObject"])
            if kind == "pods":
                self.last_pod_at = seconds_of(event["stageTimestamp"])
        elif verb == "patch" and kind == "pods":
            self.running += event["requestObject"]["status"].get("phase") == "Running"


def _running(server: Clustered) -> int:
    page = server.client.workflows.list(limit=1_000, query={"statuses": ["RUNNING"]})
    return len(page.workflows)
