"""Writing to the apiserver: one request for each step of an attempt. Repeating is harmless."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from bough.backends.kubernetes.attempt_state import AttemptState, Step
from bough.backends.kubernetes.names import GROUP_UUID, SITE, attempt_of, service_name
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.pod_view import PodSight, is_over
from bough.kube.client import Client, path
from bough.kube.failures import AlreadyExists, Conflict, KubeFailure, NotFound, Refused, Unreachable
from bough.kube.objects import PODS, SECRETS, SERVICES
from bough.model.backend import Sight

LOG = logging.getLogger(__name__)
#: Answers that mean that a pod will never be accepted as it is.
_NEVER = (400, 403, 413, 422)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 20.0


class PodWriter:
    """Does what attempts need next."""

    def __init__(
        self,
        client: Client,
        options: KubernetesOptions,
        lock: threading.RLock,
        now_ms: Callable[[], int],
    ) -> None:
        """lock:  under which attempts are changed."""
        self._client = client
        self._options = options
        self._lock = lock
        self._now_ms = now_ms
        self._services: set[str] = set()
        #: Under which lease Services were last swept.
        self._swept: int | None = None
        self._steps = {
            Step.CREATE: self._create,
            Step.LOOK: self._look,
            Step.ADD_SECRETS: self._add_secrets,
            Step.END: self._end,
            Step.REMOVE: self._remove,
        }

    def do(self, step: Step, known: AttemptState) -> float | None:
        """Do a step; after how many seconds to try again, `None`: it is done."""
        try:
            self._steps[step](known)
        except KubeFailure as error:
            return self._note_failure(known, error)
        with self._lock:
            known.failures, known.trouble = 0, ""
        return None

    def _note_failure(self, known: AttemptState, error: KubeFailure) -> float:
        with self._lock:
            known.failures += 1
            known.trouble = error.message
            if known.pod is None and known.sight.sight is Sight.STARTING and not known.over:
                known.put(PodSight(Sight.STARTING, error.message), self._now_ms())
            wait_s = _FIRST_WAIT_S * 2 ** min(known.failures, 8)
        if known.failures in (3, 30):
            LOG.warning("the pod of attempt %s: %s", known.attempt, error.message)
        return min(wait_s, _LONGEST_WAIT_S)

    def _create(self, known: AttemptState) -> None:
        objects, namespace = known.objects, self._options.namespace
        if objects is None:
            return
        if objects.service is not None:
            self._make_service(objects.service)
        try:
            pod = self._client.create(PODS, objects.pod, namespace)
        except AlreadyExists:
            pod = self._client.get(PODS, objects.name, namespace)
            if attempt_of(pod, self._options.site) != known.attempt:
                text = f"The name {objects.name} is taken by a pod that is not of this attempt."
                self._put(known, PodSight(Sight.UNSTARTABLE, text))
                return
        except Refused as error:
            if error.status not in _NEVER:
                raise
            self._put(known, PodSight(Sight.UNSTARTABLE, error.message))
            return
        except Unreachable as error:
            if not error.sent and not known.failures:
                with self._lock:
                    known.sent = False
            raise
        with self._lock:
            if known.pod is None:
                known.take(pod, self._now_ms())

    def _look(self, known: AttemptState) -> None:
        """Look for a pod that may have been made although no answer came."""
        name = None if known.objects is None else known.objects.name
        if name is not None and known.sent:
            try:
                pod = self._client.get(PODS, name, self._options.namespace)
            except NotFound:
                pass
            else:
                with self._lock:
                    known.take(pod, self._now_ms())
                return
        with self._lock:
            known.take_gone(self._now_ms())

    def _add_secrets(self, known: AttemptState) -> None:
        """Make the Secrets of a pod that is there, so that they go with it."""
        objects, pod = known.objects, known.pod
        if objects is None or pod is None:
            return
        for name in objects.secrets:
            body = objects.secret(name, pod, self._options.site)
            try:
                self._client.create(SECRETS, body, self._options.namespace)
            except AlreadyExists:
                continue
            except Refused as error:
                if error.status not in _NEVER:
                    raise
                text = f"Its files or credentials were refused: {error.message}"
                with self._lock:
                    known.given_up = PodSight(Sight.UNSTARTABLE, text)
                return
        with self._lock:
            known.secrets_made = True

    def _end(self, known: AttemptState) -> None:
        """Delete a pod, unless it has ended by itself: then its end is still to be read."""
        pod, now_ms = known.pod, self._now_ms()
        if pod is None:
            return
        by_ms = known.stop_by_ms or now_ms
        grace_s = max(1, -(-(by_ms - now_ms) // 1_000))
        preconditions = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "gracePeriodSeconds": grace_s,
            "preconditions": preconditions,
        }
        target = path(PODS, self._options.namespace, pod.metadata.name)
        try:
            self._client.ask("DELETE", target, options)
        except NotFound:
            with self._lock:
                known.take_gone(now_ms)
            return
        except Conflict:
            fresh = self._client.get(PODS, pod.metadata.name, self._options.namespace)
            with self._lock:
                known.take(fresh, now_ms)
            return
        with self._lock:
            known.ended_by_us = True
            known.told_by_ms = now_ms + grace_s * 1_000

    def _remove(self, known: AttemptState) -> None:
        """Delete a pod that is no longer needed."""
        pod = known.pod
        if pod is None:
            return
        grace_s = 0 if is_over(pod) else 1
        name, namespace = pod.metadata.name, self._options.namespace
        try:
            self._client.delete(PODS, name, namespace, uid=pod.metadata.uid, grace_s=grace_s)
        except (NotFound, Conflict):
            with self._lock:
                known.gone = True
        with self._lock:
            known.removed = True

    def _put(self, known: AttemptState, seen: PodSight) -> None:
        with self._lock:
            known.put(seen, self._now_ms())

    # Services

    def _make_service(self, service: dict[str, object]) -> None:
        """Make the Service of a group, once."""
        labels = service["metadata"]["labels"]  # type: ignore[index]
        group = labels[GROUP_UUID]
        with self._lock:
            if group in self._services:
                return
            self._services.add(group)
        try:
            self._client.create(SERVICES, service, self._options.namespace)
        except AlreadyExists:
            pass
        except KubeFailure:
            with self._lock:
                self._services.discard(group)
            raise

    def drop_service(self, group: str) -> None:
        """Delete the Service of a group of which nothing is left; a sweep finds it otherwise."""
        with self._lock:
            if group not in self._services:
                return
            self._services.discard(group)
        try:
            self._client.delete(SERVICES, service_name(group), self._options.namespace)
        except KubeFailure as error:
            LOG.info("the Service of group %s stays: %s", group, error.message)

    def sweep_services(self, lease: int, groups: set[str]) -> None:
        """Once for each lease, delete the Services of groups of which nothing is left."""
        if self._swept == lease:
            return
        namespace = self._options.namespace
        labels = f"{SITE}={self._options.site}"
        for each in self._client.list(SERVICES, namespace, labels=labels).items:
            group = (each.metadata.labels or {}).get(GROUP_UUID, "")
            if group in groups:
                with self._lock:
                    self._services.add(group)
            else:
                try:
                    self._client.delete(SERVICES, each.metadata.name, namespace)
                except NotFound:
                    continue
        self._swept = lease
