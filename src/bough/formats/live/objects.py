"""Objects as they are decoded from a line of a watch: only the fields that matter."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

#: An amount of a resource, as it is written.
Written = str | int | float

T = TypeVar("T")


class _Live(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Uses camelCase on the wire; fields that are not declared here are not decoded."""


class LiveAnything(_Live, frozen=True):
    """A field of which only the presence matters."""


class LiveOwnerReference(_Live, frozen=True):
    """The owner of an object; deleting the owner deletes the object as well."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class LiveMetadata(_Live, frozen=True):
    """The metadata that every object has."""

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
    #: `Always` on an init container: it keeps running beside all containers after it.
    restart_policy: str | None = None


class LiveMatch(_Live, frozen=True):
    """One condition on the labels or the name of a node."""

    key: str = ""
    operator: str = "In"
    values: tuple[str, ...] | None = None


class LiveTerm(_Live, frozen=True):
    """Conditions that must all hold."""

    match_expressions: tuple[LiveMatch, ...] | None = None
    match_fields: tuple[LiveMatch, ...] | None = None


class LiveNodeSelector(_Live, frozen=True):
    """Terms of which at least one must hold."""

    node_selector_terms: tuple[LiveTerm, ...] | None = None


class LiveNodeAffinity(_Live, frozen=True):
    """The nodes that a pod requires; preferences are ignored."""

    required: LiveNodeSelector | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class LivePodAffinity(_Live, frozen=True):
    """Pods that a pod must, or must not, be near."""

    required: tuple[LiveAnything, ...] | None = msgspec.field(
        default=None, name="requiredDuringSchedulingIgnoredDuringExecution"
    )


class LiveAffinity(_Live, frozen=True):
    """What a pod requires of its node and its neighbours."""

    node_affinity: LiveNodeAffinity | None = None
    pod_affinity: LivePodAffinity | None = None
    pod_anti_affinity: LivePodAffinity | None = None


class LiveToleration(_Live, frozen=True):
    """A taint, or several, that a pod tolerates."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class LiveSpread(_Live, frozen=True):
    """A topology spread constraint."""

    when_unsatisfiable: str = "DoNotSchedule"


class LiveGate(_Live, frozen=True):
    """A scheduling gate: keeps a pod from being scheduled."""

    name: str = ""


class LiveClaimVolume(_Live, frozen=True):
    """A volume from a PersistentVolumeClaim."""

    claim_name: str = ""


class LiveVolume(_Live, frozen=True):
    """A volume, reduced to what decides where a pod can run."""

    name: str = ""
    persistent_volume_claim: LiveClaimVolume | None = None
    ephemeral: LiveAnything | None = None


class LiveSchedulingGroup(_Live, frozen=True):
    """The native PodGroup that a pod belongs to."""

    pod_group_name: str | None = None


class LivePodSpec(_Live, frozen=True):
    """The desired state of a pod."""

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
    """The observed state of a pod."""

    phase: str | None = None
    start_time: str | None = None
    #: The node on which room is being freed for it.
    nominated_node_name: str | None = None
    conditions: tuple[LiveCondition, ...] | None = None


class LivePod(_Live, frozen=True):
    """A pod."""

    metadata: LiveMetadata
    spec: LivePodSpec = LivePodSpec()
    status: LivePodStatus = LivePodStatus()


class LiveTaint(_Live, frozen=True):
    """Keeps pods off a node that do not tolerate it."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class LiveNodeSpec(_Live, frozen=True):
    """The desired state of a node."""

    unschedulable: bool = False
    taints: tuple[LiveTaint, ...] | None = None


class LiveNodeStatus(_Live, frozen=True):
    """The observed state of a node."""

    capacity: dict[str, Written] | None = None
    allocatable: dict[str, Written] | None = None
    conditions: tuple[LiveCondition, ...] | None = None


class LiveNode(_Live, frozen=True):
    """A node."""

    metadata: LiveMetadata
    spec: LiveNodeSpec = LiveNodeSpec()
    status: LiveNodeStatus = LiveNodeStatus()


class LiveClaimStatus(_Live, frozen=True):
    """The status of a PersistentVolumeClaim."""

    phase: str = ""


class LiveClaim(_Live, frozen=True):
    """A PersistentVolumeClaim; only whether it is bound to a volume matters."""

    metadata: LiveMetadata
    status: LiveClaimStatus = LiveClaimStatus()


class LiveKueueStatus(_Live, frozen=True):
    """The status of one of Kueue's objects."""

    conditions: tuple[LiveCondition, ...] | None = None


class LiveKueue(_Live, frozen=True):
    """One of Kueue's objects; its spec is read by the same code as files."""

    metadata: LiveMetadata
    spec: dict[str, Any] | None = None
    status: LiveKueueStatus = LiveKueueStatus()


class LiveNamespace(_Live, frozen=True):
    """A namespace; only its labels matter."""

    metadata: LiveMetadata


class LiveConstraint(_Live, frozen=True):
    """The topology level within which pods must, or should, be together."""

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
    """Subgroups that share a topology constraint."""

    sub_groups: tuple[str, ...] | None = None
    constraint: LiveConstraint | None = None


class LiveConstraints(_Live, frozen=True):
    """Topology constraints that name the subgroups that they apply to."""

    fallback: LiveConstraint | None = msgspec.field(default=None, name="global")
    sub_groups: dict[str, LiveConstraint] | None = None
    sub_group_sets: tuple[LiveSubGroupSet, ...] | None = None


class LivePodGroupSpec(_Live, frozen=True):
    """The desired state of a gang."""

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
    """The status of a PodGroup."""

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
    """How many pods must start together."""

    min_count: int = 1


class LivePolicy(_Live, frozen=True):
    """How the pods of a native PodGroup are scheduled; one of these is set."""

    basic: LiveAnything | None = None
    gang: LiveGangPolicy | None = None


class LiveTopologyKey(_Live, frozen=True):
    """The label of nodes that a topology level goes by."""

    key: str = ""


class LiveSchedulingConstraints(_Live, frozen=True):
    """The topology domain that the pods of a native PodGroup must share."""

    topology: tuple[LiveTopologyKey, ...] | None = None


class LiveWorkloadTemplate(_Live, frozen=True):
    """The template in a Workload that a native PodGroup was made from."""

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
    """A native PodGroup, one of Kubernetes itself."""

    metadata: LiveMetadata
    spec: LiveNativePodGroupSpec = LiveNativePodGroupSpec()
    #: The same type as for KAI, but only the conditions are set.
    status: LivePodGroupStatus = LivePodGroupStatus()


class LiveAmount(_Live, frozen=True):
    """A queue's quota, limit and weight for one resource."""

    quota: Written | None = None
    limit: Written | None = None
    over_quota_weight: Written | None = None


class LiveQueueResources(_Live, frozen=True):
    """A queue's amounts of each resource."""

    gpu: LiveAmount | None = None
    cpu: LiveAmount | None = None
    memory: LiveAmount | None = None


class LiveQueueSpec(_Live, frozen=True):
    """The desired state of a Queue."""

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
    """The levels of a topology, widest first."""

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
