"""Nodes, backends and GPU-hours."""

from __future__ import annotations

import msgspec

from bough.api.common import Json

# Nodes as resources, as existing clients list them


class NodeAmounts(msgspec.Struct, frozen=True):
    """What a node has, or how much is used; memory in Ki, storage in bytes."""

    gpu: int
    cpu: int | float
    memory: str
    storage: str


class ExposedFields(msgspec.Struct, frozen=True):
    """What a node has, and which pools and platforms may use it."""

    gpu: int
    cpu: int | float
    memory: str
    storage: str
    node: str
    pool_platforms: list[str] = msgspec.field(name="pool/platform")


class NodeTaint(msgspec.Struct, frozen=True):
    """A taint of a node: keeps tasks away that do not tolerate it."""

    key: str
    value: str
    effect: str


class PlatformRights(msgspec.Struct, frozen=True):
    """What tasks on a platform may do."""

    host_network: bool
    privileged: bool
    default_mounts: list[str]
    allowed_mounts: list[str]


class ResourceLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A node: what it has, and how much is used."""

    hostname: str
    exposed_fields: ExposedFields
    allocatable_fields: NodeAmounts
    #: By pool and platform.
    platform_allocatable_fields: dict[str, dict[str, NodeAmounts]]
    usage_fields: NodeAmounts
    non_workflow_usage_fields: NodeAmounts
    #: UNUSED, RESERVED or SHARED.
    resource_type: str
    backend: str
    label_fields: dict[str, str]
    cordoned: bool
    #: The names of its platforms, by pool.
    pool_platform_labels: dict[str, list[str]]
    taints: list[NodeTaint]
    #: Only of a node that is asked for by its name.
    config_fields: dict[str, dict[str, PlatformRights]] | None = None


class ResourceList(msgspec.Struct, frozen=True):
    """Nodes: what they have, and how much is used."""

    resources: list[ResourceLine]


class SetCordon(msgspec.Struct, frozen=True):
    """Whether a node is cordoned."""

    cordoned: bool


# Nodes as administrators see them


class NodeLine(msgspec.Struct, frozen=True):
    """A node: whether it accepts work, what it has, and how much is used."""

    name: str
    backend: str
    #: READY, CORDONED, or OFFLINE: its backend does not answer.
    status: str
    cordoned: bool
    #: How many tasks are on it.
    tasks: int
    gpu: int
    used_gpu: int
    cpu: int | float
    used_cpu: int | float
    memory: str
    used_memory: str
    pools: list[str]
    labels: dict[str, str]


class NodeList(msgspec.Struct, frozen=True):
    """All nodes."""

    nodes: list[NodeLine]


class NodeDrained(msgspec.Struct, frozen=True):
    """A drained node, and how many of its tasks are evicted or may finish."""

    node: NodeLine
    #: How many tasks were told to end, and how many run to their end.
    told: int
    left: int


class NodeLost(msgspec.Struct, frozen=True):
    """A machine that was declared lost."""

    backend: str
    #: Its name and folder; `null`: the node alone was declared lost.
    machine: str | None
    nodes: list[str]
    #: How many tasks were on them, which start again elsewhere if they may.
    tasks: int


class BackendLine(msgspec.Struct, frozen=True):
    """A backend, and what it has."""

    name: str
    online: bool
    #: Why it is not.
    offline: str | None
    last_heartbeat: str | None
    nodes: int
    gpus: int
    version: str
    #: Where sessions with its tasks are opened.
    router_address: str
    #: When it last answered, too: when it first did is not kept.
    created_date: str | None
    # What administrators say about it.
    description: str = ""
    dashboard_url: str = ""
    grafana_url: str = ""
    tests: list[str] = []
    # What existing clients read and Bough has nothing to say about.
    k8s_uid: str = ""
    k8s_namespace: str = ""
    scheduler_settings: dict[str, str | int] = msgspec.field(
        default_factory=lambda: {"scheduler_type": "kai", "scheduler_name": "bough"}
    )
    node_conditions: dict[str, Json] = {}


class BackendList(msgspec.Struct, frozen=True):
    """All backends."""

    backends: list[BackendLine]


# GPU-hours


class UsageLine(msgspec.Struct, frozen=True):
    """GPU-hours of a pool, of a user, or of all."""

    name: str
    gpu_hours: float
    #: Of HIGH and NORMAL, up to the minimum of each gang.
    guaranteed: float
    #: Of LOW, and of what gangs had beyond their minimum.
    preemptible: float
    #: The part of `preemptible` that was beyond the quota of its pool.
    borrowed: float


class UsageReport(msgspec.Struct, frozen=True):
    """GPU-hours from one time to another."""

    since: str
    until: str
    #: pool or user.
    by: str
    rows: list[UsageLine]
    total: UsageLine
