"""Kueue's Cohorts, ClusterQueues, ResourceFlavors and LocalQueues as the quota of a snapshot.

They are read by the same rules as files. A cycle of cohorts is kept: the queues below it take
nothing new, and each of its cohorts says so. A cohort that is only named by others has no quota
and no parent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from bough.core.place.node_flavors import with_flavors
from bough.core.quota.fair_tree import FairTree
from bough.core.quota.references import validate
from bough.core.quota.tree import QuotaTree
from bough.errors import Invalid
from bough.formats.kueue.organisation import KueueObject, read_organisation
from bough.formats.live.nodes import live_namespace
from bough.formats.live.objects import LiveCondition, LiveKueue, LiveNamespace
from bough.formats.yaml.documents import Document
from bough.formats.yaml.from_json import Json, from_json
from bough.model.cluster import Node
from bough.model.fair_queue import FairQueue
from bough.model.organisation import Organisation
from bough.model.pod_group import DEFAULT_NAMESPACE, qualified
from bough.model.problem import Problem, Severity
from bough.model.quota import Cohort, NodeKind, Queue, TreeNode
from bough.model.reason import Condition
from bough.model.workload import Flavor, LocalQueue

KINDS = ("Cohort", "ClusterQueue", "ResourceFlavor", "LocalQueue")
#: The LocalQueue of a workload that names none, as in Kueue. In this module a "door" is the
#: LocalQueue through which a gang enters its ClusterQueue.
DEFAULT_DOOR = "default"
#: The most values that one object may hold; no real quota has more.
MOST_VALUES = 100_000


class _Written(NamedTuple):
    made: KueueObject | None
    wrong: str


class SaidOfCohort(NamedTuple):
    """What a Cohort has in the cluster beside its spec."""

    uid: str
    conditions: tuple[LiveCondition, ...]


class KueueTree:
    """All of Kueue's objects that set quota, by kind and name."""

    #: Empty: stands in for KAI's Queues, which `QueueTree` has.
    queues: dict[str, FairQueue]

    def __init__(self, doors_changed: Callable[[], object]) -> None:
        """doors_changed:  called when gangs may enter another queue, as a LocalQueue changed."""
        self._doors_changed = doors_changed
        self.queues = {}
        #: By kind, then by name with the namespace.
        self.written: dict[str, dict[str, _Written]] = {name: {} for name in KINDS}
        #: For each declared Cohort: its uid and its present conditions.
        self.said: dict[str, SaidOfCohort] = {}
        self._namespaces: dict[str, dict[str, str]] = {}
        self._stale = True
        self.tree = FairTree((), ())
        self.closed: dict[str, str] = {}
        self.flavors: tuple[Flavor, ...] = ()
        self.local_queues: tuple[LocalQueue, ...] = ()
        self.namespaces: dict[str, dict[str, str]] | None = {}
        #: For each declared Cohort: whether it is used, and if not, why.
        self.conditions: dict[str, Condition] = {}
        self._doors: dict[tuple[str, str], str] = {}
        self._nodes: tuple[object, object, tuple[Node, ...]] = (None, None, ())

    def put(self, written: LiveKueue, kind: str) -> bool:
        """Take in an object; return whether it changed."""
        metadata = written.metadata
        name = qualified(metadata.namespace, metadata.name)
        if kind == "Cohort":
            said = SaidOfCohort(metadata.uid or "", written.status.conditions or ())
            self.said[name] = said
        read = _read(written, kind)
        if self.written[kind].get(name) == read:
            return False
        self.written[kind][name] = read
        self._changed(kind)
        return True

    def remove(self, name: str, kind: str) -> bool:
        """An object is gone; return whether it was known."""
        self._changed(kind)
        return self.written[kind].pop(name, None) is not None

    def _changed(self, kind: str) -> None:
        self._stale = True
        if kind == "LocalQueue":
            self._doors_changed()

    def put_namespace(self, written: LiveNamespace) -> None:
        """Take in a namespace."""
        self._namespaces[written.metadata.name] = live_namespace(written)
        self._stale = True

    def remove_namespace(self, name: str) -> None:
        """A namespace is gone."""
        self._namespaces.pop(name, None)
        self._stale = True

    @property
    def known_namespaces(self) -> dict[str, dict[str, str]]:
        """The labels of each namespace."""
        return self._namespaces

    def refresh(self, _capacity: dict[str, int]) -> None:
        """Rebuild the tree if anything has changed."""
        if not self._stale:
            return
        self._stale = False
        found = [row[name].made for row in self.written.values() for name in sorted(row)]
        organisation = Organisation(
            cohorts=tuple(each for each in found if isinstance(each, Cohort)),
            queues=tuple(each for each in found if isinstance(each, Queue)),
            flavors=tuple(each for each in found if isinstance(each, Flavor)),
            local_queues=tuple(each for each in found if isinstance(each, LocalQueue)),
        )
        wrong = dict(self._wrong(organisation))
        whole = QuotaTree.of(organisation.cohorts, organisation.queues)
        self.closed = dict(_closed(organisation, whole, wrong))
        self.conditions = {
            each.name: whole.conditions(TreeNode(NodeKind.COHORT, each.name))[0]
            for each in organisation.cohorts
        }
        queues = tuple(each for each in organisation.queues if each.name not in self.closed)
        self.tree = FairTree(organisation.cohorts, queues)
        self.flavors = organisation.flavors
        self.local_queues = organisation.local_queues
        self.namespaces = dict(self._namespaces)
        self._doors = {
            (each.namespace, each.name): each.queue for each in organisation.local_queues
        }

    def on_nodes(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The nodes with their flavors; the same object as long as neither changed."""
        if self._nodes[0] is not nodes or self._nodes[1] is not self.flavors:
            self._nodes = (nodes, self.flavors, with_flavors(nodes, self.flavors))
        return self._nodes[2]

    def queue_of(self, namespace: str | None, door: str) -> str:
        """The ClusterQueue behind a LocalQueue; if that is missing, a name that no queue has."""
        where = namespace or DEFAULT_NAMESPACE
        return self._doors.get((where, door), f"{where}/{door}")

    def _wrong(self, organisation: Organisation) -> Iterator[tuple[str, str]]:
        """What is wrong with each object, by kind and name."""
        for kind, row in self.written.items():
            yield from ((f"{kind}/{name}", each.wrong) for name, each in row.items() if each.wrong)
        for problem in validate(organisation):
            if problem.severity is Severity.ERROR and problem.subject:
                yield problem.subject, _told(problem)


def _closed(
    organisation: Organisation, whole: QuotaTree, wrong: dict[str, str]
) -> Iterator[tuple[str, str]]:
    """ClusterQueues that take nothing, and why: a fault of their own, or of a cohort above them."""
    for queue in organisation.queues:
        for node in whole.path(TreeNode(NodeKind.QUEUE, queue.name)):
            kind = "ClusterQueue" if node.kind is NodeKind.QUEUE else "Cohort"
            why = wrong.get(f"{kind}/{node.name}")
            if why is not None:
                yield queue.name, f"queue {queue.name!r} is stopped: {kind} {node.name}: {why}"
                break


def _read(written: LiveKueue, kind: str) -> _Written:
    metadata: dict[str, Json] = {"name": written.metadata.name}
    if written.metadata.namespace:
        metadata["namespace"] = written.metadata.namespace
    whole: dict[str, Json] = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": metadata,
        **({} if written.spec is None else {"spec": written.spec}),
    }
    try:
        document = Document(from_json(whole, MOST_VALUES), "", 0)
    except Invalid as error:
        return _Written(None, error.message)
    read = read_organisation([document], lenient=True)
    found = read.organisation
    made = next(iter((*found.cohorts, *found.queues, *found.flavors, *found.local_queues)), None)
    errors = [_told(each) for each in read.problems if each.severity is Severity.ERROR]
    return _Written(made, "; ".join(errors))


def _told(problem: Problem) -> str:
    return f"{problem.field}: {problem.message}" if problem.field else problem.message
