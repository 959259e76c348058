"""Objects as they are decoded from a line of a watch: only the fields that matter."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

#: An amount of a resource, as it is written.
Written = str | int | float

T = TypeVar("T")


class _Live(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Written as camelCase; fields that are not named here are not decoded."""


class LiveAnything(_Live, frozen=True):
    """A field of which only its presence matters."""


class LiveOwnerReference(_Live, frozen=True):
    """What an object belongs to, and goes with."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class LiveMetadata(_Live, frozen=True):
    """What every object says of itself."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[LiveOwnerReference, ...] | None = None


class LiveResources(_Live, frozen=True):
    """What a container asks for."""

    requests: dict[str, Written] | None = None
    limits: dict[str, Written] | None = None


class LiveContainer(_Live, frozen=True):
    """A container."""

    resources: LiveResources | None = None
    #: `Always`: an init container that runs along with all that come after it.
    restart_policy: str | None = None


class LiveMatch(_Live, frozen=True):
    """One condition on the labels or the name of a node."""

    key: str = ""
    operator: str = "In"
    values: tuple[str, ...] | None = None


class LiveTerm(_Live, frozen=True):
    """Conditions that must hold together."""

    match_expressions: tuple[LiveMatch, ...] | None = None
    match_fields: tuple[LiveMatch, ...] | None = None


class LiveNodeSelector(_Live, frozen=True):
    """Terms of which one must hold."""

    node_selector_terms: tuple[LiveTerm, ...] | None = None


class LiveNodeAffinity(_Live, frozen=True):
    """Which nodes a pod demands; which it would like better is not looked at."""

    required: LiveNodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class LivePodAffinity(_Live, frozen=True):
    """Near which pods a pod must be, or must not be."""

    required: tuple[LiveAnything, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class LiveAffinity(_Live, frozen=True):
    """What a pod demands of the place where it runs."""

    node_affinity: LiveNodeAffinity | None = None
    pod_affinity: LivePodAffinity | None = None
    pod_anti_affinity: LivePodAffinity | None = None


class LiveToleration(_Live, frozen=True):
    """Taints that a pod does not mind."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class LiveSpread(_Live, frozen=True):
    """A topology spread constraint."""

    when_unsatisfiable: str = "DoNotSchedule"


class LiveGate(_Live, frozen=True):
    """Something that keeps a pod from being scheduled."""

    name: str = ""


class LiveClaimVolume(_Live, frozen=True):
    """A volume of a claim."""

    claim_name: str = ""


class LiveVolume(_Live, frozen=True):
    """A volume, as far as it says where a pod can run."""

    name: str = ""
    persistent_volume_claim: LiveClaimVolume | None = None
    ephemeral: LiveAnything | None = None


class LiveSchedulingGroup(_Live, frozen=True):
    """The PodGroup of Kubernetes itself that a pod belongs to."""

    pod_group_name: str | None = None


class LivePodSpec(_Live, frozen=True):
    """What a pod is to be."""

    node_name: str | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    containers: tuple[LiveContainer, ...] | None = None
    init_containers: tuple[LiveContainer, ...] | None = None
    resources: LiveResources | None = None
    overhead: dict[str, Written] | None = None
    node_selector: dict[str, str] | None = None
    affinity: LiveAffinity | None = None
    tolerations: tuple[LiveToleration, ...] | None = None
    topology_spread_constraints: tuple[LiveSpread, ...] | None = None
    resource_claims: tuple[LiveAnything, ...] | None = None
    scheduling_gates: tuple[LiveGate, ...] | None = None
    volumes: tuple[LiveVolume, ...] | None = None
    scheduling_group: LiveSchedulingGroup | None = None


class LiveCondition(_Live, frozen=True):
    """A condition."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class LivePodStatus(_Live, frozen=True):
    """How a pod is."""

    phase: str | None = None
    start_time: str | None = None
    #: Where room is being freed for it.
    nominated_node_name: str | None = None
    conditions: tuple[LiveCondition, ...] | None = None


class LivePod(_Live, frozen=True):
    """A pod."""

    metadata: LiveMetadata
    spec: LivePodSpec = LivePodSpec()
    status: LivePodStatus = LivePodStatus()


class LiveTaint(_Live, frozen=True):
    """What keeps pods off a node that do not tolerate it."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class LiveNodeSpec(_Live, frozen=True):
    """What a node is to be."""

    unschedulable: bool = False
    taints: tuple[LiveTaint, ...] | None = None


class LiveNodeStatus(_Live, frozen=True):
    """How a node is."""

    capacity: dict[str, Written] | None = None
    allocatable: dict[str, Written] | None = None
    conditions: tuple[LiveCondition, ...] | None = None


class LiveNode(_Live, frozen=True):
    """A node."""

    metadata: LiveMetadata
    spec: LiveNodeSpec = LiveNodeSpec()
    status: LiveNodeStatus = LiveNodeStatus()


class LiveClaimStatus(_Live, frozen=True):
    """The status of a claim."""

    phase: str = ""


class LiveClaim(_Live, frozen=True):
    """A PersistentVolumeClaim; only whether it has its volume counts."""

    metadata: LiveMetadata
    status: LiveClaimStatus = LiveClaimStatus()


class LiveKueueStatus(_Live, frozen=True):
    """What was written about an object of Kueue."""

    conditions: tuple[LiveCondition, ...] | None = None


class LiveKueue(_Live, frozen=True):
    """An object of Kueue; what it says is read as in files."""

    metadata: LiveMetadata
    spec: dict[str, Any] | None = None
    status: LiveKueueStatus = LiveKueueStatus()


class LiveNamespace(_Live, frozen=True):
    """A namespace, of which only the labels count."""

    metadata: LiveMetadata


class LiveConstraint(_Live, frozen=True):
    """Within what pods must or should be together."""

    topology: str | None = None
    required_topology_level: str | None = None
    preferred_topology_level: str | None = None


class LiveSubGroup(_Live, frozen=True):
    """A subgroup of a gang."""

    name: str = ""
    parent: str | None = None
    min_member: int | None = None
    min_sub_group: int | None = None
    topology_constraint: LiveConstraint | None = None


class LiveSubGroupSet(_Live, frozen=True):
    """Subgroups that must be together."""

    sub_groups: tuple[str, ...] | None = None
    constraint: LiveConstraint | None = None


class LiveConstraints(_Live, frozen=True):
    """Constraints that name what they constrain."""

    fallback: LiveConstraint | None = msgspec.field(default=None, name="global")
    sub_groups: dict[str, LiveConstraint] | None = None
    sub_group_sets: tuple[LiveSubGroupSet, ...] | None = None


class LivePodGroupSpec(_Live, frozen=True):
    """What a gang is to be."""

    queue: str | None = None
    min_member: int | None = None
    min_sub_group: int | None = None
    sub_groups: tuple[LiveSubGroup, ...] | None = None
    topology_constraint: LiveConstraint | None = None
    topology_constraints: LiveConstraints | None = None
    priority_class_name: str | None = None
    preemptibility: str | None = None
    mark_unschedulable: bool | None = None
    scheduling_backoff: int | None = None
    preemption_delay: str | None = None
    staleness_grace_period: str | None = None


class LivePodGroupStatus(_Live, frozen=True):
    """What was written about a gang."""

    phase: str | None = None
    running: int = 0
    pending: int = 0
    succeeded: int = 0
    failed: int = 0
    conditions: tuple[LiveCondition, ...] | None = None


class LivePodGroup(_Live, frozen=True):
    """A PodGroup of KAI."""

    metadata: LiveMetadata
    spec: LivePodGroupSpec = LivePodGroupSpec()
    status: LivePodGroupStatus = LivePodGroupStatus()


class LiveGangPolicy(_Live, frozen=True):
    """Pods that start together."""

    min_count: int = 1


class LivePolicy(_Live, frozen=True):
    """How the pods of a native PodGroup are scheduled: one of these is there."""

    basic: LiveAnything | None = None
    gang: LiveGangPolicy | None = None


class LiveTopologyKey(_Live, frozen=True):
    """A label of nodes."""

    key: str = ""


class LiveSchedulingConstraints(_Live, frozen=True):
    """Within which topology the pods of a native PodGroup must be together."""

    topology: tuple[LiveTopologyKey, ...] | None = None


class LiveWorkloadTemplate(_Live, frozen=True):
    """A template of a Workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class LiveTemplateReference(_Live, frozen=True):
    """What a native PodGroup was made from."""

    workload: LiveWorkloadTemplate | None = None


class LiveNativePodGroupSpec(_Live, frozen=True):
    """The spec of a native PodGroup."""

    scheduling_policy: LivePolicy = LivePolicy()
    scheduling_constraints: LiveSchedulingConstraints | None = None
    priority_class_name: str | None = None
    priority: int | None = None
    disruption_mode: str | None = None
    pod_group_template_ref: LiveTemplateReference | None = None


class LiveNativePodGroup(_Live, frozen=True):
    """A PodGroup of Kubernetes itself."""

    metadata: LiveMetadata
    spec: LiveNativePodGroupSpec = LiveNativePodGroupSpec()
    #: Of all that a PodGroup of KAI has it has conditions.
    status: LivePodGroupStatus = LivePodGroupStatus()


class LiveAmount(_Live, frozen=True):
    """What a queue has of one resource."""

    quota: Written | None = None
    limit: Written | None = None
    over_quota_weight: Written | None = None


class LiveQueueResources(_Live, frozen=True):
    """What a queue has."""

    gpu: LiveAmount | None = None
    cpu: LiveAmount | None = None
    memory: LiveAmount | None = None


class LiveQueueSpec(_Live, frozen=True):
    """What a queue is to be."""

    parent_queue: str | None = None
    display_name: str | None = None
    priority: int | None = None
    resources: LiveQueueResources = LiveQueueResources()
    preempt_min_runtime: str | None = None
    reclaim_min_runtime: str | None = None


class LiveQueue(_Live, frozen=True):
    """A Queue of KAI."""

    metadata: LiveMetadata
    spec: LiveQueueSpec = LiveQueueSpec()


class LiveLevel(_Live, frozen=True):
    """A level of a topology."""

    node_label: str = ""
    alias: str | None = None


class LiveTopologySpec(_Live, frozen=True):
    """How nodes are wired together."""

    levels: tuple[LiveLevel, ...] | None = None


class LiveTopology(_Live, frozen=True):
    """A Topology of KAI."""

    metadata: LiveMetadata
    spec: LiveTopologySpec = LiveTopologySpec()


class LivePriorityClass(_Live, frozen=True):
    """A PriorityClass."""

    metadata: LiveMetadata
    value: int = 0
    global_default: bool = False
