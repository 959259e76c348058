"""Submissions, workflows and tasks."""

from __future__ import annotations

import msgspec

from bough.api.common import Priority

# Submissions


class TemplateSpec(msgspec.Struct, frozen=True):
    """A workflow to submit."""

    file: str
    set_variables: list[str] = []
    set_string_variables: list[str] = []
    uploaded_templated_spec: str | None = None


class DefaultTaskLimits(msgspec.Struct, frozen=True):
    """The limits of a task that requests none: for each of its GPUs, or if it has no GPU."""

    memory: str
    storage: str


class Submission(msgspec.Struct, frozen=True):
    """The answer to a submission."""

    name: str
    overview: str
    logs: str | None = None
    spec: str | None = None
    dashboard_url: str | None = None
    warnings: list[str] = []
    #: Absent where every task says what it needs, or nothing bounds it.
    default_limits: DefaultTaskLimits | None = None
    #: How many workflows it is, if it is an array.
    elements: int | None = None


class UpdateWorkflow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A new pool or priority for a workflow that holds no GPUs; absent fields stay."""

    pool: str | None = None
    priority: Priority | None = None


class WorkflowName(msgspec.Struct, frozen=True):
    """The name of a workflow."""

    name: str


# Lists


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
    #: GPUs that all its groups ask for together.
    gpus: int
    #: Why the first group that waits does, in one word; `bough workflow why` tells more.
    wait_reason: str | None
    #: The app that it was submitted from, as it is called now.
    app_owner: str | None = None
    app_name: str | None = None
    app_version: int | None = None
    #: Which element of which array it is.
    array: str | None = None
    array_index: int | None = None


class ArrayDocument(msgspec.Struct, frozen=True):
    """An array, with the number of its elements in each status."""

    name: str
    uuid: str
    user: str
    pool: str
    priority: str
    status: str
    submit_time: str
    elements: int
    #: The most elements that wait or run at a time.
    at_once: int | None
    #: By status; those that were not made yet are PENDING, or FAILED_CANCELED if it was cancelled.
    statuses: dict[str, int]
    #: How many are in the archive, and counted nowhere else.
    archived: int
    cancelled_by: str | None


class ArrayPage(msgspec.Struct, frozen=True):
    """A page of the list of arrays."""

    arrays: list[ArrayDocument]
    more_entries: bool


class WorkflowPage(msgspec.Struct, frozen=True):
    """A page of the list of workflows."""

    workflows: list[WorkflowLine]
    more_entries: bool


class TaskLine(msgspec.Struct, frozen=True):
    """A task in a list; memory and storage in GiB."""

    user: str
    workflow_id: str
    workflow_uuid: str
    task_name: str
    retry_id: int
    status: str
    pool: str
    priority: str
    #: The node that it was given, and the backend that has it.
    node: str | None
    backend: str | None
    start_time: str | None
    end_time: str | None
    storage: float
    cpu: float
    memory: float
    gpu: int


class TaskSummary(msgspec.Struct, frozen=True):
    """The summed requests of several tasks; memory and storage in GiB."""

    user: str
    pool: str
    priority: str
    workflow_id: str | None
    storage: float
    cpu: float
    memory: float
    gpu: int


class TaskList(msgspec.Struct, frozen=True):
    """Tasks, or the sums of their requests."""

    tasks: list[TaskLine] = []
    #: Absent unless it was asked for: OSMO's MCP server refuses a list of tasks with more in it.
    summaries: list[TaskSummary] | msgspec.UnsetType = msgspec.UNSET


class TagList(msgspec.Struct, frozen=True):
    """Tags that are in use."""

    tags: list[str]


# One workflow


class PreemptionLine(msgspec.Struct, frozen=True):
    """Preempted tasks: for which group, at which level, and by which rule."""

    at: str | None
    tasks: list[str]
    rule: str
    message: str
    #: The group is elastic, gave these back and kept running.
    given_back: bool
    #: As `workflow/group`.
    preemptor: str | None
    preemptor_user: str | None
    preemptor_pool: str | None
    preemptor_priority: str | None
    level: str | None


class TaskDocument(msgspec.Struct, frozen=True):
    """One attempt of a task."""

    name: str
    retry_id: int
    status: str
    failure_message: str | None
    exit_code: int | None
    logs: str
    error_logs: str | None
    events: str
    processing_start_time: str | None
    scheduling_start_time: str | None
    initializing_start_time: str | None
    start_time: str | None
    end_time: str | None
    pod_name: str | None
    pod_ip: str | None
    task_uuid: str
    #: The node that it was given, and the backend that has it.
    node_name: str | None
    backend: str | None
    lead: bool
    gpus: int


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
    #: The latest last.
    preemptions: list[PreemptionLine] = []


class WorkflowDocument(msgspec.Struct, frozen=True):
    """A workflow with its groups and tasks."""

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
    #: In seconds, as all lengths of time here.
    exec_timeout: int | None
    queue_timeout: int | None
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
    #: The app that it was submitted from, as it is called now.
    app_owner: str | None = None
    app_name: str | None = None
    app_version: int | None = None
    #: Since when it is in the archive.
    archive_time: str | None = None
    #: Which element of which array it is.
    array: str | None = None
    array_index: int | None = None
