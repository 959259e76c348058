"""Whether a flavor suits the pods of a set, and whether labels satisfy conditions.

Only the label keys that the flavor itself defines are looked at: a pod may ask for other things of
its node, which the flavor says nothing about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from bough.core.place.node_matching import tolerates
from bough.model.cluster import Match, TaintEffect
from bough.model.workload import Flavor, PodSet

_REPELLING = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)


def why_unsuitable(flavor: Flavor, pod_set: PodSet) -> str | None:
    """Why the pods cannot use the flavor, in words; `None` if they can."""
    if _is_plain(flavor) and pod_set.topology is None:
        return None
    if flavor.topology is not None:
        return f"flavor {flavor.name} places pods by topology, which this policy does not"
    if pod_set.topology is not None and _is_demanding(pod_set):
        return f"pod set {pod_set.name} asks for a topology, which flavor {flavor.name} lacks"
    template = pod_set.template
    for taint in flavor.taints:
        if taint.effect in _REPELLING:
            tolerations = (*template.tolerations, *flavor.tolerations)
            if not any(tolerates(each, taint) for each in tolerations):
                text = f"{taint.key}={taint.value}" if taint.value else taint.key
                return f"flavor {flavor.name} has the untolerated taint {text}:{taint.effect}"
    labels = flavor.node_labels
    for key, value in template.node_selector.items():
        if labels.get(key, value) != value:
            return f"flavor {flavor.name} has {key}={labels[key]}, not {value}"
    if not _is_attracted(template.affinity, labels):
        return f"flavor {flavor.name} does not match the node affinity"
    return None


def satisfies(labels: Mapping[str, str], matches: Iterable[Match]) -> bool:
    """Whether the labels satisfy every condition."""
    return all(_holds(labels.get(match.key), match) for match in matches)


def _is_plain(flavor: Flavor) -> bool:
    """Whether the flavor says nothing that could keep pods off."""
    return not flavor.node_labels and not flavor.taints and flavor.topology is None


def _is_demanding(pod_set: PodSet) -> bool:
    topology = pod_set.topology
    return topology is not None and bool(
        topology.required or topology.preferred or topology.unconstrained or topology.slices
    )


def _is_attracted(terms: tuple[tuple[Match, ...], ...], labels: Mapping[str, str]) -> bool:
    """Whether any term holds, as far as it speaks of the flavor's own labels."""
    spoken = [[match for match in term if match.key in labels] for term in terms]
    if not all(spoken):
        return True
    return not spoken or any(satisfies(labels, term) for term in spoken)


def _holds(value: str | None, match: Match) -> bool:
    match match.operator:
        case "In":
            return value in match.values
        case "NotIn":
            return value not in match.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case _:
            return _is_beyond(value, match)


def _is_beyond(value: str | None, match: Match) -> bool:
    """`Gt` and `Lt` compare whole numbers; anything else satisfies neither."""
    limit = match.values[0] if match.values else ""
    if value is None or not (_is_whole(value) and _is_whole(limit)):
        return False
    return int(value) > int(limit) if match.operator == "Gt" else int(value) < int(limit)


def _is_whole(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 20
