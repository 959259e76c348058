"""Groups of workflows as gangs of the core."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from bough.core.gang.demand import cheapest, first_choice, needed
from bough.core.gang.tree import GangTree
from bough.model.cluster import Match
from bough.model.gang import Gang, Pod, PodState, SubGroupSet, TopologyConstraint
from bough.model.names import NodeNames
from bough.model.pod_placement import ANYWHERE, PodPlacement, PoolPlacement
from bough.model.workflow import QUEUED, Group, GroupSpec, Task, TaskSpec, TaskStatus, Workflow

#: Labels that nodes get in a snapshot: the platform, and the pools where not all may use a node.
PLATFORM_LABEL = "bough/platform"
POOL_LABEL = "bough/pool-"
#: Stands for the node of a pod that another scheduler places.
ELSEWHERE = "elsewhere:"
#: The key of a condition on the name of a node.
NODE_NAME = "metadata.name"


def gang_name(workflow: Workflow, group: Group) -> str:
    """The name under which the core, and so every reason that people read, knows a group."""
    return f"{workflow.workflow_id}/{group.name}"


def gang_of(
    workflow: Workflow,
    group: Group,
    tasks: Iterable[Task],
    queue: str,
    placement: PoolPlacement,
    names: NodeNames,
    *,
    topology: str | None = None,
) -> Gang:
    """A group with the latest attempts of its tasks, as far as these are unfinished."""
    latest = {task.name: task for task in tasks}
    spec = remaining(group.spec, {task.name for task in latest.values() if task.status.finished})
    pods = tuple(
        _pod(each, latest[each.name], _placed(each, placement), names)
        for each in spec.tasks
        if each.name in latest
    )
    holding = [task for task in latest.values() if task.status.holds_node]
    started = min((task.started_ms or task.scheduled_ms or 0 for task in holding), default=None)
    return Gang(
        name=gang_name(workflow, group),
        queue=queue,
        pods=pods,
        subgroups=tuple(
            msgspec.structs.replace(each, constraint=_within(each.constraint, topology))
            for each in spec.subgroups
        ),
        minimum=spec.minimum,
        constraint=_within(spec.constraint, topology),
        sets=tuple(
            SubGroupSet(each.members, _within(each.constraint, topology) or each.constraint)
            for each in spec.sets
        ),
        priority=workflow.priority.rank,
        preemptible=workflow.priority.preemptible,
        submitted_ms=workflow.submitted_ms,
        started_ms=started,
        stale_since_ms=_stale_since_ms(latest.values()),
        owner=workflow.submitted_by,
        # Groups of one workflow start in the order of its file.
        uid=f"{workflow.workflow_id}/{group.position:06}",
    )


def anywhere(gang: Gang) -> Gang:
    """The same gang where another scheduler decides which nodes: only how much it has counts."""
    replace = msgspec.structs.replace
    pods = tuple(
        replace(
            pod,
            # On a node that is in no snapshot a pod has its quota, and no room.
            node=None if pod.state in (PodState.PENDING, PodState.GATED) else ELSEWHERE,
            node_selector={},
            affinity=(),
            tolerations=(),
        )
        for pod in gang.pods
    )
    subgroups = tuple(replace(each, constraint=None) for each in gang.subgroups)
    return replace(gang, pods=pods, subgroups=subgroups, constraint=None, sets=())


def nodes_of(group: Group, tasks: Iterable[Task], names: NodeNames) -> tuple[str, ...]:
    """What a snapshot calls the nodes that a group is on, and those that it excludes."""
    held = (task.node_id for task in tasks if task.status.holds_node)
    excluded = (name for spec in group.spec.tasks for name in spec.nodes_excluded)
    return (
        *(names.of(node) for node in held if node is not None),
        *(each for name in excluded for each in names.every(name)),
    )


def remaining(spec: GroupSpec, over: set[str]) -> GroupSpec:
    """What is left of a group after some of its tasks have ended: the rest needs so much less.

    A subgroup of which nothing is left is taken as one that has what it needs.
    """
    if not over:
        return spec
    left = tuple(task for task in spec.tasks if task.name not in over)
    gone = Counter(task.subgroup for task in spec.tasks if task.name in over)
    if not spec.subgroups:
        return msgspec.structs.replace(spec, tasks=left, minimum=_less(spec.minimum, len(over)))
    kept = [
        msgspec.structs.replace(each, minimum=_less(each.minimum, gone[each.name]))
        for each in spec.subgroups
    ]
    # From the leaves up: whatever has no task below it goes, and its parent needs one less.
    alive = {task.subgroup for task in left}
    below = Counter(each.parent for each in kept)
    minimum = spec.minimum
    while empty := [each for each in kept if each.name not in alive and not below[each.name]]:
        less = Counter(each.parent for each in empty)
        minimum = _less(minimum, less[None])
        names = {each.name for each in empty}
        kept = [
            msgspec.structs.replace(each, minimum=_less(each.minimum, less[each.name]))
            for each in kept
            if each.name not in names
        ]
        below = Counter(each.parent for each in kept)
    names = {each.name for each in kept}
    sets = tuple(each for each in spec.sets if names.issuperset(each.members))
    return msgspec.structs.replace(
        spec, tasks=left, minimum=minimum, subgroups=tuple(kept), sets=sets
    )


def needed_gpus(spec: GroupSpec) -> int:
    """What a group must have to run; what an elastic one asks for beyond that is optional."""
    if spec.minimum is None and not spec.subgroups:
        return spec.gpus
    pods = tuple(Pod(task.name, task.subgroup, task.requests) for task in spec.tasks)
    tree = GangTree.of(Gang(spec.name, "", pods, spec.subgroups, spec.minimum))
    demand = needed(tree, tree.held)
    if demand is None:
        return spec.gpus
    return sum(pod.requests.gpus for pod in first_choice(cheapest(demand)))


def _stale_since_ms(latest: Iterable[Task]) -> int | None:
    """Since when a group that has run waits for some of its tasks; the core knows if it needs them.

    They were queued again when they were lost, and the latest of them counts.
    """
    tasks = list(latest)
    if not any(task.status.holds_node for task in tasks):
        return None
    return max(
        (task.queued_ms or 0 for task in tasks if task.status in QUEUED and task.retry_id),
        default=None,
    )


def _less(minimum: int | None, gone: int) -> int | None:
    return None if minimum is None else max(1, minimum - gone)


def _within(
    constraint: TopologyConstraint | None, topology: str | None
) -> TopologyConstraint | None:
    """A constraint that names no topology means the one of its pool."""
    if constraint is None or constraint.topology is not None:
        return constraint
    return msgspec.structs.replace(constraint, topology=topology)


def _placed(spec: TaskSpec, placement: PoolPlacement) -> PodPlacement:
    found = placement.get(spec.platform or "")
    return placement.get("", ANYWHERE) if found is None else found


def _pod(spec: TaskSpec, task: Task, placement: PodPlacement, names: NodeNames) -> Pod:
    node = task.node_id if task.status.holds_node else None
    return Pod(
        name=spec.name,
        subgroup=spec.subgroup,
        requests=spec.requests,
        state=_state(task),
        node=None if node is None else names.of(node),
        node_selector=placement.selector,
        affinity=_affinity(spec, names),
        tolerations=placement.tolerations,
        rank=1 if spec.lead else None,
    )


def _affinity(spec: TaskSpec, names: NodeNames) -> tuple[tuple[Match, ...], ...]:
    """Nodes of the task's platform, and those that belong to none; not those that it excludes."""
    excluded = tuple(each for name in spec.nodes_excluded for each in names.every(name))
    allowed = (Match(NODE_NAME, "NotIn", excluded),) if excluded else ()
    if spec.platform is None:
        return (allowed,) if allowed else ()
    named = Match(PLATFORM_LABEL, "In", (spec.platform,))
    return ((named, *allowed), (Match(PLATFORM_LABEL, "DoesNotExist"), *allowed))


def _state(task: Task) -> PodState:
    if task.status.holds_node:
        return PodState.RUNNING if task.releasing is None else PodState.RELEASING
    if task.status in QUEUED:
        return PodState.PENDING
    if task.status is TaskStatus.WAITING:
        return PodState.GATED
    return PodState.SUCCEEDED if task.status is TaskStatus.COMPLETED else PodState.FAILED
