"""Groups that wait, or run, for longer than their workflow allows.

When a group is due is stored with it, so nothing is lost with the server, and finding what is due
costs next to nothing. A limit that was raised since then is applied.
"""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import SYSTEM_ACTOR, audit
from bough.control.fields import duration_text
from bough.control.pools import subpool_drain
from bough.control.site import Site
from bough.control.workflows.lifecycle import EXEC_TIMEOUT, limit_of
from bough.control.workflows.load_changes import open_changes, write_changes
from bough.control.workflows.workflow_changes import WorkflowChange
from bough.model.transitions import TaskEvent
from bough.model.workflow import Group, TaskStatus
from bough.store import tasks as task_store
from bough.store.database import again_if_given_up

#: Groups that are ended in one transaction, so that others get their turn.
_AT_ONCE = 100


def check_due(site: Site) -> int:
    """End every group that is past its limit; how many there were."""
    now_ms = site.clock.now_ms()
    ended = 0
    while True:
        with site.store.read() as connection:
            due = task_store.due_groups(connection, now_ms, _AT_ONCE)
        if not due:
            return ended
        ended += _end(site, due, now_ms)


@again_if_given_up
def _end(site: Site, due: list[tuple[str, str]], now_ms: int) -> int:
    """Look again with everything locked, and end, or count anew, the groups of workflows."""
    groups = {group for group, _ in due}
    ended = 0
    pools: set[str] = set()
    with site.store.write() as connection:
        changes = open_changes(site, connection, sorted({workflow for _, workflow in due}))
        for change in changes:
            over = [
                group
                for group in list(change.groups.values())
                if group.uuid in groups and _is_over(change, group, now_ms)
            ]
            for group in over:
                _end_group(site, connection, change, group)
            ended += len(over)
            change.settle()
            if change.workflow.status.finished:
                pools.add(change.workflow.pool)
        write_changes(connection, changes, now_ms)
    for pool in sorted(pools):
        subpool_drain.check_drain(site, pool)
    site.wake()
    return ended


def _is_over(change: WorkflowChange, group: Group, now_ms: int) -> bool:
    """Whether a group is past the limit of today; otherwise its due time is set anew."""
    limit_s = limit_of(change.workflow, group.status)
    since_ms = group.since_ms
    # Where the lead has ended, so has the group; what is left of it was told to end.
    over = group.status.finished or change.ended_lead(group) is not None
    if limit_s is None or since_ms is None or over:
        change.put_group(msgspec.structs.replace(group, due_ms=None))
        return False
    due_ms = since_ms + limit_s * 1_000
    if due_ms > now_ms:
        change.put_group(msgspec.structs.replace(group, due_ms=due_ms))
        return False
    return True


def _end_group(site: Site, connection: sa.Connection, change: WorkflowChange, group: Group) -> None:
    limit = duration_text(limit_of(change.workflow, group.status) or 0)
    if group.status is TaskStatus.RUNNING:
        text = f"Task ran longer than the set limit of {limit}."
        change.end_group(group, EXEC_TIMEOUT, TaskEvent.EXEC_TIMEOUT, text)
    else:
        text = f"Task stayed in queue longer than the set limit of {limit}."
        change.end_group(group, EXEC_TIMEOUT, TaskEvent.QUEUE_TIMEOUT, text)
    # Only once: what was told to end has its grace period.
    change.put_group(msgspec.structs.replace(group, due_ms=None))
    workflow = change.workflow
    change.put_workflow(msgspec.structs.replace(workflow, cancelled_by=SYSTEM_ACTOR.name))
    subject = f"workflow/{workflow.workflow_id}"
    after = {"group": group.name, "message": text}
    audit(connection, site, SYSTEM_ACTOR, "workflow:Timeout", subject, after=after)
