"""Beds that know the objects of KAI, servers that let KAI decide, and a judge of all revisions."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bough.backends.kubernetes.kai.kai_types import QUEUES, KaiQueue
from bough.kube.client import KubeClient, Patch
from bough.kube.decoding import WatchEventKind
from bough.kube.failures import KubeNotFound
from bough.kube.kubeconfig import find_access
from bough.kube.objects import Kind, untyped
from bough.pod_scheduler.custom_resource_definitions import definitions
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.served import ClusterHosting, clustered
from tests.kubernetes.waiting import wait_for
from tests.queue_trees import excess

KINDS: dict[str, Kind[dict[str, Any]]] = {
    "Queue": untyped("apis/scheduling.run.ai/v2", "queues", namespaced=False),
    "Topology": untyped("apis/kai.scheduler/v1alpha1", "topologies", namespaced=False),
    "PriorityClass": untyped("apis/scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    "PodGroup": untyped("apis/scheduling.run.ai/v2alpha2", "podgroups"),
}
DEFINITIONS = untyped("apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)
_numbers = itertools.count()


def admin_of(bed: Bed) -> KubeClient:
    """A client that may do everything."""
    return KubeClient(find_access(str(bed.kubeconfig)))


def define(admin: KubeClient) -> None:
    """Make the objects of KAI known, by the definitions that `bough kube install` prints."""
    for each in definitions():
        name = each["metadata"]["name"]
        admin.patch(DEFINITIONS, name, each, how=Patch.APPLY, manager="test")
    for kind in ("Queue", "Topology", "PodGroup"):
        wait_for(lambda kind=kind: _is_served(admin, kind), f"the definition of {kind}")


def _is_served(admin: KubeClient, kind: str) -> bool:
    with contextlib.suppress(KubeNotFound):
        admin.list(KINDS[kind])
        return True
    return False


@contextmanager
def kai_server(folder: Path, bed: Bed, **options: Any) -> Iterator[ClusterHosting]:
    """A server that lets KAI decide; its queues have a namespace of their own."""
    name = f"kai-{next(_numbers)}"
    more = ("--kube-decider", "kai", "--namespace", name)
    with clustered(folder, bed, name, more=more, **options) as host:
        yield host


class RevisionJudge:
    """All revisions of the Queues from now on, as the apiserver tells them."""

    def __init__(self, admin: KubeClient, prefix: str) -> None:
        """prefix:  of the names of queues that are looked at."""
        self._admin = admin
        self._prefix = prefix
        listing = admin.list(QUEUES)
        self._queues = {each.metadata.name: each for each in listing.items if self._mine(each)}
        self._version = listing.version

    def _mine(self, queue: KaiQueue) -> bool:
        return queue.metadata.name.startswith(self._prefix)

    def faults(self) -> list[str]:
        """Revisions since the last question in which leaves had more than their pool."""
        until = int(self._admin.list(QUEUES).version)
        found: list[str] = []
        if int(self._version) >= until:
            return found
        for event in self._admin.watch(QUEUES, self._version, timeout_s=5):
            if int(event.version) > until:
                break
            self._version = event.version
            queue = event.object
            if event.kind is not WatchEventKind.BOOKMARK and self._mine(queue):
                if event.kind is WatchEventKind.DELETED:
                    self._queues.pop(queue.metadata.name, None)
                else:
                    self._queues[queue.metadata.name] = queue
                if (too_much := excess(self._queues)) > 0:
                    found.append(f"{too_much} too much at {event.version}: {queue.metadata.name}")
            if int(event.version) >= until:
                break
        return found
