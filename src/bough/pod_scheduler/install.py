"""`bough kube install`: what a cluster needs to run the scheduler, as YAML for `kubectl apply`.

Prints definitions, a service account with exactly the rights that it uses, and a Deployment.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from bough.pod_grouper.kinds import FOLLOWED
from bough.pod_scheduler.custom_resource_definitions import definitions
from bough.pod_scheduler.decision_records import slot_names
from bough.pod_scheduler.kinds import KUEUES
from bough.pod_scheduler.scheduler import lease_name
from bough.version import VERSION

IMAGE = f"bough:{VERSION}"
#: The port on which the Deployment answers.
PORT = 8270
_RBAC = "rbac.authorization.k8s.io"


def install_objects(
    namespace: str = "bough-system",
    scheduler_name: str = "bough",
    image: str = IMAGE,
    *,
    with_definitions: bool = True,
    group: bool = True,
    quota: str = "kai",
) -> list[dict[str, Any]]:
    """All objects, in the order in which to create them."""
    return [
        *(definitions() if with_definitions else ()),
        *rights(namespace, scheduler_name, group=group, kueue=quota == "kueue"),
        deployment(namespace, scheduler_name, image, group=group, quota=quota),
    ]


def write_objects(objects: list[dict[str, Any]]) -> str:
    """Write objects as the documents of one YAML file."""
    text = yaml.dump_all(objects, Dumper=_Plain, sort_keys=False, explicit_start=True)
    return text.rstrip("\n")


class _Plain(yaml.SafeDumper):
    """Repeats a value in full instead of writing a YAML alias, which people find hard to read."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002  the library's signature
        return True


def rights(
    namespace: str, scheduler_name: str, *, group: bool = True, kueue: bool = False
) -> list[dict[str, Any]]:
    """A service account and everything that it may do."""
    name = lease_name(scheduler_name)
    read = ("get", "list", "watch")
    grouping = ("create", "delete") if group else ()
    cluster = [
        _rule("", ("nodes", "pods", "persistentvolumeclaims"), read),
        _rule("", ("pods/binding", "pods/eviction"), ("create",)),
        _rule("", ("pods/status",), ("patch",)),
        _rule("", ("events",), ("create",)),
        _rule("scheduling.k8s.io", ("priorityclasses",), read),
        _rule("scheduling.run.ai", ("podgroups",), (*read, "patch", *grouping)),
        # The native PodGroups; the rule does no harm where a cluster has no such kind.
        _rule("scheduling.k8s.io", ("podgroups",), (*read, "patch")),
        _rule("scheduling.k8s.io", ("podgroups/status",), ("patch",)),
        _rule("scheduling.run.ai", ("queues",), read),
        _rule("scheduling.run.ai", ("podgroups/status", "queues/status"), ("patch",)),
        _rule("kai.scheduler", ("topologies",), read),
        *(group_rights() if group else ()),
        *(kueue_rights() if kueue else ()),
    ]
    own = [
        # RBAC cannot limit `create` to a name: the object does not exist yet.
        _rule("coordination.k8s.io", ("leases",), ("create",)),
        _rule("coordination.k8s.io", ("leases",), ("get", "update"), (name,)),
        _rule("", ("secrets",), ("create",)),
        _rule("", ("secrets",), ("patch",), (name,)),
        _rule("", ("configmaps",), ("create",)),
        _rule("", ("configmaps",), ("get", "update"), slot_names(name)),
    ]
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": name, "namespace": namespace},
        },
        _role("ClusterRole", {"name": name}, cluster),
        _binding("ClusterRole", {"name": name}, account),
        _role("Role", {"name": name, "namespace": namespace}, own),
        _binding("Role", {"name": name, "namespace": namespace}, account),
    ]


def group_rights() -> list[dict[str, Any]]:
    """The additional rights needed to make PodGroups from the owners of pods."""
    plurals: dict[str, list[str]] = {}
    for (group, _), kind in FOLLOWED.items():
        plurals.setdefault(group, []).append(kind.plural)
    return [
        _rule("", ("pods",), ("patch",)),
        *(_rule(group, names, ("get", "list", "watch")) for group, names in plurals.items()),
    ]


def kueue_rights() -> list[dict[str, Any]]:
    """The additional rights needed where Kueue's objects set the quota."""
    read = ("get", "list", "watch")
    return [
        _rule("", ("namespaces",), read),
        _rule("kueue.x-k8s.io", (kind.plural for kind in KUEUES.values()), read),
        _rule("kueue.x-k8s.io", ("cohorts/status",), ("patch",)),
    ]


def deployment(
    namespace: str, scheduler_name: str, image: str, *, group: bool = True, quota: str = "kai"
) -> dict[str, Any]:
    """Two replicas of the scheduler, of which one leads."""
    name = lease_name(scheduler_name)
    labels = {"app.kubernetes.io/name": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "serviceAccountName": name,
                    "priorityClassName": "system-cluster-critical",
                    "terminationGracePeriodSeconds": 30,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65_532,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    "containers": [_container(namespace, scheduler_name, image, group, quota)],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }


def _container(
    namespace: str, scheduler_name: str, image: str, group: bool, quota: str
) -> dict[str, Any]:
    fields = {
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_IP": "status.podIP",
    }
    return {
        "name": "scheduler",
        "image": image,
        "command": ["bough", "kube", "schedule"],
        "args": [
            f"--scheduler-name={scheduler_name}",
            f"--lease-namespace={namespace}",
            f"--listen=:{PORT}",
            *([] if group else ["--no-group"]),
            *([] if quota == "kai" else [f"--quota={quota}"]),
        ],
        "env": [
            {"name": each, "valueFrom": {"fieldRef": {"fieldPath": path}}}
            for each, path in fields.items()
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "livenessProbe": _probe("/healthz", 30),
        "readinessProbe": _probe("/readyz", 5),
        "resources": {
            "requests": {"cpu": "250m", "memory": "256Mi"},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        # OpenSSL reads client certificates only from files, so they need a writable folder.
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }


def _probe(path: str, period_s: int) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "http"}, "periodSeconds": period_s}


def _rule(
    group: str, resources: Iterable[str], verbs: Iterable[str], names: Iterable[str] = ()
) -> dict[str, Any]:
    made: dict[str, Any] = {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
    }
    return {**made, "resourceNames": list(names)} if names else made


def _role(kind: str, metadata: dict[str, str], rules: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": dict(metadata),
        "rules": rules,
    }


def _binding(kind: str, metadata: dict[str, str], account: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": kind, "name": metadata["name"]},
        "subjects": [dict(account)],
    }
