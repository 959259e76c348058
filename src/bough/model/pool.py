"""Pools: named parts of a cluster with a quota of GPUs, and all that is configured for them.

Field names are those of the wire, except that "no limit" is `None`. Subpools have nothing of
their own but a name, an edge, a quota and a state (model.subpool).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from bough.model.cluster import Taint
from bough.model.names import NodeId

#: JSON as it was sent.
Json = Any


class PoolStatus(StrEnum):
    """Whether a pool can run work."""

    ONLINE = "ONLINE"
    #: Its backend has not answered for a while; submitted workflows wait.
    OFFLINE = "OFFLINE"
    #: Only administrators may submit.
    MAINTENANCE = "MAINTENANCE"


class CancelRule(StrEnum):
    """Whose workflows a user of a pool may cancel; the pool's admins may cancel all."""

    ANY = "any"
    OWN = "own"


class GpuQuota(msgspec.Struct, frozen=True):
    """How many GPUs a pool has."""

    #: For HIGH and NORMAL; `None`: what the other pools leave.
    guarantee: int | None = None
    #: For everything, LOW too.
    maximum: int | None = None
    #: Its part of what is idle.
    weight: int = 1


class TopologyKey(msgspec.Struct, frozen=True):
    """A level of the topology, widest first: its short name and the label of the nodes."""

    key: str
    label: str


class Comparison(StrEnum):
    """How a rule compares its left operand with its right one."""

    GT = "GT"
    GE = "GE"
    LT = "LT"
    LE = "LE"
    EQ = "EQ"


class ResourceAssertion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule for what a task may ask for."""

    operator: Comparison
    left_operand: str
    right_operand: str
    #: The message if the rule does not hold.
    assert_message: str = ""


class Platform(msgspec.Struct, frozen=True):
    """A kind of hardware within a pool."""

    description: str = ""
    host_network_allowed: bool = False
    privileged_allowed: bool = False
    allowed_mounts: tuple[str, ...] = ()
    default_mounts: tuple[str, ...] = ()
    default_variables: dict[str, Json] = {}
    resource_validations: tuple[str, ...] = ()
    override_pod_template: tuple[str, ...] = ()


class Pool(msgspec.Struct, frozen=True):
    """A pool as it is configured."""

    name: str
    description: str = ""
    backend: str = "default"
    download_type: str | None = None
    enable_maintenance: bool = False
    default_platform: str | None = None
    default_exec_timeout: str = ""
    default_queue_timeout: str = ""
    max_exec_timeout: str = ""
    max_queue_timeout: str = ""
    default_exit_actions: dict[str, str] = {}
    gpu: GpuQuota = GpuQuota()
    topology_keys: tuple[TopologyKey, ...] = ()
    common_default_variables: dict[str, Json] = {}
    common_resource_validations: tuple[str, ...] = ()
    common_pod_template: tuple[str, ...] = ()
    common_group_templates: tuple[str, ...] = ()
    platforms: dict[str, Platform] = {}
    #: The cohort above it; `None`: the one above all.
    cohort: str | None = None
    #: How many GPUs it may take from the rest of the tree, and the rest from it.
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    #: How many GPUs one user may hold in it, subpools included, with HIGH and NORMAL together.
    user_gpu_limit: int | None = None
    cancel: CancelRule = CancelRule.ANY
    #: How much data it keeps under `bough://`, as `500Gi`, and for how long, as `60d`; empty: as
    #: much and as long as every pool.
    data_quota: str = ""
    data_keep: str = ""


class PoolCohort(msgspec.Struct, frozen=True):
    """An inner node of the organisation above the pools."""

    name: str
    #: `None`: directly below the node that stands for all.
    parent: str | None = None
    #: GPUs that belong to all below it and to none of them.
    quota: int = 0
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    weight: int = 1
    description: str = ""


class BackendRecord(msgspec.Struct, frozen=True):
    """What is known of a backend."""

    name: str
    last_heartbeat_ms: int | None = None
    #: Why nothing can be started on its nodes; `None`: it can.
    fault: str | None = None
    #: The identity of the machine and folder that it belongs to, if it does, and where that is.
    machine: str | None = None
    place: str | None = None
    #: The server that holds the folder, by a name of its own, and where it answers.
    speaker: str | None = None
    address: str | None = None


class BackendNotes(msgspec.Struct, frozen=True):
    """What administrators say about a backend."""

    description: str = ""
    #: Addresses of pages about its cluster.
    dashboard_url: str = ""
    grafana_url: str = ""
    #: The tests of its nodes, by name.
    tests: tuple[str, ...] = ()


_MEBIBYTE = 2**20
#: A floor, so that small programs still run where many GPUs are simulated.
_LEAST_PART = 1024 * _MEBIBYTE


class DefaultLimits(msgspec.Struct, frozen=True):
    """Limits of a task that asks for no memory or disk; 0: none."""

    memory_bytes: int
    storage_bytes: int


class OfferedNode(msgspec.Struct, frozen=True):
    """A node as its backend offers it."""

    name: str
    backend: str = "default"
    gpus: int = 0
    cpu_milli: int = 0
    memory_bytes: int = 0
    storage_bytes: int = 0
    #: Tasks that it can have at once.
    task_slots: int = 1_000
    labels: dict[str, str] = {}
    #: The pools that may use it; `None`: every pool of its backend.
    pools: tuple[str, ...] | None = None
    #: The platform it belongs to; `None`: each.
    platform: str | None = None
    cordoned: bool = False
    #: Why its backend lets nothing start there now; empty: it does.
    closed: str = ""
    #: What keeps tasks away that do not tolerate it.
    taints: tuple[Taint, ...] = ()

    @property
    def id(self) -> NodeId:
        """What it is known by."""
        return NodeId(self.backend, self.name)

    def default_limits(self, gpus: int) -> DefaultLimits:
        """What a task with so many GPUs can use where it asks for none: the node by its GPUs.

        A task without GPUs can use as much as one with a single GPU.
        """
        return DefaultLimits(
            self._part(self.memory_bytes, gpus), self._part(self.storage_bytes, gpus)
        )

    def _part(self, amount: int, gpus: int) -> int:
        parts = max(1, self.gpus)
        part = amount * min(parts, max(1, gpus)) // parts
        return min(amount, max(_LEAST_PART, part)) // _MEBIBYTE * _MEBIBYTE
