"""Scheduled tests of nodes: a CronJob for each, kept in step with the configuration.

Each run is a Job with one pod for each node; pods of the same test avoid each other. They set
conditions on their nodes themselves, with the service account of their template.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable
from typing import Any

import msgspec

from bough.backends.kubernetes.names import SITE
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.template_merge import merge, merge_all, without_missing
from bough.kube.client import KubeClient
from bough.kube.failures import AlreadyExists, KubeFailure, KubeNotFound, KubeRefused
from bough.kube.objects import untyped
from bough.model.node_test import NodeTest

Json = Any
LOG = logging.getLogger(__name__)
CRON_JOBS = untyped("apis/batch/v1", "cronjobs")
#: The label of a CronJob and its pods, and the annotation with the digest of what the CronJob was
#: made from.
TEST = "bough.test"
_MADE_OF = "bough.made-of"
_FORBIDDEN = 403
_AGAIN_S = 30.0
#: How long a finished Job and its pods are kept, so that people can look at them.
_KEPT_S = 3_600
_HOST = "kubernetes.io/hostname"


class NodeTests:
    """The tests of one cluster. `want` notes them; a worker brings the cluster in step."""

    def __init__(
        self, client: KubeClient, options: KubernetesOptions, count_nodes: Callable[[], int]
    ) -> None:
        self._client = client
        self._options = options
        self._count_nodes = count_nodes
        self._lock = threading.Lock()
        self._wanted: tuple[NodeTest, ...] | None = None
        self._troubles: tuple[str, ...] = ()
        self._nodes = -1

    def want(self, tests: tuple[NodeTest, ...]) -> bool:
        """Note which tests there must be; return whether that changed."""
        with self._lock:
            new, self._wanted = tests != self._wanted, tests
            return new

    def is_stale(self) -> bool:
        """Whether the number of nodes to test has changed."""
        with self._lock:
            return bool(self._wanted) and self._count_nodes() != self._nodes

    def troubles(self) -> tuple[str, ...]:
        """What is wrong with tests that cannot be brought in step."""
        with self._lock:
            return self._troubles

    def work(self) -> float | None:
        """Bring the cluster in step; return after how many seconds to try again."""
        with self._lock:
            tests, nodes = self._wanted, self._count_nodes()
        if tests is None:
            return None
        try:
            there = self._list()
        except KubeFailure as error:
            forbidden = isinstance(error, KubeRefused) and error.status == _FORBIDDEN
            if not tests and forbidden and self._client.is_ready():
                # Without this right none was ever created.
                return None
            return self._give_up([f"tests cannot be listed: {error.message}"])
        troubles: list[str] = []
        for test in tests:
            try:
                self._keep(test, cron_job(self._options.site, test, nodes), there)
            except KubeFailure as error:
                troubles.append(f"test {test.name} cannot be kept: {error.message}")
        wanted = {name_of(test) for test in tests}
        for name in sorted(set(there) - wanted):
            try:
                self._client.delete(CRON_JOBS, name, self._options.namespace)
            except KubeNotFound:
                continue
            except KubeFailure as error:
                troubles.append(f"{name} cannot be deleted: {error.message}")
        if troubles:
            return self._give_up(troubles)
        with self._lock:
            self._troubles, self._nodes = (), nodes
        return None

    def _give_up(self, troubles: list[str]) -> float:
        with self._lock:
            if self._troubles != tuple(troubles):
                LOG.warning("node tests: %s", "; ".join(troubles))
            self._troubles = tuple(troubles)
        return _AGAIN_S

    def _list(self) -> dict[str, str]:
        """For each CronJob of this site, by name: what it was made from."""
        labels = f"{SITE}={self._options.site},{TEST}"
        found = self._client.list(CRON_JOBS, self._options.namespace, labels=labels).items
        return {
            each["metadata"]["name"]: (each["metadata"].get("annotations") or {}).get(_MADE_OF, "")
            for each in found
        }

    def _keep(self, test: NodeTest, wanted: dict[str, Json], there: dict[str, str]) -> None:
        name, namespace = name_of(test), self._options.namespace
        if there.get(name) == wanted["metadata"]["annotations"][_MADE_OF]:
            return
        if name not in there:
            try:
                self._client.create(CRON_JOBS, wanted, namespace)
            except AlreadyExists:
                raise KubeRefused(f"a CronJob {name} is there that is not Bough's") from None
            return
        current = self._client.get(CRON_JOBS, name, namespace)
        version = current["metadata"]["resourceVersion"]
        metadata = {**wanted["metadata"], "resourceVersion": version}
        self._client.replace(CRON_JOBS, name, {**wanted, "metadata": metadata}, namespace)


def name_of(test: NodeTest) -> str:
    """The name of a test's CronJob, at most 52 characters, as Kubernetes appends to it."""
    return f"test-{test.name}"


def cron_job(site: str, test: NodeTest, nodes: int) -> dict[str, Json]:
    """The CronJob that runs a test on this many nodes."""
    labels = {SITE: site, TEST: test.name}
    apart = {
        "topologyKey": _HOST,
        "labelSelector": {"matchLabels": labels},
    }
    own = {
        "metadata": {"labels": labels},
        "spec": {
            "restartPolicy": "Never",
            "affinity": {
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
            },
        },
    }
    count = max(1, nodes)
    spec = {
        "schedule": test.schedule,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": max(60, test.timeout_s),
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "metadata": {"labels": labels},
            "spec": {
                "completions": count,
                "parallelism": count,
                "completionMode": "Indexed",
                # A node that fails must not stop the test of the others, nor be tested twice.
                "backoffLimitPerIndex": 0,
                "activeDeadlineSeconds": test.timeout_s,
                "ttlSecondsAfterFinished": _KEPT_S,
                "template": merge(without_missing(merge_all(test.templates)), own),
            },
        },
    }
    made_of = msgspec.json.encode(spec, order="sorted")
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {
            "name": name_of(test),
            "labels": labels,
            "annotations": {_MADE_OF: hashlib.sha256(made_of).hexdigest()},
        },
        "spec": spec,
    }
