"""What tests of the webhook send: reviews of objects, and what the cluster around them has."""

from __future__ import annotations

import json
from typing import Any

from bough.model.cluster import Topology
from bough.model.fair_queue import FairQueue
from bough.model.pod_group import PodGroup
from bough.model.quota import Cohort


class Cluster:
    """What a cluster has; counts how often it was asked anew."""

    def __init__(self) -> None:
        self.pod_groups: dict[str, PodGroup] = {}
        self.earlier: dict[str, PodGroup] = {}
        self.queues: dict[str, FairQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.known_topologies: tuple[Topology, ...] = ()

    def pod_group(self, namespace: str, name: str, *, anew: bool = False) -> PodGroup | None:
        known = self.pod_groups if anew else {**self.pod_groups, **self.earlier}
        return known.get(f"{namespace}/{name}")

    def topologies(self) -> tuple[Topology, ...]:
        return self.known_topologies

    def queue(self, name: str) -> FairQueue | None:
        return self.queues.get(name)

    def cohort(self, name: str) -> Cohort | None:
        return self.cohorts.get(name)


def pod_group(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"queue": "q", **spec},
    }


def pod(group: str | None = "g", subgroup: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "annotations": {"pod-group-name": group} if group else {},
            "labels": {"kai.scheduler/subgroup-name": subgroup} if subgroup else {},
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def queue(name: str, parent: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent or "", "resources": {"gpu": {"quota": 1, "limit": -1}}},
    }


def cohort(name: str, parent: str | None = None, **spec: Any) -> dict[str, Any]:
    named = {"parentName": parent} if parent else {}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": name},
        "spec": {**named, **spec},
    }


def review(written: Any, before: Any = None, **more: Any) -> bytes:
    request = {"uid": "u", "operation": "CREATE", "object": written, "oldObject": before, **more}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()
