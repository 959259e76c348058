"""From files to a snapshot and the policy to plan it with, for every tool that plans.

Objects of KAI (PodGroup, Queue, Topology), Pods and Nodes, and objects of Kueue stand together in
one snapshot. Joins what formats read to the rules of the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.core.gang.from_workload import gang_of_workload
from bough.core.gang.validation import check_nodes
from bough.core.place.node_flavors import with_flavors
from bough.core.quota.fair_tree import ANY_FLAVOR, FairTree, capacity_of, fair_tree
from bough.core.quota.references import validate
from bough.errors import NotFound
from bough.formats.kubernetes.nodes import read_namespaces, read_nodes
from bough.formats.kueue.organisation import (
    is_kueues,
    read_organisation,
    unused_fair_sharing,
    unused_selectors,
)
from bough.formats.policy_file import preset_for, read_policy
from bough.formats.yaml.times import parse_time_ms
from bough.model.fair_queue import FairAmount, FairQueue, QueueObstacleKind
from bough.model.policy import Policy
from bough.model.problem import Problem, Severity
from bough.model.snapshot import Snapshot
from bough.tools.load_gangs import gather
from bough.tools.load_organisation import in_order, locate_all, read_texts, refuse_errors
from bough.tools.remedy_sources import WrittenObjects, cordoned_nodes

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from bough.formats.yaml.documents import Document
    from bough.model.cluster import Node
    from bough.model.gang import Gang
    from bough.model.organisation import Organisation
    from bough.model.workload import Workload
    from bough.tools.load_gangs import Gangs


_UNLIMITED = FairAmount(quota=None, limit=None)
_HINT = (
    "read are PodGroup, Queue and Topology of KAI with Pods, Nodes and Namespaces, and "
    "ClusterQueue, Cohort, ResourceFlavor, LocalQueue and Workload of Kueue"
)


class Scene(NamedTuple):
    """What to plan, and how."""

    snapshot: Snapshot
    policy: Policy
    problems: list[Problem]
    written: WrittenObjects = WrittenObjects()


class _Loaded(NamedTuple):
    snapshot: Snapshot
    problems: list[Problem]
    #: Warnings that only count where the policy does not share by what they name.
    fair_sharing: list[Problem]
    written: WrittenObjects


def load_scene(
    paths: Iterable[str], *, policy: str | None = None, now_ms: int = 0, lenient: bool = False
) -> Scene:
    """Read files and folders that must have no errors.

    policy:  a policy file; without one the preset that suits the objects.
    now_ms:  the time to plan for.
    """
    texts = read_texts(paths)
    preset = preset_for(texts.documents)
    snapshot, found, fair_sharing, written = _load(texts.documents, lenient=lenient)
    problems = [*texts.problems, *found]
    chosen = preset
    if policy is not None:
        chosen, wrong = read_policy(policy, preset, lenient=lenient)
        problems += wrong
    problems += [each for each in fair_sharing if not _is_used(each, chosen)]
    problems = in_order(problems, texts.files)
    refuse_errors(problems, lenient=lenient)
    if not (snapshot.queues or snapshot.local_queues or snapshot.gangs):
        raise NotFound("there is nothing to plan in what was read", hint=_HINT)
    return Scene(msgspec.structs.replace(snapshot, now_ms=now_ms), chosen, problems, written)


def time_ms(text: str) -> int:
    """Read the time to plan for; raise Invalid if it is none."""
    return parse_time_ms(text)


def _is_used(unused: Problem, policy: Policy) -> bool:
    """Whether a policy does share by the `fairSharing` of an object: never by a local queue's."""
    return policy.shares_by_weight and not unused.subject.startswith("LocalQueue")


def _load(documents: list[Document], *, lenient: bool) -> _Loaded:
    """Both families in one snapshot; the trees of their queues stand side by side."""
    kueue = read_organisation(filter(is_kueues, documents), lenient=lenient)
    organisation = kueue.organisation
    others = [document for document in documents if not is_kueues(document)]
    nodes = read_nodes(others, lenient=lenient)
    namespaces = read_namespaces(others, lenient=lenient)
    taking = {queue.name for queue in organisation.queues}
    found = gather(others, elsewhere=taking, lenient=lenient)
    problems = [
        *kueue.problems,
        *locate_all(validate(organisation), kueue.documents),
        *nodes.problems,
        *namespaces.problems,
        *([] if namespaces.labels else unused_selectors(kueue)),
        *found.problems,
        *locate_all(
            check_nodes(found.objects.pods, {node.name for node in nodes.nodes}),
            found.objects.documents,
        ),
        *locate_all(_name_problems(found.objects.queues, organisation), found.objects.documents),
        *locate_all(_flavor_problems(nodes.nodes, organisation), kueue.documents),
    ]
    if found.gangs and not nodes.nodes:
        _demand_nodes(problems)
    queues, more = _queues(found, taking)
    tree = fair_tree(queues, capacity_of(nodes.nodes)) if queues else FairTree((), ())
    snapshot = Snapshot(
        cohorts=(*tree.cohorts, *organisation.cohorts),
        queues=(*tree.queues, *organisation.queues),
        flavors=organisation.flavors,
        nodes=with_flavors(nodes.nodes, organisation.flavors),
        topologies=found.objects.topologies,
        local_queues=organisation.local_queues,
        namespaces=namespaces.labels or None,
        closed={
            each.queue: each.sentence
            for each in found.obstacles.values()
            if each.kind is QueueObstacleKind.ORPHAN
        },
    )
    snapshot = _with_work(snapshot, organisation, found.gangs)
    objects = found.objects
    written = WrittenObjects(
        tuple(queues), objects.pod_groups, objects.priority_classes, cordoned_nodes(others)
    )
    return _Loaded(snapshot, [*problems, *more], unused_fair_sharing(kueue), written)


def _demand_nodes(problems: Iterable[Problem]) -> None:
    """Refuse to plan without nodes, unless other errors are reported first."""
    if not any(problem.severity is Severity.ERROR for problem in problems):
        raise NotFound(
            "there is no Node in what was read",
            hint="add a file with objects of kind Node, as `kubectl get nodes -o yaml` prints",
        )


def _with_work(snapshot: Snapshot, organisation: Organisation, gangs: Iterable[Gang]) -> Snapshot:
    """Add what runs and what waits, by queue: workloads of Kueue are gangs like all others."""
    gangs = list(gangs)
    names = {gang.name for gang in gangs}
    workloads = (
        gang_of_workload(each, _queue_of(each, organisation), taken=each.key in names)
        for each in organisation.workloads
        if not each.has("Finished")
    )
    return msgspec.structs.replace(snapshot, gangs=_by_queue((*gangs, *workloads)))


def _name_problems(queues: Iterable[FairQueue], organisation: Organisation) -> Iterator[Problem]:
    """Queues of KAI called like something in Kueue's tree: a gang could not tell them apart."""
    taken = {each.parent: "Cohort" for each in organisation.cohorts if each.parent is not None}
    taken |= {each.cohort: "Cohort" for each in organisation.queues if each.cohort is not None}
    taken |= {each.name: "Cohort" for each in organisation.cohorts}
    taken |= {each.name: "ClusterQueue" for each in organisation.queues}
    for queue in queues:
        if queue.name in taken:
            message = f"is the name of a {taken[queue.name]}, too; give one of them another name"
            yield Problem(("metadata", "name"), message, subject=f"Queue/{queue.name}")


def _flavor_problems(nodes: Collection[Node], organisation: Organisation) -> Iterator[Problem]:
    for flavor in organisation.flavors:
        if nodes and flavor.name == ANY_FLAVOR:
            message = f"{ANY_FLAVOR!r} means nodes of every flavor here; give it another name"
            yield Problem(("metadata", "name"), message, subject=f"ResourceFlavor/{flavor.name}")


def _queues(found: Gangs, elsewhere: Collection[str]) -> tuple[list[FairQueue], list[Problem]]:
    """The queues to plan with; if none were read, one without limits for each name."""
    declared = found.objects.queues
    if not declared and not elsewhere:
        names = dict.fromkeys(gang.queue for gang in found.gangs if gang.queue)
        message = "no Queue was read: every queue may use all that there is"
        problem = Problem((), message, Severity.WARNING)
        free = [
            FairQueue(name, gpus=_UNLIMITED, cpu_milli=_UNLIMITED, memory_bytes=_UNLIMITED)
            for name in names
        ]
        return free, [problem] if names else []
    orphans = {
        obstacle.queue
        for obstacle in found.obstacles.values()
        if obstacle.kind is QueueObstacleKind.ORPHAN
    }
    return [queue for queue in declared if queue.name not in orphans], []


def _queue_of(workload: Workload, organisation: Organisation) -> str:
    """The queue whose quota a workload holds, or that of its local queue.

    Where there is no such local queue, a name that no queue has.
    """
    if workload.admission is not None and workload.holds_quota:
        return workload.admission.queue
    for door in organisation.local_queues:
        if (door.namespace, door.name) == (workload.namespace, workload.local_queue):
            return door.queue
    return f"{workload.namespace}/{workload.local_queue or ''}"


def _by_queue(gangs: Iterable[Gang]) -> dict[str, tuple[Gang, ...]]:
    found: dict[str, list[Gang]] = {}
    for gang in gangs:
        found.setdefault(gang.queue, []).append(gang)
    return {queue: tuple(members) for queue, members in found.items()}
