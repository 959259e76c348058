"""KAI's objects as they are read and written; fields that are not here are left unchanged."""

from __future__ import annotations

import msgspec

from bough.kube.objects import Kind, Meta


class _Fields(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Uses camelCase on the wire, and leaves nothing out: KAI reads a missing limit as 0."""


class QueueAmounts(_Fields, frozen=True):
    """The amounts of one resource in a Queue; -1 means no limit."""

    quota: float | None = None
    limit: float | None = None
    over_quota_weight: float | None = None


class QueueResources(_Fields, frozen=True):
    """The amounts of each resource in a Queue."""

    gpu: QueueAmounts = QueueAmounts()
    cpu: QueueAmounts = QueueAmounts()
    memory: QueueAmounts = QueueAmounts()


class QueueSpec(_Fields, frozen=True):
    """The desired state of a Queue."""

    display_name: str | None = None
    parent_queue: str | None = None
    priority: int | None = None
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None
    resources: QueueResources = QueueResources()


class KaiQueue(_Fields, frozen=True):
    """A Queue."""

    metadata: Meta
    spec: QueueSpec = QueueSpec()


class TopologyLevel(_Fields, frozen=True):
    """One level of a topology."""

    node_label: str


class TopologySpec(_Fields, frozen=True):
    """The levels of a topology, widest first."""

    levels: tuple[TopologyLevel, ...] = ()


class KaiTopology(_Fields, frozen=True):
    """A Topology."""

    metadata: Meta
    spec: TopologySpec = TopologySpec()


class PriorityClass(_Fields, frozen=True):
    """The value of a priority."""

    metadata: Meta
    value: int = 0
    global_default: bool = False


class _Constraint(_Fields, frozen=True):
    topology: str = ""


class _SubGroup(_Fields, frozen=True):
    topology_constraint: _Constraint | None = None


class _PodGroupUse(_Fields, frozen=True):
    queue: str = ""
    topology_constraint: _Constraint | None = None
    sub_groups: tuple[_SubGroup, ...] = ()


class UsingPodGroup(_Fields, frozen=True):
    """A PodGroup, reduced to the queue and topologies that it uses."""

    metadata: Meta
    spec: _PodGroupUse = _PodGroupUse()

    @property
    def topologies(self) -> set[str]:
        """The topologies that it names."""
        named = (
            self.spec.topology_constraint,
            *(e.topology_constraint for e in self.spec.sub_groups),
        )
        return {each.topology for each in named if each is not None}


QUEUES: Kind[KaiQueue] = Kind("apis/scheduling.run.ai/v2", "queues", KaiQueue, namespaced=False)
TOPOLOGIES: Kind[KaiTopology] = Kind(
    "apis/kai.scheduler/v1alpha1", "topologies", KaiTopology, namespaced=False
)
PRIORITY_CLASSES: Kind[PriorityClass] = Kind(
    "apis/scheduling.k8s.io/v1", "priorityclasses", PriorityClass, namespaced=False
)
USING_POD_GROUPS: Kind[UsingPodGroup] = Kind(
    "apis/scheduling.run.ai/v2alpha2", "podgroups", UsingPodGroup
)
