"""Objects of Kueue (Cohort, ClusterQueue, ResourceFlavor, LocalQueue, Workload) into model types.

All served versions are read, and the field names of the design of hierarchical cohorts. Finds the
reader of each object, and refuses what is declared twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from bough.formats.kubernetes.metadata import Metadata, read_metadata
from bough.formats.kueue.quota import read_cluster_queue, read_cohort, read_resource_flavor
from bough.formats.kueue.workload import DEFAULT_NAMESPACE, read_local_queue, read_workload
from bough.formats.yaml.documents import Document, locate
from bough.formats.yaml.fields import Fields, Reading
from bough.model.organisation import Organisation
from bough.model.problem import FieldPath, Problem, Severity
from bough.model.quota import Cohort, Queue
from bough.model.words import suggest
from bough.model.workload import Flavor, LocalQueue, Workload

if TYPE_CHECKING:
    from collections.abc import Iterable

GROUP = "kueue.x-k8s.io"
VERSIONS = ("v1beta2", "v1beta1")

KueueObject = Cohort | Queue | Flavor | LocalQueue | Workload


def is_kueues(document: Document) -> bool:
    """Whether a document is an object of Kueue, of whatever kind and version."""
    value = document.value
    version = value.get("apiVersion") if isinstance(value, dict) else None
    return isinstance(version, str) and version.rpartition("/")[0] == GROUP


class _KueueKind(NamedTuple):
    read: Callable[[Fields, Metadata], KueueObject]
    namespaced: bool = False
    versions: tuple[str, ...] = VERSIONS


_KINDS: dict[str, _KueueKind] = {
    "Cohort": _KueueKind(read_cohort, versions=(*VERSIONS, "v1alpha1")),
    "ClusterQueue": _KueueKind(read_cluster_queue),
    "ResourceFlavor": _KueueKind(read_resource_flavor),
    "LocalQueue": _KueueKind(read_local_queue, namespaced=True),
    "Workload": _KueueKind(read_workload, namespaced=True),
}
#: Kinds of the same group that say nothing about quota; they are passed over with a warning.
_OTHER_KINDS = (
    "AdmissionCheck",
    "MultiKueueCluster",
    "MultiKueueConfig",
    "ProvisioningRequestConfig",
    "Topology",
    "WorkloadPriorityClass",
)


class Read(NamedTuple):
    """What was read, and everything that is wrong with its form, in the order of the files."""

    organisation: Organisation
    problems: list[Problem]
    #: Where each object was written, by its subject (`ClusterQueue/team-a`).
    documents: dict[str, Document]


def read_organisation(documents: Iterable[Document], *, lenient: bool = False) -> Read:
    """Read objects of Kueue. An object with errors is there as far as it could be read."""
    collected = _Collected()
    for document in documents:
        collected.read(document, lenient=lenient)
    found = collected.objects
    organisation = Organisation(
        cohorts=tuple(each for each in found if isinstance(each, Cohort)),
        queues=tuple(each for each in found if isinstance(each, Queue)),
        flavors=tuple(each for each in found if isinstance(each, Flavor)),
        local_queues=tuple(each for each in found if isinstance(each, LocalQueue)),
        workloads=tuple(each for each in found if isinstance(each, Workload)),
    )
    return Read(organisation, collected.problems, collected.documents)


def unused_fair_sharing(read: Read) -> list[Problem]:
    """A warning for every object with `fairSharing`, where the policy does not share by it."""
    return _unused(read, "fairSharing", "is not looked at: the policy does not share by weight")


def unused_selectors(read: Read) -> list[Problem]:
    """A warning for every queue that selects namespaces, where no Namespace was read."""
    message = "is not looked at: no Namespace was read, so every one may use the queue"
    return _unused(read, "namespaceSelector", message)


def _unused(read: Read, field: str, message: str) -> list[Problem]:
    """A warning for every object that sets a field of its spec."""
    path: FieldPath = ("spec", field)
    found: list[Problem] = []
    for subject, document in read.documents.items():
        spec = document.value.get("spec") if isinstance(document.value, dict) else None
        if isinstance(spec, dict) and spec.get(field) not in (None, {}):
            problem = Problem(path, message, Severity.WARNING, subject)
            found.append(locate(problem, document))
    return found


class _Collected:
    """What was read so far."""

    def __init__(self) -> None:
        self.objects: list[KueueObject] = []
        self.problems: list[Problem] = []
        self.documents: dict[str, Document] = {}

    def read(self, document: Document, *, lenient: bool) -> None:
        reading = Reading(document, lenient=lenient)
        fields = reading.fields()
        kind = _find_kind(fields) if fields.names() else None
        if kind is not None:
            metadata = read_metadata(fields)
            reading.subject = _subject(fields.text("kind"), kind, metadata)
            _check_version(fields, kind)
            found = kind.read(fields, metadata)
            fields.finish()
            self._add(found, reading)
        elif not reading.problems:
            reading.error((), "the document is an empty mapping; say apiVersion and kind")
        self.problems.extend(reading.problems)

    def _add(self, found: KueueObject, reading: Reading) -> None:
        first = self.documents.get(reading.subject)
        if not found.name:
            return
        if first is None:
            self.documents[reading.subject] = reading.document
            self.objects.append(found)
        else:
            message = f"is declared twice, first in {first.source}, line {first.line}"
            reading.error(("metadata", "name"), message)


def _find_kind(fields: Fields) -> _KueueKind | None:
    """Find out what a document is; where it is nothing that is read here, say so."""
    version, name = fields.text("apiVersion"), fields.text("kind")
    if not version or not name:
        return None
    fields.reading.subject = name[:63]
    kind = _KINDS.get(name)
    if version.rpartition("/")[0] != GROUP:
        fields.reading.warn((), f"{name} of {version} is not an object of Kueue; passed over")
        return None
    if kind is None:
        _report_unknown_kind(fields, name)
        return None
    return kind


def _check_version(fields: Fields, kind: _KueueKind) -> None:
    version, name = fields.text("apiVersion"), fields.text("kind")
    if version.rpartition("/")[2] not in kind.versions:
        known = ", ".join(f"{GROUP}/{each}" for each in kind.versions)
        fields.error("apiVersion", f"{version} is not known for a {name}; known are {known}")


def _report_unknown_kind(fields: Fields, name: str) -> None:
    if name in _OTHER_KINDS:
        fields.reading.warn(("kind",), f"{name} says nothing about quota; passed over")
        return
    meant = suggest(name, [*_KINDS, *_OTHER_KINDS])
    fields.reading.unknown(("kind",), f"{name[:63]!r} is not a kind of {GROUP}{meant}")


def _subject(name: str, kind: _KueueKind, metadata: Metadata) -> str:
    if kind.namespaced:
        return f"{name}/{metadata.namespace or DEFAULT_NAMESPACE}/{metadata.name}"
    return f"{name}/{metadata.name}"
