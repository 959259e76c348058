"""The PodGroups of groups: created before their pods, repaired, and deleted with the last pod."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from bough.backends.kubernetes.group_services import GroupServices
from bough.backends.kubernetes.kai.gang_manifest import POD_GROUPS, pod_group_name
from bough.backends.kubernetes.names import GROUP_UUID, SITE
from bough.backends.kubernetes.pod_manifest import Json
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.failures import AlreadyExists, Busy, KubeNotFound
from bough.kube.objects import Kind, Meta
from bough.kube.watching import Relisted

#: The annotation with a digest of what we wrote: it shows whether others changed the object.
WRITTEN = "bough.written"
#: Fields that only we set. Other fields may be filled in by the cluster.
_OURS_ALONE = ("minSubGroup", "subGroups", "topologyConstraint", "preemptibility")


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    scheduling_conditions: tuple[_Condition, ...] = ()


class KaiPodGroup(msgspec.Struct, frozen=True):
    """A PodGroup, reduced to what shows the state of its gang."""

    metadata: Meta = Meta()
    spec: dict[str, Any] = {}
    status: _Status = _Status()

    @property
    def waits(self) -> str:
        """Why KAI has not placed it, in its own words; empty if it does not say."""
        said = [
            each.message
            for each in self.status.scheduling_conditions
            if each.type == "UnschedulableOnNodePool" and each.status == "True"
        ]
        return said[-1] if said else ""


WATCHED_POD_GROUPS: Kind[KaiPodGroup] = Kind(
    "apis/scheduling.run.ai/v2alpha2", "podgroups", KaiPodGroup
)


class NotOurs(AlreadyExists):
    """A PodGroup has the name of one of ours, and is not of this site."""


class GangView:
    """PodGroups as last reported and as they should be, by the uuid of the group."""

    def __init__(self) -> None:
        self._found: dict[str, KaiPodGroup] = {}
        self._wanted: dict[str, dict[str, Json]] = {}
        #: The group for each name of a PodGroup; labels are no proof, as others can change them.
        self._groups: dict[str, str] = {}
        self._listed = False

    def want(self, group: str, body: dict[str, Json]) -> None:
        """Note the PodGroup that a group should have."""
        self._wanted[group] = body
        self._groups[body["metadata"]["name"]] = group

    def drop(self, group: str) -> None:
        """Nothing is left of a group: forget its PodGroup."""
        if (body := self._wanted.pop(group, None)) is not None:
            self._groups.pop(body["metadata"]["name"], None)

    def hear(self, heard: Relisted[KaiPodGroup] | WatchEvent[KaiPodGroup]) -> set[str]:
        """Take in an event or a list; return the groups that it is about."""
        if isinstance(heard, Relisted):
            before, self._listed = set(self._found), True
            self._found = {self._group_of(each): each for each in heard.items}
            return before | set(self._found) | set(self._wanted)
        group = self._group_of(heard.object)
        if heard.kind is WatchEventKind.DELETED:
            self._found.pop(group, None)
        else:
            self._found[group] = heard.object
        return {group}

    def there(self, group: str) -> bool:
        """Whether a group has a PodGroup, as far as is known."""
        return group in self._found

    def waits(self, group: str) -> str:
        """Why KAI has not placed a gang; empty if it does not say."""
        found = self._found.get(group)
        return "" if found is None else found.waits

    def wanted(self, group: str) -> dict[str, Json] | None:
        """The PodGroup that a group should have; `None` if that is not known."""
        return self._wanted.get(group)

    def differs(self, group: str) -> bool:
        """Whether the PodGroup of a group is missing, or not as it should be."""
        wanted, found = self._wanted.get(group), self._found.get(group)
        if wanted is None or not self._listed:
            return False
        return found is None or any(differences(wanted, found))

    def _group_of(self, found: KaiPodGroup) -> str:
        known = self._groups.get(found.metadata.name)
        return (found.metadata.labels or {}).get(GROUP_UUID, "") if known is None else known


class PodGroups(GroupServices):
    """One PodGroup for each group. Called by workers, never by the loop."""

    kind = POD_GROUPS
    name_of = staticmethod(pod_group_name)

    def again(self, group: str) -> None:
        """Write the PodGroup of a group anew on its next start, as it may have changed."""
        # Not under our lock: the backend calls this under its own, and we call the backend under
        # ours, so the two could wait for each other.
        self._made.discard(group)

    def repair(self, wanted: dict[str, Json]) -> str:
        """Repair the PodGroup of a group; return a sentence about what others did to it, or ""."""
        name, namespace = wanted["metadata"]["name"], self._options.namespace
        group = wanted["metadata"]["labels"][GROUP_UUID]
        with self._lock:
            if group in self._leaving:
                raise Busy(f"{name} is being deleted")
            # Note it as made, so that it is deleted with the last pod, whichever server made it.
            self._made.add(group)
        try:
            found = self._own(name)
        except KubeNotFound:
            self._client.create(self.kind, _signed(wanted), namespace)
            return "It was deleted."
        except NotOurs:
            with self._lock:
                # A PodGroup that is not of this site must not be deleted either.
                self._made.discard(group)
            raise
        told = list(differences(wanted, found))
        if not told:
            return ""
        self._client.patch(self.kind, name, _patch(wanted, found), namespace)
        signed = (found.metadata.annotations or {}).get(WRITTEN, digest_of(wanted))
        # Otherwise it only dates from before a restart of the group, and others did nothing.
        return f"It was changed: {'; '.join(told)}." if signed == digest_of(wanted) else ""

    def _create(self, service: dict[str, Json]) -> None:
        """Create it, or update it: a restarted group may need less, or count for another queue."""
        name, namespace = service["metadata"]["name"], self._options.namespace
        try:
            self._client.create(self.kind, _signed(service), namespace)
        except AlreadyExists:
            pass
        else:
            return
        found = self._own(name)
        if any(differences(service, found)):
            self._client.patch(self.kind, name, _patch(service, found), namespace)

    def _own(self, name: str) -> KaiPodGroup:
        found = self._client.get(WATCHED_POD_GROUPS, name, self._options.namespace)
        if (found.metadata.labels or {}).get(SITE) != self._options.site:
            raise NotOurs(f"PodGroup {name} is not of this site, and is left as it is", 409)
        return found


def differences(wanted: dict[str, Json], found: KaiPodGroup) -> Iterator[str]:
    """What differs from the wanted PodGroup, in words."""
    labels = found.metadata.labels or {}
    for name, value in wanted["metadata"]["labels"].items():
        if labels.get(name) != value:
            yield f"label {name} is {labels.get(name)!r}, not {value!r}"
    for name, value in wanted["spec"].items():
        if not _holds(found.spec.get(name), value):
            yield f"{name} is {found.spec.get(name)}, not {value}"
    for name in _OURS_ALONE:
        if name not in wanted["spec"] and found.spec.get(name):
            yield f"{name} is {found.spec[name]}, but should not be there"


def digest_of(wanted: dict[str, Json]) -> str:
    """A digest of the wanted spec of a PodGroup."""
    return hashlib.sha256(msgspec.json.encode(wanted["spec"], order="sorted")).hexdigest()[:16]


def _holds(found: Json, wanted: Json) -> bool:
    """Whether all wanted values are there; a cluster may fill in fields of its own."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_holds(found.get(k), v) for k, v in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(found) == len(wanted)
        return same and all(map(_holds, found, wanted))
    return found == wanted


def _signed(wanted: dict[str, Json]) -> dict[str, Json]:
    metadata = {**wanted["metadata"], "annotations": {WRITTEN: digest_of(wanted)}}
    return {**wanted, "metadata": metadata}


def _patch(wanted: dict[str, Json], found: KaiPodGroup) -> dict[str, Json]:
    """The patch that repairs a PodGroup, unless it has changed since it was read."""
    metadata = {
        "resourceVersion": found.metadata.resource_version,
        "labels": wanted["metadata"]["labels"],
        "annotations": {WRITTEN: digest_of(wanted)},
    }
    extra = {name: None for name in _OURS_ALONE if name in found.spec}
    return {"metadata": metadata, "spec": {**extra, **wanted["spec"]}}
