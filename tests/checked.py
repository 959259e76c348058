"""What `bough gang check` and `bough quota check` say about objects.

Tests write the objects as types of the model, and get fields and messages, as people would.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from bough.api.file_answers import CheckAnswer, FileProblem
from bough.model.cluster import Topology
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import PodGroup, SubGroupSpec, TopologyConstraints
from bough.model.quota import Cohort, Queue, Quota, ResourceGroup
from bough.model.words import write_amount
from bough.model.workload import Flavor, LocalQueue
from bough.tools import gang, quota

ERROR, WARNING = "error", "warning"
Object = dict[str, Any]
Told = list[tuple[str | None, str]]


def check_gangs(*objects: Object) -> list[FileProblem]:
    """What `bough gang check` finds in objects of KAI, all at once."""
    return _check(gang.check, objects)


def check_quota(*objects: Object) -> list[FileProblem]:
    """What `bough quota check` finds in objects of Kueue, all at once."""
    return _check(quota.check, objects)


def _check(
    tool: Callable[[list[str]], CheckAnswer], objects: Iterable[Object]
) -> list[FileProblem]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "objects.yaml"
        # JSON is YAML.
        path.write_text("\n---\n".join(map(json.dumps, objects)), encoding="utf-8")
        return tool([str(path)]).problems


def told(problems: Iterable[FileProblem], severity: str = ERROR) -> Told:
    """The fields and messages of one severity."""
    return [(each.field, each.message) for each in problems if each.severity == severity]


# Objects of KAI


def pod_group(group: PodGroup) -> Object:
    """A PodGroup as people write it."""
    metadata = _said(name=group.name, namespace=group.namespace)
    spec = _said(
        queue="q",
        minMember=group.min_member,
        minSubGroup=group.min_sub_group,
        subGroups=[_subgroup(each) for each in group.subgroups],
        topologyConstraint=_constraint(group.constraint),
        topologyConstraints=_constraints(group.constraints),
    )
    version = "scheduling.run.ai/v2alpha2"
    return {"apiVersion": version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, group: str | None, subgroup: str | None = None) -> Object:
    """A pod of a PodGroup."""
    metadata = _said(
        name=name,
        annotations=_said(**{"pod-group-name": group}),
        labels=_said(**{"kai.scheduler/subgroup-name": subgroup}),
    )
    containers = {"containers": [{"name": "main"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": containers}


def topology(written: Topology) -> Object:
    """A Topology as people write it."""
    levels = [_said(nodeLabel=each.label, alias=each.alias) for each in written.levels]
    return {
        "apiVersion": "kai.scheduler/v1alpha1",
        "kind": "Topology",
        "metadata": {"name": written.name},
        "spec": {"levels": levels},
    }


def _subgroup(spec: SubGroupSpec) -> Object:
    return _said(
        name=spec.name,
        parent=spec.parent,
        minMember=spec.min_member,
        minSubGroup=spec.min_sub_group,
        topologyConstraint=_constraint(spec.constraint),
    )


def _constraint(constraint: TopologyConstraint | None) -> Object | None:
    return constraint and _said(
        topology=constraint.topology,
        requiredTopologyLevel=constraint.required,
        preferredTopologyLevel=constraint.preferred,
    )


def _constraints(constraints: TopologyConstraints) -> Object:
    return _said(
        subGroups={name: _constraint(each) for name, each in constraints.subgroups.items()} or None,
        subGroupSets=[
            {"subGroups": list(each.members), "constraint": _constraint(each.constraint)}
            for each in constraints.sets
        ]
        or None,
        **{"global": _constraint(constraints.fallback)},
    )


# Objects of Kueue


def cohort(written: Cohort) -> Object:
    """A Cohort as people write it."""
    spec = _said(parentName=written.parent, resourceGroups=_groups(written.resource_groups))
    return _kueue("Cohort", written.name, spec | _weight(written.weight))


def cluster_queue(written: Queue) -> Object:
    """A ClusterQueue as people write it."""
    preemption, fungibility = written.rules.preemption, written.rules.fungibility
    spec = _said(
        cohortName=written.cohort,
        resourceGroups=_groups(written.resource_groups),
        preemption=preemption
        and {
            "reclaimWithinCohort": preemption.reclaim_within_cohort,
            "borrowWithinCohort": {"policy": preemption.borrow_within_cohort},
        },
        flavorFungibility=_said(
            whenCanBorrow=fungibility.when_can_borrow,
            whenCanPreempt=fungibility.when_can_preempt,
            preference=fungibility.preference,
        ),
    )
    return _kueue("ClusterQueue", written.name, spec | _weight(written.weight))


def local_queue(written: LocalQueue) -> Object:
    """A LocalQueue as people write it."""
    spec = {"clusterQueue": written.queue} | _weight(written.weight)
    return _kueue("LocalQueue", written.name, spec, written.namespace)


def flavor(written: Flavor) -> Object:
    """A ResourceFlavor as people write it."""
    spec = _said(
        nodeLabels=written.node_labels,
        tolerations=[{"operator": "Exists"} for _ in written.tolerations],
        topologyName=written.topology,
    )
    return _kueue("ResourceFlavor", written.name, spec)


def workload(pod_set: str) -> Object:
    """A Workload with one pod set of this name."""
    template = {"spec": {"containers": [{"name": "main"}]}}
    return _kueue(
        "Workload", "w", {"podSets": [{"name": pod_set, "count": 1, "template": template}]}, "n"
    )


def _kueue(kind: str, name: str, spec: Object, namespace: str | None = None) -> Object:
    metadata = _said(name=name, namespace=namespace)
    version = "kueue.x-k8s.io/v1beta2"
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def _groups(groups: Iterable[ResourceGroup]) -> list[Object]:
    return [
        {
            "coveredResources": list(each.covered_resources),
            "flavors": [
                {"name": one.name, "resources": [_quota(*pair) for pair in one.resources.items()]}
                for one in each.flavors
            ],
        }
        for each in groups
    ]


def _quota(resource: str, amounts: Quota) -> Object:
    found = {
        "nominalQuota": amounts.nominal,
        "borrowingLimit": amounts.borrowing_limit,
        "lendingLimit": amounts.lending_limit,
    }
    said = {name: write_amount(resource, each) for name, each in found.items() if each is not None}
    return {"name": resource, **said}


def _weight(weight: Fraction) -> Object:
    return {} if weight == 1 else {"fairSharing": {"weight": f"{float(weight):.9f}"}}


def _said(**fields: object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
