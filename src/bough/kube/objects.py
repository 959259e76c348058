"""Objects of Kubernetes, as far as their fields matter to us; all others are not even decoded."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import msgspec


class _Object(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Written in Kubernetes as camelCase, and without what is not set."""


class OwnerReference(_Object, frozen=True):
    """What an object belongs to, and goes with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(_Object, frozen=True):
    """What every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    #: Times as the apiserver writes them: 2026-01-31T23:59:59Z.
    creation_timestamp: str | None = None
    #: The latest time by which it must be gone; set once it was told to end.
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class ContainerResources(_Object, frozen=True):
    """What a container asks for, as quantities."""

    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class Container(_Object, frozen=True):
    """A container, as far as it counts."""

    name: str = ""
    resources: ContainerResources = ContainerResources()
    #: Of an init container: `Always` if it runs beside the others.
    restart_policy: str | None = None


class KubeToleration(_Object, frozen=True):
    """Taints that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodSpec(_Object, frozen=True):
    """What a pod should be."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, str | int] | None = None
    resources: ContainerResources | None = None
    tolerations: tuple[KubeToleration, ...] = ()
    termination_grace_period_seconds: int | None = None


class Waiting(_Object, frozen=True):
    """A container that does not run yet, and why."""

    reason: str = ""
    message: str = ""


class ContainerRunning(_Object, frozen=True):
    """A container that runs."""

    started_at: str | None = None


class Terminated(_Object, frozen=True):
    """A container that has ended."""

    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(_Object, frozen=True):
    """One of these three."""

    waiting: Waiting | None = None
    running: ContainerRunning | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Object, frozen=True):
    """How a container is."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class ObjectCondition(_Object, frozen=True):
    """One fact, true or false."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(_Object, frozen=True):
    """How a pod is."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    start_time: str | None = None
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[ObjectCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class KubePod(_Object, frozen=True):
    """A pod."""

    metadata: Meta = Meta()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class KubeTaint(_Object, frozen=True):
    """What keeps pods away that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(_Object, frozen=True):
    """What a node should be."""

    unschedulable: bool = False
    taints: tuple[KubeTaint, ...] = ()


class NodeStatus(_Object, frozen=True):
    """How a node is."""

    allocatable: dict[str, str | int] | None = None
    conditions: tuple[ObjectCondition, ...] = ()


class KubeNode(_Object, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Plain(_Object, frozen=True):
    """Any object of which only the name and the like matter."""

    metadata: Meta = Meta()


T = TypeVar("T")


class Kind(NamedTuple, Generic[T]):
    """A kind of objects: where its paths begin, and as what its objects are decoded."""

    #: `api/v1` or `apis/GROUP/VERSION`.
    api: str
    plural: str
    type: type[T]
    namespaced: bool = True
    #: A cluster need not know it: then it has no objects.
    optional: bool = False


PODS: Kind[KubePod] = Kind("api/v1", "pods", KubePod)
NODES: Kind[KubeNode] = Kind("api/v1", "nodes", KubeNode, namespaced=False)
NAMESPACES: Kind[Plain] = Kind("api/v1", "namespaces", Plain, namespaced=False)
SERVICES: Kind[Plain] = Kind("api/v1", "services", Plain)
SECRETS: Kind[Plain] = Kind("api/v1", "secrets", Plain)
EVENTS: Kind[Plain] = Kind("api/v1", "events", Plain)


def untyped(api: str, plural: str, *, namespaced: bool = True) -> Kind[dict[str, Any]]:
    """A kind whose objects are decoded whole, as dictionaries; where speed does not matter."""
    return Kind(api, plural, dict[str, Any], namespaced)
