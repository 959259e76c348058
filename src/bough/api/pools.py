"""Pools, subpools, cohorts and queues.

Field names are those of existing clients: the numbers of a quota are text, and "no limit" is -1
within `resources` and `null` elsewhere.
"""

from __future__ import annotations

import msgspec

from bough.api.common import Json

# Parts of a pool


class GpuShare(msgspec.Struct, frozen=True):
    """The GPUs of a pool; -1: no limit."""

    guarantee: int
    maximum: int
    weight: int


class PoolResources(msgspec.Struct, frozen=True):
    """The resources of a pool."""

    gpu: GpuShare


class PoolTopologyLevel(msgspec.Struct, frozen=True):
    """A topology level: its short name, and the node label it stands for."""

    key: str
    label: str


class PlatformSummary(msgspec.Struct, frozen=True):
    """A kind of hardware within a pool, as users see it."""

    description: str
    host_network_allowed: bool
    privileged_allowed: bool
    allowed_mounts: list[str]
    default_mounts: list[str]


class PlatformConfig(msgspec.Struct, frozen=True):
    """A kind of hardware within a pool, with its whole configuration."""

    description: str
    host_network_allowed: bool
    privileged_allowed: bool
    allowed_mounts: list[str]
    default_mounts: list[str]
    default_variables: dict[str, Json]
    resource_validations: list[str]
    override_pod_template: list[str]


class DrainingWorkflow(msgspec.Struct, frozen=True):
    """An unfinished workflow of a subpool that is being deleted."""

    workflow_id: str
    status: str
    priority: str
    submitted_by: str
    #: The GPUs that it holds or, where it holds none, that its largest group needs.
    gpus: int
    message: str


class DrainReport(msgspec.Struct, frozen=True):
    """The unfinished workflows of a subpool that is being deleted; it is archived after them."""

    workflow_count: int
    #: Workflows that cannot start as the pool is divided now, so the drain does not end.
    stranded_count: int
    workflows: list[DrainingWorkflow]


# Pools as they are configured


class PoolDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pool, or a subpool with the fields it inherits."""

    name: str
    description: str
    backend: str
    download_type: str | None
    enable_maintenance: bool
    default_platform: str | None
    default_exec_timeout: str
    default_queue_timeout: str
    max_exec_timeout: str
    max_queue_timeout: str
    default_exit_actions: dict[str, str]
    topology_keys: list[PoolTopologyLevel]
    common_default_variables: dict[str, Json]
    common_resource_validations: list[str]
    common_pod_template: list[str]
    common_group_templates: list[str]
    platforms: dict[str, PlatformConfig]
    #: `None`: the cohort above all.
    cohort: str | None
    borrowing_limit: int | None
    lending_limit: int | None
    #: GPUs that one user may hold with HIGH and NORMAL together.
    user_gpu_limit: int | None
    #: Whose workflows a user of the pool may cancel: `any` or `own`.
    cancel: str | None = None
    #: How much data it keeps under `bough://`, as `500Gi`, and for how long, as `60d`.
    data_quota: str = ""
    data_keep: str = ""
    resources: PoolResources
    #: ONLINE, OFFLINE or MAINTENANCE.
    status: str
    #: Why it is OFFLINE.
    offline: str | None = None
    #: Of a subpool alone: its pool, its short name, its state (ACTIVE, DELETING or ARCHIVED) and
    #: its GPUs, which are 0 while it is being deleted.
    parent_pool: str | None = None
    subpool_name: str | None = None
    subpool_state: str | None = None
    quota: int | None = None
    drain: DrainReport | None = None
    #: With `verbose`, for existing clients; nothing is parsed here, so these are empty.
    parsed_resource_validations: list[Json] | None = None
    parsed_pod_template: dict[str, Json] | None = None
    parsed_group_templates: list[Json] | None = None


class PoolDocuments(msgspec.Struct, frozen=True):
    """Pools by name, each with its whole configuration."""

    pools: dict[str, PoolDocument]


class PoolSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pool or subpool, as users see it."""

    name: str
    description: str
    status: str
    download_type: str | None
    enable_maintenance: bool
    backend: str
    default_platform: str | None
    default_exec_timeout: str
    default_queue_timeout: str
    max_exec_timeout: str
    max_queue_timeout: str
    default_exit_actions: dict[str, str]
    resources: PoolResources
    topology_keys: list[PoolTopologyLevel]
    platforms: dict[str, PlatformSummary]
    #: Why it is OFFLINE.
    offline: str | None = None
    #: Whose workflows a user of the pool may cancel: `any` or `own`.
    cancel: str | None = None
    #: Of a subpool alone.
    parent_pool: str | None = None
    subpool_name: str | None = None
    subpool_state: str | None = None


class PoolName(msgspec.Struct, frozen=True):
    """The name of a pool."""

    name: str


class NodeSetNames(msgspec.Struct, frozen=True):
    """The names of the pools of a node set."""

    pools: list[PoolName]


class PoolList(msgspec.Struct, frozen=True):
    """Pools and subpools by name."""

    pools: dict[str, PoolSummary]
    #: For clients that choose the only pool there is.
    node_sets: list[NodeSetNames]


class CreatePool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pool to create."""

    name: str
    configs: dict[str, Json] = {}
    description: str = ""
    tags: list[str] = []


class RenamePool(msgspec.Struct, frozen=True, omit_defaults=True):
    """A new name for a pool or a platform."""

    new_name: str
    description: str = ""
    tags: list[str] = []


# Use of pools


class ResourceUsage(msgspec.Struct, frozen=True):
    """The GPUs that a pool has and uses; the numbers are text."""

    #: GPUs of HIGH and NORMAL that run, what is guaranteed, and the difference, which is negative
    #: while there is something to drain.
    quota_used: str
    quota_free: str
    quota_limit: str
    #: GPUs of everything that runs, LOW too.
    total_usage: str
    #: GPUs of the nodes, and the idle ones among them.
    total_capacity: str
    total_free: str


class PoolUsage(PoolSummary, frozen=True, kw_only=True, omit_defaults=False):
    """A pool or subpool and its usage; fields that do not apply are `null`."""

    resource_usage: ResourceUsage
    #: What a pool has together with its subpools, where it is divided.
    quota_total: str | None
    #: GPUs of HIGH and NORMAL that can really start now, and why that is less than the quota
    #: leaves.
    can_start: str
    can_start_note: str
    drain: DrainReport | None


class NodeSetUsage(msgspec.Struct, frozen=True):
    """Pools that share nodes, each followed by its subpools."""

    pools: list[PoolUsage]


class PoolQuotas(msgspec.Struct, frozen=True):
    """Quota and usage of all pools."""

    node_sets: list[NodeSetUsage]
    resource_sum: ResourceUsage


class QueueUsage(msgspec.Struct, frozen=True):
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
    #: The pool or subpool whose workflows wait here.
    pool: str | None
    state: str | None
    #: What it uses beyond its own quota, of all that its parent could lend, for its weight; rounded
    #: up. `infinite`: it has no weight and takes anything. By a policy with `dominant_share` the
    #: largest of GPUs, CPU and memory; by one with fair shares, which part it uses of what it may
    #: have.
    share: str = "0"
    #: Its own quota, and of all below it.
    deserved: int = 0
    #: What it could have now, as the policy divides all that is asked for, else if idle capacity
    #: were divided by weight. `null`: by `dominant_share`, where nothing is divided beforehand.
    fair: int | float | None = 0


# Subpools


class CreateSubpool(msgspec.Struct, frozen=True):
    """A subpool to create; a fraction of a GPU is rounded down."""

    name: str
    quota: int | float


class SubpoolList(msgspec.Struct, frozen=True):
    """The subpools of a pool."""

    subpools: list[PoolDocument]


class AffectedWorkflow(msgspec.Struct, frozen=True):
    """A waiting workflow that a change of quota delays, or prevents from ever starting."""

    workflow_id: str
    group: str
    pool: str
    priority: str
    gpus: int
    message: str


class PoolAnswer(PoolDocument, frozen=True, kw_only=True):
    """A pool after a change, or as planned, and the workflows that the change affects."""

    #: Only planned: nothing was changed.
    planned: bool
    #: Workflows that cannot start any more, and workflows that start only later.
    stranded: list[AffectedWorkflow]
    delayed: list[AffectedWorkflow]
    #: How many there are, where not all are named.
    stranded_count: int
    delayed_count: int


class PoolsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Pools after a change, or as planned, and the workflows that the change affects."""

    configs: dict[str, PoolDocument]
    #: As for one pool.
    planned: bool
    stranded: list[AffectedWorkflow]
    delayed: list[AffectedWorkflow]
    stranded_count: int
    delayed_count: int


class SubpoolAnswer(PoolAnswer, frozen=True, kw_only=True):
    """A subpool after a change, or as planned."""

    #: Whether it was archived before.
    reactivated: bool


# Cohorts


class CohortConfig(msgspec.Struct, frozen=True):
    """A cohort above pools; a limit of `null` means no limit."""

    name: str
    parent: str | None
    quota: int
    borrowing_limit: int | None
    lending_limit: int | None
    weight: int
    description: str


class CreateCohort(msgspec.Struct, frozen=True):
    """A cohort to create, with any of its fields."""

    name: str
    parent: str | None = None
    quota: int | float = 0
    borrowing_limit: int | float | None = None
    lending_limit: int | float | None = None
    weight: int | float = 1
    description: str = ""


class NodeDebt(msgspec.Struct, frozen=True):
    """A node of the quota tree that uses more than its limit."""

    #: Its kind and its name.
    node: tuple[str, str]
    #: The flavor and the resource.
    flavor_resource: tuple[str, str]
    #: By how much, without the change and with it.
    before: int
    after: int


class TreeEffects(msgspec.Struct, frozen=True):
    """What a change does to the quota tree."""

    #: Nodes that come into debt or deeper into it, and nodes that owe less.
    debts: list[NodeDebt]
    relieved: list[NodeDebt]
    #: Nodes that the change puts onto a cycle, where nothing new starts, and nodes that leave one.
    tangled: list[tuple[str, str]]
    untangled: list[tuple[str, str]]
    #: Always empty for cohorts: use that would be counted nowhere.
    uncounted: dict[str, int]


class CohortAnswer(msgspec.Struct, frozen=True):
    """A cohort after a change, or as planned, and the effects of the change."""

    #: `null`: it is gone.
    cohort: CohortConfig | None
    #: Only planned: nothing was changed.
    planned: bool
    effects: TreeEffects
