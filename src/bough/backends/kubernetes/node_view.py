"""What a cluster offers: its nodes, and what a pod uses of one. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bough.errors import Invalid
from bough.formats.kubernetes.pods import peak_requests
from bough.formats.yaml.quantity import round_up_quantity
from bough.kube.objects import Container, ContainerResources, KubeNode, KubePod
from bough.model.cluster import Resources as Amounts
from bough.model.cluster import Taint, TaintEffect
from bough.model.pool import OfferedNode

GPU = "nvidia.com/gpu"
_CPU, _MEMORY, _STORAGE, _PODS = "cpu", "memory", "ephemeral-storage", "pods"
_EFFECTS = {each.value: each for each in TaintEffect}
_DEFAULT_PODS = 110


def offered(node: KubeNode, backend: str, tested: frozenset[str] = frozenset()) -> OfferedNode:
    """A node as it is offered to the scheduler: closed if its kubelet, a cordon or a test says so.

    tested:  the conditions that node tests set
    """
    allocatable = node.status.allocatable or {}
    amounts = {name: amount(name, value) for name, value in allocatable.items()}
    return OfferedNode(
        name=node.metadata.name,
        backend=backend,
        gpus=amounts.get(GPU, 0),
        cpu_milli=amounts.get(_CPU, 0),
        memory_bytes=amounts.get(_MEMORY, 0),
        storage_bytes=amounts.get(_STORAGE, 0),
        task_slots=amounts.get(_PODS, _DEFAULT_PODS),
        labels=node.metadata.labels or {},
        closed=_closed(node, tested),
        taints=_taints(node),
    )


def _closed(node: KubeNode, tested: frozenset[str]) -> str:
    """Why a node takes no pods; empty if it does."""
    if not is_ready(node):
        return "It is not ready."
    if node.spec.unschedulable:
        return "It is cordoned in its cluster."
    for each in node.status.conditions:
        if each.type in tested and each.status != "True":
            said = each.message or each.reason
            return f"Its condition {each.type} is {each.status}{said and f': {said}'}."
    return ""


def _taints(node: KubeNode) -> tuple[Taint, ...]:
    """The taints of a node; one with an unknown effect keeps tasks away as well."""
    return tuple(
        Taint(each.key, each.value, _EFFECTS.get(each.effect, TaintEffect.NO_SCHEDULE))
        for each in node.spec.taints
    )


def is_ready(node: KubeNode) -> bool:
    """Whether the node's kubelet says that it is ready."""
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)


def used(pod: KubePod) -> Amounts:
    """What a pod holds on its node, at its peak."""
    return _as_resources(
        peak_requests(
            [_requests(each) for each in pod.spec.containers],
            [
                (_requests(each), each.restart_policy == "Always")
                for each in pod.spec.init_containers
            ],
            _amounts(pod.spec.resources),
            {name: amount(name, value) for name, value in (pod.spec.overhead or {}).items()},
        )
    )


def added(parts: Iterable[Amounts]) -> Amounts:
    """The sum of all parts."""
    gpus = cpu_milli = memory_bytes = pods = 0
    for each in parts:
        gpus += each.gpus
        cpu_milli += each.cpu_milli
        memory_bytes += each.memory_bytes
        pods += each.pods
    return Amounts(gpus, cpu_milli, memory_bytes, pods)


def amount(resource: str, value: str | int) -> int:
    """Parse an amount, rounded up; 0 if it cannot be parsed."""
    try:
        return round_up_quantity(value, resource)
    except Invalid:
        return 0


def _requests(container: Container) -> dict[str, int]:
    return _amounts(container.resources)


def _amounts(resources: ContainerResources | None) -> dict[str, int]:
    given = {} if resources is None else resources.requests or {}
    return {name: amount(name, value) for name, value in given.items()}


def _as_resources(amounts: Mapping[str, int]) -> Amounts:
    return Amounts(amounts.get(GPU, 0), amounts.get(_CPU, 0), amounts.get(_MEMORY, 0), pods=1)
