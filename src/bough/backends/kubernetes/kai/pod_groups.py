"""The PodGroups of groups: made before their pods, and gone with the last of them."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.backends.kubernetes.group_services import GroupServices
from bough.backends.kubernetes.kai.gang_manifest import POD_GROUPS, pod_group_name
from bough.backends.kubernetes.names import SITE
from bough.backends.kubernetes.pod_manifest import Json
from bough.kube.failures import AlreadyExists
from bough.kube.objects import Kind, Meta


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    scheduling_conditions: tuple[_Condition, ...] = ()


class KaiPodGroup(msgspec.Struct, frozen=True):
    """A PodGroup, as far as it says how its gang is."""

    metadata: Meta = Meta()
    spec: dict[str, Any] = {}
    status: _Status = _Status()

    @property
    def waits(self) -> str:
        """Why KAI has not placed it, in its own words; empty: it says nothing."""
        said = [
            each.message
            for each in self.status.scheduling_conditions
            if each.type == "UnschedulableOnNodePool" and each.status == "True"
        ]
        return said[-1] if said else ""


WATCHED_POD_GROUPS: Kind[KaiPodGroup] = Kind(
    "apis/scheduling.run.ai/v2alpha2", "podgroups", KaiPodGroup
)


class PodGroups(GroupServices):
    """One PodGroup for each group. Workers call it, and never the loop."""

    kind = POD_GROUPS
    name_of = staticmethod(pod_group_name)

    def again(self, group: str) -> None:
        """The PodGroup of a group may be another one when something of it starts again."""
        # Without the lock, under which the backend is asked: it asks here under its own.
        self._made.discard(group)

    def _create(self, service: dict[str, Json]) -> None:
        """Create it, or bring it in step: what starts again may need less, or count elsewhere."""
        name, namespace = service["metadata"]["name"], self._options.namespace
        try:
            self._client.create(self.kind, service, namespace)
        except AlreadyExists:
            pass
        else:
            return
        found = self._client.get(WATCHED_POD_GROUPS, name, namespace)
        if (found.metadata.labels or {}).get(SITE) != self._options.site:
            raise AlreadyExists(f"PodGroup {name} is not of this site", 409)
        if any(found.spec.get(key) != value for key, value in service["spec"].items()):
            body = {"metadata": {"labels": service["metadata"]["labels"]}, "spec": service["spec"]}
            self._client.patch(self.kind, name, body, namespace)
