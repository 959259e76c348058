"""Which nodes a pod may use at all: selectors, affinity, taints and cordons, compiled into masks.

The rules are those of Kubernetes. Labels are indexed when the first pod asks for their key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bough.core.place.node_bits import mask_of
from bough.model.cluster import Match, Node, Taint, TaintEffect, Toleration
from bough.model.gang import Pod

#: The key that stands for the name of the node itself.
NODE_NAME = "metadata.name"

#: How many different terms are kept compiled at once.
MAXIMUM_REMEMBERED = 4096


class NodeTerms(NamedTuple):
    """What a pod says about nodes, apart from what it requests; equal for pods that are alike."""

    selector: tuple[tuple[str, str], ...]
    affinity: tuple[tuple[Match, ...], ...]
    tolerations: tuple[Toleration, ...]
    #: It asks for something that cannot be planned: no node may take it.
    unsupported: str = ""


class Eligible(NamedTuple):
    """The nodes that may take a pod, as far as their free room lets them."""

    #: Selector and affinity match.
    matched: int
    #: No taint keeps the pod off.
    tolerated: int
    #: Matched, tolerated, and open for new pods; none where the pod cannot be planned.
    allowed: int
    #: Some taint asks, but does not demand, that the pod goes elsewhere.
    avoided: int


def terms_of(pod: Pod) -> NodeTerms:
    """What a pod says about nodes."""
    selector = pod.node_selector
    return NodeTerms(
        tuple(sorted(selector.items())) if selector else (),
        pod.affinity,
        pod.tolerations,
        pod.unsupported,
    )


class Matcher:
    """Compiles terms into masks, once for pods that are alike."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._nodes = nodes
        self.everything = (1 << len(nodes)) - 1
        self.cordoned = mask_of(i for i, node in enumerate(nodes) if node.cordoned)
        self._labels: dict[str, dict[str, int]] = {}
        self._taints: dict[tuple[Taint, ...], int] = {}
        for position, node in enumerate(nodes):
            if node.taints:
                before = self._taints.get(node.taints, 0)
                self._taints[node.taints] = before | 1 << position
        self._eligible: dict[NodeTerms, Eligible] = {}

    def eligible(self, terms: NodeTerms) -> Eligible:
        """The nodes that pods with these terms may use."""
        found = self._eligible.get(terms)
        if found is None:
            matched = self._matched(terms)
            refused, avoided = self._kept_off(terms.tolerations)
            tolerated = self.everything & ~refused
            allowed = 0 if terms.unsupported else matched & tolerated & ~self.cordoned
            found = Eligible(matched, tolerated, allowed, avoided & allowed)
            if len(self._eligible) >= MAXIMUM_REMEMBERED:
                self._eligible.clear()
            self._eligible[terms] = found
        return found

    def cordon(self, nodes: Sequence[Node]) -> None:
        """Take over which nodes are cordoned now; nothing else about them has changed."""
        self._nodes = nodes
        self.cordoned = mask_of(i for i, node in enumerate(nodes) if node.cordoned)
        self._eligible.clear()

    def with_label(self, key: str, value: str) -> int:
        """The nodes on which a label has this value."""
        return self._values(key).get(value, 0)

    def _matched(self, terms: NodeTerms) -> int:
        mask = self.everything
        for key, value in terms.selector:
            mask &= self.with_label(key, value)
        if not terms.affinity:
            return mask
        anyone = 0
        for term in terms.affinity:
            # A term without conditions matches nothing, as in Kubernetes.
            together = self.everything if term else 0
            for match in term:
                together &= self._match(match)
            anyone |= together
        return mask & anyone

    def _match(self, match: Match) -> int:
        values = self._values(match.key)
        if match.operator in {"Gt", "Lt"}:
            return _union(values, _beyond(match))
        if match.operator in {"In", "NotIn"}:
            wanted = set(match.values)
            found = _union(values, lambda value: value in wanted)
        else:
            found = _union(values, lambda _: True)
        if match.operator in {"NotIn", "DoesNotExist"}:
            return self.everything & ~found
        return found

    def _kept_off(self, tolerations: tuple[Toleration, ...]) -> tuple[int, int]:
        """The nodes whose taints forbid the pod, and those whose taints advise against it."""
        refused = avoided = 0
        for taints, mask in self._taints.items():
            for taint in taints:
                if any(tolerates(toleration, taint) for toleration in tolerations):
                    continue
                if taint.effect is TaintEffect.PREFER_NO_SCHEDULE:
                    avoided |= mask
                else:
                    refused |= mask
        return refused, avoided

    def _values(self, key: str) -> dict[str, int]:
        """The nodes by their value of one label."""
        found = self._labels.get(key)
        if found is None:
            members: dict[str, list[int]] = {}
            for position, node in enumerate(self._nodes):
                value = node.name if key == NODE_NAME else node.labels.get(key)
                if value is not None:
                    members.setdefault(value, []).append(position)
            found = {value: mask_of(nodes) for value, nodes in members.items()}
            self._labels[key] = found
        return found


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Whether the toleration lets a pod onto nodes with the taint."""
    if toleration.effect is not None and toleration.effect is not taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or toleration.value == taint.value


def _union(values: dict[str, int], wanted: Callable[[str], bool]) -> int:
    mask = 0
    for value, nodes in values.items():
        if wanted(value):
            mask |= nodes
    return mask


def _beyond(match: Match) -> Callable[[str], bool]:
    """Compare whole numbers; a label or a limit that is none matches nothing."""
    limit = _whole(match.values[0]) if match.values else None

    def holds(value: str) -> bool:
        number = _whole(value)
        if number is None or limit is None:
            return False
        return number > limit if match.operator == "Gt" else number < limit

    return holds


def _whole(text: str) -> int | None:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None
