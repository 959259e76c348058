"""The nodes of the quota tree as they are declared: cohorts inside, queues as leaves.

Amounts are integers in the resource's own unit (CPU in thousandths of a core); `None` is no limit.
The arithmetic is core.quota's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from fractions import Fraction
from typing import NamedTuple

import msgspec

from bough.model.admission_rules import AdmissionRules


class FlavorResource(NamedTuple):
    """What is counted: one resource on one kind of node."""

    flavor: str
    resource: str

    def __str__(self) -> str:
        return f"{self.flavor}/{self.resource}"


#: The priority of a queue that names none.
DEFAULT_PRIORITY = 100

#: How much of what: a request, or what a workload uses.
Amounts = Mapping[FlavorResource, int]


class Quota(msgspec.Struct, frozen=True, gc=False):
    """What one node has of one resource on one flavor."""

    nominal: int = 0
    #: How much the subtree may take from the rest of the tree.
    borrowing_limit: int | None = None
    #: How much the rest of the tree may take from the subtree.
    lending_limit: int | None = None
    #: Its part of what is left of this resource when all have what they deserve; `None`: its part
    #: of anything, the weight of the node.
    weight: Fraction | None = None


class FlavorQuotas(msgspec.Struct, frozen=True, gc=False):
    """The quotas of one flavor within a resource group."""

    name: str
    resources: dict[str, Quota]


class ResourceGroup(msgspec.Struct, frozen=True, gc=False):
    """Resources that are assigned together, from one flavor; flavors are tried in this order."""

    covered_resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


class Cohort(msgspec.Struct, frozen=True, gc=False):
    """An inner node. It takes no workloads; its own quota is shared by all that is below it."""

    name: str
    parent: str | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    #: Its part of idle capacity among its siblings.
    weight: Fraction = Fraction(1)
    #: As for a queue, below.
    priority: int = DEFAULT_PRIORITY
    reclaim_min_runtime_ms: int | None = None
    preempt_min_runtime_ms: int | None = None
    created_ms: int = 0


class Promise(StrEnum):
    """How a queue stands to what its cohort has promised to the queues directly below it."""

    NONE = "none"
    #: What it does not use of its quota is kept for it from those that take the rest.
    KEPT = "kept"
    #: Its guaranteed use has only what the cohort's promises leave.
    REST = "rest"


class Queue(msgspec.Struct, frozen=True, gc=False):
    """A leaf. Workloads wait in it and its use is counted at every node above it."""

    name: str
    cohort: str | None = None
    resource_groups: tuple[ResourceGroup, ...] = ()
    weight: Fraction = Fraction(1)
    #: What it says about admission beyond its quota.
    rules: AdmissionRules = AdmissionRules()
    #: Among its siblings: higher comes first.
    priority: int = DEFAULT_PRIORITY
    #: How long what it runs is safe from other queues: the value that counts is that of the node
    #: one step below the lowest common ancestor, on the victim's side. `None`: not at all.
    reclaim_min_runtime_ms: int | None = None
    #: How long what it runs is safe from work of the same queue.
    preempt_min_runtime_ms: int | None = None
    #: Whether its quota is kept for it, or it takes what such queues leave.
    promise: Promise = Promise.NONE
    #: Among queues with the same fair share the older goes first.
    created_ms: int = 0


class NodeKind(StrEnum):
    """Cohorts and queues have separate name spaces."""

    COHORT = "cohort"
    QUEUE = "queue"

    # An Enum hashes by name in Python code; nodes are keys of large dictionaries.
    __hash__ = str.__hash__


class TreeNode(NamedTuple):
    """The identity of a node of the quota tree."""

    kind: NodeKind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def quotas_of(groups: tuple[ResourceGroup, ...]) -> dict[FlavorResource, Quota]:
    """Lay resource groups flat."""
    return {
        FlavorResource(flavor.name, resource): quota
        for group in groups
        for flavor in group.flavors
        for resource, quota in flavor.resources.items()
    }
