"""Arrays: submitted, listed and cancelled as one; their elements become workflows step by step.

An array is checked once, when it is submitted, as all its elements request the same. The loop
creates the elements: never more at a time than the array allows, and only a few that have to wait.
So ten thousand elements are one row until it is their turn.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit, audit_entry
from bough.control.config.settings import read_workflow_settings
from bough.control.people.access import authorise, resource_of
from bough.control.setup_cache import read_setup
from bough.control.site import Site
from bough.control.workflows import cancelling, predecessors
from bough.control.workflows.admission import TargetPool
from bough.control.workflows.draft_rows import draft_group, draft_tasks, draft_workflow
from bough.control.workflows.load_changes import open_changes, write_changes
from bough.control.workflows.target_pool import find_target
from bough.errors import BoughError, Invalid, NotFound, NotLeading
from bough.model.access import Action, Actor
from bough.model.array import PLACEHOLDER
from bough.model.change_record import EventKind, StoredEvent
from bough.model.workflow import (
    Group,
    GroupSpec,
    Priority,
    Workflow,
    WorkflowArray,
    WorkflowSpec,
    WorkflowStatus,
)
from bough.store import arrays as array_store
from bough.store import change_records as record_store
from bough.store import pools as pool_store
from bough.store import predecessors as predecessor_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.database import again_if_given_up

LOG = logging.getLogger(__name__)

#: How many elements of an array may wait at a time, and how many to create or cancel at once.
WAITING_AT_ONCE = 100
AT_ONCE = 100
INDEX_VARIABLE = "BOUGH_ARRAY_INDEX"
_GROUPS = msgspec.json.Decoder(tuple[GroupSpec, ...])


class ArrayView(msgspec.Struct, frozen=True):
    """An array, and how many of its elements have which status."""

    array: WorkflowArray
    counts: dict[WorkflowStatus, int]

    @property
    def status(self) -> WorkflowStatus:
        """The status of the array as a whole."""
        return self.array.status(self.counts)

    @property
    def archived(self) -> int:
        """How many elements are in the archive."""
        return self.array.made - sum(self.counts.values())


def check_placeholders(spec: WorkflowSpec) -> None:
    """Refuse `{{array}}` where there is no array, and columns that its table does not have."""
    columns = frozenset[str]() if spec.array is None else spec.array.columns
    for found in PLACEHOLDER.finditer(spec.text):
        if spec.array is None:
            raise Invalid(
                f"{found[0]} is used, and the workflow has no array.",
                hint="add `array: 0-9` to the workflow, or submit it with --array 0-9",
            )
        if found[1] is not None and found[1] not in columns:
            known = ", ".join(sorted(columns)) or "none"
            raise Invalid(f"{found[0]} names no column of the array; there are: {known}.")


def keep(
    site: Site,
    connection: sa.Connection,
    actor: Actor,
    target: TargetPool,
    spec: WorkflowSpec,
    priority: Priority,
    number: int,
) -> WorkflowArray:
    """Store an array that was accepted, under a number of its name."""
    wanted = spec.array
    if wanted is None:
        raise Invalid(f"Workflow {spec.name} has no array.")
    array_id = f"{spec.name}-{number}"
    array = WorkflowArray(
        uuid=site.ids.uuid(),
        array_id=array_id,
        name=spec.name,
        number=number,
        submitted_by=actor.name,
        pool=target.name,
        priority=priority,
        submitted_ms=site.clock.now_ms(),
        count=wanted.count,
        at_once=wanted.at_once,
        first_number=array_store.reserve_numbers(connection, array_id, wanted.last),
    )
    array_store.insert(connection, array, spec)
    summary = {"pool": array.pool, "priority": priority, "elements": array.count}
    subject = f"workflow/{array_id}"
    entry = audit_entry(site, actor, Action.WORKFLOW_CREATE, subject, after=summary)
    record_store.add_audit(connection, entry)
    return array


# Called by the loop


def advance(site: Site) -> int:
    """Create the next elements of arrays, and cancel those of cancelled ones; returns how many."""
    with site.store.read() as connection:
        # Most of the time there is no room, and nothing to write.
        found = [
            each.uuid
            for each in array_store.open_arrays(connection)
            if each.cancelled_by is not None or _room(connection, each) > 0
        ]
    return sum(_try_to_advance(site, uuid) for uuid in found)


def _try_to_advance(site: Site, uuid: str) -> int:
    """Advance one array; a failure does not stop the others, and is retried in the next cycle."""
    try:
        return _advance(site, uuid)
    except NotLeading:
        raise
    except BoughError as error:
        LOG.warning("the elements of an array cannot be created now: %s", error)
        return 0


@again_if_given_up
def _advance(site: Site, uuid: str) -> int:
    with site.store.write() as connection:
        array = array_store.lock(connection, uuid)
        if array is None or not array.is_open:
            return 0
        if array.cancelled_by is not None:
            done = _cancel_some(site, connection, array)
        else:
            done = _make_some(site, connection, array)
    if done:
        site.wake()
    return done


def _make_some(site: Site, connection: sa.Connection, array: WorkflowArray) -> int:
    number = min(array.unmade, _room(connection, array), AT_ONCE)
    if number <= 0:
        return 0
    spec = array_store.spec_of(connection, array.array_id)
    if spec is None or spec.array is None:
        return 0
    _Maker(site, connection, array, spec).make(range(array.made, array.made + number))
    made = array.made + number
    array = msgspec.structs.replace(array, made=made, is_open=made < array.count)
    array_store.update(connection, array)
    return number


def _room(connection: sa.Connection, array: WorkflowArray) -> int:
    """How many more elements may be created."""
    counts = array_store.counts_of(connection, [array.array_id])[array.array_id]
    alive = sum(number for status, number in counts.items() if not status.finished)
    waiting = alive - counts.get(WorkflowStatus.RUNNING, 0)
    room = WAITING_AT_ONCE - waiting
    if array.at_once is not None:
        room = min(room, array.at_once - alive)
    most = read_workflow_settings(connection).max_num_workflows_per_user
    if most is not None:
        taken = workflow_store.count_alive_of_user(connection, array.submitted_by)
        room = min(room, most - taken)
    return room


class _Maker:
    """Creates elements of one array."""

    def __init__(
        self, site: Site, connection: sa.Connection, array: WorkflowArray, spec: WorkflowSpec
    ) -> None:
        self._site = site
        self._connection = connection
        self._array = array
        self._spec = spec
        self._target = find_target(read_setup(connection), array.pool)
        subpool = None if self._target.subpool is None else self._target.subpool.subpool
        self._queue = site.leaf_queue(self._target.pool.name, subpool)
        self._settings = read_workflow_settings(connection)
        self._actor = Actor(array.submitted_by)
        self._text = msgspec.json.encode(spec.groups).decode()
        self._held = predecessors.find_all(connection, spec.after)

    def make(self, places: Sequence[int]) -> None:
        """Write the rows of elements, by their positions in the array."""
        workflows = [self._workflow(place) for place in places]
        groups = [
            group
            for workflow, place in zip(workflows, places, strict=True)
            for group in self._groups(workflow, place)
        ]
        # They keep the array's place in the queue.
        since_ms = self._array.submitted_ms
        kept = [msgspec.structs.replace(each, submitted_ms=since_ms) for each in workflows]
        workflow_store.insert_all(self._connection, kept)
        task_store.insert_groups(self._connection, groups)
        tasks = [task for each in groups for task in draft_tasks(self._site, each)]
        task_store.insert_tasks(self._connection, tasks)
        waits = [
            msgspec.structs.replace(held, workflow_uuid=each.uuid)
            for each in workflows
            for held in self._held
        ]
        predecessor_store.insert(self._connection, waits)
        record_store.add_events(self._connection, [self._event(each) for each in workflows])

    def _workflow(self, place: int) -> Workflow:
        array, wanted = self._array, self._spec.array
        index = 0 if wanted is None else wanted.index_at(place)
        named = msgspec.structs.replace(self._spec, name=array.array_id)
        made = draft_workflow(
            self._site,
            array.first_number + index,
            self._actor,
            self._target,
            named,
            array.priority,
            self._settings,
        )
        return msgspec.structs.replace(made, array_id=array.array_id, array_index=index)

    def _groups(self, workflow: Workflow, place: int) -> list[Group]:
        wanted = self._spec.array
        text = self._text if wanted is None else wanted.fill_json(self._text, place)
        specs = with_index(_GROUPS.decode(text), workflow.array_index or 0)
        return [
            draft_group(self._site, workflow, each, position, self._queue, held=bool(self._held))
            for position, each in enumerate(specs)
        ]

    def _event(self, workflow: Workflow) -> StoredEvent:
        data = {"pool": workflow.pool, "priority": workflow.priority, "queue": self._queue}
        kind, pool = EventKind.WORKFLOW_SUBMITTED, self._target.pool.name
        return StoredEvent(kind, self._site.clock.now_ms(), workflow.workflow_id, pool, data=data)


def with_index(groups: tuple[GroupSpec, ...], index: int) -> tuple[GroupSpec, ...]:
    """Groups whose tasks have the index of their element as a variable."""
    replace = msgspec.structs.replace
    return tuple(
        replace(
            group,
            tasks=tuple(
                task
                if task.launch is None
                else replace(
                    task,
                    launch=replace(
                        task.launch,
                        environment={INDEX_VARIABLE: str(index), **task.launch.environment},
                    ),
                )
                for task in group.tasks
            ),
        )
        for group in groups
    )


def _cancel_some(site: Site, connection: sa.Connection, array: WorkflowArray) -> int:
    """Cancel some elements; the array is finished when none is left."""
    left = array_store.uncancelled(connection, array.array_id, AT_ONCE)
    changes = open_changes(site, connection, left)
    for change in changes:
        if not change.workflow.status.finished:
            by = array.cancelled_by or ""
            cancelling.cancel_change(site, connection, change, by, array.cancel_message)
    write_changes(connection, changes, site.clock.now_ms())
    if len(left) < AT_ONCE:
        array_store.update(connection, msgspec.structs.replace(array, is_open=False))
    return len(left)


# Called for users


def cancel(site: Site, actor: Actor, name: str, *, message: str = "", force: bool = False) -> str:
    """Cancel an array with all its elements, or a workflow; returns its identifier."""
    with site.store.write() as connection:
        authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
        array = array_store.find(connection, name)
        if array is not None:
            _cancel(site, connection, actor, array.uuid, cancelling.one_line(message))
    if array is None:
        return cancelling.cancel(site, actor, name, message=message, force=force).workflow_id
    site.wake()
    return array.array_id


def _cancel(site: Site, connection: sa.Connection, actor: Actor, uuid: str, message: str) -> None:
    array = array_store.lock(connection, uuid)
    if array is None:
        return
    cancelling.authorise_cancel(
        site, connection, actor, array.pool, array.submitted_by, array.array_id
    )
    view = _view(connection, array)
    if view.status.finished:
        raise Invalid(f"Array {array.array_id} is already finished.")
    after = msgspec.structs.replace(
        array, is_open=True, cancelled_by=array.cancelled_by or actor.name, cancel_message=message
    )
    array_store.update(connection, after)
    subject = f"workflow/{array.array_id}"
    told = {"message": message, "elements": array.count, "made": array.made}
    audit(connection, site, actor, Action.WORKFLOW_CANCEL, subject, None, told)


def list_arrays(
    site: Site,
    actor: Actor,
    users: Sequence[str],
    pools: Sequence[str] | None,
    limit: int,
    offset: int,
) -> tuple[list[ArrayView], bool]:
    """The newest arrays, and whether there are more."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        found = array_store.search(connection, users, pools, limit + 1, offset)
        counts = array_store.counts_of(connection, [each.array_id for each in found[:limit]])
    shown = [ArrayView(each, counts[each.array_id]) for each in found[:limit]]
    return shown, len(found) > limit


def get_array(site: Site, actor: Actor, name: str) -> ArrayView:
    """One array, by identifier or uuid."""
    authorise(actor, Action.WORKFLOW_LIST, names=site.role_names)
    with site.store.read() as connection:
        array = array_store.find(connection, name)
        if array is None:
            raise NotFound(f"Array {name} not found.")
        found = pool_store.find(connection, array.pool)
        resource = resource_of(found or array.pool)
        authorise(actor, Action.WORKFLOW_READ, resource, site.role_names)
        return _view(connection, array)


def _view(connection: sa.Connection, array: WorkflowArray) -> ArrayView:
    return ArrayView(array, array_store.counts_of(connection, [array.array_id])[array.array_id])
