"""The one workload type: a gang, a tree of subgroups over pods.

A leaf needs `minimum` of its pods, an inner node `minimum` of its children (`None`: all of them).
A leaf whose pods are only made once it has quota is a pod set: it has a count, and a minimum count.
What people write (a PodGroup, a Workload of Kueue, a workflow) is turned into this type.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.cluster import Match, Resources, Toleration
from bough.model.workload import Admission, CheckState, HoldsQuota, PodSet, WorkloadCondition

#: The submit time of a gang for which none is known: it goes before all others.
LONG_AGO = -(2**62)


#: As the topology of a constraint: none of those that are declared. What is required is a label of
#: nodes, and nodes with the same value of it are together.
NODE_LABEL = "(node label)"


class TopologyConstraint(msgspec.Struct, frozen=True, gc=False):
    """How close together something must, or should, be. Levels are node labels or their aliases."""

    topology: str | None = None
    required: str | None = None
    preferred: str | None = None


class SubGroup(msgspec.Struct, frozen=True, gc=False):
    """A node of the gang's tree below its root."""

    name: str
    #: `None`: directly below the gang itself.
    parent: str | None = None
    minimum: int | None = None
    constraint: TopologyConstraint | None = None


class SubGroupSet(msgspec.Struct, frozen=True, gc=False):
    """Subgroups whose pods are together, although they are not the whole of any node."""

    members: tuple[str, ...]
    constraint: TopologyConstraint


class PodState(StrEnum):
    """How far a pod is, as a plan sees it."""

    #: Waits for a place.
    PENDING = "pending"
    #: Exists, but must not be planned yet.
    GATED = "gated"
    #: Holds its place (running, or being started).
    RUNNING = "running"
    #: Was told to end; holds its place until it is gone.
    RELEASING = "releasing"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


class Pod(msgspec.Struct, frozen=True, gc=False):
    """The smallest thing that gets a place."""

    name: str
    #: The leaf subgroup; `None` where the gang has no subgroups.
    subgroup: str | None = None
    requests: Resources = Resources()
    state: PodState = PodState.PENDING
    #: Where it runs.
    node: str | None = None
    node_selector: dict[str, str] = {}
    #: Any one of these terms must hold; a term is a conjunction. Empty: anywhere.
    affinity: tuple[tuple[Match, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    #: Order inside a subgroup: labelled before unlabelled, higher first.
    rank: int | None = None
    #: Something that it must have and that cannot be planned, as in "the pod asks for ..."; such a
    #: pod is given no place. Empty: there is no such thing.
    unsupported: str = ""


class Gang(HoldsQuota, msgspec.Struct, frozen=True, gc=False):
    """A workload that starts whole or not at all."""

    name: str
    queue: str
    pods: tuple[Pod, ...]
    #: In the order of the spec; empty: the gang itself is the only leaf.
    subgroups: tuple[SubGroup, ...] = ()
    #: Pods (no subgroups) or children (subgroups) that are needed; `None`: all children.
    minimum: int | None = None
    constraint: TopologyConstraint | None = None
    #: What is together beyond what the tree says.
    sets: tuple[SubGroupSet, ...] = ()
    #: The higher goes first.
    priority: int = 0
    #: Whether it may borrow, and be evicted for others. What a gang has beyond its minimum always
    #: may.
    preemptible: bool = False
    #: Since when it waits. A victim keeps it.
    submitted_ms: int = 0
    #: Since when it has run: its last start as a whole. What it gained since, or got again, does
    #: not count: of the pods that run now, the one that started first tells it. Of pod sets, since
    #: when they hold their quota. `None`: it does not run, or that is not known.
    started_ms: int | None = None
    #: Since when it has had less than its minimum while running.
    stale_since_ms: int | None = None
    #: Who submitted it, for people.
    owner: str = ""

    #: Leaves whose pods are made once they have quota. Such a gang has no pods and needs no places.
    pod_sets: tuple[PodSet, ...] = ()
    #: The quota that it holds for them.
    admission: Admission | None = None
    #: Pods of each set that are done and need no quota any more.
    reclaimable_pods: dict[str, int] = {}
    namespace: str = ""
    #: The local queue that it was submitted to.
    local_queue: str | None = None
    #: Breaks ties before its name does.
    uid: str = ""
    #: An inactive gang neither waits nor runs.
    active: bool = True
    #: It was evicted and must not come back before this time.
    requeue_at_ms: int | None = None
    conditions: tuple[WorkloadCondition, ...] = ()
    checks: tuple[CheckState, ...] = ()
    annotations: dict[str, str] = {}
