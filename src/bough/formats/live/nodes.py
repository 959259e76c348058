"""Nodes and Namespaces as an apiserver sends them."""

from __future__ import annotations

from functools import lru_cache

from bough.errors import Invalid
from bough.formats.kubernetes.nodes import (
    DEFAULT_PODS,
    MOST_GPUS_OF_NODE,
    NAME_LABEL,
)
from bough.formats.kubernetes.pods import GPU, PODS, resources_of
from bough.formats.live.objects import LiveNamespace, LiveNode, LiveNodeStatus, LiveTaint, Written
from bough.formats.live.pods import EFFECTS
from bough.formats.yaml.quantity import parse_amount
from bough.model.cluster import Node, Resources, Taint, TaintEffect


def live_node(node: LiveNode) -> Node:
    """Read a node; one that is not ready takes no new pods."""
    return Node(
        name=node.metadata.name,
        capacity=_capacity(node.status),
        labels=node.metadata.labels or {},
        taints=tuple(_taint(each) for each in node.spec.taints or ()),
        cordoned=node.spec.unschedulable or not _is_ready(node.status),
    )


def live_namespace(namespace: LiveNamespace) -> dict[str, str]:
    """The labels of a namespace, with the name label that Kubernetes adds to each."""
    return {NAME_LABEL: namespace.metadata.name, **(namespace.metadata.labels or {})}


def _capacity(status: LiveNodeStatus) -> Resources:
    """What pods can use; where `allocatable` is missing, the capacity."""
    amounts = {PODS: DEFAULT_PODS}
    for written in (status.capacity, status.allocatable):
        amounts.update((name, _offered(name, value)) for name, value in (written or {}).items())
    return resources_of(amounts)


@lru_cache(maxsize=8_192)
def _offered(resource: str, written: Written) -> int:
    """An amount, rounded down; 0 if it cannot be parsed, or cannot be true."""
    try:
        exact = parse_amount(str(written), resource)
    except Invalid:
        return 0
    whole = max(0, exact.numerator // exact.denominator)
    return 0 if resource == GPU and whole > MOST_GPUS_OF_NODE else whole


def _taint(written: LiveTaint) -> Taint:
    """Read a taint; one with an unknown effect keeps pods away, to be safe."""
    return Taint(
        written.key, written.value or "", EFFECTS.get(written.effect, TaintEffect.NO_SCHEDULE)
    )


def _is_ready(status: LiveNodeStatus) -> bool:
    """Whether the node takes new pods; one without a Ready condition does."""
    said = [each.status == "True" for each in status.conditions or () if each.type == "Ready"]
    return said[-1] if said else True
