"""A server on the backend kubernetes and a bed: what the stories of processes need, with pods.

A story that lets a task finish, fail or be seen does so here with its pod: annotations tell the
kubelets of the bed how it ends.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bough.kube.client import KubeClient
from bough.kube.failures import KubeNotFound
from bough.kube.kubeconfig import find_access
from bough.kube.objects import PODS
from tests.e2e.local import FAIL, FINISH, Hosting, Local, Process
from tests.kubernetes.bed.audit import read_audit
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import GPU, namespace, node
from tests.kubernetes.rights import kubeconfig_of_bough

_CODES = {FINISH: "0", FAIL: "7"}
_ENDINGS = {"Succeeded": "finished", "Failed": "failed"}
#: For a machine that is busy with other tests.
PATIENCE_S = 180


class Clustered(Local):
    """A running server whose tasks are pods of a bed."""

    bed: Bed
    namespace: str
    admin: KubeClient

    def pods(self) -> list[dict[str, Any]]:
        """All pods of the server that are there, in the order of their workflows."""
        return sorted((each for each in self.all_pods() if _is_task(each)), key=_submission)

    def all_pods(self) -> list[dict[str, Any]]:
        """The same, and those that are of no task."""
        return self.bed.ask("GET", f"/api/v1/namespaces/{self.namespace}/pods")["items"]

    def processes(self, *names: str) -> list[Process]:
        """The pods that have not ended, as if each were a process."""
        wanted = {attempt for name in names for attempt in self._attempts(name)}
        found: list[Process] = []
        first = 0
        for pod in self.pods():
            attempt = attempt_of(pod)
            over = pod["status"]["phase"] in ("Succeeded", "Failed")
            if over or (names and attempt not in wanted):
                continue
            gpus = gpus_of(pod)
            held = ",".join(str(each) for each in range(first, first + gpus))
            first += gpus
            about = {"CUDA_VISIBLE_DEVICES": held, "name": pod["metadata"]["name"]}
            found.append(Process(hash(pod["metadata"]["uid"]), 0, attempt, about))
        return found

    def endings(self, name: str) -> list[str]:
        """How pods ended, by the log of the apiserver: those of the bed say nothing of it."""
        of = set(self._attempts(name))
        found: dict[str, str] = {}
        for each in read_audit(self.bed.audit_log):
            pod = each.answered
            if each.namespace != self.namespace or pod.get("kind") != "Pod" or not _is_task(pod):
                continue
            attempt, phase = attempt_of(pod), pod["status"]["phase"]
            if attempt not in of or not each.succeeded:
                continue
            if each.verb == "delete" and each.user != "kwok" and phase == "Running":
                found.setdefault(attempt, "told to end")
            elif phase in _ENDINGS:
                found.setdefault(attempt, _ENDINGS[phase])
        return [found[each] for each in sorted(found, key=lambda each: each.rpartition("/")[2])]

    def mains(self, *names: str) -> list[Process]:
        """Each pod is one."""
        return self.processes(*names)

    def ready(self, name: str) -> list[Process]:
        """The pods that run and are not told to end."""
        running = {
            attempt_of(pod)
            for pod in self.pods()
            if pod["status"]["phase"] == "Running" and "deletionTimestamp" not in pod["metadata"]
        }
        return [each for each in self.processes(name) if each.attempt in running]

    def tell(self, process: Process, how: signal.Signals = FINISH) -> None:
        """Let a pod end, if it is still there."""
        said = {"bed.bough/run-for": "1ms", "bed.bough/exit-code": _CODES[how]}
        self.annotate(process.environment["name"], said)

    def annotate(self, pod: str, said: dict[str, str]) -> None:
        """Tell the kubelets of the bed something about a pod, if it is still there."""
        with contextlib.suppress(KubeNotFound):
            self.admin.patch(PODS, pod, {"metadata": {"annotations": said}}, self.namespace)

    def over(self, *names: str) -> None:
        """Wait until workflows have finished, and their pods are deleted."""
        super().over(*names)
        wanted = {attempt for name in names for attempt in self._attempts(name)}
        self.until(lambda: not wanted & {attempt_of(pod) for pod in self.pods()}, self.pods)


class ClusterHosting(Hosting):
    """The process of such a server."""

    def __init__(self, folder: Path, bed: Bed, kube_namespace: str, **options: Any) -> None:
        self.bed = bed
        self.namespace = kube_namespace
        self._admin: KubeClient | None = None
        gpus = sum(
            int(each["status"]["allocatable"].get(GPU, 0))
            for each in bed.ask("GET", "/api/v1/nodes")["items"]
        )
        # It runs with the rights of deploy/rights.yaml, and no others.
        with contextlib.closing(KubeClient(find_access(str(bed.kubeconfig)))) as admin:
            kai = "kai" in options.get("more", ())
            kubeconfig = kubeconfig_of_bough(bed, admin, kube_namespace, kai=kai)
        more = ("--backend", "kubernetes", "--kubeconfig", str(kubeconfig))
        more += ("--kube-namespace", kube_namespace, *options.pop("more", ()))
        super().__init__(folder, None, *more, **options)  # type: ignore[arg-type]
        self._gpus = gpus

    def start(self) -> Clustered:
        """Start, and wait until it answers."""
        local = super().start()
        made = Clustered(local.address, local.token, self.folder, self._gpus)
        made.bed, made.namespace = self.bed, self.namespace
        if self._admin is None:
            self._admin = KubeClient(find_access(str(self.bed.kubeconfig)))
        made.admin = self._admin
        return made

    def close(self) -> None:
        """Close the client of the apiserver."""
        if self._admin is not None:
            self._admin.close()


def _is_task(pod: dict[str, Any]) -> bool:
    return "osmo.task_uuid" in pod["metadata"].get("labels", {})


def _submission(pod: dict[str, Any]) -> tuple[int, str]:
    """Workflows are numbered as they come."""
    labels = pod["metadata"]["labels"]
    return int(labels["osmo.workflow_id"].rpartition("-")[2]), labels["osmo.task_name"]


def attempt_of(pod: dict[str, Any]) -> str:
    """The attempt of a pod, by its labels."""
    labels = pod["metadata"]["labels"]
    return f"{labels['osmo.task_uuid']}/{labels['osmo.retry_id']}"


def gpus_of(pod: dict[str, Any]) -> int:
    """The GPUs that a pod has."""
    (container,) = pod["spec"]["containers"]
    return int(container["resources"].get("limits", {}).get(GPU, 0))


@contextmanager
def clustered(
    folder: Path, bed: Bed, kube_namespace: str, **options: Any
) -> Iterator[ClusterHosting]:
    """A server that is not started yet; whatever happens, it is ended and its pods are gone."""
    bed.ask("POST", "/api/v1/namespaces", namespace(kube_namespace))
    host = ClusterHosting(folder, bed, kube_namespace, **options)
    try:
        yield host
    finally:
        try:
            server = host.start()
            server.clear()
        finally:
            host.stop()
            host.close()
    assert "Traceback" not in host.errors(), host.errors()


def add_nodes(bed: Bed, *sizes: int, start: int = 0) -> None:
    """Nodes with so many GPUs, which are ready when this returns."""
    for number, gpus in enumerate(sizes, start):
        bed.ask("POST", "/api/v1/nodes", node(f"node-{number}", gpus))
    until = time.monotonic() + PATIENCE_S
    while not all(map(_is_ready, bed.ask("GET", "/api/v1/nodes")["items"])):
        assert time.monotonic() < until, "the nodes did not become ready"
        time.sleep(0.1)


def _is_ready(found: dict[str, Any]) -> bool:
    conditions = found["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
