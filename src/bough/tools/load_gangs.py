"""From files to gangs, for every tool that needs them.

Joins what formats read to the rules of the core, and gives every problem its file and line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from bough.core.cycle.waits import is_waiting
from bough.core.gang.from_pod_group import (
    gang_names,
    gang_of_one,
    normalise,
    with_queue,
    written_name,
)
from bough.core.gang.priority import check_priorities
from bough.core.gang.topology import check_topology
from bough.core.gang.validation import (
    check_members,
    check_pod_group,
    check_pods,
    check_templates,
)
from bough.core.quota.fair_tree import queue_obstacle
from bough.formats.kai.objects import KaiObjects, read_kai
from bough.model.fair_queue import QueueObstacleKind
from bough.model.gang import PodState
from bough.model.problem import Problem, Severity
from bough.model.words import suggest_all
from bough.tools.load_organisation import in_order, locate_all, read_texts, refuse_errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from bough.formats.yaml.documents import Document
    from bough.model.fair_queue import QueueObstacle
    from bough.model.gang import Gang
    from bough.model.pod_group import MemberPod, PodGroup


class Gangs(NamedTuple):
    """What was read, and everything that is wrong with it, in the order of the files."""

    #: PodGroups without errors, then pods that are on their own.
    gangs: tuple[Gang, ...]
    #: By the gang's name: why its queue takes no gangs.
    obstacles: dict[str, QueueObstacle]
    objects: KaiObjects
    problems: list[Problem]


def load_gangs(paths: Iterable[str], *, lenient: bool = False) -> Gangs:
    """Read and validate files and folders; files that are no YAML are among the problems."""
    texts = read_texts(paths)
    found = gather(texts.documents, lenient=lenient)
    return found._replace(problems=in_order([*texts.problems, *found.problems], texts.files))


def load_valid_gangs(paths: Iterable[str], *, lenient: bool = False) -> Gangs:
    """Read files and folders that must have no errors; warnings are allowed."""
    found = load_gangs(paths, lenient=lenient)
    refuse_errors(found.problems, lenient=lenient)
    return found


def gather(
    documents: Iterable[Document], *, elsewhere: Collection[str] = (), lenient: bool = False
) -> Gangs:
    """Make gangs of the documents of KAI, and check them against each other.

    elsewhere:  queues of Kueue, which take gangs, too. Where there are any, a pod that waits and
                belongs to a Workload is no gang: the Workload stands for it.
    """
    objects = _with_queues(read_kai(documents, lenient=lenient))
    known = {pod_group.key for pod_group in objects.pod_groups}
    problems = [*objects.problems, *locate_all(_check(objects, known), objects.documents)]
    broken = {problem.subject for problem in problems if problem.severity is Severity.ERROR}
    pods = _pods_by_group(objects)
    starts = _starts_by_group(objects)
    names = gang_names(objects.pod_groups)
    gangs = [
        normalise(
            pod_group,
            [member.pod for member in pods.get(pod_group.key, ())],
            objects.topologies,
            objects.priority_classes,
            starts_ms=starts.get(pod_group.key, ()),
            name=name,
        )
        for name, pod_group in names.items()
        if f"PodGroup/{pod_group.key}" not in broken
    ]
    alone = [
        (member, gang_of_one(member, objects.priority_classes, taken=member.pod.name in names))
        for member in objects.pods
        if _is_alone(member, known) and not (elsewhere and _is_stood_for(member))
    ]
    obstacles = _obstacles(objects, elsewhere, alone)
    gangs += [gang for _, gang in alone]
    run = {gang.name for gang in gangs if not is_waiting(gang)}
    queues = [queue.name for queue in objects.queues]
    problems += locate_all(_queue_problems(obstacles, names, run, queues), objects.documents)
    return Gangs(tuple(gangs), obstacles, objects, problems)


def _check(objects: KaiObjects, known: set[str]) -> Iterator[Problem]:
    pods = _pods_by_group(objects)
    for topology in objects.topologies:
        yield from check_topology(topology)
    for pod_group in objects.pod_groups:
        yield from check_pod_group(pod_group, objects.topologies or None)
        yield from check_pods(pod_group, [each.pod for each in pods.get(pod_group.key, ())])
    yield from check_members(objects.pods, known)
    yield from check_priorities(objects.pod_groups, objects.pods, objects.priority_classes)
    yield from check_templates(objects.pod_groups, objects.workloads)


def _is_alone(member: MemberPod, known: Collection[str]) -> bool:
    """Whether it is a gang by itself: a running pod holds its room even if its PodGroup is gone."""
    if member.group is None:
        return True
    return member.group not in known and member.pod.state in {PodState.RUNNING, PodState.RELEASING}


def _is_stood_for(member: MemberPod) -> bool:
    """Whether a Workload waits in the pod's place; a pod that runs holds its room itself."""
    waits = member.pod.state in {PodState.PENDING, PodState.GATED}
    return member.has_workload and waits


def _with_queues(objects: KaiObjects) -> KaiObjects:
    pods = _pods_by_group(objects)
    groups = (with_queue(group, pods.get(group.key, ())) for group in objects.pod_groups)
    return objects._replace(pod_groups=tuple(groups))


def _pods_by_group(objects: KaiObjects) -> dict[str, list[MemberPod]]:
    """The oldest pod first; pods that do not say how old they are come last, as written."""
    pods: dict[str, list[MemberPod]] = {}
    for member in sorted(objects.pods, key=_age):
        if member.group is not None:
            pods.setdefault(member.group, []).append(member)
    return pods


def _starts_by_group(objects: KaiObjects) -> dict[str, list[int]]:
    """When the pods that run were started, as far as they say it."""
    starts: dict[str, list[int]] = {}
    for member in objects.pods:
        if member.group is not None and member.started_ms is not None:
            starts.setdefault(member.group, []).append(member.started_ms)
    return starts


def _age(member: MemberPod) -> tuple[bool, int]:
    return (member.created_ms is None, member.created_ms or 0)


def _obstacles(
    objects: KaiObjects, elsewhere: Collection[str], alone: Iterable[tuple[MemberPod, Gang]]
) -> dict[str, QueueObstacle]:
    """Why gangs cannot use the queue that they name; empty if no queues were read."""
    queues = {queue.name: queue for queue in objects.queues}
    named = [(name, group.queue) for name, group in gang_names(objects.pod_groups).items()]
    named += [
        (gang.name, gang.queue) for member, gang in alone if not (elsewhere and member.has_workload)
    ]
    found: dict[str, QueueObstacle] = {}
    for gang, queue in named if queues or elsewhere else ():
        obstacle = None if queue in elsewhere else queue_obstacle(queue, queues)
        if obstacle is not None:
            found[gang] = obstacle
    return found


def _queue_problems(
    obstacles: Mapping[str, QueueObstacle],
    pod_groups: Mapping[str, PodGroup],
    run: Collection[str],
    queues: Collection[str],
) -> Iterator[Problem]:
    """run:  the gangs that want nothing."""
    missing = [each.queue for each in obstacles.values() if each.kind is QueueObstacleKind.MISSING]
    meant = suggest_all(missing, queues)
    for name, obstacle in obstacles.items():
        group = pod_groups.get(name)
        of_label = group is None or group.native
        then = "what it uses counts for no queue" if name in run else "the gang waits"
        yield Problem(
            path=("metadata", "labels") if of_label else ("spec", "queue"),
            message=f"{then}: {obstacle.sentence}{meant.get(obstacle.queue, '')}",
            severity=Severity.WARNING,
            subject=f"Pod/{written_name(name)}" if group is None else f"PodGroup/{group.key}",
        )
