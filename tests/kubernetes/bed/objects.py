"""Nodes and pods to put on a bed, as one would write them in YAML."""

from __future__ import annotations

from typing import Any

GPU = "nvidia.com/gpu"


def node(name: str, gpus: int = 8, **labels: str) -> dict[str, Any]:
    """A node with GPUs, as a kubelet would register it."""
    room = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110"}
    room |= {GPU: str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "status": {"allocatable": room, "capacity": room},
    }


def pod(name: str, node_name: str = "", gpus: int = 0, **said: str) -> dict[str, Any]:
    """A pod; `run_for="2s"` and the like say by annotation what the kubelets do with it."""
    limits = {GPU: str(gpus)} if gpus else {}
    container = {"name": "main", "image": "bed", "resources": {"limits": limits}}
    spec: dict[str, Any] = {"containers": [container], "restartPolicy": "Never"}
    if node_name:
        spec["nodeName"] = node_name
    annotations = {f"bed.bough/{key.replace('_', '-')}": value for key, value in said.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def namespace(name: str) -> dict[str, Any]:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
