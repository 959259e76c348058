"""Nodes and Namespaces of Kubernetes into model types.

Fields of a node that say nothing about what can run on it (addresses, images, versions) are
accepted and ignored. Of a namespace only its labels count.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from bough.formats.kubernetes.metadata import Metadata, read_metadata
from bough.formats.kubernetes.pods import GPU, PODS, read_amounts, read_taints, resources_of
from bough.formats.yaml.fields import Fields, Reading
from bough.model.cluster import Node, Resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bough.formats.yaml.documents import Document
    from bough.model.problem import Problem

#: How many pods a node takes if it does not say so: the default of kubelets.
DEFAULT_PODS = 110
#: Memory grows with the GPUs of the largest node: a typing error must not take all of it.
MOST_GPUS_OF_NODE = 100_000

#: What is made of an object.
Made = TypeVar("Made")

_VERSION = "v1"
NAME_LABEL = "kubernetes.io/metadata.name"
_SPEC_FIELDS_WITHOUT_MEANING = ("configSource", "externalID", "podCIDR", "podCIDRs", "providerID")
_STATUS_FIELDS_WITHOUT_MEANING = (
    "addresses",
    "config",
    "daemonEndpoints",
    "declaredFeatures",
    "features",
    "images",
    "nodeInfo",
    "phase",
    "runtimeHandlers",
    "volumesAttached",
    "volumesInUse",
)


class _Truth(StrEnum):
    """The status of a condition."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class NodesRead(NamedTuple):
    """The nodes that were read, and everything that is wrong with their form."""

    nodes: tuple[Node, ...]
    problems: list[Problem]


class NamespacesRead(NamedTuple):
    """The labels of each namespace that was read, and everything that is wrong with their form."""

    labels: dict[str, dict[str, str]]
    problems: list[Problem]


def read_nodes(documents: Iterable[Document], *, lenient: bool = False) -> NodesRead:
    """Read every Node among some documents; other objects are left to their own readers."""
    found, problems = _read_all(documents, "Node", _read_node, lenient=lenient)
    return NodesRead(tuple(found.values()), problems)


def read_namespaces(documents: Iterable[Document], *, lenient: bool = False) -> NamespacesRead:
    """Read every Namespace among some documents."""
    return NamespacesRead(*_read_all(documents, "Namespace", _read_labels, lenient=lenient))


def _read_all(
    documents: Iterable[Document],
    kind: str,
    read: Callable[[Fields, Metadata], Made],
    *,
    lenient: bool,
) -> tuple[dict[str, Made], list[Problem]]:
    """All objects of one kind, by name."""
    found: dict[str, Made] = {}
    problems: list[Problem] = []
    first: dict[str, Document] = {}
    for document in documents:
        if not isinstance(document.value, dict) or document.value.get("kind") != kind:
            continue
        reading = Reading(document, lenient=lenient)
        fields = reading.fields()
        reading.subject = fields.text("kind")
        version = fields.text("apiVersion")
        if version != _VERSION:
            message = f"{version!r} is not known for a {kind}; known is {_VERSION}"
            fields.error("apiVersion", message)
        metadata = read_metadata(fields)
        reading.subject = f"{kind}/{metadata.name}" if metadata.name else kind
        each = read(fields, metadata)
        fields.finish()
        if metadata.name in found:
            before = first[metadata.name]
            message = f"is declared twice, first in {before.source}, line {before.line}"
            reading.error(("metadata", "name"), message)
        elif metadata.name:
            found[metadata.name] = each
            first[metadata.name] = document
        problems.extend(reading.problems)
    return found, problems


def _read_labels(fields: Fields, metadata: Metadata) -> dict[str, str]:
    """The labels of a namespace, with the one that Kubernetes gives to all."""
    fields.ignore("spec", "status")
    return {NAME_LABEL: metadata.name, **metadata.labels}


def _read_node(fields: Fields, metadata: Metadata) -> Node:
    spec = fields.optional_child("spec") or fields.nothing("spec")
    spec.ignore(*_SPEC_FIELDS_WITHOUT_MEANING)
    status = fields.child("status")
    ready = _is_ready(status)
    return Node(
        name=metadata.name,
        capacity=_read_capacity(status),
        labels=metadata.labels,
        taints=read_taints(spec, "taints"),
        cordoned=spec.boolean("unschedulable", default=False) or not ready,
    )


def _read_capacity(status: Fields) -> Resources:
    """What pods can use (`allocatable`); if that is missing, the capacity."""
    status.ignore(*_STATUS_FIELDS_WITHOUT_MEANING)
    amounts = {PODS: DEFAULT_PODS}
    for field in ("capacity", "allocatable"):
        for name, amount in read_amounts(status, field).items():
            amounts[name] = amount
            if name == GPU and amount > MOST_GPUS_OF_NODE:
                path = (*status.path, field, name)
                text = f"is {amount}, but a node has at most {MOST_GPUS_OF_NODE} GPUs"
                status.reading.error(path, text)
                amounts[name] = 0
    if "allocatable" not in status and "capacity" not in status:
        status.error("allocatable", "is missing: nothing says what the node offers")
    return resources_of(amounts)


def _is_ready(status: Fields) -> bool:
    """Whether the node takes new pods; one that says nothing about itself does."""
    ready = True
    for condition in status.children("conditions"):
        condition.ignore("lastHeartbeatTime", "lastTransitionTime", "message", "reason")
        value = condition.choice("status", _Truth, _Truth.UNKNOWN)
        if condition.text("type") == "Ready":
            ready = value is _Truth.TRUE
    return ready
