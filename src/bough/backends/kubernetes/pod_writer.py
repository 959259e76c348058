"""Writes to the apiserver: one request for each step of an attempt, safe to repeat."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from bough.backends.kubernetes.attempt_state import PodAttempt, Step
from bough.backends.kubernetes.group_objects import TemplateObjects
from bough.backends.kubernetes.group_services import GroupServices
from bough.backends.kubernetes.names import attempt_of
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.pod_manifest import AttemptObjects
from bough.backends.kubernetes.pod_view import PodSight, is_over
from bough.kube.client import KubeClient, path
from bough.kube.failures import (
    AlreadyExists,
    KubeConflict,
    KubeFailure,
    KubeNotFound,
    KubeRefused,
    Unreachable,
)
from bough.kube.objects import PODS, SECRETS, Kind, KubePod
from bough.model.backend import Sight

T = TypeVar("T")
LOG = logging.getLogger(__name__)
_FORBIDDEN = 403
#: Statuses that mean that a pod will never be accepted as it is.
_NEVER = (400, _FORBIDDEN, 413, 422)
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.25, 20.0


class PodWriter:
    """Carries out the next step of an attempt."""

    def __init__(
        self,
        client: KubeClient,
        options: KubernetesOptions,
        lock: threading.RLock,
        now_ms: Callable[[], int],
        services: GroupServices,
        group_objects: TemplateObjects,
    ) -> None:
        """lock:  the lock under which attempts are changed."""
        self._client = client
        self._options = options
        self._lock = lock
        self._now_ms = now_ms
        self._services = services
        self._group_objects = group_objects
        #: Set where the cluster's own scheduler places groups.
        self.pod_groups: GroupServices | None = None
        self._steps = {
            Step.CREATE: self._create,
            Step.LOOK: self._look,
            Step.ADD_SECRETS: self._add_secrets,
            Step.END: self._end,
            Step.REMOVE: self._remove,
        }

    def do(self, step: Step, known: PodAttempt) -> float | None:
        """Do a step; return after how many seconds to retry, `None` if it is done."""
        try:
            self._steps[step](known)
        except KubeFailure as error:
            return self._note_failure(known, error)
        with self._lock:
            known.failures, known.trouble = 0, ""
        return None

    def _note_failure(self, known: PodAttempt, error: KubeFailure) -> float:
        with self._lock:
            known.failures += 1
            known.trouble = error.message
            if known.pod is None and known.sight.sight is Sight.STARTING and not known.over:
                known.put(PodSight(Sight.STARTING, error.message), self._now_ms())
            wait_s = _FIRST_WAIT_S * 2 ** min(known.failures, 8)
        if known.failures in (3, 30):
            LOG.warning("the pod of attempt %s: %s", known.attempt, error.message)
        return min(wait_s, _LONGEST_WAIT_S)

    def _create(self, known: PodAttempt) -> None:
        objects = known.objects
        if objects is None:
            return
        self._make_group(objects)
        if objects.group_objects and not self._make_objects(known, objects):
            return
        try:
            pod = self._make(PODS, objects.pod)
        except Unreachable as error:
            if not error.sent and not known.failures:
                with self._lock:
                    known.sent = False
            raise
        except KubeRefused as error:
            if not isinstance(error, AlreadyExists) and error.status not in _NEVER:
                raise
            # An earlier try may have created it, although no answer came.
            pod = self._find(objects.name)
            if pod is None:
                self._end_without_pod(known, error)
                return
        if attempt_of(pod, self._options.site) != known.attempt:
            text = f"The name {objects.name} is taken by a pod that is not of this attempt."
            self._put(known, PodSight(Sight.UNSTARTABLE, text))
            return
        with self._lock:
            if known.pod is None:
                known.take(pod, self._now_ms())

    def _make_group(self, objects: AttemptObjects) -> None:
        """Create what all pods of a group share, before the first of them."""
        if objects.service is not None:
            self._services.make(objects.service)
        if objects.pod_group is not None and self.pod_groups is not None:
            self.pod_groups.make(objects.pod_group)

    def _make_objects(self, known: PodAttempt, objects: AttemptObjects) -> bool:
        """Create what templates ask for, before the first pod; return whether a pod can follow."""
        try:
            self._group_objects.make(known.group, objects.group_objects)
        except KubeRefused as error:
            forbidden_for_now = error.status == _FORBIDDEN and not self._client.is_ready()
            if error.status not in _NEVER or forbidden_for_now:
                raise
            text = f"An object that its group needs was refused: {error.message}"
            self._put(known, PodSight(Sight.UNSTARTABLE, text))
            return False
        return True

    def _end_without_pod(self, known: PodAttempt, error: KubeRefused) -> None:
        if not isinstance(error, AlreadyExists):
            self._put(known, PodSight(Sight.UNSTARTABLE, error.message))
            return
        # The pod existed a moment ago, and we never create a second one.
        with self._lock:
            known.take_gone(self._now_ms())

    def _look(self, known: PodAttempt) -> None:
        """Look for a pod that may have been created although no answer came."""
        pod = self._find(known.name) if known.name and known.sent else None
        with self._lock:
            if pod is None:
                known.take_gone(self._now_ms())
            else:
                known.take(pod, self._now_ms())

    def _find(self, name: str) -> KubePod | None:
        try:
            return self._client.get(PODS, name, self._options.namespace)
        except KubeNotFound:
            return None

    def _add_secrets(self, known: PodAttempt) -> None:
        """Create the Secrets of a pod once it exists: it owns them, so they are deleted with it."""
        objects, pod = known.objects, known.pod
        if objects is None or pod is None:
            return
        for name in objects.secrets:
            body = objects.secret(name, pod, self._options.site)
            try:
                self._make(SECRETS, body)
            except AlreadyExists:
                continue
            except KubeRefused as error:
                if error.status not in _NEVER:
                    raise
                text = f"Its files or credentials were refused: {error.message}"
                with self._lock:
                    known.given_up = PodSight(Sight.UNSTARTABLE, text)
                return
        with self._lock:
            known.secrets_made = True

    def _end(self, known: PodAttempt) -> None:
        """Delete a pod, unless it has ended by itself: then its end must be read first."""
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
        except KubeNotFound:
            with self._lock:
                known.take_gone(now_ms)
            return
        except KubeConflict:
            fresh = self._client.get(PODS, pod.metadata.name, self._options.namespace)
            with self._lock:
                known.take(fresh, now_ms)
            return
        with self._lock:
            known.ended_by_us = True
            known.told_by_ms = now_ms + grace_s * 1_000

    def _remove(self, known: PodAttempt) -> None:
        """Delete a pod that is no longer needed."""
        pod = known.pod
        if pod is None:
            return
        # If its node is gone, no kubelet will ever confirm the deletion.
        grace_s = 0 if is_over(pod) or known.node_gone else 1
        name, namespace = pod.metadata.name, self._options.namespace
        try:
            self._client.delete(PODS, name, namespace, uid=pod.metadata.uid, grace_s=grace_s)
        except (KubeNotFound, KubeConflict):
            with self._lock:
                known.gone = True
        with self._lock:
            known.removed = True

    def _make(self, kind: Kind[T], body: object) -> T:
        """Create an object; an apiserver that has just started forbids what it will soon allow."""
        namespace = self._options.namespace
        try:
            return self._client.create(kind, body, namespace)
        except KubeRefused as error:
            if error.status != _FORBIDDEN:
                raise
            if not self._client.is_ready():
                text = f"the apiserver is not ready yet: {error.message}"
                raise Unreachable(text, sent=False) from None
        return self._client.create(kind, body, namespace)

    def _put(self, known: PodAttempt, seen: PodSight) -> None:
        with self._lock:
            known.put(seen, self._now_ms())
