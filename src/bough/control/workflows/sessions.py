"""Who may open sessions with running tasks (commands, ports, files), and the audit record.

A session shows what a log does not, credentials for example. So users may open sessions with their
own tasks only, and admins of a pool with all of its tasks.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.people.access import allows, authorise, resource_of
from bough.control.site import Site
from bough.control.workflows.archive import missing
from bough.control.workflows.output_locations import find_elsewhere, place_of
from bough.errors import Conflict, Forbidden, NotFound
from bough.model.access import Action, Actor
from bough.model.backend import TaskFiles
from bough.model.session import SessionKind, SessionRequest
from bough.model.workflow import Task, TaskStatus, Workflow
from bough.store import pools as pool_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store

ACTIONS = {
    SessionKind.EXEC: Action.WORKFLOW_EXEC,
    SessionKind.PORT_FORWARD: Action.WORKFLOW_PORT_FORWARD,
    SessionKind.RSYNC: Action.WORKFLOW_RSYNC,
    # A user who runs commands in a task can write what the task writes.
    SessionKind.LOG: Action.WORKFLOW_EXEC,
}
#: Existing clients retry after this status.
_TOO_EARLY = 425
_GONE = 410


class SessionTarget(msgspec.Struct, frozen=True):
    """A running task, as a session needs it."""

    workflow_id: str
    task: str
    attempt: str
    backend: str
    retry_id: int = 0


def authorise_session(site: Site, actor: Actor, action: Action, name: str) -> None:
    """Refuse unless the actor may open such sessions with a workflow."""
    with site.store.read() as connection:
        _find(site, connection, actor, action, name)


def proper_name(site: Site, actor: Actor, kind: SessionKind, name: str) -> str:
    """The identifier of a workflow, which may be given by its uuid."""
    with site.store.read() as connection:
        return _find(site, connection, actor, ACTIONS[kind], name).workflow_id


def find_targets(
    site: Site,
    actor: Actor,
    kind: SessionKind,
    name: str,
    *,
    task: str | None = None,
    group: str | None = None,
) -> list[SessionTarget]:
    """A running task, or all running tasks of a group; raises why there is none."""
    with site.store.read() as connection:
        workflow = _find(site, connection, actor, ACTIONS[kind], name)
        groups = task_store.groups_of(connection, (workflow.uuid,))
        tasks = task_store.tasks_of(connection, (workflow.uuid,))
    if group is not None:
        wanted = {each.uuid for each in groups if each.name == group}
        found = [each for each in tasks if each.group_uuid in wanted]
        missing_name = f"group {group[:80]}"
    else:
        found = [each for each in tasks if each.name == task]
        missing_name = f"task {(task or '')[:80]}"
    if not found:
        raise NotFound(f"Workflow {workflow.workflow_id} has no {missing_name}.")
    running = [each for each in found if each.status is TaskStatus.RUNNING]
    if not running:
        raise _not_now(workflow, missing_name, found)
    return [
        SessionTarget(
            workflow.workflow_id, each.name, each.attempt, workflow.backend, each.retry_id
        )
        for each in running
    ]


def open_session(
    site: Site, backends: Mapping[str, TaskFiles], target: SessionTarget, wanted: SessionRequest
) -> int:
    """Open a session and return the line to it; raises why that is not possible."""
    elsewhere = find_elsewhere(site, backends, target.backend)
    backend = backends.get(target.backend)
    if elsewhere is not None or backend is None:
        place = "elsewhere" if elsewhere is None else place_of(elsewhere)
        raise Conflict(f"Task {target.task} of {target.workflow_id} runs {place}.")
    return backend.open_session(target.attempt, wanted)


def record_begin(
    site: Site, actor: Actor, target: SessionTarget, wanted: SessionRequest, session: str
) -> None:
    """Record who opens which session; never what is typed or sent."""
    about: dict[str, object] = {"session": session, "task": target.task}
    if wanted.kind is SessionKind.EXEC:
        # Arguments may hold secrets.
        about |= {"program": wanted.argv[0], "terminal": wanted.terminal}
    elif wanted.kind is SessionKind.PORT_FORWARD:
        about |= {"port": wanted.port, "udp": wanted.udp}
    elif wanted.kind is SessionKind.LOG:
        about |= {"log": True}
    _record(site, actor, target, wanted.kind, after=about)


def record_end(
    site: Site,
    actor: Actor,
    target: SessionTarget,
    kind: SessionKind,
    session: str,
    *,
    reason: str,
    exit_code: int | None,
) -> None:
    """Record that a session has ended, and why."""
    before = {"session": session, "task": target.task}
    ended = {**before, "ended": reason, "exit_code": exit_code}
    _record(site, actor, target, kind, before=before, after=ended)


def _record(
    site: Site,
    actor: Actor,
    target: SessionTarget,
    kind: SessionKind,
    *,
    before: object = None,
    after: object,
) -> None:
    subject = f"workflow/{target.workflow_id}"
    with site.store.write() as connection:
        audit(connection, site, actor, ACTIONS[kind], subject, before, after)


def _find(
    site: Site, connection: sa.Connection, actor: Actor, action: Action, name: str
) -> Workflow:
    """The workflow, if the actor may open such sessions with it."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    workflow = workflow_store.find(connection, name)
    if workflow is None:
        raise missing(connection, name)
    resource = resource_of(pool_store.find(connection, workflow.pool) or workflow.pool)
    authorise(actor, action, resource, site.role_names)
    # Users who may divide a pool are its admins.
    own = workflow.submitted_by == actor.name
    if not own and not allows(actor, Action.SUBPOOL_UPDATE, resource, site.role_names):
        raise Forbidden(
            f"Workflow {workflow.workflow_id} was submitted by {workflow.submitted_by}: users of a "
            "pool reach into their own tasks, and its admins into all of them."
        )
    return workflow


def _not_now(workflow: Workflow, what: str, tasks: list[Task]) -> Conflict:
    latest = max(tasks, key=lambda each: each.retry_id)
    over = workflow.status.finished or all(each.status.finished for each in tasks)
    when = "only while it runs" if over else "when it runs"
    error = Conflict(
        f"{what[0].upper()}{what[1:]} of {workflow.workflow_id} is {latest.status}; "
        f"it can be reached into {when}."
    )
    error.http_status = _GONE if over else _TOO_EARLY
    return error
