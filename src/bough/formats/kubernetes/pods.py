"""What a pod asks for: requests, node selector, affinity, tolerations.

Fields of a pod that say nothing about where it can run or how much it needs (images, commands,
volumes, probes) are accepted and ignored. What says something and is not honoured
(affinity between pods, spread constraints, resource claims, preferred nodes) is named in a warning.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from bough.model.cluster import Match, Resources, Taint, TaintEffect, Toleration
from bough.model.workload import PodTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bough.formats.yaml.fields import Fields
    from bough.model.problem import FieldPath

GPU = "nvidia.com/gpu"
CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
#: A node's name, where the key of a condition is expected to be a label.
NODE_NAME = "metadata.name"

#: Of a spread constraint: better so, but not demanded.
MAY_SPREAD = "ScheduleAnyway"
#: How what is demanded and not honoured is called, as in "the pod asks for ...".
CLAIM_DEMAND = "a resource claim"

_POD_FIELDS_WITHOUT_MEANING = (
    "activeDeadlineSeconds automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname "
    "hostnameOverride imagePullSecrets nodeName os preemptionPolicy priority priorityClassName "
    "readinessGates restartPolicy runtimeClassName schedulerName schedulingGates schedulingGroup "
    "securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace "
    "subdomain terminationGracePeriodSeconds volumes"
)
_CONTAINER_FIELDS_WITHOUT_MEANING = (
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
    "readinessProbe resizePolicy restartPolicyRules securityContext startupProbe stdin stdinOnce "
    "terminationMessagePath terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


class NotHonoured(StrEnum):
    """What becomes of pods that demand something which cannot be planned."""

    #: They are given no place.
    WAITS = "is not supported: the pod waits"
    #: They are placed; others are placed as if these did not demand it.
    RUNS = "is not supported: other pods are placed without regard to it"
    #: They are planned by their quota, whatever else they demand.
    QUOTA = "is not looked at: what counts here is quota"


class _Demand(NamedTuple):
    """Something that a pod says and that is not honoured."""

    path: FieldPath
    what: str
    #: The pod must have it; otherwise it would only be better.
    required: bool


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


def read_pod_spec(
    fields: Fields, labels: dict[str, str], otherwise: NotHonoured | None = NotHonoured.QUOTA
) -> PodTemplate:
    """Read the spec of a pod, or of a pod template.

    otherwise:  what becomes of demands that are not honoured; `None`: they mean nothing any more.
    """
    fields.ignore(*_POD_FIELDS_WITHOUT_MEANING.split())
    affinity = fields.optional_child("affinity") or fields.nothing("affinity")
    nodes = affinity.optional_child("nodeAffinity") or affinity.nothing("nodeAffinity")
    demands = [*_pod_affinities(affinity), *_preferred_nodes(nodes), *_spreads(fields)]
    demands += _claims(fields)
    for path, what, required in demands if otherwise is not None else ():
        because = otherwise if required else "is not looked at"
        fields.reading.warn(path, f"{what} {because}")
    return PodTemplate(
        requests=read_pod_requests(fields),
        node_selector=fields.text_map("nodeSelector"),
        affinity=_read_node_affinity(nodes),
        tolerations=read_tolerations(fields, "tolerations"),
        labels=labels,
        unsupported=next((each.what for each in demands if each.required), ""),
    )


def read_pod_requests(fields: Fields) -> dict[str, int]:
    """Add up what one pod needs at its peak, with its overhead.

    Init containers run one after the other before the containers, but for those that are always
    restarted: they run along with all that come after them.
    """
    return peak_requests(
        [_read_container(each)[0] for each in fields.children("containers")],
        [_read_container(each) for each in fields.children("initContainers")],
        _read_resources(fields),
        read_amounts(fields, "overhead"),
    )


def peak_requests(
    containers: Iterable[Mapping[str, int]],
    init_containers: Iterable[tuple[Mapping[str, int], bool]],
    whole: Mapping[str, int],
    overhead: Mapping[str, int],
) -> dict[str, int]:
    """What a pod needs at its peak, of what its containers ask for.

    init_containers:  in order, each with whether it is always restarted.
    whole:  what the pod asks for itself, which counts instead.
    """
    peak: dict[str, int] = {}
    lasting: dict[str, int] = {}
    for requests, lasts in init_containers:
        together = _sum((lasting, requests))
        peak = _maximum(peak, together)
        if lasts:
            lasting = together
    total = _maximum(_sum((_sum(containers), lasting)), peak)
    total.update(whole)
    return _sum((total, overhead))


def affinity_demand(*, required: bool, anti: bool) -> str:
    """What an affinity between pods is called."""
    return (
        f"{'required' if required else 'preferred'} pod {'anti-affinity' if anti else 'affinity'}"
    )


def spread_demand(*, required: bool) -> str:
    """What a spread constraint is called."""
    return f"a topology spread constraint of {'DoNotSchedule' if required else MAY_SPREAD}"


def read_amounts(fields: Fields, name: str) -> dict[str, int]:
    """Read amounts by resource, none of which may be negative."""
    amounts = fields.quantities(name)
    for resource, amount in amounts.items():
        if amount < 0:
            path = (*fields.path, name, resource)
            fields.reading.error(path, f"is {amount}, but must not be negative")
    return {resource: max(amount, 0) for resource, amount in amounts.items()}


def resources_of(amounts: Mapping[str, int]) -> Resources:
    """Amounts by the names of Kubernetes (CPU in thousandths of a core) as resources."""
    known = (GPU, CPU, MEMORY, PODS)
    return Resources(
        gpus=amounts.get(GPU, 0),
        cpu_milli=amounts.get(CPU, 0),
        memory_bytes=amounts.get(MEMORY, 0),
        pods=amounts.get(PODS, 0),
        other=tuple(sorted((name, n) for name, n in amounts.items() if name not in known)),
    )


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


def _pod_affinities(affinity: Fields) -> Iterator[_Demand]:
    for name in ("podAffinity", "podAntiAffinity"):
        nested = affinity.optional_child(name) or affinity.nothing(name)
        for field in (_REQUIRED, _PREFERRED):
            if _has_any(nested, field):
                required = field == _REQUIRED
                what = affinity_demand(required=required, anti=name == "podAntiAffinity")
                yield _Demand((*nested.path, field), what, required)


def _preferred_nodes(nodes: Fields) -> Iterator[_Demand]:
    if _has_any(nodes, _PREFERRED):
        yield _Demand((*nodes.path, _PREFERRED), "preferred node affinity", required=False)


def _spreads(fields: Fields) -> Iterator[_Demand]:
    """Spread constraints; one that does not say otherwise is demanded, as in Kubernetes."""
    for each in fields.children("topologySpreadConstraints"):
        each.ignore(*each.names())
        required = not each.is_text("whenUnsatisfiable", MAY_SPREAD)
        yield _Demand(each.path, spread_demand(required=required), required)


def _claims(fields: Fields) -> Iterator[_Demand]:
    """Devices that are claimed, which is how Kubernetes allocates dynamically."""
    if _has_any(fields, "resourceClaims"):
        yield _Demand((*fields.path, "resourceClaims"), CLAIM_DEMAND, required=True)


def _has_any(fields: Fields, name: str) -> bool:
    """Whether a list has entries, of whatever form."""
    found = fields.children(name)
    for each in found:
        each.ignore(*each.names())
    return bool(found)


def _read_node_affinity(nodes: Fields) -> tuple[tuple[Match, ...], ...]:
    required = nodes.optional_child(_REQUIRED)
    if required is None:
        return ()
    return tuple(
        (*read_matches(term, "matchExpressions"), *read_matches(term, "matchFields"))
        for term in required.children("nodeSelectorTerms")
    )


def _read_container(fields: Fields) -> tuple[dict[str, int], bool]:
    """What a container asks for, and whether it is restarted always."""
    fields.ignore(*_CONTAINER_FIELDS_WITHOUT_MEANING.split())
    return _read_resources(fields), fields.optional_text("restartPolicy") == "Always"


def _read_resources(fields: Fields) -> dict[str, int]:
    """What is requested; a limit counts as a request where there is none."""
    resources = fields.optional_child("resources")
    if resources is None:
        return {}
    resources.ignore("claims")
    return {**read_amounts(resources, "limits"), **read_amounts(resources, "requests")}


def _sum(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, 0) + amount
    return total


def _maximum(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    names = dict.fromkeys((*left, *right))
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in names}
