"""The machines: nodes, what they offer, how they are wired together, and which pods may use them.

Which pods are where, a snapshot says.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Resources(msgspec.Struct, frozen=True, gc=False):
    """What a pod asks for, or a node offers."""

    #: Whole devices.
    gpus: int = 0
    #: Thousandths of a core.
    cpu_milli: int = 0
    memory_bytes: int = 0
    #: Pod slots; every pod takes one.
    pods: int = 0
    #: Anything else that is counted (`rdma/hca`), sorted by name.
    other: tuple[tuple[str, int], ...] = ()


class TaintEffect(StrEnum):
    """What happens to a pod that does not tolerate the taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class Taint(msgspec.Struct, frozen=True, gc=False):
    """Keeps pods off a node unless they tolerate it."""

    key: str
    value: str = ""
    effect: TaintEffect = TaintEffect.NO_SCHEDULE


class Toleration(msgspec.Struct, frozen=True, gc=False):
    """Lets a pod onto a tainted node; an empty key or effect matches every one."""

    key: str = ""
    #: `Equal` or `Exists`.
    operator: str = "Equal"
    value: str = ""
    effect: TaintEffect | None = None


class Match(msgspec.Struct, frozen=True, gc=False):
    """One condition on the labels (or, with the key `metadata.name`, the name) of a node."""

    key: str
    #: `In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`.
    operator: str
    values: tuple[str, ...] = ()


class Node(msgspec.Struct, frozen=True, gc=False):
    """A machine."""

    name: str
    capacity: Resources
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    #: The flavor whose quota its use counts against.
    flavor: str | None = None
    #: Cordoned: what runs goes on, nothing new comes.
    cordoned: bool = False


class TopologyLevel(msgspec.Struct, frozen=True, gc=False):
    """One level of a topology: nodes with equal labels are together."""

    label: str
    #: The short name that people use for it (`rack`).
    alias: str | None = None


class Topology(msgspec.Struct, frozen=True, gc=False):
    """How the nodes are wired together: levels, the widest first."""

    name: str
    levels: tuple[TopologyLevel, ...]
