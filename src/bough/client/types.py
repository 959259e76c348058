"""The shapes of answers, for those who check types. Nothing needs them at run time.

Fields that a server may leave out are marked; what else it sends is kept, and not described.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

Json = Any
Priority = Literal["HIGH", "NORMAL", "LOW"]
SubpoolState = Literal["ACTIVE", "DELETING", "ARCHIVED"]


class GpuQuota(TypedDict):
    """The GPUs of a pool; -1 is no limit."""

    guarantee: int
    maximum: int
    weight: int


class PoolResources(TypedDict):
    """What a pool has."""

    gpu: GpuQuota


class Pool(TypedDict):
    """A pool, or a subpool with what it inherits."""

    name: str
    description: str
    status: str
    backend: str
    resources: PoolResources
    platforms: dict[str, Json]
    #: `None`, or left out, for a pool that is no subpool.
    parent_pool: NotRequired[str | None]
    subpool_name: NotRequired[str | None]
    subpool_state: NotRequired[SubpoolState | None]
    #: Of a subpool: its GPUs; 0 while it is being deleted.
    quota: NotRequired[int]


class Affected(TypedDict):
    """A workflow that a new division of its pool keeps from starting, for ever or for longer."""

    workflow_id: str
    group: str
    pool: str
    priority: str
    gpus: int
    message: str


class SubpoolChange(Pool):
    """A subpool after a change, or as it would be, and the workflows that the change concerns."""

    reactivated: bool
    #: Only planned: nothing was changed.
    planned: bool
    stranded: list[Affected]
    delayed: list[Affected]
    #: How many there are, where not all are named.
    stranded_count: int
    delayed_count: int


class Usage(TypedDict):
    """Numbers of GPUs, as text."""

    quota_used: str
    quota_limit: str
    quota_free: str
    total_usage: str
    total_capacity: str
    total_free: str


class PoolRow(Pool):
    """A pool with what it uses."""

    resource_usage: Usage
    #: What a pool has together with its subpools.
    quota_total: NotRequired[str | int | None]
    #: GPUs of HIGH and NORMAL that can really start now, and why not all that is left.
    can_start: NotRequired[str]
    can_start_note: NotRequired[str]
    #: What keeps a subpool that is being deleted open.
    drain: NotRequired[Json]


class NodeSet(TypedDict):
    """Pools that share nodes."""

    pools: list[PoolRow]


class PoolQuotas(TypedDict):
    """All pools with what they use."""

    node_sets: list[NodeSet]
    resource_sum: Usage


class Cohort(TypedDict):
    """A cohort above pools; limits are `None` where there is none."""

    name: str
    parent: str | None
    quota: int
    borrowing_limit: int | None
    lending_limit: int | None
    weight: int
    description: NotRequired[str]


class CohortChange(TypedDict):
    """What became of a change of a cohort, and what it does to the tree."""

    cohort: Cohort | None
    effects: Json
    planned: bool


class Queue(TypedDict):
    """A node of the quota tree."""

    name: str
    parent: str | None
    leaf: bool
    quota: int | None
    used: int
    used_guaranteed: int
    pool: str | None
    state: SubpoolState | None


class Submitted(TypedDict):
    """A workflow that was accepted, or rendered, or found to be valid."""

    name: str
    overview: str | None
    logs: str | None
    spec: str | None
    dashboard_url: str | None
    warnings: list[str]


class WorkflowRow(TypedDict):
    """A workflow in a list."""

    user: str
    name: str
    workflow_uuid: str
    submit_time: str
    start_time: str | None
    end_time: str | None
    status: str
    pool: str
    priority: Priority
    labels: dict[str, str]
    overview: str | None


class WorkflowPage(TypedDict):
    """A part of the list of workflows."""

    workflows: list[WorkflowRow]
    more_entries: bool


class Task(TypedDict):
    """A task of a workflow."""

    name: str
    retry_id: int
    status: str
    start_time: str | None
    end_time: NotRequired[str | None]
    exit_code: NotRequired[int | None]
    failure_message: NotRequired[str | None]
    node_name: NotRequired[str | None]


class Group(TypedDict):
    """A group of tasks: one gang."""

    name: str
    status: str
    tasks: list[Task]


class Workflow(TypedDict):
    """A workflow with everything below it."""

    name: str
    uuid: str
    submitted_by: str
    status: str
    submit_time: str
    start_time: str | None
    end_time: str | None
    pool: str
    priority: Priority
    labels: dict[str, str]
    overview: str | None
    groups: list[Group]


class UsageRow(TypedDict):
    """GPU-hours of a pool, of a user, or of all."""

    name: str
    gpu_hours: float
    guaranteed: float
    preemptible: float
    borrowed: float


class UsageReport(TypedDict):
    """What was used from one moment to another."""

    since: str
    until: str
    by: Literal["pool", "user"]
    rows: list[UsageRow]
    total: UsageRow


class Revision(TypedDict):
    """One change of something configured."""

    config_type: str
    revision: int
    name: str | None
    username: str
    created_at: str
    description: str
    tags: list[str] | None
    data: NotRequired[Json]


class AuditEntry(TypedDict):
    """Who changed what."""

    number: int
    at: str
    actor: str
    action: str
    subject: str
    origin: str
    before: Json
    after: Json


class Event(TypedDict):
    """Something that happened, as the stream of events tells it."""

    id: str
    event: str
    data: Json


#: Spelled out here, because a subject's own `list` hides the type of that name.
Names = list[str]
PoolList = list[Pool]
CohortList = list[Cohort]
QueueList = list[Queue]
RevisionList = list[Revision]
AuditList = list[AuditEntry]
JsonList = list[Json]
