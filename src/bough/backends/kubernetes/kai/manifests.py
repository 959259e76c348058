"""KAI's objects in the form that the apiserver is sent: new objects, and patches."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.backends.kubernetes.kai.kai_types import (
    PRIORITY_CLASSES,
    QUEUES,
    TOPOLOGIES,
    KaiQueue,
    KaiTopology,
    PriorityClass,
)
from bough.backends.kubernetes.kai.object_changes import WRITTEN, KaiObject, digest_of
from bough.backends.kubernetes.kai.wanted_objects import WantedObjects
from bough.kube.objects import Kind

KINDS: dict[str, Kind[Any]] = {
    "Queue": QUEUES,
    "Topology": TOPOLOGIES,
    "PriorityClass": PRIORITY_CLASSES,
}


def all_manifests(wanted: WantedObjects) -> list[dict[str, Any]]:
    """Everything that a cluster should have, in the order of creation."""
    return [
        *(new_manifest("PriorityClass", each) for each in wanted.classes.values()),
        *(new_manifest("Topology", each) for each in wanted.topologies.values()),
        *(new_manifest("Queue", each) for each in wanted.queues.values()),
    ]


def new_manifest(kind: str, item: KaiObject) -> dict[str, Any]:
    """An object to create."""
    return {
        "apiVersion": KINDS[kind].api.removeprefix("apis/"),
        "kind": kind,
        "metadata": {
            "name": item.metadata.name,
            "labels": item.metadata.labels,
            "annotations": {WRITTEN: digest_of(item)},
        },
        **_content(item, whole=False),
    }


def patch_of(item: KaiObject, found: KaiObject) -> dict[str, Any]:
    """The patch that makes an object as it should be, unless it has changed since it was read."""
    return {
        "metadata": {
            "resourceVersion": found.metadata.resource_version,
            "labels": item.metadata.labels,
            "annotations": {WRITTEN: digest_of(item)},
        },
        **({} if isinstance(item, (KaiTopology, PriorityClass)) else _content(item, whole=True)),
    }


def _content(item: KaiObject, *, whole: bool) -> dict[str, Any]:
    """The fields of an object; `whole`: with `null` for fields that it must not have."""
    if isinstance(item, PriorityClass):
        text = "Of workflows of Bough; from 100 on they are not preempted."
        return {"value": item.value, "globalDefault": item.global_default, "description": text}
    spec: dict[str, Any] = msgspec.to_builtins(item.spec)
    if isinstance(item, KaiQueue) and not whole:
        spec = {name: value for name, value in spec.items() if value is not None}
    return {"spec": spec}
