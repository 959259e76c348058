"""Objects that group templates ask for: created before a group's first pod, deleted with its last.

A ConfigMap for each group lists them, and is written before the first of them is created: so
whatever a crash leaves behind is found, of whichever kind it is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bough.backends.kubernetes.names import GROUP_UUID, OBJECTS, SITE, objects_name
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.pod_manifest import Json
from bough.kube.client import KubeClient
from bough.kube.failures import (
    AlreadyExists,
    Busy,
    KubeFailure,
    KubeNotFound,
    KubeRefused,
    Unreachable,
)
from bough.kube.objects import Kind, untyped

LOG = logging.getLogger(__name__)
RECORDS = untyped("api/v1", "configmaps")
_DATA = "objects"
_FORBIDDEN, _UNPROCESSABLE = 403, 422
#: Statuses that mean that an object will never be accepted as it is.
_NEVER = (400, _FORBIDDEN, 404, 413, _UNPROCESSABLE)


class _Reference(msgspec.Struct, frozen=True):
    """The kind and the name of an object."""

    api: str
    plural: str
    name: str

    @property
    def kind(self) -> Kind[dict[str, Any]]:
        return untyped(self.api, self.plural)


class TemplateObjects:
    """The objects of groups. Called by workers, never by the loop; calls can be repeated."""

    def __init__(
        self, client: KubeClient, options: KubernetesOptions, has_group: Callable[[str], bool]
    ) -> None:
        """has_group:  whether any attempt of a group is known."""
        self._client = client
        self._options = options
        self._has_group = has_group
        self._lock = threading.Lock()
        #: Groups that have a record; below, those whose objects were all created by this server.
        self._recorded: set[str] = set()
        self._complete: set[str] = set()
        #: Groups whose objects are being deleted: what is created meanwhile would be deleted, too.
        self._leaving: set[str] = set()
        self._kinds: dict[tuple[str, str], Kind[dict[str, Any]]] = {}

    def make(self, group: str, manifests: Sequence[Mapping[str, Json]]) -> None:
        """Create all objects of a group that do not exist yet."""
        with self._lock:
            if group in self._leaving:
                raise Busy(f"the objects of group {group} are being deleted")
            if group in self._complete:
                return
        found = [self._reference(each) for each in manifests]
        self._record(group, found)
        with self._lock:
            self._recorded.add(group)
        for reference, manifest in zip(found, manifests, strict=True):
            try:
                self._create(group, reference, manifest)
            except KubeRefused as error:
                if error.status in _NEVER:
                    # It was not created; and if we may not create it, we may not delete it either.
                    self._strike(group, reference)
                raise
        with self._lock:
            self._complete.add(group)

    def drop(self, group: str) -> bool:
        """Delete the objects of a group with no attempts left; return whether a sweep is needed."""
        with self._lock:
            if group not in self._recorded or not self._leaves(group):
                return False
        try:
            self._delete(group)
        except KubeFailure as error:
            LOG.info("the objects of group %s could not be deleted yet: %s", group, error.message)
            return True
        return False

    def sweep(self) -> None:
        """Delete the objects of all groups that have no attempts."""
        labels = f"{SITE}={self._options.site},{OBJECTS}=true"
        try:
            found = self._client.list(RECORDS, self._options.namespace, labels=labels).items
        except KubeRefused as error:
            if error.status == _FORBIDDEN and self._client.is_ready():
                # Without this right none was ever created.
                return
            raise
        for each in found:
            group = each["metadata"]["labels"].get(GROUP_UUID, "")
            with self._lock:
                leaves = self._leaves(group)
            if leaves:
                self._delete(group)

    def _leaves(self, group: str) -> bool:
        """Whether the objects of a group must be deleted now; call under the lock."""
        if group in self._leaving:
            return False
        if self._has_group(group):
            self._recorded.add(group)
            return False
        self._complete.discard(group)
        self._leaving.add(group)
        return True

    def _record(self, group: str, wanted: Sequence[_Reference]) -> None:
        """Write down what is about to be created, in addition to what was written before."""
        name, namespace = objects_name(group), self._options.namespace
        labels = {SITE: self._options.site, GROUP_UUID: group, OBJECTS: "true"}
        record = {"metadata": {"name": name, "labels": labels}, "data": _written(wanted)}
        try:
            self._client.create(RECORDS, record, namespace)
        except AlreadyExists:
            there = _read(self._client.get(RECORDS, name, namespace))
            more = [each for each in wanted if each not in there]
            if more:
                data = {"data": _written([*there, *more])}
                self._client.patch(RECORDS, name, data, namespace)

    def _strike(self, group: str, reference: _Reference) -> None:
        """Remove an object from the record of its group."""
        name, namespace = objects_name(group), self._options.namespace
        there = _read(self._client.get(RECORDS, name, namespace))
        data = {"data": _written([each for each in there if each != reference])}
        self._client.patch(RECORDS, name, data, namespace)

    def _create(self, group: str, reference: _Reference, manifest: Mapping[str, Json]) -> None:
        namespace = self._options.namespace
        try:
            self._client.create(reference.kind, manifest, namespace)
        except AlreadyExists:
            # The name contains the uuid of the group, so an earlier try created it.
            there = self._client.get(reference.kind, reference.name, namespace)["metadata"]
            if there.get("deletionTimestamp"):
                text = f"{reference.plural} {reference.name} is being deleted"
                raise Unreachable(text, sent=False) from None
            if (there.get("labels") or {}).get(GROUP_UUID) != group:
                text = f"{reference.plural} {reference.name} is there, and is not of this group."
                raise KubeRefused(text, _UNPROCESSABLE) from None

    def _delete(self, group: str) -> None:
        name, namespace = objects_name(group), self._options.namespace
        try:
            for each in _read(self._client.get(RECORDS, name, namespace)):
                self._delete_one(each.kind, each.name)
            self._delete_one(RECORDS, name)
            with self._lock:
                self._recorded.discard(group)
        except KubeNotFound:
            with self._lock:
                self._recorded.discard(group)
        finally:
            with self._lock:
                self._leaving.discard(group)

    def _delete_one(self, kind: Kind[Any], name: str) -> None:
        try:
            self._client.delete(kind, name, self._options.namespace)
        except KubeNotFound:
            LOG.debug("%s %s is gone already", kind.plural, name)

    def _reference(self, manifest: Mapping[str, Json]) -> _Reference:
        kind = self._kind(manifest["apiVersion"], manifest["kind"])
        return _Reference(kind.api, kind.plural, manifest["metadata"]["name"])

    def _kind(self, version: str, name: str) -> Kind[dict[str, Any]]:
        """Where the apiserver serves a kind, as it says itself."""
        known = self._kinds.get((version, name))
        if known is not None:
            return known
        api = f"apis/{version}" if "/" in version else f"api/{version}"
        for each in self._client.ask("GET", f"/{api}").get("resources") or ():
            if each["kind"] != name or "/" in each["name"]:
                continue
            if not each["namespaced"]:
                text = f"{name} of {version} is in no namespace, and groups cannot have it."
                raise KubeRefused(text, _UNPROCESSABLE)
            found = self._kinds[version, name] = untyped(api, each["name"])
            return found
        raise KubeNotFound(f"the cluster has no kind {name} of {version}", 404)


def _written(references: Sequence[_Reference]) -> dict[str, str]:
    return {_DATA: msgspec.json.encode(references).decode()}


def _read(record: Mapping[str, Json]) -> list[_Reference]:
    text = (record.get("data") or {}).get(_DATA, "[]")
    return msgspec.json.decode(text, type=list[_Reference])
