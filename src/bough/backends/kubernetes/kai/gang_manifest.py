"""The PodGroup of a group, and what its pods must say so that KAI places them as one gang. Pure."""

from __future__ import annotations

import hashlib
from typing import Any

from bough.backends.kubernetes.names import GROUP_UUID, SITE, dns_name
from bough.kube.objects import Kind, Plain
from bough.model.backend import GangTerms, Launch, Start
from bough.model.gang import SubGroup, TopologyConstraint

SCHEDULER = "kai-scheduler"
QUEUE_LABEL = "kai.scheduler/queue"
#: The label for the queue that older versions of KAI use.
OLD_QUEUE_LABEL = "runai/queue"
SUBGROUP_LABEL = "kai.scheduler/subgroup-name"
GROUP_ANNOTATION = "pod-group-name"
POD_GROUPS: Kind[Plain] = Kind("apis/scheduling.run.ai/v2alpha2", "podgroups", Plain)
_API = "scheduling.run.ai/v2alpha2"

Json = Any


def pod_group_name(group_uuid: str) -> str:
    """The name of a group's PodGroup: the group's uuid, as in OSMO."""
    return dns_name(group_uuid)


def pod_group(site: str, start: Start, terms: GangTerms) -> dict[str, Json]:
    """The PodGroup of a group that is being started."""
    group = start.launches[0].about.get("group_uuid", "")
    names = subgroup_names(terms)
    spec: dict[str, Json] = {
        "queue": terms.queue,
        "priorityClassName": terms.priority_class,
        **({"minSubGroup": terms.minimum} if names else {"minMember": terms.minimum}),
        **_constraint(terms.constraint),
    }
    if names:
        inner = {each.parent for each in terms.subgroups}
        spec["subGroups"] = [_subgroup(each, names, inner) for each in terms.subgroups]
    return {
        "apiVersion": _API,
        "kind": "PodGroup",
        "metadata": {
            "name": pod_group_name(group),
            "labels": {**_queue_labels(terms), SITE: site, GROUP_UUID: group},
        },
        "spec": spec,
    }


def let_kai_place(pod: dict[str, Json], launch: Launch, terms: GangTerms) -> None:
    """Make a pod a member of its gang, and leave its node to KAI."""
    metadata, spec = pod["metadata"], pod["spec"]
    spec.pop("nodeName", None)
    spec["schedulerName"] = SCHEDULER
    group = pod_group_name(launch.about.get("group_uuid", ""))
    metadata["annotations"] = {**metadata.get("annotations", {}), GROUP_ANNOTATION: group}
    metadata["labels"] |= _queue_labels(terms)
    part = subgroup_names(terms).get(launch.subgroup or "")
    if part is not None:
        metadata["labels"][SUBGROUP_LABEL] = part
    if launch.nodes_excluded:
        _keep_off(spec, launch.nodes_excluded)


def subgroup_names(terms: GangTerms) -> dict[str, str]:
    """The names of subgroups in the cluster: valid there, and still distinct."""
    names: dict[str, str] = {}
    for each in terms.subgroups:
        name = dns_name(each.name)
        if name != each.name:
            digest = hashlib.sha256(each.name.encode()).hexdigest()[:8]
            name = f"{name[:50].rstrip('-')}--{digest}"
        names[each.name] = name
    return names


def _subgroup(each: SubGroup, names: dict[str, str], inner: set[str | None]) -> dict[str, Json]:
    count = "minSubGroup" if each.name in inner else "minMember"
    parent = {} if each.parent is None else {"parent": names[each.parent]}
    made = {"name": names[each.name], **parent, count: each.minimum}
    return {**made, **_constraint(each.constraint)}


def _constraint(constraint: TopologyConstraint | None) -> dict[str, Json]:
    if constraint is None:
        return {}
    levels = {
        "requiredTopologyLevel": constraint.required,
        "preferredTopologyLevel": constraint.preferred,
    }
    said = {name: level for name, level in levels.items() if level is not None}
    return {"topologyConstraint": {"topology": constraint.topology, **said}} if said else {}


def _queue_labels(terms: GangTerms) -> dict[str, str]:
    return {QUEUE_LABEL: terms.queue, OLD_QUEUE_LABEL: terms.queue}


def _keep_off(spec: dict[str, Json], nodes: tuple[str, ...]) -> None:
    """Exclude nodes in every term of a pod's node affinity, or in a new one if it has none."""
    wanted = {"key": "metadata.name", "operator": "NotIn"}
    fields = [{**wanted, "values": [name]} for name in nodes]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {})
    for term in required.setdefault("nodeSelectorTerms", []) or [{}]:
        term["matchFields"] = [*term.get("matchFields", ()), *fields]
        if term not in required["nodeSelectorTerms"]:
            required["nodeSelectorTerms"].append(term)
