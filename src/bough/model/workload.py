"""Workloads as Kueue writes them: pod sets and their admission, with flavors and local queues.

Amounts are integers in the resource's own unit (CPU in thousandths of a core). Times are integers.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import msgspec

from bough.model.admission_rules import StopPolicy
from bough.model.cluster import Match, Taint, Toleration


class Flavor(msgspec.Struct, frozen=True, gc=False):
    """A kind of node whose capacity is counted on its own."""

    name: str
    node_labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    #: Added to those of the pods that get the flavor.
    tolerations: tuple[Toleration, ...] = ()
    topology: str | None = None


class LocalQueue(msgspec.Struct, frozen=True, gc=False):
    """The queue of a namespace, which leads to a cluster queue."""

    name: str
    namespace: str
    queue: str
    stop: StopPolicy = StopPolicy.NONE
    weight: Fraction = Fraction(1)


class PodTemplate(msgspec.Struct, frozen=True, gc=False):
    """What every pod of a set asks for."""

    #: For one pod, containers, init containers and overhead together.
    requests: dict[str, int] = {}
    node_selector: dict[str, str] = {}
    #: Any one of these terms must hold; a term is a conjunction. Empty: anywhere.
    affinity: tuple[tuple[Match, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    labels: dict[str, str] = {}
    #: As `model.gang.Pod` has it. Quota alone does not ask for it: only a place is refused.
    unsupported: str = ""


class SliceConstraint(msgspec.Struct, frozen=True, gc=False):
    """Every so many pods must be together on a level of the topology."""

    level: str
    size: int


class TopologyRequest(msgspec.Struct, frozen=True, gc=False):
    """How close together the pods of a set must, or should, be. Levels are node labels."""

    required: str | None = None
    preferred: str | None = None
    unconstrained: bool = False
    #: Pod sets of one group are placed together.
    group: str | None = None
    slices: tuple[SliceConstraint, ...] = ()


class PodSet(msgspec.Struct, frozen=True, gc=False):
    """Equal pods of a workload."""

    name: str
    count: int
    template: PodTemplate = PodTemplate()
    #: Fewer pods will do, down to this many; `None`: all are needed.
    min_count: int | None = None
    topology: TopologyRequest | None = None


class Assignment(msgspec.Struct, frozen=True, gc=False):
    """The quota that a pod set holds."""

    name: str
    #: Resource by resource.
    flavors: dict[str, str]
    #: Totals for the set; a resource that is missing counts as its pods ask for it.
    usage: dict[str, int] = {}
    #: Pods that were admitted; `None`: all of the set.
    count: int | None = None


class Admission(msgspec.Struct, frozen=True, gc=False):
    """The quota that a workload holds, and where."""

    queue: str
    assignments: tuple[Assignment, ...]


class WorkloadCondition(msgspec.Struct, frozen=True, gc=False):
    """Something that became true, or false, of a workload."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""
    #: Milliseconds since 1970.
    since_ms: int | None = None


class CheckState(msgspec.Struct, frozen=True, gc=False):
    """How far an admission check is with a workload."""

    name: str
    #: `Pending`, `Ready`, `Retry` or `Rejected`.
    state: str
    since_ms: int | None = None


class _WithConditions(Protocol):
    @property
    def admission(self) -> Admission | None: ...

    @property
    def conditions(self) -> tuple[WorkloadCondition, ...]: ...


class HoldsQuota(msgspec.Struct, frozen=True, gc=False):
    """What conditions say about quota: the same of a Workload and of the gang that it becomes."""

    def has(self: _WithConditions, condition: str) -> bool:
        """Whether a condition of this type is true."""
        return _says(self, condition, status=True)

    def lacks(self: _WithConditions, condition: str) -> bool:
        """Whether a condition of this type is present and false."""
        return _says(self, condition, status=False)

    @property
    def holds_quota(self: _WithConditions) -> bool:
        """Whether what it was admitted with is counted: from reservation until it is finished."""
        if self.admission is None:
            return False
        for each in self.conditions:
            if each.type == ("Finished" if each.status else "QuotaReserved"):
                return False
        return True


def _says(found: _WithConditions, condition: str, *, status: bool) -> bool:
    # Asked of every gang in every cycle, which mostly has one condition: a generator costs more.
    for each in found.conditions:  # noqa: SIM110
        if each.type == condition and each.status is status:
            return True
    return False


class Workload(HoldsQuota, frozen=True, gc=False):
    """Pods that are admitted together or not at all."""

    name: str
    namespace: str
    pod_sets: tuple[PodSet, ...]
    #: The local queue, in the workload's own namespace.
    local_queue: str | None = None
    priority: int | None = None
    priority_class: str | None = None
    #: An inactive workload neither waits nor runs.
    active: bool = True
    maximum_execution_s: int | None = None
    preemption_gates: tuple[str, ...] = ()
    uid: str | None = None
    created_ms: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    admission: Admission | None = None
    conditions: tuple[WorkloadCondition, ...] = ()
    checks: tuple[CheckState, ...] = ()
    #: Pods of each set that are done and need no quota any more.
    reclaimable_pods: dict[str, int] = {}
    requeues: int = 0
    requeue_at_ms: int | None = None
    #: Another cluster that runs it, or those that may.
    cluster: str | None = None
    nominated_clusters: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"
