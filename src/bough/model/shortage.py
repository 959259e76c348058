"""What a gang without a place lacks, as data: which subgroup, how many pods, where, and of what."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.cluster import Resources


class Cause(StrEnum):
    """Why a node does not take a pod; the first that applies counts."""

    #: Its use counts against another flavor than the one whose quota the pod would have.
    FLAVOR = "flavor"
    #: It is outside of the topology that the pod must be in.
    OUTSIDE = "outside_topology"
    CORDONED = "cordoned"
    SELECTOR = "selector"
    TAINT = "taint"
    #: There is not enough of some resource left.
    RESOURCE = "resource"
    #: It takes the pod, but not as many of them as are needed.
    NONE = "fits"


class NodeCount(msgspec.Struct, frozen=True):
    """How many nodes have one cause."""

    cause: Cause
    nodes: int
    #: What there is not enough of.
    resource: str | None = None


class DomainRoom(msgspec.Struct, frozen=True):
    """How many of the pods that must be together a domain holds."""

    domain: str
    pods: int


class Together(msgspec.Struct, frozen=True):
    """The constraint that the missing pods are under."""

    topology: str
    level: str
    #: How many pods must be in one domain, at the very least.
    needed: int
    #: The domains that hold most of them, the best first.
    best: tuple[DomainRoom, ...]
    #: How many domains there are.
    domains: int
    #: Pods that run already allow no other domain.
    pinned: bool


class Lack(msgspec.Struct, frozen=True):
    """A subgroup that does not get what it needs."""

    subgroup: str
    #: Pods that must be placed at once, and how many of them have a place.
    needed: int
    found: int
    #: What each of the missing pods asks for.
    requests: Resources
    nodes: tuple[NodeCount, ...]
    together: Together | None = None
    #: Which of that no node has at all, whatever is free.
    absent: tuple[str, ...] = ()
    #: What they ask for and cannot be planned, as `Pod.unsupported` has it.
    unsupported: str = ""

    @property
    def missing(self) -> int:
        """How many pods have no place."""
        return self.needed - self.found


class Short(msgspec.Struct, frozen=True):
    """A node of the gang that may choose among its children, and still has too few."""

    subgroup: str
    #: Children that must be placed at once, and how many of them have a place.
    needed: int
    found: int
    candidates: int


class Explanation(msgspec.Struct, frozen=True):
    """Why a demand has no place."""

    #: The leaves that are short, in the order in which they were tried.
    lacks: tuple[Lack, ...] = ()
    short: tuple[Short, ...] = ()
