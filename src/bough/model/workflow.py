"""Workflows: what people ask to run, as groups of tasks, and how far each of them is.

A group is one gang. Specs are what was asked for; records are what became of it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.app import AppSource
from bough.model.array import ArraySpec
from bough.model.cluster import Resources
from bough.model.gang import SubGroup, SubGroupSet, TopologyConstraint
from bough.model.names import NodeId
from bough.model.task_template import TaskTemplate


class Priority(StrEnum):
    """How urgent a workflow is. Only LOW borrows, and only LOW is evicted."""

    HIGH = "HIGH"
    NORMAL = "NORMAL"
    LOW = "LOW"

    @property
    def preemptible(self) -> bool:
        """Whether it may exceed its quota, and may be evicted for others."""
        return self is Priority.LOW

    @property
    def rank(self) -> int:
        """The number that priorities are compared by; the higher goes first."""
        return {Priority.HIGH: 125, Priority.NORMAL: 100, Priority.LOW: 50}[self]


class WorkflowStatus(StrEnum):
    """How far a workflow is."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    FAILED_SUBMISSION = "FAILED_SUBMISSION"
    FAILED_SERVER_ERROR = "FAILED_SERVER_ERROR"
    FAILED_EXEC_TIMEOUT = "FAILED_EXEC_TIMEOUT"
    FAILED_QUEUE_TIMEOUT = "FAILED_QUEUE_TIMEOUT"
    FAILED_CANCELED = "FAILED_CANCELED"
    FAILED_BACKEND_ERROR = "FAILED_BACKEND_ERROR"
    FAILED_IMAGE_PULL = "FAILED_IMAGE_PULL"
    FAILED_EVICTED = "FAILED_EVICTED"
    FAILED_START_ERROR = "FAILED_START_ERROR"
    FAILED_START_TIMEOUT = "FAILED_START_TIMEOUT"
    FAILED_PREEMPTED = "FAILED_PREEMPTED"

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen to it. What is not finished keeps its subpool open."""
        return self not in ALIVE

    @property
    def failed(self) -> bool:
        """Whether it ended badly."""
        return self.finished and self is not WorkflowStatus.COMPLETED


#: The statuses of a workflow that is not finished.
ALIVE = (WorkflowStatus.PENDING, WorkflowStatus.RUNNING, WorkflowStatus.WAITING)


class TaskStatus(StrEnum):
    """How far a task, or a group, is."""

    SUBMITTING = "SUBMITTING"
    #: For groups before it.
    WAITING = "WAITING"
    PROCESSING = "PROCESSING"
    #: In the queue of the scheduler.
    SCHEDULING = "SCHEDULING"
    #: Has a node, and is being started there.
    INITIALIZING = "INITIALIZING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    #: This attempt has ended, and another one follows.
    RESCHEDULED = "RESCHEDULED"
    FAILED = "FAILED"
    FAILED_UPSTREAM = "FAILED_UPSTREAM"
    FAILED_SERVER_ERROR = "FAILED_SERVER_ERROR"
    FAILED_EXEC_TIMEOUT = "FAILED_EXEC_TIMEOUT"
    FAILED_QUEUE_TIMEOUT = "FAILED_QUEUE_TIMEOUT"
    FAILED_CANCELED = "FAILED_CANCELED"
    FAILED_BACKEND_ERROR = "FAILED_BACKEND_ERROR"
    FAILED_IMAGE_PULL = "FAILED_IMAGE_PULL"
    FAILED_EVICTED = "FAILED_EVICTED"
    FAILED_START_ERROR = "FAILED_START_ERROR"
    FAILED_START_TIMEOUT = "FAILED_START_TIMEOUT"
    FAILED_PREEMPTED = "FAILED_PREEMPTED"

    @property
    def finished(self) -> bool:
        """Whether nothing more will happen to this attempt."""
        return self not in UNFINISHED

    @property
    def holds_node(self) -> bool:
        """Whether it has its GPUs."""
        return self in HOLDING


#: In a queue, and planned; on a node; and all that is not over.
QUEUED = (TaskStatus.SUBMITTING, TaskStatus.PROCESSING, TaskStatus.SCHEDULING)
HOLDING = (TaskStatus.INITIALIZING, TaskStatus.RUNNING)
UNFINISHED = (TaskStatus.WAITING, *QUEUED, *HOLDING)


class ExitCode:
    """Exit codes that are not the task's own."""

    UPSTREAM = 3000
    BACKEND = 3001
    SERVER = 3002
    START_ERROR = 3003
    EVICTED = 3004
    START_TIMEOUT = 3005
    PREEMPTED = 3006
    UNKNOWN = 4000


class TaskSpec(msgspec.Struct, frozen=True):
    """One task of a group."""

    name: str
    requests: Resources = Resources()
    storage_bytes: int = 0
    #: Its leaf of the group's gang; `None` where the group has no subgroups.
    subgroup: str | None = None
    #: The one whose end ends the group.
    lead: bool = False
    platform: str | None = None
    #: Nodes, by name, on which it must not run.
    nodes_excluded: tuple[str, ...] = ()
    exit_actions: dict[str, str] = {}
    #: How often it is tried again after a failure of its own; `None`: as the settings say.
    retries: int | None = None
    #: How long it runs where nothing really runs; `None`: until it is told to end.
    hold_s: int | None = None
    #: What the backend needs to run it, untouched by everything before the backend.
    launch: TaskTemplate | None = None


class GroupSpec(msgspec.Struct, frozen=True):
    """Tasks that start together or not at all."""

    name: str
    tasks: tuple[TaskSpec, ...]
    #: The groups whose end it waits for.
    upstream: tuple[str, ...] = ()
    ignore_nonlead_status: bool = True
    #: The gang's tree; see model.gang.
    minimum: int | None = None
    subgroups: tuple[SubGroup, ...] = ()
    constraint: TopologyConstraint | None = None
    sets: tuple[SubGroupSet, ...] = ()
    #: The levels of the topology that its tasks name in their resources, the widest first.
    levels: tuple[str, ...] = ()

    @property
    def gpus(self) -> int:
        """What all its tasks ask for together."""
        return sum(task.requests.gpus for task in self.tasks)


class Predecessor(msgspec.Struct, frozen=True):
    """Another workflow that this one waits for."""

    #: Its identifier.
    workflow: str
    #: Whether it must have completed; otherwise any end will do.
    completed: bool = False


class WorkflowSpec(msgspec.Struct, frozen=True):
    """What is submitted, but for the pool and the priority."""

    name: str
    groups: tuple[GroupSpec, ...]
    labels: dict[str, str] = {}
    exec_timeout_s: int | None = None
    queue_timeout_s: int | None = None
    #: The workflows that it starts after.
    after: tuple[Predecessor, ...] = ()
    #: Set if the workflow is an array.
    array: ArraySpec | None = None
    #: As it was written, rendered and before that.
    text: str = ""
    template: str | None = None
    #: What its author should know.
    warnings: tuple[str, ...] = ()
    #: The app that it was made from.
    app: AppSource | None = None


class Workflow(msgspec.Struct, frozen=True):
    """The record of a workflow."""

    uuid: str
    #: `<name>-<number>`, which people use.
    workflow_id: str
    name: str
    number: int
    submitted_by: str
    #: As it was submitted to: a pool, or a subpool by its canonical name.
    pool: str
    backend: str
    priority: Priority
    status: WorkflowStatus
    submitted_ms: int
    started_ms: int | None = None
    ended_ms: int | None = None
    cancelled_by: str | None = None
    failure_message: str | None = None
    labels: dict[str, str] = {}
    tags: tuple[str, ...] = ()
    exec_timeout_s: int | None = None
    queue_timeout_s: int | None = None
    #: The workflow that this one restarts.
    restarts: str | None = None
    warnings: tuple[str, ...] = ()
    #: The app that it was submitted from.
    app_uuid: str | None = None
    app_version: int | None = None
    #: Which element of which array it is.
    array_id: str | None = None
    array_index: int | None = None


class WorkflowArray(msgspec.Struct, frozen=True):
    """The record of an array. Its elements are workflows, made as there is room for them."""

    uuid: str
    #: `<name>-<number>`, as of a workflow; its elements are `<array_id>-<number>`.
    array_id: str
    name: str
    number: int
    submitted_by: str
    pool: str
    priority: Priority
    submitted_ms: int
    #: How many elements there are, how many of them were made, and how many may be at a time.
    count: int
    made: int = 0
    at_once: int | None = None
    #: What is added to an index for the number of an element: 0 unless such names were taken.
    first_number: int = 0
    #: Whether there is something left to make or to cancel.
    is_open: bool = True
    cancelled_by: str | None = None
    cancel_message: str = ""

    @property
    def unmade(self) -> int:
        """How many elements are still to be made."""
        return 0 if self.cancelled_by is not None else self.count - self.made

    def status(self, counts: dict[WorkflowStatus, int]) -> WorkflowStatus:
        """The status of all of it, from those of the elements that are not in the archive."""
        if counts.get(WorkflowStatus.RUNNING):
            return WorkflowStatus.RUNNING
        if self.unmade or any(not status.finished for status, number in counts.items() if number):
            return WorkflowStatus.PENDING
        if self.cancelled_by is not None:
            return WorkflowStatus.FAILED_CANCELED
        failed = any(status.failed for status, number in counts.items() if number)
        return WorkflowStatus.FAILED if failed else WorkflowStatus.COMPLETED


class Group(msgspec.Struct, frozen=True):
    """The record of a group."""

    uuid: str
    workflow_uuid: str
    name: str
    position: int
    #: The leaf that it waits in and counts against.
    queue: str
    status: TaskStatus
    spec: GroupSpec
    gpus: int
    #: Groups before it that are not over.
    remaining_upstream: tuple[str, ...] = ()
    failure_message: str | None = None
    #: When it came into the queue, got its nodes, ran first, and ended.
    queued_ms: int | None = None
    scheduled_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    #: Since when it has its status, and when that will have been too long.
    since_ms: int | None = None
    due_ms: int | None = None
    #: Others were told to end for it, and that room is kept for it.
    nominated: bool = False
    #: On which nodes, by task, while it is nominated; as snapshots call them.
    nominated_places: dict[str, str] | None = None
    #: Why it waits, from the latest plan that knew it; many groups may have one cause.
    wait_cause: str | None = None
    wait_reason: str | None = None
    wait_message: str | None = None


class Task(msgspec.Struct, frozen=True):
    """The record of one attempt of a task."""

    uuid: str
    workflow_uuid: str
    group_uuid: str
    name: str
    retry_id: int
    status: TaskStatus
    gpus: int
    lead: bool = False
    #: The node that it was given, and the backend that has it.
    node: str | None = None
    backend: str | None = None
    #: It was told to end, by this rule and at this time; it holds its GPUs until it is gone.
    releasing: str | None = None
    released_ms: int | None = None
    #: Beyond the minimum of its gang: it borrows, whatever its priority.
    growth: bool = False
    exit_code: int | None = None
    failure_message: str | None = None
    queued_ms: int | None = None
    scheduled_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None

    @property
    def attempt(self) -> str:
        """The identity of this attempt, which backends know it by."""
        return f"{self.uuid}/{self.retry_id}"

    @property
    def node_id(self) -> NodeId | None:
        """What the node that it was given is known by."""
        if self.node is None or self.backend is None:
            return None
        return NodeId(self.backend, self.node)
