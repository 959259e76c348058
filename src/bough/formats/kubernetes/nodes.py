"""Nodes of Kubernetes into model types.

Fields of a node that say nothing about what may run on it (addresses, images, versions) are known
and accepted without a meaning. Must not know what runs there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.kubernetes.metadata import read_metadata
from bough.formats.kubernetes.pods import read_taints
from bough.formats.kubernetes.resources import PODS, resources_of
from bough.formats.yaml.fields import Fields, Reading
from bough.model.cluster import Node, Resources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.formats.yaml.documents import Document
    from bough.model.problem import Problem

#: How many pods a node takes that does not say it, which is what kubelets do.
DEFAULT_PODS = 110

_VERSION = "v1"
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


def read_nodes(documents: Iterable[Document], *, lenient: bool = False) -> NodesRead:
    """Read every Node among some documents; other objects are left to their own readers."""
    nodes: dict[str, Node] = {}
    problems: list[Problem] = []
    first: dict[str, Document] = {}
    for document in documents:
        reading = Reading(document, lenient=lenient)
        if not _is_node(document):
            continue
        node = _read_node(reading)
        if node is not None and node.name in nodes:
            before = first[node.name]
            message = f"is declared twice, first in {before.source}, line {before.line}"
            reading.error(("metadata", "name"), message)
        elif node is not None:
            nodes[node.name] = node
            first[node.name] = document
        problems.extend(reading.problems)
    return NodesRead(tuple(nodes.values()), problems)


def _is_node(document: Document) -> bool:
    return isinstance(document.value, dict) and document.value.get("kind") == "Node"


def _read_node(reading: Reading) -> Node | None:
    fields = reading.fields()
    reading.subject = fields.text("kind")
    version = fields.text("apiVersion")
    if version != _VERSION:
        fields.error("apiVersion", f"{version!r} is not known for a Node; known is {_VERSION}")
    metadata = read_metadata(fields)
    reading.subject = f"Node/{metadata.name}" if metadata.name else "Node"
    spec = fields.optional_child("spec") or fields.nothing("spec")
    spec.ignore(*_SPEC_FIELDS_WITHOUT_MEANING)
    status = fields.child("status")
    ready = _is_ready(status)
    node = Node(
        name=metadata.name,
        capacity=_read_capacity(status),
        labels=metadata.labels,
        taints=read_taints(spec, "taints"),
        cordoned=spec.boolean("unschedulable", default=False) or not ready,
    )
    fields.finish()
    return node if metadata.name else None


def _read_capacity(status: Fields) -> Resources:
    """What pods may use; where that is not said, all that there is."""
    status.ignore(*_STATUS_FIELDS_WITHOUT_MEANING)
    amounts = {PODS: DEFAULT_PODS}
    for field in ("capacity", "allocatable"):
        for name, amount in status.quantities(field).items():
            amounts[name] = max(amount, 0)
            if amount < 0:
                path = (*status.path, field, name)
                status.reading.error(path, f"is {amount}, but must not be negative")
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
