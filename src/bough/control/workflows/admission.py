"""Which workflows a pool takes: pure, and the only gate. What is accepted may still have to wait.

The state comes first, whatever the priority; then maintenance; then size. A group of HIGH or NORMAL
that is larger than what its leaf guarantees would wait for ever, so it is refused; LOW may exceed
every quota. What is in use now does not matter here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from bough.control.gangs_of_groups import needed_gpus
from bough.control.workflows.resource_rules import rule_fault
from bough.errors import Conflict, Invalid, Refused
from bough.model.gang import TopologyConstraint
from bough.model.pool import OfferedNode, Platform, Pool, ResourceAssertion
from bough.model.settings import WorkflowSettings
from bough.model.subpool import Subpool, SubpoolStep, next_state
from bough.model.words import counted
from bough.model.workflow import GroupSpec, Priority, TaskSpec, WorkflowSpec


class TargetPool(msgspec.Struct, frozen=True):
    """The pool or subpool that a workflow is submitted to."""

    #: As it was asked for.
    name: str
    pool: Pool
    subpool: Subpool | None
    #: What the leaf guarantees; `None`: no limit.
    quota: int | None
    #: Rules for what tasks may ask for, by name; and the nodes that some of these are about.
    validations: Mapping[str, tuple[ResourceAssertion, ...]] = {}
    nodes: tuple[OfferedNode, ...] = ()


def check_state(target: TargetPool) -> None:
    """A subpool that is being deleted, or was, takes nothing new, of no priority."""
    subpool = target.subpool
    if subpool is not None and next_state(subpool.state, SubpoolStep.SUBMIT) is None:
        raise Conflict(
            f"Subpool {subpool.name} is {subpool.state} and does not accept new workflows."
        )


def check_maintenance(target: TargetPool, *, admin: bool) -> None:
    """While a pool is under maintenance only administrators submit to it and its subpools."""
    if target.pool.enable_maintenance and not admin:
        raise Invalid(
            f"Pool {target.name} is undergoing maintenance. Users will have to wait until "
            "maintenance is completed before submission."
        )


def check_form(spec: WorkflowSpec, settings: WorkflowSettings) -> None:
    """What must be so of every workflow, wherever it goes."""
    tasks = [task for group in spec.groups for task in group.tasks]
    if not tasks:
        raise Invalid(f"Workflow {spec.name} has no tasks.")
    if len(tasks) > settings.max_num_tasks:
        raise Invalid(
            f"Workflow {spec.name} has {len(tasks)} tasks; at most {settings.max_num_tasks} are "
            "allowed."
        )
    for group in spec.groups:
        if not group.tasks:
            raise Invalid(f"Group {group.name} has no tasks.")
    most = settings.max_asked_retries
    for task in tasks:
        if (task.retries or 0) > most:
            raise Invalid(
                f"Task {task.name} asks for {task.retries} retries; at most {most} are allowed."
            )


def refusal(target: TargetPool, spec: WorkflowSpec, priority: Priority) -> str | None:
    """Why a workflow is not for this pool; `None`: it is."""
    for group in spec.groups:
        for task in group.tasks:
            fault = (
                _platform_fault(target, task)
                or _mount_fault(target, task)
                or rule_fault(target.pool, task, target.validations, target.nodes)
            )
            if fault is not None:
                return fault
        fault = _topology_fault(target, group)
        if fault is not None:
            return fault
        if not priority.preemptible:
            fault = _size_fault(target, group)
            if fault is not None:
                return fault
    return None


def refuse(target: TargetPool, spec: WorkflowSpec, priority: Priority) -> None:
    """The same as an error."""
    fault = refusal(target, spec, priority)
    if fault is not None:
        raise Refused(fault)


def _size_fault(target: TargetPool, group: GroupSpec) -> str | None:
    """Each group is one gang, so it is the group that must fit, not their sum."""
    needed = needed_gpus(group)
    asks = f"group {group.name} requires {counted(needed, 'GPU')}"
    advice = "Higher gpu counts must be submitted with LOW priority"
    if target.quota is not None and needed > target.quota:
        return (
            f"Pool {target.name} has {counted(target.quota, 'GPU')} guaranteed for NORMAL/HIGH "
            f"priority workflows and {asks}. {advice}"
        )
    limit = target.pool.user_gpu_limit
    if limit is not None and needed > limit:
        return (
            f"Pool {target.pool.name} lets one user hold {counted(limit, 'GPU')} with NORMAL/HIGH "
            f"priority workflows and {asks}. {advice}"
        )
    return None


def _platform_fault(target: TargetPool, task: TaskSpec) -> str | None:
    platform = task.platform or target.pool.default_platform
    if platform is None:
        if target.pool.platforms:
            return f"Task {task.name} does not have a platform, and pool {target.name} no default!"
        return None
    if platform not in target.pool.platforms:
        return f"Platform {platform} does not exist in pool {target.name}!"
    return None


def _mount_fault(target: TargetPool, task: TaskSpec) -> str | None:
    """Folders of nodes are those that the platform allows, or shows to all tasks."""
    name = task.platform or target.pool.default_platform or ""
    platform = target.pool.platforms.get(name, Platform())
    allowed = (*platform.allowed_mounts, *platform.default_mounts)
    for mount in () if task.launch is None else task.launch.mounts:
        if mount not in allowed:
            known = f"it has: {', '.join(allowed)}" if allowed else "it allows none"
            where = f"platform {name} of pool {target.name}" if name else f"pool {target.name}"
            return f"Task {task.name}: volumeMounts: {mount[:80]!r} is not for {where}; {known}."
    return None


def _topology_fault(target: TargetPool, group: GroupSpec) -> str | None:
    """Levels are those of the pool, and where tasks name several the wider comes first."""
    keys = target.pool.topology_keys
    known = {name: index for index, key in enumerate(keys) for name in (key.key, key.label)}
    for constraint in _constraints(group):
        if constraint.topology is not None:
            return (
                f"Group {group.name} names the topology {constraint.topology!r}; leave it out: the "
                f"one of pool {target.name} is meant."
            )
        for level in (constraint.required, constraint.preferred):
            if level is not None and level not in known:
                return _unknown_level(target, group, level)
    places: list[int] = []
    for level in group.levels:
        if level not in known:
            return _unknown_level(target, group, level)
        places.append(known[level])
    if places != sorted(places):
        order = ", ".join(key.key for key in keys)
        return (
            f"Group {group.name} names the topology keys {', '.join(group.levels)}; the wider "
            f"comes first, and in pool {target.name} the order is {order}."
        )
    return None


def _constraints(group: GroupSpec) -> Iterator[TopologyConstraint]:
    if group.constraint is not None:
        yield group.constraint
    for subgroup in group.subgroups:
        if subgroup.constraint is not None:
            yield subgroup.constraint
    for each in group.sets:
        yield each.constraint


def _unknown_level(target: TargetPool, group: GroupSpec, level: str) -> str:
    known = ", ".join(key.key for key in target.pool.topology_keys)
    has = f"its topology keys are {known}" if known else "it has no topology keys"
    told = f"Group {group.name} names the topology key {level!r}, unknown to pool {target.name}"
    return f"{told}: {has}."
