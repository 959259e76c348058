"""`bough plan`: what one cycle would decide about the objects in some files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.api.file_answers import (
    AssignedPodSet,
    PlanAnswer,
    PlannedEviction,
    PlannedNomination,
    PlannedStart,
    PlannedWait,
    PodNode,
    StartedPod,
)
from bough.api.why import TreeNodeName
from bough.core.cycle.plan import plan as decide
from bough.core.explain.certificate import certificates_of_waiting
from bough.core.explain.evictions import eviction_certificate
from bough.tools.file_problems import problem_answers
from bough.tools.load_snapshot import load_scene

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bough.model.plan import Plan
    from bough.model.snapshot import Snapshot
    from bough.tools.load_snapshot import Scene


def plan(
    paths: Iterable[str], *, policy: str | None = None, now_ms: int = 0, lenient: bool = False
) -> PlanAnswer:
    """What starts where, what is evicted for what, what is nominated, what waits and why."""
    scene = load_scene(paths, policy=policy, now_ms=now_ms, lenient=lenient)
    decided = decide(scene.snapshot, scene.policy)
    queues = _queues(scene.snapshot)
    return PlanAnswer(
        policy=scene.policy.name,
        starts=list(_starts(decided, queues)),
        evictions=list(_evictions(scene, decided)),
        nominations=[
            PlannedNomination(
                workload=each.workload,
                queue=queues[each.workload],
                pods=[PodNode(pod, node) for pod, node in each.pods.items()],
                waits_for=list(each.waits_for),
            )
            for each in decided.nominations
        ],
        waits=list(_waits(scene, queues)),
        digest=decided.digest,
        problems=problem_answers(scene.problems),
    )


def _queues(snapshot: Snapshot) -> dict[str, str]:
    """By workload, its queue."""
    return {gang.name: gang.queue for row in snapshot.gangs.values() for gang in row}


def _starts(decided: Plan, queues: dict[str, str]) -> Iterator[PlannedStart]:
    pods: dict[str, list[StartedPod]] = {}
    for bind in decided.binds:
        one = StartedPod(bind.pod, bind.node, bind.growth)
        pods.setdefault(bind.workload, []).append(one)
    for name, bound in pods.items():
        yield PlannedStart(name, queues[name], bound, [])
    for admit in decided.admits:
        assignments = [
            AssignedPodSet(each.name, each.count, dict(each.flavors), dict(each.usage))
            for each in admit.admission.assignments
        ]
        yield PlannedStart(admit.workload, admit.admission.queue, [], assignments)


def _evictions(scene: Scene, decided: Plan) -> Iterator[PlannedEviction]:
    for each in decided.evictions:
        why = eviction_certificate(
            scene.snapshot, scene.policy, each.workload, decided, eviction=each
        )
        level = each.level
        yield PlannedEviction(
            workload=each.workload,
            queue="" if why is None else why.queue,
            rule=each.rule.value,
            pods=list(each.pods),
            preemptor=each.preemptor,
            level=None if level is None else TreeNodeName(level.kind.value, level.name),
            sentence="" if why is None else why.sentence,
        )


def _waits(scene: Scene, queues: dict[str, str]) -> Iterator[PlannedWait]:
    for name, found in certificates_of_waiting(scene.snapshot, scene.policy).items():
        yield PlannedWait(name, queues[name], found.reason, found.sentence)
