"""What a cluster's own scheduler needs to know to place groups that Bough has admitted.

A group goes to the queue of the cluster in which Bough counts it now: groups of a subpool that is
being deleted count in the shared part of its pool.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec
import sqlalchemy as sa

from bough.control.gangs_of_groups import remaining
from bough.control.site import Site
from bough.model.backend import GangTerms
from bough.model.gang import SubGroup, TopologyConstraint
from bough.model.names import SHARED, QueueName
from bough.model.pool import Pool
from bough.model.queue_tree import class_name, topology_name
from bough.model.subpool import Subpool, SubpoolState
from bough.model.workflow import Group, GroupSpec, Workflow
from bough.store import pools as pool_store
from bough.store import tasks as task_store


def read_gangs(
    site: Site,
    connection: sa.Connection,
    groups: Iterable[Group],
    workflows: Mapping[str, Workflow],
) -> dict[str, GangTerms]:
    """By uuid, the terms of those groups that another scheduler places."""
    mine = [
        group
        for group in groups
        if site.is_placed_elsewhere(workflows[group.workflow_uuid].backend)
    ]
    if not mine:
        return {}
    over: dict[str, set[str]] = {group.uuid: set() for group in mine}
    latest = {
        (task.group_uuid, task.name): task
        for task in sorted(
            task_store.tasks_of_groups(connection, sorted(over)), key=lambda each: each.retry_id
        )
    }
    for (uuid, name), task in latest.items():
        if task.status.finished:
            over[uuid].add(name)
    found: dict[str, GangTerms] = {}
    for group in mine:
        workflow = workflows[group.workflow_uuid]
        named = pool_store.find(connection, workflow.pool)
        parent = named.parent if isinstance(named, Subpool) else workflow.pool
        pool = pool_store.find_pool(connection, parent)
        queue = _queue(site, workflow.pool, named)
        spec = remaining(group.spec, over[group.uuid])
        priority = class_name(site.prefix, workflow.priority.value)
        found[group.uuid] = terms_of(spec, queue, priority, pool)
    return found


def _queue(site: Site, name: str, named: Pool | Subpool | None) -> QueueName:
    if not isinstance(named, Subpool):
        return QueueName(site.namespace, name, SHARED, site.prefix)
    leaf = named.subpool if named.state is SubpoolState.ACTIVE else SHARED
    return QueueName(site.namespace, named.parent, leaf, site.prefix)


def terms_of(spec: GroupSpec, queue: QueueName, priority: str, pool: Pool | None) -> GangTerms:
    """The terms of a group. Every minimum is explicit, as schedulers have other defaults."""
    labels = {each.key: each.label for each in (() if pool is None else pool.topology_keys)}
    topology = topology_name(msgspec.structs.replace(queue, leaf=None)) if labels else None

    def named(constraint: TopologyConstraint | None) -> TopologyConstraint | None:
        if constraint is None or topology is None:
            return None
        required, preferred = constraint.required, constraint.preferred
        return TopologyConstraint(
            topology,
            None if required is None else labels.get(required, required),
            None if preferred is None else labels.get(preferred, preferred),
        )

    tasks = Counter(task.subgroup for task in spec.tasks)
    subgroups = _with_sets(spec)
    below = Counter(each.parent for each in subgroups)
    whole = below[None] if subgroups else len(spec.tasks)
    return GangTerms(
        queue.exported,
        priority,
        whole if spec.minimum is None else min(spec.minimum, whole),
        tuple(
            msgspec.structs.replace(
                each,
                minimum=(below[each.name] or tasks[each.name])
                if each.minimum is None
                else each.minimum,
                constraint=named(each.constraint),
            )
            for each in subgroups
        ),
        named(spec.constraint),
    )


def _with_sets(spec: GroupSpec) -> tuple[SubGroup, ...]:
    """Give subgroups that must be together a parent that says so, if all of them are needed."""
    subgroups = list(spec.subgroups)
    minimums: dict[str | None, int | None] = {each.name: each.minimum for each in subgroups}
    minimums[None] = spec.minimum
    for number, each in enumerate(spec.sets):
        parents = {one.parent for one in subgroups if one.name in each.members}
        if len(parents) != 1 or minimums[parent := parents.pop()] is not None:
            continue
        name = f"set-{number}"
        while name in minimums:
            name += "-"
        minimums[name] = None
        subgroups = [
            msgspec.structs.replace(one, parent=name) if one.name in each.members else one
            for one in subgroups
        ]
        subgroups.append(SubGroup(name, parent, None, each.constraint))
    return tuple(subgroups)
