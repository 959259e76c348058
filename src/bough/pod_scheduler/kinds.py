"""The kinds of objects that are watched and written, and the types that they are decoded to."""

from __future__ import annotations

from typing import Any, NamedTuple

from bough.formats.live.objects import (
    LiveClaim,
    LiveKueue,
    LiveNamespace,
    LiveNativePodGroup,
    LiveNode,
    LivePriorityClass,
    LiveQueue,
    LiveTopology,
)
from bough.kube.objects import Kind, Plain, untyped
from bough.model.pod_group import NATIVE, is_native
from bough.pod_grouper.kinds import POD_GROUPS, PODS
from bough.pod_scheduler.pod_view import split_name

NODES: Kind[LiveNode] = Kind("api/v1", "nodes", LiveNode, namespaced=False)
CLAIMS: Kind[LiveClaim] = Kind("api/v1", "persistentvolumeclaims", LiveClaim)
PRIORITY_CLASSES: Kind[LivePriorityClass] = Kind(
    "apis/scheduling.k8s.io/v1", "priorityclasses", LivePriorityClass, namespaced=False
)
#: The PodGroups of Kubernetes itself: behind feature gates, so most clusters have none.
NATIVE_POD_GROUPS: Kind[LiveNativePodGroup] = Kind(
    "apis/scheduling.k8s.io/v1alpha2", "podgroups", LiveNativePodGroup, optional=True
)
QUEUES: Kind[LiveQueue] = Kind(
    "apis/scheduling.run.ai/v2", "queues", LiveQueue, namespaced=False, optional=True
)
TOPOLOGIES: Kind[LiveTopology] = Kind(
    "apis/kai.scheduler/v1alpha1", "topologies", LiveTopology, namespaced=False, optional=True
)
COHORTS, CLUSTER_QUEUES, FLAVORS = (
    Kind("apis/kueue.x-k8s.io/v1beta2", plural, LiveKueue, namespaced=False, optional=True)
    for plural in ("cohorts", "clusterqueues", "resourceflavors")
)
LOCAL_QUEUES: Kind[LiveKueue] = Kind(
    "apis/kueue.x-k8s.io/v1beta2", "localqueues", LiveKueue, optional=True
)
NAMESPACES: Kind[LiveNamespace] = Kind("api/v1", "namespaces", LiveNamespace, namespaced=False)
#: The kinds that Kueue's quota consists of, by name.
KUEUES: dict[str, Kind[LiveKueue]] = {
    "Cohort": COHORTS,
    "ClusterQueue": CLUSTER_QUEUES,
    "ResourceFlavor": FLAVORS,
    "LocalQueue": LOCAL_QUEUES,
}
#: Everything that is watched.
WATCHED: tuple[Kind[Any], ...] = (
    NODES,
    CLAIMS,
    PRIORITY_CLASSES,
    QUEUES,
    TOPOLOGIES,
    POD_GROUPS,
    NATIVE_POD_GROUPS,
    PODS,
)
#: The same where Kueue's objects set the quota.
WATCHED_WITH_KUEUE = (
    *(kind for kind in WATCHED if kind is not QUEUES),
    *KUEUES.values(),
    NAMESPACES,
)
#: The kinds that each bind writes, so that their watches tell what was just written.
ECHOING: tuple[Kind[Any], ...] = (POD_GROUPS, NATIVE_POD_GROUPS, PODS)
EVENTS: Kind[Plain] = Kind("api/v1", "events", Plain)
LEASES: Kind[dict[str, Any]] = untyped("apis/coordination.k8s.io/v1", "leases")
SECRETS: Kind[dict[str, Any]] = untyped("api/v1", "secrets")


class GroupAt(NamedTuple):
    """Where the API serves a PodGroup."""

    kind: Kind[Any]
    namespace: str
    name: str

    @property
    def api_version(self) -> str:
        """The apiVersion to write in objects that refer to it."""
        return self.kind.api.removeprefix("apis/")


def group_at(key: str) -> GroupAt:
    """Where the PodGroup with this key is, of KAI or of Kubernetes itself."""
    kind: Kind[Any] = NATIVE_POD_GROUPS if is_native(key) else POD_GROUPS
    return GroupAt(kind, *split_name(key.removesuffix(NATIVE)))
