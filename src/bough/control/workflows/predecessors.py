"""Workflows that start after others have ended: held back, released, or failed with them.

What a workflow waits for is resolved when it is submitted. The loop looks for predecessors that
have ended; it queries the present state and relies on no event, so none can be missed.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bough.control.people.access import allows, resource_of
from bough.control.pools import subpool_drain
from bough.control.site import Site
from bough.control.workflows.load_changes import open_changes, write_changes
from bough.errors import Forbidden, Invalid
from bough.model.access import Action, Actor
from bough.model.workflow import Predecessor, WorkflowStatus
from bough.store import archive as archive_store
from bough.store import arrays as array_store
from bough.store import pools as pool_store
from bough.store import predecessors as predecessor_store
from bough.store import workflows as workflow_store
from bough.store.database import again_if_given_up
from bough.store.predecessors import StoredPredecessor

#: The reason of a wait, beside those of plans.
REASON = "Predecessor"
#: The most workflows that one can wait for.
MAXIMUM = 100
#: Workflows to release in one transaction, and predecessors to look at in one cycle.
AT_ONCE = 100


def resolve(
    site: Site, connection: sa.Connection, actor: Actor, wanted: Sequence[Predecessor]
) -> list[StoredPredecessor]:
    """Find the workflows to wait for, each of which the user must be able to read."""
    if len(wanted) > MAXIMUM:
        raise Invalid(
            f"The workflow waits for {len(wanted)} others; at most {MAXIMUM} are possible."
        )
    found: dict[str, StoredPredecessor] = {}
    for each in wanted:
        kept = _find(connection, each.workflow)
        if kept is None:
            raise Invalid(f"There is no workflow {each.workflow} to wait for.")
        pool = pool_store.find(connection, kept.pool)
        if not allows(actor, Action.WORKFLOW_READ, resource_of(pool or kept.pool), site.role_names):
            raise Forbidden(
                f"The workflow waits for {each.workflow}, which {actor.name} may not read."
            )
        uuid, name = kept.uuid, kept.workflow_id
        strict = each.completed or (uuid in found and found[uuid].completed)
        found[uuid] = StoredPredecessor("", uuid, name, strict)
    return list(found.values())


def find_all(connection: sa.Connection, wanted: Sequence[Predecessor]) -> list[StoredPredecessor]:
    """The same for a workflow accepted before; predecessors that are gone are not waited for."""
    found: list[StoredPredecessor] = []
    for each in wanted:
        kept = _find(connection, each.workflow)
        if kept is not None:
            found.append(StoredPredecessor("", kept.uuid, kept.workflow_id, each.completed))
    return found


def _find(connection: sa.Connection, name: str) -> archive_store.ArchivePlace | None:
    """Find a workflow or an array, unfinished, finished or archived."""
    workflow = workflow_store.find(connection, name)
    if workflow is not None:
        return archive_store.ArchivePlace(workflow.uuid, workflow.workflow_id, workflow.pool)
    array = array_store.find(connection, name)
    if array is not None:
        return archive_store.ArchivePlace(array.uuid, array.array_id, array.pool)
    return archive_store.find_place(connection, name)


def say_waiting(connection: sa.Connection, uuid: str) -> str | None:
    """What a workflow waits for, in words; `None`: for no other workflow."""
    said = [
        f"until {each.predecessor_id} has completed, which is {_standing(connection, each)}"
        if each.completed
        else f"for the end of {each.predecessor_id}, which is {_standing(connection, each)}"
        for each in predecessor_store.of_workflow(connection, uuid)
    ]
    return f"it waits {'; and '.join(said)}" if said else None


def follow(site: Site) -> int:
    """Release, or fail, the workflows whose predecessors have ended; returns how many.

    Others may wait for a workflow that fails here, so this repeats until nothing is left.
    """
    followed = 0
    while True:
        with site.store.read() as connection:
            over = predecessor_store.over(connection, AT_ONCE)
        if not over:
            return followed
        followed += sum(_follow(site, uuid) for uuid in over)


def _follow(site: Site, predecessor: str) -> int:
    followed = 0
    while True:
        with site.store.read() as connection:
            waiting = predecessor_store.waiting_for(connection, predecessor, AT_ONCE)
        if not waiting:
            return followed
        _settle(site, predecessor, waiting)
        followed += len(waiting)


@again_if_given_up
def _settle(site: Site, predecessor: str, waiting: Sequence[str]) -> None:
    pools: set[str] = set()
    over: list[str] = []
    with site.store.write() as connection:
        changes = open_changes(site, connection, waiting)
        rows = {each.workflow.uuid: _rows(connection, each.workflow.uuid) for each in changes}
        for change in changes:
            mine = rows[change.workflow.uuid]
            ended = mine.pop(predecessor, None)
            if ended is None or change.workflow.status.finished:
                continue
            fault = _fault(connection, ended)
            if fault is not None:
                change.fail_held(fault)
            elif not mine:
                change.release_held()
            change.settle()
            if change.workflow.status.finished:
                pools.add(change.workflow.pool)
                over.append(change.workflow.uuid)
        write_changes(connection, changes, site.clock.now_ms())
        predecessor_store.remove(connection, over)
        # Archived or dropped ones, too.
        predecessor_store.remove(connection, waiting, predecessor)
    for pool in sorted(pools):
        subpool_drain.check_drain(site, pool)
    site.wake()


def _rows(connection: sa.Connection, uuid: str) -> dict[str, StoredPredecessor]:
    return {each.predecessor_uuid: each for each in predecessor_store.of_workflow(connection, uuid)}


def _fault(connection: sa.Connection, ended: StoredPredecessor) -> str | None:
    """Why a workflow cannot start now that another has ended; `None`: it can."""
    standing = _standing(connection, ended)
    if not ended.completed or standing == WorkflowStatus.COMPLETED:
        return None
    return f"It starts only after {ended.predecessor_id} has completed, which is {standing}."


def _standing(connection: sa.Connection, each: StoredPredecessor) -> str:
    """The status of a workflow, archived or not, as words that follow `which is`."""
    workflow = workflow_store.find(connection, each.predecessor_uuid)
    if workflow is not None:
        return workflow.status
    array = array_store.find(connection, each.predecessor_uuid)
    if array is not None:
        return array.status(array_store.counts_of(connection, [array.array_id])[array.array_id])
    archived = archive_store.find(connection, each.predecessor_uuid)
    if archived is None:
        return "not known here any more"
    if archived.past is None:
        return "dropped from the archive, so that nothing tells how it ended"
    return archived.past.workflow.status
