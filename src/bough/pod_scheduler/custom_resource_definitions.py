"""The definitions of PodGroup, Queue and Topology, for clusters that have none from KAI.

They check what a schema can check. Whether the fields fit together is checked when an object is
read, and reported in its status.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_COUNT: Schema = {"type": "integer", "format": "int32", "minimum": 0}
_LABEL: Schema = {
    "type": "string",
    "minLength": 1,
    "maxLength": 63,
    "pattern": "^[a-z0-9]([a-z0-9-]*[a-z0-9])?$",
}
_DURATION: Schema = {"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$|^0$"}
#: -1 means no limit, and is the only negative amount.
_AMOUNT: Schema = {"type": "number", "minimum": -1}
_TIME: Schema = {"type": "string", "format": "date-time"}
#: Bounds the size of the object, as etcd stores 1.5 MiB at most; trees that are too deep are
#: refused when they are read.
_MOST_SUBGROUPS = 4096


def definitions() -> list[dict[str, Any]]:
    """All three, as CustomResourceDefinitions."""
    return [
        _definition(
            "scheduling.run.ai",
            "v2alpha2",
            ("PodGroup", "podgroups", "pg"),
            {"spec": _pod_group_spec(), "status": _pod_group_status()},
            namespaced=True,
            columns=(
                ("Queue", ".spec.queue"),
                ("Phase", ".status.phase"),
                ("Running", ".status.running"),
                ("Pending", ".status.pending"),
            ),
        ),
        _definition(
            "scheduling.run.ai",
            "v2",
            ("Queue", "queues", "q"),
            {"spec": _queue_spec(), "status": _queue_status()},
            columns=(
                ("Parent", ".spec.parentQueue"),
                ("GPUs", ".spec.resources.gpu.quota"),
                ("Allocated", ".status.allocated.nvidia\\.com/gpu"),
            ),
        ),
        _definition(
            "kai.scheduler",
            "v1alpha1",
            ("Topology", "topologies", "topo"),
            {"spec": _topology_spec(), "status": _object({})},
        ),
    ]


def _object(properties: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    made: Schema = {"type": "object", "properties": properties}
    return {**made, "required": list(required)} if required else made


def _list(items: Schema, most: int) -> Schema:
    return {"type": "array", "items": items, "maxItems": most}


def _map(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _constraint() -> Schema:
    return _object(
        {
            "topology": _TEXT,
            "requiredTopologyLevel": _TEXT,
            "preferredTopologyLevel": _TEXT,
        }
    )


def _pod_group_spec() -> Schema:
    subgroup = _object(
        {
            "name": _LABEL,
            "parent": _TEXT,
            "minMember": _COUNT,
            "minSubGroup": _COUNT,
            "topologyConstraint": _constraint(),
        },
        ("name",),
    )
    subgroup_set = _object(
        {"subGroups": _list(_TEXT, _MOST_SUBGROUPS), "constraint": _constraint()}
    )
    return _object(
        {
            "queue": _TEXT,
            "minMember": _COUNT,
            "minSubGroup": _COUNT,
            "priorityClassName": _TEXT,
            "preemptibility": {
                "type": "string",
                "enum": ["preemptible", "non-preemptible", ""],
            },
            "parallelism": _COUNT,
            "completions": _COUNT,
            "backoffLimit": _COUNT,
            "markUnschedulable": {"type": "boolean"},
            "schedulingBackoff": {"type": "integer", "format": "int32", "enum": [-1, 1]},
            "preemptionDelay": _DURATION,
            "stalenessGracePeriod": _DURATION,
            "topologyConstraint": _constraint(),
            "topologyConstraints": _object(
                {
                    "global": _constraint(),
                    "subGroups": _map(_constraint()),
                    "subGroupSets": _list(subgroup_set, _MOST_SUBGROUPS),
                }
            ),
            "subGroups": _list(subgroup, _MOST_SUBGROUPS),
        }
    )


def _pod_group_status() -> Schema:
    amounts = _map({"x-kubernetes-int-or-string": True})
    return _object(
        {
            "phase": _TEXT,
            "running": _COUNT,
            "pending": _COUNT,
            "succeeded": _COUNT,
            "failed": _COUNT,
            "conditions": _list(_condition(), 32),
            "resourcesStatus": _object(
                {
                    "allocated": amounts,
                    "allocatedNonPreemptible": amounts,
                    "requested": amounts,
                }
            ),
            "schedulingConditions": _list(
                _object(
                    {
                        "type": _TEXT,
                        "nodePool": _TEXT,
                        "status": _TEXT,
                        "reason": _TEXT,
                        "message": _TEXT,
                        "transitionID": _TEXT,
                        "lastTransitionTime": _TIME,
                        "reasons": _list(_object({"reason": _TEXT, "message": _TEXT}), 32),
                    }
                ),
                32,
            ),
        }
    )


def _condition() -> Schema:
    return _object(
        {
            "type": _TEXT,
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "reason": _TEXT,
            "message": _TEXT,
            "lastTransitionTime": _TIME,
        },
        ("type", "status"),
    )


def _queue_spec() -> Schema:
    resource = _object({"quota": _AMOUNT, "limit": _AMOUNT, "overQuotaWeight": _weight()})
    return _object(
        {
            "displayName": _TEXT,
            "parentQueue": _TEXT,
            "priority": {"type": "integer", "format": "int32"},
            "preemptMinRuntime": _DURATION,
            "reclaimMinRuntime": _DURATION,
            "resources": _object({"gpu": resource, "cpu": resource, "memory": resource}),
        },
        ("resources",),
    )


def _weight() -> Schema:
    return {"type": "number", "minimum": 0}


def _queue_status() -> Schema:
    amounts = _map({"x-kubernetes-int-or-string": True})
    return _object(
        {
            "childQueues": _list(_TEXT, 10_000),
            "allocated": amounts,
            "allocatedNonPreemptible": amounts,
            "requested": amounts,
            "conditions": _list(_condition(), 32),
        }
    )


def _topology_spec() -> Schema:
    level = _object(
        {
            "nodeLabel": {"type": "string", "minLength": 1, "maxLength": 317},
            "alias": {"type": "string", "maxLength": 63},
        },
        ("nodeLabel",),
    )
    levels = {**_list(level, 16), "minItems": 1}
    levels["x-kubernetes-validations"] = [
        {"rule": "self == oldSelf", "message": "levels cannot be changed; make another Topology"},
        {
            "rule": "self.all(one, self.exists_one(two, one.nodeLabel == two.nodeLabel))",
            "message": "a nodeLabel can be only one level",
        },
        {
            "rule": "self.all(one, one.nodeLabel != 'kubernetes.io/hostname') || "
            "self[size(self) - 1].nodeLabel == 'kubernetes.io/hostname'",
            "message": "kubernetes.io/hostname can only be the last level",
        },
    ]
    return _object({"levels": levels}, ("levels",))


def _definition(
    group: str,
    version: str,
    names: tuple[str, str, str],
    properties: dict[str, Schema],
    *,
    namespaced: bool = False,
    columns: tuple[tuple[str, str], ...] = (),
) -> dict[str, Any]:
    kind, plural, short = names
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": kind.lower(),
                "shortNames": [short],
            },
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "type": "string", "jsonPath": path}
                        for name, path in (*columns, ("Age", ".metadata.creationTimestamp"))
                    ],
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            **({} if namespaced else {"required": ["spec"]}),
                            "properties": {"metadata": {"type": "object"}, **properties},
                        }
                    },
                }
            ],
        },
    }
