"""The tree of the pools as objects of another scheduler, and what others changed of these."""

from __future__ import annotations

from typing import Any

from litestar.params import FromPath, FromQuery

from bough.api.kube_answers import ClusterDrift, DriftAnswer, RepairLine, TreeExport
from bough.backends.kubernetes.kai.manifests import all_manifests
from bough.backends.kubernetes.kai.wanted_objects import QUEUE, Owner, wanted_objects
from bough.backends.kubernetes.names import SITE, label_value
from bough.control.scheduling import cluster_queues, tree_export
from bough.errors import NotFound
from bough.formats.kueue.write_quota import write_organisation
from bough.model.access import Action
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import time_text

_KAI, _KUEUE = "kai", "kueue"


@route("GET", "/api/kube/export/{system:str}", Action.QUEUE_LIST)
def export_tree(
    request: Visit, system: FromPath[str], namespace: FromQuery[str] = "default"
) -> TreeExport:
    """The quota tree as objects of `kueue` or `kai`, and what these cannot express."""
    site, actor = caller(request)
    if system == _KAI:
        identity, found = tree_export.export_kai(site, actor)
        return TreeExport(kai_objects(identity, found), list(found.warnings))
    if system == _KUEUE:
        identity, tree = tree_export.export_kueue(site, actor, namespace)
        return TreeExport(kueue_objects(identity, tree), list(tree.warnings))
    raise NotFound(f"There is no export for {system[:40]!r}; there is {_KUEUE} and {_KAI}.")


@route("GET", "/api/kube/drift", Action.AUDIT_READ)
def list_drift(request: Visit) -> DriftAnswer:
    """Changes by others to the queues that Bough keeps in clusters, and what it cannot repair."""
    site, actor = caller(request)
    return DriftAnswer(
        [
            ClusterDrift(
                each.backend,
                list(each.troubles),
                [
                    RepairLine(time_text(one.at_ms), one.subject, one.message)
                    for one in each.repairs
                ],
            )
            for each in cluster_queues.list_drift(site, actor)
        ]
    )


def kai_objects(site: str, found: tree_export.KaiTrees) -> list[dict[str, Any]]:
    """The objects that the backends keep in their clusters; what several have is there once."""
    objects: dict[tuple[str, str], dict[str, Any]] = {}
    for backend, tree in found.trees.items():
        for each in all_manifests(wanted_objects(tree, Owner(site, backend))):
            objects.setdefault((each["kind"], each["metadata"]["name"]), each)
    return list(objects.values())


def kueue_objects(site: str, tree: tree_export.KueueTree) -> list[dict[str, Any]]:
    """The objects, with their names in Bough where Kubernetes does not allow these."""
    objects = write_organisation(tree.organisation)
    for each in objects:
        metadata: dict[str, Any] = each["metadata"]
        original = tree.originals[f"{each['kind']}/{metadata['name']}"]
        metadata["labels"] = {SITE: site, QUEUE: label_value(original)}
        if label_value(original) != original:
            # Longer than a label can be.
            metadata["annotations"] = {QUEUE: original}
    return objects


HANDLERS = (export_tree, list_drift)
