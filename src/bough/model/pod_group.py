"""A gang as people write it: a PodGroup with both ways of counting and both of naming topology.

Names follow the written object. Which combinations are allowed, and what they mean as a Gang, is
core.gang's.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from bough.model.gang import Pod, TopologyConstraint

DEFAULT_NAMESPACE = "default"
#: Ends the key of a PodGroup of Kubernetes itself: one of KAI may have the same name.
NATIVE = " (native)"


class SubGroupSpec(msgspec.Struct, frozen=True):
    """One entry of `subGroups`."""

    name: str
    parent: str | None = None
    min_member: int | None = None
    min_sub_group: int | None = None
    constraint: TopologyConstraint | None = None


class SubGroupSetSpec(msgspec.Struct, frozen=True):
    """One entry of `topologyConstraints.subGroupSets`."""

    members: tuple[str, ...]
    constraint: TopologyConstraint


class TopologyConstraints(msgspec.Struct, frozen=True):
    """The spelling that names what it constrains (`topologyConstraints`)."""

    #: For what nothing more specific is said about.
    fallback: TopologyConstraint | None = None
    #: By the name of a subgroup.
    subgroups: dict[str, TopologyConstraint] = {}
    sets: tuple[SubGroupSetSpec, ...] = ()


class Preemptibility(StrEnum):
    """Whether others may take its place; absent: decided by its priority."""

    PREEMPTIBLE = "preemptible"
    NON_PREEMPTIBLE = "non-preemptible"


class PriorityClass(msgspec.Struct, frozen=True):
    """What a name of a priority stands for."""

    name: str
    value: int
    #: Whether it is meant where no priority is named.
    default: bool = False


class TemplateName(msgspec.Struct, frozen=True):
    """A template of a Workload of the same namespace."""

    workload: str
    template: str


class PodGroup(msgspec.Struct, frozen=True):
    """A PodGroup as written."""

    name: str
    namespace: str | None = None
    #: Empty: none is named.
    queue: str = ""
    min_member: int | None = None
    min_sub_group: int | None = None
    subgroups: tuple[SubGroupSpec, ...] = ()
    #: The spelling that stands where it holds (`topologyConstraint`), and nests.
    constraint: TopologyConstraint | None = None
    constraints: TopologyConstraints = TopologyConstraints()
    priority_class: str | None = None
    preemptibility: Preemptibility | None = None
    #: Whether pods are marked as unschedulable.
    mark_unschedulable: bool | None = None
    #: Cycles to try before it is given up for a node pool; `None`: it is never given up.
    scheduling_backoff: int | None = None
    preemption_delay_s: int | None = None
    staleness_grace_s: int | None = None
    created_ms: int | None = None
    #: When it last started as a whole, as its scheduler wrote it down.
    last_start_ms: int | None = None

    #: The following are for PodGroups of Kubernetes itself (`scheduling.k8s.io`).
    native: bool = False
    #: Counts where its class is not known.
    priority: int | None = None
    #: Whether what it has beyond its minimum is not given back pod by pod.
    disrupted_whole: bool = False
    #: The template that it was made from.
    template: TemplateName | None = None

    @property
    def full_name(self) -> str:
        """The name within the cluster."""
        return qualified(self.namespace, self.name)

    @property
    def key(self) -> str:
        """What pods name: the same for no two PodGroups of a cluster."""
        return group_key(self.full_name, native=self.native)


class Templates(msgspec.Struct, frozen=True):
    """A Workload of Kubernetes itself: what its PodGroups are made from."""

    name: str
    namespace: str | None = None
    groups: tuple[PodGroup, ...] = ()

    @property
    def full_name(self) -> str:
        """The name within the cluster."""
        return qualified(self.namespace, self.name)


class MemberPod(msgspec.Struct, frozen=True):
    """A pod, and what it says about where it belongs."""

    #: Its name is the one within the cluster.
    pod: Pod
    #: The PodGroup, by its key; `None`: it is on its own.
    group: str | None = None
    #: The following matter for a pod that is on its own.
    queue: str = ""
    priority_class: str | None = None
    preemptibility: Preemptibility | None = None
    namespace: str | None = None
    created_ms: int | None = None
    #: Since when it has been on its node, where it runs.
    started_ms: int | None = None
    #: It belongs to a Workload of Kueue, which waits and holds quota on its behalf.
    has_workload: bool = False


def qualified(namespace: str | None, name: str) -> str:
    """A name within the cluster: the default namespace is not written."""
    return f"{namespace}/{name}" if namespace and namespace != DEFAULT_NAMESPACE else name


def group_key(full_name: str, *, native: bool) -> str:
    """What pods name a PodGroup by, from its name within the cluster."""
    return f"{full_name}{NATIVE}" if native else full_name


def is_native(key: str) -> bool:
    """Whether a key is that of a PodGroup of Kubernetes itself."""
    return key.endswith(NATIVE)
