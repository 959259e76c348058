"""What else in the cluster a check needs to know, read from the apiserver on demand.

If the apiserver does not answer in time, the object is checked on its own.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

from bough.errors import BoughError
from bough.formats.kueue.organisation import read_organisation
from bough.formats.live.kai import live_pod_group, live_queue, live_topology
from bough.formats.live.objects import LivePodGroup, LiveQueue, LiveTopology
from bough.formats.yaml.documents import Document
from bough.formats.yaml.from_json import from_json
from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound
from bough.kube.objects import Kind, untyped
from bough.model.cluster import Topology
from bough.model.fair_queue import FairQueue
from bough.model.pod_group import PodGroup
from bough.model.quota import Cohort

LOG = logging.getLogger(__name__)
#: How long an answer is reused: all pods of a gang are created at about the same time.
FRESH_S = 2.0
#: How many answers are cached; when there are more, the cache is emptied.
MOST_KEPT = 1_000
_MOST_VALUES = 100_000

_POD_GROUPS: Kind[LivePodGroup] = Kind("apis/scheduling.run.ai/v2alpha2", "podgroups", LivePodGroup)
_QUEUES: Kind[LiveQueue] = Kind("apis/scheduling.run.ai/v2", "queues", LiveQueue, namespaced=False)
_TOPOLOGIES: Kind[LiveTopology] = Kind(
    "apis/kai.scheduler/v1alpha1", "topologies", LiveTopology, namespaced=False
)
_COHORTS: Kind[dict[str, Any]] = untyped("apis/kueue.x-k8s.io/v1beta2", "cohorts", namespaced=False)

Found = TypeVar("Found")


class ClusterLookups:
    """Reads from an apiserver, and caches its answers briefly. Safe to share between threads."""

    def __init__(self, client: KubeClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, str], tuple[float, Any]] = {}

    def pod_group(self, namespace: str, name: str, *, anew: bool = False) -> PodGroup | None:
        """The PodGroup that a pod names: possibly from the cache or, if `anew`, read again."""
        return self._find(
            ("PodGroup", f"{namespace}/{name}"),
            lambda: live_pod_group(self._client.get(_POD_GROUPS, name, namespace)).made,
            anew=anew,
        )

    def topologies(self) -> tuple[Topology, ...] | None:
        """All topologies."""
        return self._find(
            ("Topology", ""),
            lambda: tuple(map(live_topology, self._client.list(_TOPOLOGIES).items)),
            anew=False,
        )

    def queue(self, name: str) -> FairQueue | None:
        """A Queue of KAI."""
        return self._find(("Queue", name), lambda: live_queue(self._client.get(_QUEUES, name)).made)

    def cohort(self, name: str) -> Cohort | None:
        """A Cohort of Kueue."""
        return self._find(("Cohort", name), lambda: self._read_cohort(name))

    def _read_cohort(self, name: str) -> Cohort | None:
        written = from_json(self._client.get(_COHORTS, name), _MOST_VALUES)
        found = read_organisation((Document(written, "", 0),), lenient=True)
        return next(iter(found.organisation.cohorts), None)

    def _find(
        self, key: tuple[str, str], ask: Callable[[], Found | None], *, anew: bool = True
    ) -> Found | None:
        with self._lock:
            kept = self._kept.get(key)
        if kept is not None and not anew and self._clock() - kept[0] <= FRESH_S:
            return kept[1]
        try:
            found = ask()
        except KubeNotFound:
            found = None
        except BoughError as error:
            LOG.warning("%s %s could not be read: %s", *key, error.message)
            return None
        with self._lock:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (self._clock(), found)
        return found
