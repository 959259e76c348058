"""From files to a snapshot and the policy to plan it with, for every tool that plans.

Objects of KAI (PodGroup, Queue, Topology, with Pods and Nodes) become gangs, objects of Kueue
become workloads. Joins what formats read to the rules of the core. Must not know what is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.core.quota.fairtree import capacity_of, fair_tree
from bough.core.quota.references import validate
from bough.errors import Invalid, NotFound
from bough.formats.kueue import read_organisation, unused_fair_sharing
from bough.formats.nodes import read_nodes
from bough.formats.policy import preset_for, read_policy
from bough.model.fairqueue import FairAmount, FairQueue, QueueObstacleKind
from bough.model.policy import KUEUE, OrderKey, Policy
from bough.model.problem import Problem, Severity
from bough.model.snapshot import Snapshot
from bough.tools.gangs import gather
from bough.tools.loading import in_order, locate_all, read_texts, refuse_errors

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.formats.documents import Document
    from bough.model.gang import Gang
    from bough.model.organisation import Organisation
    from bough.model.workload import Workload
    from bough.tools.gangs import Gangs

_UNLIMITED = FairAmount(quota=None, limit=None)
_HINT = (
    "read are PodGroup, Queue and Topology of KAI with Pods and Nodes, or ClusterQueue, Cohort, "
    "ResourceFlavor, LocalQueue and Workload of Kueue"
)


#: Criteria by which a cycle shares by the weights of Kueue's `fairSharing`. There are none yet.
_FAIR_ORDER: tuple[OrderKey, ...] = ()


class Scene(NamedTuple):
    """What is to be planned, and how."""

    snapshot: Snapshot
    policy: Policy
    problems: list[Problem]


class _Loaded(NamedTuple):
    snapshot: Snapshot
    problems: list[Problem]
    #: Warnings that only count where the policy does not share by weight.
    fair_sharing: list[Problem]


def load_scene(
    paths: Iterable[str], *, policy: str | None = None, now_ms: int = 0, lenient: bool = False
) -> Scene:
    """Read files and folders that must have no errors.

    policy:  a policy file; without one the preset that suits the objects.
    now_ms:  the time for which is planned.
    """
    texts = read_texts(paths)
    preset = preset_for(texts.documents)
    load = _load_workloads if preset is KUEUE else _load_gangs
    snapshot, found, fair_sharing = load(texts.documents, lenient=lenient)
    problems = [*texts.problems, *found]
    chosen = preset
    if policy is not None:
        chosen, wrong = read_policy(policy, preset, lenient=lenient)
        problems += wrong
    if not uses_fair_sharing(chosen):
        problems += fair_sharing
    problems = in_order(problems, texts.files)
    refuse_errors(problems, lenient=lenient)
    if not snapshot.queues and not snapshot.local_queues:
        raise NotFound("there is nothing to plan in what was read", hint=_HINT)
    return Scene(msgspec.structs.replace(snapshot, now_ms=now_ms), chosen, problems)


def uses_fair_sharing(policy: Policy) -> bool:
    """Whether a policy shares by the weights of Kueue's `fairSharing`."""
    return any(key in _FAIR_ORDER for key in policy.order)


def _load_gangs(documents: list[Document], *, lenient: bool) -> _Loaded:
    nodes = read_nodes(documents, lenient=lenient)
    found = gather(documents, lenient=lenient)
    problems = [*nodes.problems, *found.problems]
    errors = any(problem.severity is Severity.ERROR for problem in problems)
    if found.gangs and not nodes.nodes and not errors:
        raise NotFound(
            "there is no Node in what was read",
            hint="add a file with objects of kind Node, as `kubectl get nodes -o yaml` prints",
        )
    queues, more = _queues(found)
    tree = fair_tree(queues, capacity_of(nodes.nodes))
    by_queue: dict[str, list[Gang]] = {}
    for gang in found.gangs:
        by_queue.setdefault(gang.queue, []).append(gang)
    snapshot = Snapshot(
        cohorts=tree.cohorts,
        queues=tree.queues,
        nodes=nodes.nodes,
        topologies=found.objects.topologies,
        gangs={queue: tuple(gangs) for queue, gangs in by_queue.items()},
    )
    return _Loaded(snapshot, [*problems, *more], [])


def _queues(found: Gangs) -> tuple[list[FairQueue], list[Problem]]:
    """The queues that take gangs, or lead to such; where none were read, each may use all."""
    declared = found.objects.queues
    if not declared:
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


def _load_workloads(documents: list[Document], *, lenient: bool) -> _Loaded:
    read = read_organisation(documents, lenient=lenient)
    _refuse_both(documents)
    problems = [*read.problems, *locate_all(validate(read.organisation), read.documents)]
    organisation = read.organisation
    snapshot = Snapshot(
        cohorts=organisation.cohorts,
        queues=organisation.queues,
        flavors=organisation.flavors,
        local_queues=organisation.local_queues,
        admitted=_by_queue(
            (each.admission.queue, each)
            for each in organisation.workloads
            if each.admission is not None and each.holds_quota
        ),
        waiting=_by_queue(
            (_queue_of(each, organisation), each)
            for each in organisation.workloads
            if not each.holds_quota and not each.has("Finished")
        ),
    )
    return _Loaded(snapshot, problems, unused_fair_sharing(read))


def _queue_of(workload: Workload, organisation: Organisation) -> str:
    """The queue behind a workload's door; where there is no such door, a name that no queue has."""
    for door in organisation.local_queues:
        if (door.namespace, door.name) == (workload.namespace, workload.local_queue):
            return door.queue
    return f"{workload.namespace}/{workload.local_queue or ''}"


def _by_queue(pairs: Iterable[tuple[str, Workload]]) -> dict[str, tuple[Workload, ...]]:
    found: dict[str, list[Workload]] = {}
    for queue, workload in pairs:
        found.setdefault(queue, []).append(workload)
    return {queue: tuple(workloads) for queue, workloads in found.items()}


def _refuse_both(documents: Iterable[Document]) -> None:
    for document in documents:
        value = document.value
        if isinstance(value, dict) and value.get("kind") == "PodGroup":
            place = f"{document.source}:{document.line}"
            message = f"{place}: a PodGroup among objects of Kueue; plan one or the other"
            raise Invalid(message)
