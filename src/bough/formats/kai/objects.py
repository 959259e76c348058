"""Objects of KAI (PodGroup, Queue, Topology), plain Pods and PriorityClasses into model types.

Finds the reader of each object, and refuses what is declared twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.kai.kubernetes_pod_group import VERSION as NATIVE_VERSION
from bough.formats.kai.kubernetes_pod_group import read_native_pod_group, read_native_workload
from bough.formats.kai.pod import read_pod
from bough.formats.kai.pod_group import read_pod_group, read_priority_class
from bough.formats.kai.queue import read_queue, read_topology
from bough.formats.kubernetes.metadata import Metadata, read_metadata
from bough.formats.yaml.fields import Fields, Reading
from bough.model.cluster import Topology
from bough.model.fair_queue import FairQueue
from bough.model.pod_group import (
    MemberPod,
    PodGroup,
    PriorityClass,
    Templates,
    group_key,
    qualified,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.formats.yaml.documents import Document
    from bough.model.problem import Problem

KaiObject = PodGroup | MemberPod | FairQueue | Topology | PriorityClass | Templates


class _KaiKind(NamedTuple):
    name: str
    read: Callable[[Fields, Metadata], KaiObject]
    version: str
    namespaced: bool = False
    native: bool = False

    @property
    def group(self) -> str:
        return self.version.rpartition("/")[0]


_KINDS = (
    _KaiKind("PodGroup", read_pod_group, "scheduling.run.ai/v2alpha2", namespaced=True),
    _KaiKind("PodGroup", read_native_pod_group, NATIVE_VERSION, namespaced=True, native=True),
    _KaiKind("Workload", read_native_workload, NATIVE_VERSION, namespaced=True, native=True),
    _KaiKind("Queue", read_queue, "scheduling.run.ai/v2"),
    _KaiKind("Topology", read_topology, "kai.scheduler/v1alpha1"),
    _KaiKind("Pod", read_pod, "v1", namespaced=True),
    _KaiKind("PriorityClass", read_priority_class, "scheduling.k8s.io/v1"),
)
#: Objects that stand in the same files and are read elsewhere, or say nothing about gangs.
_PASSED_OVER = ("Node", "Namespace")


class KaiObjects(NamedTuple):
    """What was read, and everything that is wrong with its form, in the order of the files."""

    pod_groups: tuple[PodGroup, ...]
    pods: tuple[MemberPod, ...]
    queues: tuple[FairQueue, ...]
    topologies: tuple[Topology, ...]
    priority_classes: tuple[PriorityClass, ...]
    #: Workloads of Kubernetes itself.
    workloads: tuple[Templates, ...]
    problems: list[Problem]
    #: Where each object was written, by its subject (`PodGroup/training`).
    documents: dict[str, Document]


def read_kai(documents: Iterable[Document], *, lenient: bool = False) -> KaiObjects:
    """Read objects of KAI. An object with errors is there as far as it could be read."""
    found: list[KaiObject] = []
    problems: list[Problem] = []
    first: dict[str, Document] = {}
    for document in documents:
        reading = Reading(document, lenient=lenient)
        each = _read(reading)
        if each is not None and reading.subject in first:
            before = first[reading.subject]
            message = f"is declared twice, first in {before.source}, line {before.line}"
            reading.error(("metadata", "name"), message)
        elif each is not None:
            first[reading.subject] = document
            found.append(each)
        problems.extend(reading.problems)
    return KaiObjects(
        pod_groups=tuple(each for each in found if isinstance(each, PodGroup)),
        pods=tuple(each for each in found if isinstance(each, MemberPod)),
        queues=tuple(each for each in found if isinstance(each, FairQueue)),
        topologies=tuple(each for each in found if isinstance(each, Topology)),
        priority_classes=tuple(each for each in found if isinstance(each, PriorityClass)),
        workloads=tuple(each for each in found if isinstance(each, Templates)),
        problems=problems,
        documents=first,
    )


def _read(reading: Reading) -> KaiObject | None:
    fields = reading.fields()
    kind = _find_kind(fields) if fields.names() else None
    if kind is None:
        if not fields.names() and not reading.problems:
            reading.error((), "the document is an empty mapping; say apiVersion and kind")
        return None
    metadata = read_metadata(fields)
    name = qualified(metadata.namespace, metadata.name) if kind.namespaced else metadata.name
    reading.subject = f"{kind.name}/{group_key(name, native=kind.native)}"
    found = kind.read(fields, metadata)
    fields.finish()
    return found if metadata.name else None


def _find_kind(fields: Fields) -> _KaiKind | None:
    """Find out what a document is; where it is nothing that is read here, say so."""
    version, name = fields.text("apiVersion"), fields.text("kind")
    if not version or not name:
        return None
    fields.reading.subject = name[:63]
    if name in _PASSED_OVER:
        return None
    named = [each for each in _KINDS if each.name == name]
    group = version.rpartition("/")[0]
    if not named or group not in {each.group for each in _KINDS}:
        known = ", ".join(f"{each.name} ({each.version})" for each in _KINDS)
        fields.reading.warn((), f"{name} of {version} is passed over; read are {known}")
        return None
    kind = next((each for each in named if each.group == group), named[0])
    if version != kind.version:
        wanted = (
            kind.version if kind.group == group else " or ".join(each.version for each in named)
        )
        fields.error("apiVersion", f"{version} is not known for a {name}; known is {wanted}")
    return kind
