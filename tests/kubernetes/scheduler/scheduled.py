"""A bed with the printed definitions and rights, and schedulers on it as processes."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from bough.kube.client import KubeClient, Patch
from bough.kube.failures import KubeNotFound
from bough.kube.kubeconfig import find_access
from bough.kube.objects import Kind, untyped
from bough.pod_scheduler.decision_records import slot_names
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import GPU, namespace, node, pod
from tests.kubernetes.bed.process import Process, free_port
from tests.kubernetes.waiting import wait_for

SYSTEM = "bough-system"
NAME = "bough"
ACCOUNT = f"bough-scheduler-{NAME}"
SLOTS = slot_names(ACCOUNT)
_KINDS: dict[str, Kind[dict[str, Any]]] = {
    "Namespace": untyped("api/v1", "namespaces", namespaced=False),
    "ServiceAccount": untyped("api/v1", "serviceaccounts"),
    "Role": untyped("apis/rbac.authorization.k8s.io/v1", "roles"),
    "RoleBinding": untyped("apis/rbac.authorization.k8s.io/v1", "rolebindings"),
    "ClusterRole": untyped("apis/rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False),
    "ClusterRoleBinding": untyped(
        "apis/rbac.authorization.k8s.io/v1", "clusterrolebindings", namespaced=False
    ),
    "Deployment": untyped("apis/apps/v1", "deployments"),
    "CustomResourceDefinition": untyped(
        "apis/apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False
    ),
    "Pod": untyped("api/v1", "pods"),
    "Node": untyped("api/v1", "nodes", namespaced=False),
    "Event": untyped("api/v1", "events"),
    "PodGroup": untyped("apis/scheduling.run.ai/v2alpha2", "podgroups"),
    "NativePodGroup": untyped("apis/scheduling.k8s.io/v1alpha2", "podgroups"),
    "Workload": untyped("apis/scheduling.k8s.io/v1alpha2", "workloads"),
    "PriorityClass": untyped("apis/scheduling.k8s.io/v1", "priorityclasses", namespaced=False),
    "Queue": untyped("apis/scheduling.run.ai/v2", "queues", namespaced=False),
    "Topology": untyped("apis/kai.scheduler/v1alpha1", "topologies", namespaced=False),
    "PodDisruptionBudget": untyped("apis/policy/v1", "poddisruptionbudgets"),
    "Secret": untyped("api/v1", "secrets"),
    "ConfigMap": untyped("api/v1", "configmaps"),
    "Lease": untyped("apis/coordination.k8s.io/v1", "leases"),
}
#: What one test leaves to no other.
_CLEARED = (
    "PodDisruptionBudget",
    "PodGroup",
    "NativePodGroup",
    "Workload",
    "Queue",
    "Topology",
    "Node",
    "Lease",
    "Secret",
)
NATIVE_VERSION = "scheduling.k8s.io/v1alpha2"


class Scheduled:
    """A bed on which `bough kube install` was applied."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.admin = KubeClient(find_access(str(bed.kubeconfig), None))
        self._schedulers: list[Process] = []
        self._ports: dict[int, int] = {}
        self._namespaces = iter(range(1_000_000))
        self.define()
        self.kubeconfig = self.kubeconfig_of(ACCOUNT)

    def define(self) -> None:
        """Apply all that `bough kube install` prints."""
        for document in yaml.safe_load_all(bough("kube", "install")):
            self.apply(document)
        for kind in ("PodGroup", "Queue", "Topology"):
            known = _KINDS[kind]
            wait_for(lambda known=known: self.is_served(known), f"the definition of {kind}")

    def is_served(self, kind: Kind[Any]) -> bool:
        """Whether the apiserver knows a kind."""
        try:
            self.admin.list(kind)
        except KubeNotFound:
            return False
        return True

    def kubeconfig_of(self, account: str) -> Path:
        """A kubeconfig with a token of a service account, as a pod of it would have."""
        asked = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 86_400},
        }
        target = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{account}/token"
        token = self.admin.ask("POST", target, asked)["status"]["token"]
        return self.bed.write_kubeconfig(account, token=token)

    def grant_kueue(self) -> None:
        """Apply the rights for Kueue's quota, too."""
        printed = bough("kube", "install", "--no-definitions", "--quota=kueue")
        for document in yaml.safe_load_all(printed):
            if document["kind"] == "ClusterRole":
                self.apply(document)

    def record_decision(self, group: str, decision: dict[str, Any]) -> None:
        """Record a decision about a PodGroup as a leader does that ends then."""
        data = {"decisions": json.dumps({group: decision}), "term": "1", "number": "1"}
        record = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SLOTS[0]}}
        self.apply({**record, "data": data}, where=SYSTEM)

    def records(self) -> list[dict[str, str]]:
        """What schedulers have recorded, as it is written."""
        found = (each for each in self.list("ConfigMap", SYSTEM) if _is_record(each))
        return [each["data"] for each in found]

    # Schedulers

    def start(self, *options: str) -> Process:
        """A scheduler, which is ended with the test."""
        number, port = len(self._schedulers), free_port()
        command = [sys.executable, "-m", "bough", "kube", "schedule"]
        command += [f"--kubeconfig={self.kubeconfig}", f"--listen=127.0.0.1:{port}", *options]
        process = Process(command, self.bed.folder / f"scheduler-{number}-{port}.log")
        process.start()
        self._schedulers.append(process)
        self._ports[process.pid] = port
        return process

    def port_of(self, process: Process) -> int:
        """The port on which a scheduler answers."""
        return self._ports[process.pid]

    def leader(self) -> str:
        """The identity of the scheduler that decides; empty: there is none."""
        with contextlib.suppress(KubeNotFound):
            return self.get("Lease", ACCOUNT, SYSTEM)["spec"].get("holderIdentity") or ""
        return ""

    def clear_schedulers(self) -> None:
        """End all schedulers."""
        for process in self._schedulers:
            process.go_on()
            process.stop()
        self._schedulers.clear()

    def clear(self) -> None:
        """End schedulers, and remove what a test made."""
        self.clear_schedulers()
        self.clear_objects("Pod", *_CLEARED)
        for each in filter(_is_record, self.list("ConfigMap", SYSTEM)):
            self.delete("ConfigMap", each["metadata"]["name"], SYSTEM)

    def clear_objects(self, *kinds: str) -> None:
        """Remove all objects of some kinds."""
        for kind in kinds:
            for each in self.list(kind):
                meta = each["metadata"]
                grace_s = 0 if kind == "Pod" else None
                with contextlib.suppress(KubeNotFound):
                    self.delete(kind, meta["name"], meta.get("namespace", ""), grace_s)

    # Objects

    def namespace(self) -> str:
        """A namespace of its own: kwok deletes pods by name, so no two tests share one."""
        name = f"team-{next(self._namespaces)}"
        self.apply(namespace(name))
        return name

    def apply(self, *documents: dict[str, Any], where: str = "") -> None:
        """As `kubectl apply --server-side -f` does."""
        for document in documents:
            meta = document["metadata"]
            place = meta.get("namespace", where)
            kind = _kind_of(document)
            self.admin.patch(kind, meta["name"], document, place, Patch.APPLY, manager="test")

    def create(self, document: dict[str, Any], where: str = "") -> dict[str, Any]:
        """Make one object, with its status as far as the apiserver takes it."""
        return self.admin.create(_kind_of(document), document, where)

    def get(self, kind: str, name: str, where: str = "") -> dict[str, Any]:
        """One object."""
        return self.admin.get(_KINDS[kind], name, where)

    def list(self, kind: str, where: str = "") -> list[dict[str, Any]]:
        """All objects of a kind."""
        try:
            return self.admin.list(_KINDS[kind], where).items
        except KubeNotFound:
            return []

    def patch(self, kind: str, name: str, body: object, where: str = "", below: str = "") -> None:
        """Change an object."""
        self.admin.patch(_KINDS[kind], name, body, where, below=below)

    def delete(self, kind: str, name: str, where: str = "", grace_s: int | None = None) -> None:
        """Delete an object."""
        self.admin.delete(_KINDS[kind], name, where, grace_s=grace_s)

    def add_nodes(self, sizes: dict[str, int], **labels: str) -> None:
        """Nodes with so many GPUs."""
        for name, gpus in sizes.items():
            self.create(node(name, gpus, **labels))

    def places(self, where: str) -> dict[str, str]:
        """By pod that is not ending: its node, if it has one."""
        return {
            each["metadata"]["name"]: each["spec"]["nodeName"]
            for each in self.list("Pod", where)
            if each["spec"].get("nodeName") and not each["metadata"].get("deletionTimestamp")
        }

    def wait_for_places(self, where: str, names: Iterable[str]) -> dict[str, str]:
        """Wait until exactly these pods have a node."""
        wanted = set(names)
        try:
            wait_for(lambda: self.places(where).keys() == wanted, f"places of {sorted(wanted)}")
        except AssertionError as error:
            said = "\n".join(each.last_words() for each in self._schedulers)
            raise AssertionError(f"{error}; there are {self.places(where)}\n{said}") from None
        return self.places(where)

    def ask_scheduler(self, process: Process, path: str) -> tuple[int, str]:
        """What a scheduler answers without a token."""
        url = f"http://127.0.0.1:{self.port_of(process)}{path}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except urllib.error.URLError:
            return 0, ""


def _is_record(config_map: dict[str, Any]) -> bool:
    return config_map["metadata"]["name"] in SLOTS


def _kind_of(document: dict[str, Any]) -> Kind[dict[str, Any]]:
    native = document.get("apiVersion") == NATIVE_VERSION and document["kind"] == "PodGroup"
    return _KINDS["NativePodGroup" if native else document["kind"]]


def bough(*arguments: str, code: int = 0) -> str:
    """What the program prints."""
    done = subprocess.run(
        [sys.executable, "-m", "bough", *arguments], capture_output=True, text=True, check=False
    )
    assert code == done.returncode, done.stderr
    return done.stdout if code == 0 else done.stderr


def printed_roles(*options: str) -> list[dict[str, Any]]:
    """The roles that `bough kube install` prints."""
    printed = yaml.safe_load_all(bough("kube", "install", *options))
    return [each for each in printed if each["kind"] in ("ClusterRole", "Role")]


def without(role: dict[str, Any], group: str, resource: str, verb: str) -> dict[str, Any]:
    """A role that lacks one verb of a resource."""
    rules: list[dict[str, Any]] = []
    for rule in role["rules"]:
        if rule["apiGroups"][0] != group or resource not in rule["resources"]:
            rules.append(rule)
            continue
        others = [each for each in rule["resources"] if each != resource]
        if others:
            rules.append({**rule, "resources": others})
        left = [each for each in rule["verbs"] if each != verb]
        if left:
            rules.append({**rule, "resources": [resource], "verbs": left})
    return {**role, "rules": rules}


def queue(name: str, gpus: float = -1, parent: str = "", **spec: Any) -> dict[str, Any]:
    """A Queue that deserves so many GPUs, and may use all."""
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"gpu": {**free, "quota": gpus}, "cpu": free, "memory": free}
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent, "resources": resources, **spec},
    }


def pod_group(name: str, queue_name: str = "team", **spec: Any) -> dict[str, Any]:
    """A PodGroup."""
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"queue": queue_name, **spec},
    }


def native_group(name: str, min_count: int | None = None, **spec: Any) -> dict[str, Any]:
    """A PodGroup of Kubernetes itself, of pods that start together or one by one."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": NATIVE_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": policy, **spec},
    }


def native_member(name: str, group: str, gpus: int = 1, **more: Any) -> dict[str, Any]:
    """A pod of such a PodGroup."""
    return member(name, gpus=gpus, schedulingGroup={"podGroupName": group}, **more)


def member(
    name: str, group: str = "", gpus: int = 1, subgroup: str = "", **more: Any
) -> dict[str, Any]:
    """A pod of a gang, or on its own, for the scheduler `bough`."""
    made = pod(name, gpus=gpus)
    made["spec"] |= {"schedulerName": NAME, **more}
    labels = {"kai.scheduler/queue": "team"}
    if group:
        made["metadata"]["annotations"]["pod-group-name"] = group
    if subgroup:
        labels["kai.scheduler/subgroup-name"] = subgroup
    made["metadata"]["labels"] = labels
    return made


def gpus_of(each: dict[str, Any]) -> int:
    """The GPUs of a pod."""
    limits = each["spec"]["containers"][0].get("resources", {}).get("limits", {})
    return int(limits.get(GPU, 0))
