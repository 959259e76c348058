"""Definitions of what others make pods of, as small as they can be, and objects of them by hand.

None of their controllers runs on a bed: owners, and pods that belong to them, are made by tests.
"""

from __future__ import annotations

from typing import Any

from bough.kube.objects import Kind, untyped
from bough.pod_grouper.kinds import FOLLOWED
from tests.kubernetes.scheduler.scheduled import Scheduled, member
from tests.kubernetes.waiting import wait_for

#: Kinds that every apiserver knows.
_BUILT_IN = ("batch", "apps")
WRAPPERS: Kind[dict[str, Any]] = untyped("apis/example.org/v1", "wrappers")


def definition(group: str, version: str, kind: str, plural: str, **more: Any) -> dict[str, Any]:
    """A kind of which only the names are known; `scope`, `properties` and more say otherwise."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {"spec": anything, "status": anything} | more.get("properties", {})
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": more.get("scope", "Namespaced"),
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                }
            ],
        },
    }


def define_owners(cluster: Scheduled) -> None:
    """Let the apiserver know all kinds of owners, and one that Bough does not know."""
    for (group, kind), followed in FOLLOWED.items():
        if group not in _BUILT_IN:
            version = followed.api.rpartition("/")[2]
            cluster.apply(definition(group, version, kind, followed.plural))
    cluster.apply(definition("example.org", "v1", "Wrapper", "wrappers"))
    served = [kind for (group, _), kind in FOLLOWED.items() if group not in _BUILT_IN]
    for kind in (*served, WRAPPERS):
        wait_for(lambda kind=kind: cluster.is_served(kind), f"the definition of {kind.plural}")


class OwnerMaker:
    """Makes owners in one namespace, and pods that belong to them."""

    def __init__(self, cluster: Scheduled, where: str) -> None:
        self._cluster = cluster
        self.where = where

    def make(
        self, group: str, kind: str, name: str, above: dict[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """An owner, which belongs to another one."""
        followed = FOLLOWED.get((group, kind))
        api = WRAPPERS.api if followed is None else followed.api
        plural = WRAPPERS.plural if followed is None else followed.plural
        metadata: dict[str, Any] = {"name": name, **more.pop("metadata", {})}
        if above is not None:
            metadata["ownerReferences"] = [reference(above)]
        body = {"apiVersion": api.removeprefix("apis/"), "kind": kind, "metadata": metadata}
        return self._cluster.admin.create(untyped(api, plural), {**body, **more}, self.where)

    def job(
        self, name: str, above: dict[str, Any] | None = None, metadata: Any = None, **spec: Any
    ) -> dict[str, Any]:
        """A Job of batch/v1."""
        container = {"name": "main", "image": "bed"}
        template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
        return self.make(
            "batch",
            "Job",
            name,
            above,
            metadata=metadata or {},
            spec={"template": template, **spec},
        )

    def pod(
        self, name: str, above: dict[str, Any], labels: dict[str, str] | None = None
    ) -> dict[str, Any]:
        """A pod of an owner, as its controller would make it."""
        made = member(name)
        made["metadata"]["ownerReferences"] = [reference(above)]
        made["metadata"]["labels"] |= labels or {}
        return self._cluster.create(made, self.where)


def reference(to: dict[str, Any]) -> dict[str, Any]:
    """What belongs to an object says this."""
    meta = to["metadata"]
    return {
        "apiVersion": to["apiVersion"],
        "kind": to["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
