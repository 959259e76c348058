"""Kubernetes objects, reduced to the fields that we use; others are not even decoded."""

from __future__ import annotations

from typing import Any, Generic, NamedTuple, TypeVar

import msgspec


class _Object(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """Uses camelCase on the wire, and leaves out fields that are not set."""


class OwnerReference(_Object, frozen=True):
    """The owner of an object; deleting the owner deletes the object as well."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class Meta(_Object, frozen=True):
    """The metadata that every object has."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    #: Times in the form that the apiserver writes: 2026-01-31T23:59:59Z.
    creation_timestamp: str | None = None
    #: The time by which it must be gone; set once it was told to end.
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class ContainerResources(_Object, frozen=True):
    """What a container asks for, as quantities."""

    requests: dict[str, str | int] | None = None
    limits: dict[str, str | int] | None = None


class Container(_Object, frozen=True):
    """A container, reduced to what we use."""

    name: str = ""
    resources: ContainerResources = ContainerResources()
    #: `Always` on an init container means that it keeps running beside the others.
    restart_policy: str | None = None


class KubeToleration(_Object, frozen=True):
    """A taint, or several, that a pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodSpec(_Object, frozen=True):
    """The desired state of a pod."""

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
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class ContainerRunning(_Object, frozen=True):
    """Since when a container has been running."""

    started_at: str | None = None


class Terminated(_Object, frozen=True):
    """How a container ended."""

    exit_code: int = 0
    signal: int | None = None
    reason: str = ""
    message: str = ""
    started_at: str | None = None
    finished_at: str | None = None


class ContainerState(_Object, frozen=True):
    """The state of a container; one of these three is set."""

    waiting: Waiting | None = None
    running: ContainerRunning | None = None
    terminated: Terminated | None = None


class ContainerStatus(_Object, frozen=True):
    """The status of one container."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class ObjectCondition(_Object, frozen=True):
    """One condition, true or false."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(_Object, frozen=True):
    """The observed state of a pod."""

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
    """Keeps pods away that do not tolerate it."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(_Object, frozen=True):
    """The desired state of a node."""

    unschedulable: bool = False
    taints: tuple[KubeTaint, ...] = ()


class NodeStatus(_Object, frozen=True):
    """The observed state of a node."""

    allocatable: dict[str, str | int] | None = None
    conditions: tuple[ObjectCondition, ...] = ()


class KubeNode(_Object, frozen=True):
    """A node."""

    metadata: Meta = Meta()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class Plain(_Object, frozen=True):
    """Any object of which only the metadata matters."""

    metadata: Meta = Meta()


T = TypeVar("T")


class Kind(NamedTuple, Generic[T]):
    """A kind of objects: where the API serves it, and the type that it is decoded to."""

    #: `api/v1` or `apis/GROUP/VERSION`.
    api: str
    plural: str
    type: type[T]
    namespaced: bool = True
    #: Whether a cluster may lack this kind; then it simply has no such objects.
    optional: bool = False


PODS: Kind[KubePod] = Kind("api/v1", "pods", KubePod)
NODES: Kind[KubeNode] = Kind("api/v1", "nodes", KubeNode, namespaced=False)
NAMESPACES: Kind[Plain] = Kind("api/v1", "namespaces", Plain, namespaced=False)
SERVICES: Kind[Plain] = Kind("api/v1", "services", Plain)
SECRETS: Kind[Plain] = Kind("api/v1", "secrets", Plain)
EVENTS: Kind[Plain] = Kind("api/v1", "events", Plain)


def untyped(api: str, plural: str, *, namespaced: bool = True) -> Kind[dict[str, Any]]:
    """A kind whose objects are decoded to dictionaries; for use where speed does not matter."""
    return Kind(api, plural, dict[str, Any], namespaced)
