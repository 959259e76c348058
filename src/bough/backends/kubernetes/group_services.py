"""The Services of groups: created with the first pod, deleted with the group's last attempt."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import Any

from bough.backends.kubernetes.names import GROUP_UUID, SITE, service_name
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.pod_manifest import Json
from bough.kube.client import KubeClient
from bough.kube.failures import AlreadyExists, Busy, KubeFailure, KubeNotFound
from bough.kube.objects import SERVICES, Kind

LOG = logging.getLogger(__name__)


class GroupServices:
    """One headless Service per group of several tasks. Called by workers, never by the loop."""

    kind: Kind[Any] = SERVICES
    name_of: Callable[[str], str] = staticmethod(service_name)

    def __init__(
        self, client: KubeClient, options: KubernetesOptions, has_group: Callable[[str], bool]
    ) -> None:
        """has_group:  whether any attempt of a group is known."""
        self._client = client
        self._options = options
        self._has_group = has_group
        self._lock = threading.Lock()
        self._made: set[str] = set()
        #: Groups whose Service is being deleted: one created meanwhile would be deleted, too.
        self._leaving: set[str] = set()

    def make(self, service: dict[str, Json]) -> None:
        """Create the Service of a group, once."""
        group = service["metadata"]["labels"][GROUP_UUID]
        with self._lock:
            if group in self._leaving:
                raise Busy(f"{self.name_of(group)} is being deleted")
            if group in self._made:
                return
            self._made.add(group)
        try:
            self._create(service)
        except KubeFailure:
            with self._lock:
                self._made.discard(group)
            raise

    def drop(self, group: str) -> None:
        """Delete the Service of a group with no attempts left; if that fails, a sweep finds it."""
        with self._lock:
            if group not in self._made or not self._leaves(group):
                return
        try:
            self._delete(group, self.name_of(group))
        except KubeFailure as error:
            LOG.info("the Service of group %s could not be deleted yet: %s", group, error.message)

    def sweep(self) -> None:
        """Delete the Services of all groups that have no attempts."""
        labels = f"{SITE}={self._options.site}"
        for each in self._client.list(self.kind, self._options.namespace, labels=labels).items:
            group = (each.metadata.labels or {}).get(GROUP_UUID, "")
            with self._lock:
                leaves = self._leaves(group)
            if leaves:
                self._delete(group, each.metadata.name)

    def _create(self, service: dict[str, Json]) -> None:
        """Create it, unless an earlier try or an earlier server has."""
        with contextlib.suppress(AlreadyExists):
            self._client.create(self.kind, service, self._options.namespace)

    def _leaves(self, group: str) -> bool:
        """Whether the Service of a group must be deleted now; call under the lock."""
        if group in self._leaving:
            return False
        if self._has_group(group):
            self._made.add(group)
            return False
        self._made.discard(group)
        self._leaving.add(group)
        return True

    def _delete(self, group: str, name: str) -> None:
        try:
            self._client.delete(self.kind, name, self._options.namespace)
        except KubeNotFound:
            pass
        finally:
            with self._lock:
                self._leaving.discard(group)
