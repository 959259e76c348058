"""The bodies that are sent and received, where they have a fixed form. Must not know any rule.

Field names are those that existing clients know. What they read as text (the numbers of a quota)
is text.
"""

from __future__ import annotations

from typing import Any

import msgspec

Json = Any


class ErrorBody(msgspec.Struct, frozen=True):
    """Every error."""

    message: str
    #: What existing clients go by: USER, USAGE, DATABASE or SERVER.
    error_code: str
    #: The record of a workflow that was refused.
    workflow_id: str | None = None
    #: What programs go by; see the reference of error codes.
    code: str = "invalid"
    hint: str = ""
    details: tuple[str, ...] = ()


# Pools


class PoolName(msgspec.Struct, frozen=True):
    """A pool by its name alone."""

    name: str


class NodeSetNames(msgspec.Struct, frozen=True):
    """The pools of a node set by their names."""

    pools: list[PoolName]


class PoolList(msgspec.Struct, frozen=True):
    """Pools and subpools by name."""

    pools: dict[str, Json]
    #: For clients that choose the only pool there is.
    node_sets: list[NodeSetNames] = []


class PoolConfigs(msgspec.Struct, frozen=True):
    """Pools by name, each with all that is configured for it."""

    pools: dict[str, Json]


class PutPools(msgspec.Struct, frozen=True):
    """Pools to make or to replace; others stay."""

    configs: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class PutPool(msgspec.Struct, frozen=True):
    """A pool to make or to replace."""

    configs: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class CreatePool(msgspec.Struct, frozen=True):
    """A pool to make, which is not there yet."""

    name: str
    configs: dict[str, Json] = {}
    description: str = ""
    tags: list[str] = []


class PatchPool(msgspec.Struct, frozen=True):
    """Fields of a pool to change; objects are merged, `null` removes."""

    configs_dict: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class RenamePool(msgspec.Struct, frozen=True):
    """Another name for a pool."""

    new_name: str
    description: str = ""
    tags: list[str] = []


class CreateSubpool(msgspec.Struct, frozen=True):
    """A part of a pool; a fraction of a GPU is rounded down."""

    name: str
    quota: int | float


class SubpoolList(msgspec.Struct, frozen=True):
    """The subpools of a pool."""

    subpools: list[Json]


class ResourceUsage(msgspec.Struct, frozen=True):
    """What a pool has and uses. Numbers as text, which is what clients know."""

    quota_used: str
    quota_free: str
    quota_limit: str
    total_usage: str
    total_capacity: str
    total_free: str


class NodeSetRows(msgspec.Struct, frozen=True):
    """Pools that share nodes, each followed by its subpools."""

    pools: list[Json]


class PoolQuotas(msgspec.Struct, frozen=True):
    """What all pools have and use."""

    node_sets: list[NodeSetRows]
    resource_sum: ResourceUsage


class Queue(msgspec.Struct, frozen=True):
    """A node of the quota tree."""

    name: str
    parent: str | None
    leaf: bool
    #: `null`: no limit.
    quota: int | None
    limit: int | None
    weight: int
    used: int
    used_guaranteed: int
    #: What is submitted to this name comes here.
    pool: str | None
    state: str | None


# Cohorts and settings


class CreateCohort(msgspec.Struct, frozen=True):
    """A cohort to declare, with any of its fields."""

    name: str
    parent: str | None = None
    quota: int | float = 0
    borrowing_limit: int | float | None = None
    lending_limit: int | float | None = None
    weight: int | float = 1
    description: str = ""


class CohortAnswer(msgspec.Struct, frozen=True):
    """What became of a change, or would become of it."""

    #: `null`: it is gone.
    cohort: Json
    #: Only planned: nothing was changed.
    planned: bool
    effects: Json


class PatchSettings(msgspec.Struct, frozen=True):
    """Fields of the workflow configuration to change."""

    configs_dict: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class ConfigRevision(msgspec.Struct, frozen=True):
    """One change of one configured object."""

    config_type: str
    revision: int
    name: str
    username: str
    created_at: str
    description: str
    tags: list[str]
    data: Json
    differences: list[Json]


class ConfigHistory(msgspec.Struct, frozen=True):
    """Changes of configuration."""

    configs: list[ConfigRevision]


class Rollback(msgspec.Struct, frozen=True):
    """Which revision to return to."""

    config_type: str
    revision: int


class RoleBody(msgspec.Struct, frozen=True):
    """A role to write."""

    description: str = ""
    policies: list[Json] = []


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
    app_owner: str | None
    app_name: str | None
    app_version: str | None
    priority: str
    labels: dict[str, str]
    tags: list[str]


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
    app_owner: str | None
    app_name: str | None
    app_version: str | None
    plugins: dict[str, bool]
    priority: str
    labels: dict[str, str]
    warnings: list[str]


class WhyGroup(msgspec.Struct, frozen=True):
    """Why a group waits."""

    group: str
    status: str
    reason: str | None
    message: str | None
    #: The violated inequality, or what no node has, and who holds it.
    certificate: Json = None
    #: Changes by which it would start, each shown by planning; only if they are asked for.
    remedies: Json = None


class WhyBody(msgspec.Struct, frozen=True):
    """Why a workflow waits; no groups: nothing of it does."""

    workflow: str
    status: str
    message: str
    groups: list[WhyGroup]


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


# Nodes


class Cordon(msgspec.Struct, frozen=True):
    """Whether a node takes nothing new."""

    cordoned: bool


class ResourceList(msgspec.Struct, frozen=True):
    """Nodes with what they have and what is used."""

    resources: list[Json]


# People


class ProfileChoices(msgspec.Struct, frozen=True):
    """What a user has chosen."""

    username: str
    email_notification: bool
    slack_notification: bool
    pool: str | None


class ProfileToken(msgspec.Struct, frozen=True):
    """The token that was used."""

    name: str
    expires_at: str


class ProfileBody(msgspec.Struct, frozen=True):
    """What a user has chosen, and may use."""

    profile: ProfileChoices
    pools: list[str]
    roles: list[str]
    token: ProfileToken | None


class UserLine(msgspec.Struct, frozen=True):
    """A user in a list."""

    id: str
    created_at: str | None
    created_by: str


class UserList(msgspec.Struct, frozen=True):
    """Users, and how many there are in all."""

    users: list[UserLine]
    total_results: int


class RoleAssignment(msgspec.Struct, frozen=True):
    """A role that a user was given."""

    role_name: str
    assigned_by: str
    assigned_at: str | None


class UserBody(msgspec.Struct, frozen=True):
    """A user with the roles that were given."""

    id: str
    created_at: str | None
    created_by: str
    roles: list[RoleAssignment]


class CreateUser(msgspec.Struct, frozen=True):
    """A user to add."""

    id: str
    roles: list[str] = []


class ChangeRoles(msgspec.Struct, frozen=True):
    """Roles to give and to take."""

    add: list[str] = []
    remove: list[str] = []


class RoleName(msgspec.Struct, frozen=True):
    """A role to give."""

    role_name: str


class RoleUsers(msgspec.Struct, frozen=True):
    """Who has a role."""

    role_name: str
    users: list[str]


class TokenLine(msgspec.Struct, frozen=True):
    """A personal access token, without its secret."""

    token_name: str
    user_name: str
    description: str
    expires_at: str
    created_at: str | None
    roles: list[str]


class TokenRoles(msgspec.Struct, frozen=True):
    """What a token may do."""

    token_name: str
    user_name: str
    roles: list[str]


class TokenSecret(msgspec.Struct, frozen=True):
    """The secret of a token."""

    token: str


class PassBody(msgspec.Struct, frozen=True):
    """A short-lived token made from a personal one."""

    token: str
    expires_at: int
    error: str | None = None


class LoginBody(msgspec.Struct, frozen=True):
    """How to log in: with a token alone, so every other way is absent."""

    methods: list[str]
    device_endpoint: str | None = None
    device_client_id: str | None = None
    browser_endpoint: str | None = None
    browser_client_id: str | None = None
    token_endpoint: str | None = None


class CredentialLine(msgspec.Struct, frozen=True):
    """A credential, without what is secret."""

    cred_name: str
    cred_type: str
    keys: list[str]
    created_at: str | None


class CredentialList(msgspec.Struct, frozen=True):
    """One's credentials."""

    credentials: list[CredentialLine]


class SetCredential(msgspec.Struct, frozen=True):
    """A secret to keep."""

    type: str
    payload: dict[str, str]


# Records and the system


class AuditLine(msgspec.Struct, frozen=True):
    """Who changed what, when, from where, before and after."""

    number: int
    at: str | None
    actor: str
    action: str
    subject: str
    origin: str
    token: str | None
    before: Json
    after: Json


class AuditPage(msgspec.Struct, frozen=True):
    """Entries of the audit, the latest first."""

    entries: list[AuditLine]


class VersionBody(msgspec.Struct, frozen=True):
    """The version of the server."""

    major: str
    minor: str
    revision: str
    hash: str = ""


class HealthBody(msgspec.Struct, frozen=True):
    """Whether the server can answer."""

    status: str
    #: Whether this server decides; among several, one does.
    schedules: bool
