"""Who Bough is in a cluster: the service account of deploy/rights.yaml, with exactly its rights."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from bough.kube.client import KubeClient, Patch
from bough.kube.objects import Kind, untyped
from tests.kubernetes.bed.cluster import Bed

MANIFEST = Path(__file__).parents[2] / "deploy" / "rights.yaml"
#: Beside it, where KAI decides.
KAI_MANIFEST = MANIFEST.with_name("rights-kai.yaml")
#: What the service account, and the namespace where it may do things, are called there.
NAMESPACE = "bough"
_RBAC = "apis/rbac.authorization.k8s.io/v1"
_KINDS: dict[str, Kind[dict[str, object]]] = {
    "Namespace": untyped("api/v1", "namespaces", namespaced=False),
    "ServiceAccount": untyped("api/v1", "serviceaccounts"),
    "Role": untyped(_RBAC, "roles"),
    "RoleBinding": untyped(_RBAC, "rolebindings"),
    "ClusterRole": untyped(_RBAC, "clusterroles", namespaced=False),
    "ClusterRoleBinding": untyped(_RBAC, "clusterrolebindings", namespaced=False),
}


def apply_manifest(
    admin: KubeClient, namespace: str = NAMESPACE, manifest: Path = MANIFEST
) -> None:
    """As `kubectl apply --server-side -f` does; a second time changes nothing."""
    text = re.sub(rf"\b{NAMESPACE}\b", namespace, manifest.read_text())
    for document in yaml.safe_load_all(text):
        meta = document["metadata"]
        kind = _KINDS[document["kind"]]
        where = meta.get("namespace", "")
        admin.patch(kind, meta["name"], document, where, Patch.APPLY, manager="deploy")


def kubeconfig_of_bough(
    bed: Bed, admin: KubeClient, namespace: str = NAMESPACE, *, kai: bool = False
) -> Path:
    """A kubeconfig with a token of the service account, as a pod of it would have."""
    apply_manifest(admin, namespace)
    if kai:
        apply_manifest(admin, namespace, KAI_MANIFEST)
    asked: dict[str, object] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
    asked["spec"] = {"expirationSeconds": 86_400}
    target = f"/api/v1/namespaces/{namespace}/serviceaccounts/{namespace}/token"
    token = admin.ask("POST", target, asked)["status"]["token"]
    return bed.write_kubeconfig(namespace, token=token)
