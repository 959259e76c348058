"""CheckSubpoolDrain: a subpool that is being deleted is archived once it is empty.

It is checked when a workflow in it ends, and at an interval in case that was missed. What is due,
and when, is in the store, so nothing is lost with the server. What keeps a drain open is told on
request.
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.api.pools import DrainingWorkflow, DrainReport
from bough.control.change_recording import SYSTEM_ACTOR, subpool_changed
from bough.control.config.settings import read_workflow_settings
from bough.control.gangs_of_groups import needed_gpus
from bough.control.pools.waiting_work import gpus_text, say_stranded
from bough.control.site import Site
from bough.model.subpool import Subpool, SubpoolState, SubpoolStep, next_state
from bough.model.workflow import Group, Workflow
from bough.store import pools as pool_store
from bough.store import settings as setting_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.database import again_if_given_up

#: How many of the workflows that keep a drain open are named; the others are counted.
MOST_NAMED = 100


def drain_of(connection: sa.Connection, subpool: Subpool) -> DrainReport:
    """What keeps a subpool that is being deleted open."""
    pool = pool_store.find_pool(connection, subpool.parent)
    quota = 0 if pool is None else pool.gpu.guarantee or 0
    quota -= pool_store.active_quota(connection, subpool.parent)
    stranded = {
        group.workflow_uuid: group
        for group in task_store.waiting_groups(connection, subpool.name, larger_than=quota)
        if needed_gpus(group.spec) > quota
    }
    oldest = workflow_store.alive_in(connection, (subpool.name,), MOST_NAMED)
    lost = workflow_store.of_uuids(connection, list(stranded)[:MOST_NAMED])
    named = {each.uuid: each for each in (*sorted(lost, key=_age), *oldest)}
    workflows = list(named.values())[:MOST_NAMED]
    groups: dict[str, list[Group]] = {}
    for group in task_store.groups_of(connection, [each.uuid for each in workflows]):
        groups.setdefault(group.workflow_uuid, []).append(group)
    blockers = [
        _blocker(each, groups.get(each.uuid, []), stranded.get(each.uuid), (subpool.parent, quota))
        for each in workflows
    ]
    count = workflow_store.count_alive(connection, subpool.name)
    return DrainReport(count, len(stranded), blockers)


def arm(site: Site, connection: sa.Connection, subpool: Subpool) -> None:
    """Look at a subpool again after the interval."""
    settings = read_workflow_settings(connection)
    due_ms = site.clock.now_ms() + settings.subpool_drain_check_interval_s * 1_000
    pool_store.arm_monitor(connection, subpool.name, due_ms)


@again_if_given_up
def check_drain(site: Site, name: str) -> bool:
    """Archive a subpool that is being deleted and is empty; whether it was. Harmless to repeat."""
    with site.store.read() as connection:
        found = pool_store.find(connection, name)
    if not isinstance(found, Subpool) or found.state is not SubpoolState.DELETING:
        return False
    with site.store.write() as connection:
        pool_store.lock(connection, found.parent)
        subpool = pool_store.find_subpool(connection, found.parent, found.subpool)
        archived = subpool is not None and _archive(site, connection, subpool)
        if subpool is not None and not archived and subpool.state is SubpoolState.DELETING:
            arm(site, connection, subpool)
    if archived:
        site.wake()
    return archived


def check_due_drains(site: Site) -> list[str]:
    """Check every subpool that is due; returns the names of those archived."""
    now_ms = site.clock.now_ms()
    with site.store.read() as connection:
        monitors = pool_store.list_monitors(connection)
    due = [name for name, due_ms in monitors.items() if due_ms <= now_ms]
    archived = [name for name in due if check_drain(site, name)]
    _disarm_others(site, due)
    return archived


@again_if_given_up
def rearm_drains(site: Site) -> list[str]:
    """At the start: look at every subpool that is being deleted; the names of what was archived."""
    with site.store.write() as connection:
        armed = pool_store.list_monitors(connection)
        draining = [
            each
            for each in pool_store.list_subpools(connection)
            if each.state is SubpoolState.DELETING
        ]
        for subpool in sorted(draining, key=lambda each: each.name):
            if subpool.name not in armed:
                arm(site, connection, subpool)
    return [each.name for each in draining if check_drain(site, each.name)]


def _blocker(
    workflow: Workflow,
    groups: list[Group],
    lost: Group | None,
    shared: tuple[str, int],
) -> DrainingWorkflow:
    """One workflow; `shared` is the pool, and what it has for what is in no ACTIVE subpool."""
    left = [group for group in groups if not group.status.finished]
    held = sum(needed_gpus(group.spec) for group in left if group.status.holds_node)
    needed = max((needed_gpus(group.spec) for group in left), default=0)
    if lost is not None:
        text = (
            f"{lost.name} needs {gpus_text(needed_gpus(lost.spec))} and "
            f"{say_stranded(*shared)}; move it to another pool, cancel it, or give quota "
            "back to the pool"
        )
    elif any(group.status.holds_node for group in left):
        text = "runs"
    else:
        said = next((group.wait_message for group in left if group.wait_message), None)
        text = f"waits: {said}" if said else "waits"
    return DrainingWorkflow(
        workflow.workflow_id,
        workflow.status,
        workflow.priority,
        workflow.submitted_by,
        held or needed,
        text,
    )


def _age(workflow: Workflow) -> tuple[int, str]:
    return workflow.submitted_ms, workflow.workflow_id


def _archive(site: Site, connection: sa.Connection, subpool: Subpool) -> bool:
    state = next_state(subpool.state, SubpoolStep.DRAINED)
    if state is None or workflow_store.count_alive(connection, subpool.name):
        return False
    archived = msgspec.structs.replace(subpool, state=state)
    pool_store.update_subpool(connection, archived)
    pool_store.disarm_monitor(connection, subpool.name)
    subpool_changed(connection, site, SYSTEM_ACTOR, "subpool:Drained", subpool, archived)
    setting_store.raise_version(connection)
    return True


@again_if_given_up
def _disarm_others(site: Site, due: list[str]) -> None:
    """Drop the monitors of subpools that are no longer being deleted, for whatever reason."""
    if not due:
        return
    with site.store.write() as connection:
        for name in sorted(due):
            found = pool_store.find(connection, name)
            if not isinstance(found, Subpool) or found.state is not SubpoolState.DELETING:
                pool_store.disarm_monitor(connection, name)
