"""What a pod asks for: requests, node selector, affinity, tolerations.

Fields of a pod that say nothing about where it may run, or how much it needs (images, commands,
volumes, probes), are known and accepted without a meaning. Must not know who owns the pods.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from bough.model.cluster import Match, Taint, TaintEffect, Toleration
from bough.model.workload import PodTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from bough.formats.fields import Fields

#: A node's name, where the key of a condition is expected to be a label.
NODE_NAME = "metadata.name"

_POD_FIELDS_WITHOUT_MEANING = (
    "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
    "hostnameOverride imagePullSecrets nodeName os preemptionPolicy priority priorityClassName "
    "readinessGates resourceClaims restartPolicy runtimeClassName schedulerName schedulingGates "
    "securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
    "subdomain terminationGracePeriodSeconds topologySpreadConstraints volumes"
)
_CONTAINER_FIELDS_WITHOUT_MEANING = (
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
    "readinessProbe resizePolicy restartPolicyRules securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)


class MatchOperator(StrEnum):
    """How the value of a label is compared."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


class TolerationOperator(StrEnum):
    """How the value of a taint is compared."""

    EQUAL = "Equal"
    EXISTS = "Exists"


def read_pod_template(fields: Fields) -> PodTemplate:
    """Read a pod template: its labels, and what its pod asks for."""
    metadata = fields.optional_child("metadata")
    labels: dict[str, str] = {}
    if metadata is not None:
        labels = metadata.text_map("labels")
        metadata.ignore("name", "namespace", "annotations", "creationTimestamp", "finalizers")
    return read_pod_spec(fields.child("spec"), labels)


def read_pod_spec(fields: Fields, labels: dict[str, str]) -> PodTemplate:
    """Read the spec of a pod, or of a pod template."""
    fields.ignore(*_POD_FIELDS_WITHOUT_MEANING.split())
    return PodTemplate(
        requests=read_pod_requests(fields),
        node_selector=fields.text_map("nodeSelector"),
        affinity=_read_affinity(fields),
        tolerations=read_tolerations(fields, "tolerations"),
        labels=labels,
    )


def read_pod_requests(fields: Fields) -> dict[str, int]:
    """Add up what one pod needs at its peak, with its overhead.

    Init containers run one after the other before the containers, but for those that are always
    restarted: they run along with all that come after them.
    """
    running = _sum(_read_container(each)[0] for each in fields.children("containers"))
    peak: dict[str, int] = {}
    lasting: dict[str, int] = {}
    for each in fields.children("initContainers"):
        requests, lasts = _read_container(each)
        together = _sum((lasting, requests))
        peak = _maximum(peak, together)
        if lasts:
            lasting = together
    total = _maximum(_sum((running, lasting)), peak)
    total.update(_read_resources(fields))
    return _sum((total, fields.quantities("overhead")))


def read_matches(fields: Fields, name: str) -> tuple[Match, ...]:
    """Read a list of conditions (`key`, `operator`, `values`)."""
    matches: list[Match] = []
    for each in fields.children(name):
        operator = each.choice("operator", MatchOperator, MatchOperator.IN)
        values = each.texts("values")
        needs_values = operator not in (MatchOperator.EXISTS, MatchOperator.DOES_NOT_EXIST)
        if needs_values != bool(values):
            wanted = "at least one value" if needs_values else "no values"
            each.error("values", f"the operator {operator} needs {wanted}")
        matches.append(Match(each.text("key"), operator.value, values))
    return tuple(matches)


def read_label_selector(fields: Fields) -> tuple[Match, ...]:
    """Read a label selector; without conditions it selects everything."""
    labels = fields.text_map("matchLabels")
    equal = [Match(key, MatchOperator.IN.value, (value,)) for key, value in labels.items()]
    return (*equal, *read_matches(fields, "matchExpressions"))


def read_tolerations(fields: Fields, name: str) -> tuple[Toleration, ...]:
    """Read a list of tolerations."""
    tolerations: list[Toleration] = []
    for each in fields.children(name):
        each.ignore("tolerationSeconds")
        operator = each.choice("operator", TolerationOperator, TolerationOperator.EQUAL)
        tolerations.append(
            Toleration(
                key=each.optional_text("key") or "",
                operator=operator.value,
                value=each.optional_text("value") or "",
                effect=each.optional_choice("effect", TaintEffect),
            )
        )
    return tuple(tolerations)


def read_taints(fields: Fields, name: str) -> tuple[Taint, ...]:
    """Read a list of taints."""
    taints: list[Taint] = []
    for each in fields.children(name):
        each.ignore("timeAdded")
        effect = each.optional_choice("effect", TaintEffect)
        if effect is None and "effect" not in each:
            each.error("effect", "is missing")
        value = each.optional_text("value") or ""
        taints.append(Taint(each.text("key"), value, effect or TaintEffect.NO_SCHEDULE))
    return tuple(taints)


def _read_affinity(fields: Fields) -> tuple[tuple[Match, ...], ...]:
    affinity = fields.optional_child("affinity")
    if affinity is None:
        return ()
    affinity.ignore("podAffinity", "podAntiAffinity")
    nodes = affinity.optional_child("nodeAffinity")
    if nodes is None:
        return ()
    nodes.ignore("preferredDuringSchedulingIgnoredDuringExecution")
    required = nodes.optional_child("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return ()
    return tuple(
        (*read_matches(term, "matchExpressions"), *read_matches(term, "matchFields"))
        for term in required.children("nodeSelectorTerms")
    )


def _read_container(fields: Fields) -> tuple[dict[str, int], bool]:
    """What a container asks for, and whether it is restarted for ever."""
    fields.ignore(*_CONTAINER_FIELDS_WITHOUT_MEANING.split())
    return _read_resources(fields), fields.optional_text("restartPolicy") == "Always"


def _read_resources(fields: Fields) -> dict[str, int]:
    """What is requested; a limit counts as a request where there is none."""
    resources = fields.optional_child("resources")
    if resources is None:
        return {}
    resources.ignore("claims")
    return {**resources.quantities("limits"), **resources.quantities("requests")}


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _maximum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    names = dict.fromkeys((*left, *right))
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in names}
