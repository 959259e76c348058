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


class PutSettings(msgspec.Struct, frozen=True):
    """The whole workflow configuration; what is left out is as it was at first."""

    configs: dict[str, Json]
    description: str = ""
    tags: list[str] = []


class PatchPolicy(msgspec.Struct, frozen=True):
    """Fields of the policy to change, or the text of a policy file that says them."""

    configs_dict: dict[str, Json] | None = None
    #: The text of a policy file, so that what is wrong is told with its line; and its name.
    file: str | None = None
    file_name: str = ""
    description: str = ""
    tags: list[str] = []


class PutPolicy(msgspec.Struct, frozen=True):
    """The whole policy; what is left out is as the preset has it, `osmo` where none is named."""

    configs: dict[str, Json] | None = None
    file: str | None = None
    file_name: str = ""
    description: str = ""
    tags: list[str] = []


class ServiceBody(msgspec.Struct, frozen=True):
    """What the server was started with."""

    service_base_url: str
    namespace: str
    version: str


class BackendLine(msgspec.Struct, frozen=True):
    """A backend, and what it has."""

    name: str
    online: bool
    last_heartbeat: str | None
    nodes: int
    gpus: int


class BackendList(msgspec.Struct, frozen=True):
    """All backends."""

    backends: list[BackendLine]


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


class ConfigDiff(msgspec.Struct, frozen=True):
    """Two revisions of a kind, and what is different between them."""

    config_type: str
    first_revision: int
    second_revision: int
    first_data: Json
    second_data: Json
    differences: list[Json]


class Rollback(msgspec.Struct, frozen=True):
    """Which revision to return to."""

    config_type: str
    revision: int
    description: str = ""
    tags: list[str] = []


class RoleBody(msgspec.Struct, frozen=True):
    """A role to write: as it is, or, as existing clients send it, in `configs`."""

    description: str = ""
    policies: list[Json] = []
    #: With it, the description above is about the change.
    configs: dict[str, Json] | None = None
    tags: list[str] = []
