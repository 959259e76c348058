"""From files to a snapshot and the policy to plan it with, for every tool that plans.

Objects of KAI (PodGroup, Queue, Topology, with Pods and Nodes) become gangs, objects of Kueue
become workloads. Joins what formats read to the rules of the core. Must not know what is asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from bough.core.gang.from_workload import gang_of_workload
from bough.core.quota.fairtree import capacity_of, fair_tree
from bough.core.quota.references import validate
from bough.errors import Invalid, NotFound
from bough.formats.kueue import read_organisation
from bough.formats.nodes import read_nodes
from bough.formats.policy import preset_for, read_policy
from bough.model.fairqueue import FairAmount, FairQueue, QueueObstacleKind
from bough.model.policy import KUEUE, Policy
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


class Scene(NamedTuple):
    """What is to be planned, and how."""

    snapshot: Snapshot
    policy: Policy
    problems: list[Problem]


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
    snapshot, found = load(texts.documents, lenient=lenient)
    problems = [*texts.problems, *found]
    chosen = preset
    if policy is not None:
        chosen, wrong = read_policy(policy, preset, lenient=lenient)
        problems += wrong
    problems = in_order(problems, texts.files)
    refuse_errors(problems, lenient=lenient)
    if not snapshot.queues:
        raise NotFound("there is nothing to plan in what was read", hint=_HINT)
    return Scene(msgspec.structs.replace(snapshot, now_ms=now_ms), chosen, problems)


def _load_gangs(documents: list[Document], *, lenient: bool) -> tuple[Snapshot, list[Problem]]:
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
    snapshot = Snapshot(
        cohorts=tree.cohorts,
        queues=tree.queues,
        nodes=nodes.nodes,
        topologies=found.objects.topologies,
        gangs=_by_queue(found.gangs),
    )
    return snapshot, [*problems, *more]


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


def _load_workloads(documents: list[Document], *, lenient: bool) -> tuple[Snapshot, list[Problem]]:
    read = read_organisation(documents, lenient=lenient)
    _refuse_both(documents)
    problems = [*read.problems, *locate_all(validate(read.organisation), read.documents)]
    organisation = read.organisation
    snapshot = Snapshot(
        cohorts=organisation.cohorts,
        queues=organisation.queues,
        flavors=organisation.flavors,
        local_queues=organisation.local_queues,
        gangs=_by_queue(
            gang_of_workload(each, _queue_of(each, organisation))
            for each in organisation.workloads
            if not each.has("Finished")
        ),
    )
    return snapshot, problems


def _queue_of(workload: Workload, organisation: Organisation) -> str:
    """The queue whose quota a workload holds, or the one behind its door.

    Where there is no such door, a name that no queue has.
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


def _refuse_both(documents: Iterable[Document]) -> None:
    for document in documents:
        value = document.value
        if isinstance(value, dict) and value.get("kind") == "PodGroup":
            place = f"{document.source}:{document.line}"
            message = f"{place}: a PodGroup among objects of Kueue; plan one or the other"
            raise Invalid(message)
