"""The PodGroups of groups: made before their pods, put right, and gone with the last of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import msgspec

from bough.backends.kubernetes.group_services import GroupServices
from bough.backends.kubernetes.kai.gang_manifest import POD_GROUPS, pod_group_name
from bough.backends.kubernetes.names import GROUP_UUID, SITE
from bough.backends.kubernetes.pod_manifest import Json
from bough.kube.client import WatchEvent, WatchEventKind
from bough.kube.failures import AlreadyExists, Busy, KubeNotFound
from bough.kube.objects import Kind, Meta
from bough.kube.watching import Relisted

#: The annotation by which it is seen that others changed one: a digest of what was written.
WRITTEN = "bough.written"
#: Fields that say nothing unless we say them. Others may be filled in by the cluster itself.
_OURS_ALONE = ("minSubGroup", "subGroups", "topologyConstraint", "preemptibility")


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


class NotOurs(AlreadyExists):
    """A PodGroup has the name of one of ours, and is not of this site."""


class GangView:
    """PodGroups as they were last heard of, and as they should be; by the identity of a group."""

    def __init__(self) -> None:
        self._found: dict[str, KaiPodGroup] = {}
        self._wanted: dict[str, dict[str, Json]] = {}
        #: By the name of its PodGroup: labels can be changed.
        self._groups: dict[str, str] = {}
        self._listed = False

    def want(self, group: str, body: dict[str, Json]) -> None:
        """A group has this PodGroup."""
        self._wanted[group] = body
        self._groups[body["metadata"]["name"]] = group

    def drop(self, group: str) -> None:
        """Nothing is left of a group."""
        if (body := self._wanted.pop(group, None)) is not None:
            self._groups.pop(body["metadata"]["name"], None)

    def hear(self, heard: Relisted[KaiPodGroup] | WatchEvent[KaiPodGroup]) -> set[str]:
        """Take in what is heard; the groups that it is about."""
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
        """Why KAI has not placed a gang; empty: it says nothing."""
        found = self._found.get(group)
        return "" if found is None else found.waits

    def wanted(self, group: str) -> dict[str, Json] | None:
        """The PodGroup that a group should have; `None`: nothing is known."""
        return self._wanted.get(group)

    def differs(self, group: str) -> bool:
        """Whether the PodGroup of a group is missing, or is not as it should be."""
        wanted, found = self._wanted.get(group), self._found.get(group)
        if wanted is None or not self._listed:
            return False
        return found is None or any(differences(wanted, found))

    def _group_of(self, found: KaiPodGroup) -> str:
        known = self._groups.get(found.metadata.name)
        return (found.metadata.labels or {}).get(GROUP_UUID, "") if known is None else known


class PodGroups(GroupServices):
    """One PodGroup for each group. Workers call it, and never the loop."""

    kind = POD_GROUPS
    name_of = staticmethod(pod_group_name)

    def again(self, group: str) -> None:
        """The PodGroup of a group may be another one when something of it starts again."""
        # Without the lock, under which the backend is asked: it asks here under its own.
        self._made.discard(group)

    def repair(self, wanted: dict[str, Json]) -> str:
        """Put the PodGroup of a group right; what others did to it, in a sentence, or nothing."""
        name, namespace = wanted["metadata"]["name"], self._options.namespace
        group = wanted["metadata"]["labels"][GROUP_UUID]
        with self._lock:
            if group in self._leaving:
                raise Busy(f"{name} is being deleted")
            # So that it goes with the last pod, also if an earlier server made it.
            self._made.add(group)
        try:
            found = self._own(name)
        except KubeNotFound:
            self._client.create(self.kind, _signed(wanted), namespace)
            return "It was deleted."
        except NotOurs:
            with self._lock:
                # What is not of this site is not deleted, either.
                self._made.discard(group)
            raise
        told = list(differences(wanted, found))
        if not told:
            return ""
        self._client.patch(self.kind, name, _patch(wanted, found), namespace)
        signed = (found.metadata.annotations or {}).get(WRITTEN, digest_of(wanted))
        # Otherwise it is as it was before something of the group started anew.
        return f"It was changed: {'; '.join(told)}." if signed == digest_of(wanted) else ""

    def _create(self, service: dict[str, Json]) -> None:
        """Create it, or bring it in step: what starts again may need less, or count elsewhere."""
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
    """What a PodGroup says otherwise than it should, in words."""
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
    """A digest of what a PodGroup should say."""
    return hashlib.sha256(msgspec.json.encode(wanted["spec"], order="sorted")).hexdigest()[:16]


def _holds(found: Json, wanted: Json) -> bool:
    """Whether something says all that it should; a cluster may fill in fields of its own."""
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
    """What makes a PodGroup as it should be, unless it has changed since it was read."""
    metadata = {
        "resourceVersion": found.metadata.resource_version,
        "labels": wanted["metadata"]["labels"],
        "annotations": {WRITTEN: digest_of(wanted)},
    }
    extra = {name: None for name in _OURS_ALONE if name in found.spec}
    return {"metadata": metadata, "spec": {**extra, **wanted["spec"]}}
