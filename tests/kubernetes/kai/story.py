"""A server that lets KAI decide, and a stand-in for KAI that does what a test orders."""

from __future__ import annotations

import json
from typing import Any

from bough.kube.client import KubeClient
from bough.kube.objects import EVENTS, PODS
from tests.kubernetes.kai.clusters import KINDS
from tests.kubernetes.served import Clustered, ClusterHosting
from tests.kubernetes.waiting import wait_for

#: The site of a server makes this pool itself.
DEFAULT = "default"


class Kai:
    """What the other side does, and nothing by itself."""

    def __init__(self, admin: KubeClient, namespace: str) -> None:
        self._admin = admin
        self._namespace = namespace
        self._events = 0

    def groups(self) -> list[dict[str, Any]]:
        """All PodGroups."""
        return self._admin.list(KINDS["PodGroup"], self._namespace).items

    def group_of(self, pod: dict[str, Any]) -> dict[str, Any]:
        """The PodGroup that a pod names."""
        name = pod["metadata"]["annotations"]["pod-group-name"]
        return self._admin.get(KINDS["PodGroup"], name, self._namespace)

    def bind(self, *pods: dict[str, Any], node: str = "node-0") -> None:
        """Bind pods to a node."""
        for pod in pods:
            self._admin.bind(pod["metadata"]["name"], self._namespace, node)

    def refuse(self, pod: dict[str, Any], message: str) -> None:
        """Say why the gang of a pod is not placed."""
        condition = {
            "type": "UnschedulableOnNodePool",
            "status": "True",
            "reason": "Unschedulable",
            "message": message,
            "nodePool": "default",
        }
        name = pod["metadata"]["annotations"]["pod-group-name"]
        body = {"status": {"schedulingConditions": [condition]}}
        self._admin.patch(KINDS["PodGroup"], name, body, self._namespace, below="status")

    def evict(self, *pods: dict[str, Any], message: str, event_first: bool = True) -> None:
        """End pods of one gang for others."""
        if event_first:
            self._tell_eviction(pods[0], message)
        for pod in pods:
            self._admin.delete(PODS, pod["metadata"]["name"], self._namespace, grace_s=1)
        if not event_first:
            self._tell_eviction(pods[0], message)

    def _tell_eviction(self, pod: dict[str, Any], message: str) -> None:
        self._events += 1
        group = pod["metadata"]["annotations"]["pod-group-name"]
        about = {
            "kind": "PodGroup",
            "apiVersion": "scheduling.run.ai/v2alpha2",
            "name": group,
            "namespace": self._namespace,
        }
        event = {
            "metadata": {"name": f"evict-{self._events}", "namespace": self._namespace},
            "involvedObject": about,
            "reason": "Evict",
            "message": message,
            "type": "Normal",
        }
        self._admin.create(EVENTS, event, self._namespace)


class Story:
    """A server, and what the apiserver says of its queues and pods."""

    def __init__(self, host: ClusterHosting, admin: KubeClient) -> None:
        self.host = host
        self.admin = admin
        self.kai = Kai(admin, host.namespace)
        self.server: Clustered = host.start()
        self.prefix = f"osmo-pool-{host.namespace}-"

    def queues(self) -> dict[str, float]:
        """The quota of each queue of the pools, by what comes after the prefix."""
        return {
            each["metadata"]["name"].removeprefix(self.prefix): amounts(each)["quota"]
            for each in self.admin.list(KINDS["Queue"]).items
            if each["metadata"]["name"].startswith(self.prefix)
        }

    def expect(self, **queues: float) -> None:
        """Wait until the cluster has these, and the queues of the first pool."""
        wanted = {
            key.replace("__", "--").replace("--shared", "---shared"): value
            for key, value in queues.items()
        }
        wanted |= {DEFAULT: -1, f"{DEFAULT}---shared": -1}
        wait_for(lambda: wanted == self.queues(), f"{wanted}, not {self.queues()}")

    def drift(self) -> dict[str, Any]:
        """What is said of the cluster."""
        (found,) = json.loads(self.server.done("kube", "drift", "-t", "json"))["clusters"]
        return found

    def repaired(self) -> list[str]:
        """The objects that were repaired, the last first."""
        return [each["subject"] for each in self.drift()["repairs"]]

    def pods(self, name: str, count: int = 1) -> list[dict[str, Any]]:
        """The pods of a workflow that are not told to end, once there are so many."""

        def look() -> list[dict[str, Any]]:
            of = [
                pod
                for pod in self.server.pods()
                if name == pod["metadata"]["labels"]["osmo.workflow_id"]
                and "deletionTimestamp" not in pod["metadata"]
                and pod["status"]["phase"] not in ("Succeeded", "Failed")
            ]
            return of if len(of) == count else []

        return wait_for(look, f"{count} pods of {name}")

    def run(self, pool: str, gpus: int, priority: str) -> str:
        """Submit a workflow of one task, and have KAI bind its pod; its name."""
        name = self.server.submit(pool, gpus, priority)
        self.kai.bind(*self.pods(name))
        self.server.settle(RUNNING=[name])
        return name


def amounts(queue: dict[str, Any]) -> dict[str, float]:
    """What a Queue has of GPUs."""
    return queue["spec"]["resources"]["gpu"]
