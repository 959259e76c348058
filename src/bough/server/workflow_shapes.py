"""Bodies about workflows, tasks and nodes. Must not know any rule."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.model.workflow import Priority

Json = Any


# Workflows


class TemplateSpec(msgspec.Struct, frozen=True):
    """A workflow to submit."""

    file: str
    set_variables: list[str] = []
    set_string_variables: list[str] = []
    uploaded_templated_spec: str | None = None


class Submission(msgspec.Struct, frozen=True):
    """The answer to a submission."""

    name: str
    overview: str
    logs: str | None = None
    spec: str | None = None
    dashboard_url: str | None = None
    warnings: list[str] = []


class UpdateWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a workflow that holds no GPUs is to wait; what is left out stays."""

    pool: str | None = None
    priority: Priority | None = None


class Named(msgspec.Struct, frozen=True):
    """What was meant."""

    name: str


class WorkflowLine(msgspec.Struct, frozen=True):
    """A workflow in a list."""

    user: str
    name: str
    workflow_uuid: str
    submit_time: str
    start_time: str | None
    end_time: str | None
    queued_time: float | None
    duration: float | None
    status: str
    overview: str
    logs: str
    error_logs: str | None
    grafana_url: str | None
    dashboard_url: str | None
    pool: str
    priority: str
    labels: dict[str, str]
    tags: list[str]
    #: There are no apps; clients look for these.
    app_owner: str | None = None
    app_name: str | None = None
    app_version: str | None = None


class WorkflowPage(msgspec.Struct, frozen=True):
    """A part of the list of workflows."""

    workflows: list[WorkflowLine]
    more_entries: bool


class TaskDocument(msgspec.Struct, frozen=True):
    """One attempt of a task."""

    name: str
    retry_id: int
    status: str
    failure_message: str | None
    exit_code: int | None
    logs: str
    error_logs: str | None
    processing_start_time: str | None
    scheduling_start_time: str | None
    initializing_start_time: str | None
    start_time: str | None
    end_time: str | None
    pod_name: str | None
    pod_ip: str | None
    task_uuid: str
    node_name: str | None
    lead: bool
    gpus: int


class PreemptionLine(msgspec.Struct, frozen=True):
    """Tasks that had to end for others: for whom, at which level, by which rule."""

    at: str | None
    tasks: list[str]
    rule: str
    message: str
    #: The group is elastic, gave these back and went on.
    given_back: bool
    #: As `workflow/group`.
    preemptor: str | None
    preemptor_user: str | None
    preemptor_pool: str | None
    preemptor_priority: str | None
    level: str | None


class GroupDocument(msgspec.Struct, frozen=True):
    """A group with its tasks."""

    name: str
    status: str
    processing_start_time: str | None
    scheduling_start_time: str | None
    initializing_start_time: str | None
    start_time: str | None
    end_time: str | None
    remaining_upstream_groups: list[str]
    downstream_groups: list[str]
    failure_message: str | None
    wait_reason: str | None
    wait_message: str | None
    tasks: list[TaskDocument]
    #: When it had to end for others, the latest at the end.
    preemptions: list[PreemptionLine] = []


class WorkflowDocument(msgspec.Struct, frozen=True):
    """A workflow with everything below it."""

    name: str
    uuid: str
    submitted_by: str
    cancelled_by: str | None
    spec: str
    template_spec: str | None
    logs: str
    events: str
    overview: str
    parent_name: str | None
    parent_job_id: int | None
    dashboard_url: str | None
    grafana_url: str | None
    tags: list[str]
    submit_time: str
    start_time: str | None
    end_time: str | None
    exec_timeout: str | None
    queue_timeout: str | None
    duration: float | None
    queued_time: float | None
    status: str
    failure_message: str | None
    outputs: str
    groups: list[GroupDocument]
    pool: str
    backend: str
    plugins: dict[str, bool]
    priority: str
    labels: dict[str, str]
    warnings: list[str]
    #: There are no apps; clients look for these.
    app_owner: str | None = None
    app_name: str | None = None
    app_version: str | None = None


class WhyGroup(msgspec.Struct, frozen=True):
    """Why a group waits, and all that wait like it."""

    group: str
    status: str
    reason: str | None
    message: str | None
    #: The other groups of which all of this is true, and how many tasks they have all together.
    alike: list[str] = []
    tasks: int = 0
    #: The violated inequality, or what no node has, and who holds it.
    certificate: Json = None
    #: Changes by which it would start, each shown by planning; only if they are asked for.
    remedies: Json = None
    #: When it had to end for others, the latest at the end.
    preemptions: list[PreemptionLine] = []


class WhyRunning(msgspec.Struct, frozen=True):
    """Groups that run: since when, where, and by which right."""

    groups: list[str]
    status: str
    message: str
    since: str | None
    #: How many of their tasks each node has.
    nodes: dict[str, int]
    #: GPUs that cannot be taken from them, and GPUs that can.
    guaranteed: int
    preemptible: int
    #: Tasks of an elastic group that do not run, and what a plan says about them.
    waiting_tasks: int = 0
    certificate: Json = None
    preemptions: list[PreemptionLine] = []


class WhyBody(msgspec.Struct, frozen=True):
    """Why a workflow waits; no groups: nothing of it does."""

    workflow: str
    status: str
    message: str
    groups: list[WhyGroup]
    running: list[WhyRunning] = []


class TaskLine(msgspec.Struct, frozen=True):
    """A task in a list."""

    user: str
    workflow_id: str
    workflow_uuid: str
    task_name: str
    retry_id: int
    status: str
    pool: str
    priority: str
    node: str | None
    start_time: str | None
    end_time: str | None
    storage: float
    cpu: float
    memory: float
    gpu: int


class TaskSummary(msgspec.Struct, frozen=True):
    """What tasks ask for together; memory and storage in GiB."""

    user: str
    pool: str
    priority: str
    workflow_id: str | None
    storage: float
    cpu: float
    memory: float
    gpu: int


class TaskList(msgspec.Struct, frozen=True):
    """Tasks, or what they ask for together."""

    tasks: list[TaskLine] = []
    summaries: list[TaskSummary] = []


class Tags(msgspec.Struct, frozen=True):
    """Tags that are in use."""

    tags: list[str]


# Nodes and what was used of them


class UsageLine(msgspec.Struct, frozen=True):
    """GPU-hours of a pool, of a user, or of all."""

    name: str
    gpu_hours: float
    #: Of HIGH and NORMAL, up to the minimum of each gang.
    guaranteed: float
    #: Of LOW, and of what gangs had beyond their minimum.
    preemptible: float
    #: The part of what is preemptible that was beyond the quota of its pool.
    borrowed: float


class UsageBody(msgspec.Struct, frozen=True):
    """What was used from one moment to another."""

    since: str
    until: str
    by: str
    rows: list[UsageLine]
    total: UsageLine


class Cordon(msgspec.Struct, frozen=True):
    """Whether a node takes nothing new."""

    cordoned: bool


class ResourceList(msgspec.Struct, frozen=True):
    """Nodes with what they have and what is used."""

    resources: list[Json]


class NodeLine(msgspec.Struct, frozen=True):
    """A node: whether it takes work, what it has, and what is used of it."""

    name: str
    backend: str
    #: READY or CORDONED.
    status: str
    cordoned: bool
    #: How many tasks are on it.
    tasks: int
    gpu: int
    used_gpu: int
    cpu: float
    used_cpu: float
    memory: str
    used_memory: str
    pools: list[str]
    labels: dict[str, str]


class NodeDrained(msgspec.Struct, frozen=True):
    """A node that takes nothing new, and what becomes of what is on it."""

    node: NodeLine
    #: How many tasks were told to end, and how many stay until they end by themselves.
    told: int
    left: int


class NodeList(msgspec.Struct, frozen=True):
    """All nodes."""

    nodes: list[NodeLine]
