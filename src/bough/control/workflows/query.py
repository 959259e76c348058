"""Workflows that were submitted: list, show, tag, why they wait.

What a role may do with a workflow in a subpool follows from the pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.fields import check_tags
from bough.control.people.access import authorise, resource_of
from bough.control.site import Site
from bough.control.workflows import predecessors
from bough.control.workflows.archive import Archived, missing, read_archived
from bough.control.workflows.preemptions import PreemptionRecord, read_preemptions
from bough.errors import NotFound
from bough.formats.workflow.array import element_text
from bough.model.access import Action, Actor
from bough.model.app import App
from bough.model.change_record import StoredEvent
from bough.model.workflow import Group, Task, TaskStatus, Workflow, WorkflowStatus
from bough.store import apps as app_store
from bough.store import arrays as array_store
from bough.store import change_records as record_store
from bough.store import event_order
from bough.store import pools as pool_store
from bough.store import predecessors as predecessor_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.tasks import WorkflowDemand
from bough.store.workflows import Filter

#: How many events are read at a time.
EVENTS_AT_ONCE = 500


class Page(msgspec.Struct, frozen=True):
    """A part of a list."""

    workflows: tuple[Workflow, ...]
    #: By workflow.
    demands: dict[str, WorkflowDemand]
    #: Whether there is more after it.
    more: bool
    #: By uuid, those that some of them were submitted from.
    apps: dict[str, App] = {}

    def demand(self, workflow: Workflow) -> WorkflowDemand:
        """What a workflow asks for; nothing where it was refused and has no groups."""
        return self.demands.get(workflow.uuid, WorkflowDemand())

    def app_of(self, workflow: Workflow) -> App | None:
        """The app that a workflow was submitted from."""
        return None if workflow.app_uuid is None else self.apps.get(workflow.app_uuid)


class WorkflowView(msgspec.Struct, frozen=True):
    """A workflow with everything below it."""

    workflow: Workflow
    groups: tuple[Group, ...]
    #: By group, in the order of the spec; the latest attempt first.
    tasks: dict[str, tuple[Task, ...]]
    #: By group, in order: when it had to end for others.
    preemptions: dict[str, tuple[PreemptionRecord, ...]] = {}
    #: Since when it is in the archive.
    archived_ms: int | None = None
    #: What all of it waits for, if that is the end of other workflows.
    held: str | None = None
    #: The one that it was submitted from.
    app: App | None = None


class Why(msgspec.Struct, frozen=True):
    """Why a group waits, as the latest plan said."""

    group: str
    status: TaskStatus
    reason: str | None
    message: str | None


def list_workflows(site: Site, actor: Actor, wanted: Filter) -> Page:
    """A page of workflows. A pool stands for itself alone, not for its subpools."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        for pool in wanted.pools or ():
            if pool_store.find(connection, pool) is None:
                raise NotFound(f"Pool {pool} not found.")
        one_more = msgspec.structs.replace(wanted, limit=wanted.limit + 1)
        found = workflow_store.search(connection, one_more)
        shown = tuple(found[: wanted.limit])
        demands = task_store.demands_of(connection, [each.uuid for each in shown])
        silent = [
            each.uuid
            for each in shown
            if each.status is WorkflowStatus.PENDING
            and each.uuid in demands
            and not demands[each.uuid].wait_reason
        ]
        for uuid in predecessor_store.waiting(connection, silent):
            demands[uuid] = WorkflowDemand(demands[uuid].gpus, predecessors.REASON)
        apps = app_store.of_uuids(connection, (each.app_uuid for each in shown if each.app_uuid))
    return Page(shown, demands, len(found) > wanted.limit, apps)


def get_workflow(
    site: Site, actor: Actor, name: str, *, every_attempt: bool = False
) -> WorkflowView:
    """One workflow with its groups and tasks; earlier attempts only if they are asked for."""
    with site.store.read() as connection:
        workflow, archived = _look(site, connection, actor, name)
        if archived is None:
            groups = task_store.groups_of(connection, (workflow.uuid,))
            tasks = task_store.tasks_of(connection, (workflow.uuid,))
        else:
            groups, tasks = list(archived.past.groups), list(archived.past.tasks)
        preempted = read_preemptions(connection, workflow, tasks)
        held = _held(connection, workflow, groups)
        uuid = workflow.app_uuid
        app = None if uuid is None else app_store.of_uuids(connection, (uuid,)).get(uuid)
    shown = {group.name: _tasks(group, tasks, every_attempt=every_attempt) for group in groups}
    archived_ms = None if archived is None else archived.at_ms
    return WorkflowView(workflow, tuple(groups), shown, preempted, archived_ms, held, app)


def _held(connection: sa.Connection, workflow: Workflow, groups: Iterable[Group]) -> str | None:
    waits = any(each.status is TaskStatus.WAITING for each in groups)
    return predecessors.say_waiting(connection, workflow.uuid) if waits else None


def get_spec(site: Site, actor: Actor, name: str, *, template: bool = False) -> str:
    """The spec as it was submitted, rendered or before that."""
    with site.store.read() as connection:
        workflow, archived = _look(site, connection, actor, name)
        if workflow.array_id is not None:
            return read_element_spec(connection, workflow, template=template)
        if archived is not None:
            return (archived.past.template if template else None) or archived.past.spec
        text = workflow_store.spec_text(connection, workflow.uuid, template=template)
        return text or workflow_store.spec_text(connection, workflow.uuid) or ""


def read_element_spec(
    connection: sa.Connection, workflow: Workflow, *, template: bool = False
) -> str:
    """The spec of an element, which is kept with its array; before it was rendered, of all."""
    spec = array_store.spec_of(connection, workflow.array_id or "")
    if spec is None or spec.array is None:
        return ""
    if template and spec.template is not None:
        return spec.template
    return element_text(spec.text, spec.array, workflow.array_index or 0)


def get_events(site: Site, actor: Actor, name: str, after: int = 0) -> list[StoredEvent]:
    """What happened to a workflow, in order."""
    with site.store.read() as connection:
        workflow, _ = _look(site, connection, actor, name)
        name = workflow.workflow_id
        if workflow.status.finished:
            # None is added after the end, which is seen together with the last of them.
            return record_store.events_of(connection, name, after=after, limit=EVENTS_AT_ONCE)
        return event_order.events_after(connection, after, subject=name, limit=EVENTS_AT_ONCE)


def why(site: Site, actor: Actor, name: str) -> list[Why]:
    """Why each waiting group waits."""
    with site.store.read() as connection:
        workflow, _ = _look(site, connection, actor, name)
        groups = task_store.groups_of(connection, (workflow.uuid,))
        return reasons_of(groups, _held(connection, workflow, groups))


def reasons_of(groups: Iterable[Group], held: str | None = None) -> list[Why]:
    """The same for groups that were already read, and what all of them wait for."""
    found: list[Why] = []
    for group in groups:
        if held is not None and group.status is TaskStatus.WAITING:
            found.append(Why(group.name, group.status, predecessors.REASON, held))
        elif group.status is TaskStatus.WAITING:
            text = f"it waits for {', '.join(group.remaining_upstream)}"
            found.append(Why(group.name, group.status, "Upstream", text))
        elif not group.status.finished and not group.status.holds_node:
            text = group.wait_message or "it has not been looked at yet"
            found.append(Why(group.name, group.status, group.wait_reason, text))
    return found


def tag(
    site: Site, actor: Actor, name: str, add: Sequence[str] = (), remove: Sequence[str] = ()
) -> Workflow:
    """Add and remove tags."""
    with site.store.write() as connection:
        require_workflow(site, connection, actor, name, Action.WORKFLOW_UPDATE)
        before = workflow_store.lock(connection, name)
        if before is None:
            raise NotFound(f"Workflow {name} not found.")
        tags = tuple(sorted(({*before.tags} | {*add}) - {*remove}))
        check_tags(add, kept=len(tags))
        after = msgspec.structs.replace(before, tags=tags)
        workflow_store.update(connection, after)
        subject = f"workflow/{before.workflow_id}"
        audit(connection, site, actor, Action.WORKFLOW_UPDATE, subject, before.tags, tags)
    return after


def list_tags(site: Site, actor: Actor) -> list[str]:
    """All tags that are in use, by name; a list of workflows shows them, too."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        return workflow_store.list_tags(connection)


def list_submitters(site: Site, actor: Actor) -> list[str]:
    """All users who have submitted a workflow; a list of workflows shows them, too."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        return workflow_store.list_submitters(connection)


def require_workflow(
    site: Site, connection: sa.Connection, actor: Actor, name: str, action: Action
) -> Workflow:
    """Find a workflow that can be changed.

    An actor who may not list workflows does not learn whether it exists.
    """
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    workflow = workflow_store.find(connection, name)
    if workflow is None:
        raise missing(connection, name)
    _authorise(site, connection, actor, action, workflow.pool)
    return workflow


def _look(
    site: Site, connection: sa.Connection, actor: Actor, name: str
) -> tuple[Workflow, Archived | None]:
    """Find a workflow that can be read, and how it is archived, if it is."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    workflow = workflow_store.find(connection, name)
    archived = None
    if workflow is None:
        archived = read_archived(connection, name)
        workflow = archived.past.workflow
    _authorise(site, connection, actor, Action.WORKFLOW_READ, workflow.pool)
    return workflow, archived


def _authorise(
    site: Site, connection: sa.Connection, actor: Actor, action: Action, pool: str
) -> None:
    found = pool_store.find(connection, pool)
    authorise(actor, action, resource_of(found or pool), site.role_names)


def _tasks(group: Group, tasks: list[Task], *, every_attempt: bool) -> tuple[Task, ...]:
    attempts: dict[str, list[Task]] = {spec.name: [] for spec in group.spec.tasks}
    for task in sorted(tasks, key=lambda task: -task.retry_id):
        if task.group_uuid == group.uuid:
            attempts[task.name].append(task)
    shown = (each if every_attempt else each[:1] for each in attempts.values())
    return tuple(task for each in shown for task in each)
