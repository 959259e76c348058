"""What pods cost that are made or bound on a real apiserver: how long, and whose CPU time.

For `kubernetes` and `pod_scheduler`, which both compare Bough with a program that decides nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from bough.kube.client import KubeClient
from bough.kube.failures import KubeRefused
from bough.kube.kubeconfig import find_access
from tests.bench.report import Report
from tests.kubernetes.bed.cluster import Bed

PATIENCE_S = 900.0
GATEWAY_TIMEOUT = 504
#: What an apiserver and etcd still do for a moment after a thousand writes is no part of what
#: is measured next.
CALM_S = 2.0


class Cost(NamedTuple):
    """What it took for so many pods."""

    pods: int
    seconds: float
    #: CPU seconds.
    own: float
    apiserver: float
    etcd: float

    @property
    def rate(self) -> float:
        return self.pods / self.seconds

    @classmethod
    def median(cls, costs: Iterable[Cost]) -> Cost:
        """Each figure by itself, of several rounds."""
        pods, *others = zip(*costs, strict=True)
        return cls(pods[0], *map(statistics.median, others))

    def text(self) -> str:
        return (
            f"{self.pods} pods in {self.seconds:.1f} s, {self.rate:.0f}/s; CPU seconds: "
            f"{self.own:.1f} its own, {self.apiserver:.1f} the apiserver, {self.etcd:.1f} etcd"
        )


class Usage(NamedTuple):
    """Processor time until now: of processes of one's own, of the apiserver and of etcd."""

    own: float
    apiserver: float
    etcd: float

    @classmethod
    def read(cls, bed: Bed, *pids: int) -> Usage:
        return cls(sum(map(process_s, pids)), bed.apiserver.cpu_s(), bed.etcd.cpu_s())

    def until(self, later: Usage) -> tuple[float, float, float]:
        own, apiserver, etcd = (b - a for a, b in zip(self, later, strict=True))
        return own, apiserver, etcd


class AuditTail:
    """New lines of an apiserver's log; to ask the apiserver itself would cost it something."""

    def __init__(self, bed: Bed) -> None:
        self._path = bed.audit_log
        self._position = self._path.stat().st_size

    def lines(self, *marks: bytes) -> Iterator[bytes]:
        """What was written since the last call, as far as all marks are in it."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            *lines, rest = log.read().split(b"\n")
            self._position = log.tell() - len(rest)
        return (line for line in lines if all(mark in line for mark in marks))


def take_turns(rounds: int, ways: Mapping[str, Callable[[], Cost]]) -> dict[str, Cost]:
    """The medians of all ways, which are gone in turn, and backwards every other round.

    The first way on a new apiserver finds cold caches, and a later one more in etcd: each has both.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in reversed(ways) if number % 2 else ways:
            costs[name].append(ways[name]())
    return {name: Cost.median(each) for name, each in costs.items()}


def tell(report: Report, what: str, costs: Mapping[str, Cost]) -> None:
    for name, cost in costs.items():
        report.line(f"{what}{name}: {cost.text()}")


def clear(bed: Bed, *paths: str) -> None:
    """Delete all objects of some collections."""
    client = KubeClient(find_access(str(bed.kubeconfig)), timeout_s=PATIENCE_S)
    for path in paths:
        wait(lambda path=path: _is_cleared(client, path))
    client.close()


def _is_cleared(client: KubeClient, path: str) -> bool:
    """Delete a collection; a busy apiserver gives up after a minute, and has deleted a part."""
    try:
        client.ask("DELETE", f"{path}?gracePeriodSeconds=0")
    except KubeRefused as error:
        if error.status != GATEWAY_TIMEOUT:
            raise
        return False
    return True


def process_s(pid: int) -> float:
    """CPU seconds of a process until now, to the microsecond; /proc counts in hundredths.

    The number of its clock is made as clock_getcpuclockid(3) makes it.
    """
    return time.clock_gettime(~pid << 3 | 2)


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def wait(so: Callable[[], object], every_s: float = 0.2) -> None:
    until = time.monotonic() + PATIENCE_S
    while not so():
        if time.monotonic() > until:
            raise TimeoutError("not all pods were made or bound")
        time.sleep(every_s)
