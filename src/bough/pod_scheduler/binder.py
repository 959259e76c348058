"""Binds what was planned: gang by gang in the order of the plan, some requests at once.

A gang of several pods has its decision written on its PodGroup first. What comes of each pod is
told to the loop: refused for good (409 and 404 are answers), or bound. A request without an answer
may have been carried out, so it is repeated until one comes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bough.errors import BoughError, NotLeading
from bough.kube.back_off import BackOff
from bough.kube.client import KubeClient
from bough.kube.failures import Busy, KubeConflict, KubeNotFound, KubeRefused
from bough.pod_scheduler.decisions import PlacedPod, write_decision
from bough.pod_scheduler.gang_maker import DECISION_ANNOTATION
from bough.pod_scheduler.kinds import PODS, group_at
from bough.pod_scheduler.pod_view import split_name
from bough.pod_scheduler.workers import Workers

LOG = logging.getLogger(__name__)
#: Requests at once.
IN_FLIGHT = 16


class Batch(NamedTuple):
    """Pods of one gang that are bound together."""

    gang: str
    pods: tuple[PlacedPod, ...]
    #: The key of its PodGroup; empty: it has none.
    group: str = ""
    group_uid: str = ""
    #: What is written on the PodGroup first: all that is decided about the gang and not bound yet,
    #: with these pods. Empty: nothing is written.
    decision: tuple[PlacedPod, ...] = ()
    #: Whether others were told to end for them.
    nominated: bool = False


class BindResult(NamedTuple):
    """What came of one pod."""

    batch: Batch
    placed: PlacedPod
    #: Where it is bound, which may be another node; empty: it is not.
    node: str
    #: Why not.
    message: str = ""
    #: Whether the same would be refused again at once.
    lasting: bool = False


class Binder:
    """Some threads that send what the loop decided."""

    def __init__(
        self,
        client: KubeClient,
        told: Callable[[BindResult], object],
        within_s: int = 0,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        """told:  is given what came of each pod, from any thread.

        within_s:  how long the apiserver may take for a request.
        """
        self._client = client
        self._told = told
        self._within_s = within_s
        self._workers = Workers(in_flight, "kube-bind")
        self._lock = threading.Lock()
        self._waiting = 0

    def start(self) -> None:
        """Begin."""
        self._workers.start()

    def bind(self, batch: Batch) -> None:
        """Bind the pods of a gang, after all that came before."""
        with self._lock:
            self._waiting += len(batch.pods)
        self._workers.put(partial(self._begin, batch))

    @property
    def waiting(self) -> int:
        """How many pods are not answered for."""
        return self._waiting

    def stop(self, patience_s: float) -> None:
        """End: gangs of which something was sent are finished, others are not begun."""
        self._workers.stop(patience_s)
        with self._lock:
            self._waiting = 0

    def _begin(self, batch: Batch) -> None:
        why, lasting = ("", False) if not batch.decision else self._write(batch)
        if not why:
            self._workers.go_on(partial(self._finish, batch, each) for each in batch.pods)
            return
        for each in batch.pods:
            self._answer(BindResult(batch, each, "", why, lasting))

    def _finish(self, batch: Batch, placed: PlacedPod) -> None:
        try:
            result = self._bind(batch, placed)
        except Exception:
            LOG.exception("a binding could not be carried out")
            result = BindResult(batch, placed, "", "it failed", lasting=True)
        self._answer(result)

    def _answer(self, result: BindResult) -> None:
        with self._lock:
            self._waiting -= 1
        self._told(result)

    def _write(self, batch: Batch) -> tuple[str, bool]:
        """Write a decision down; why that did not work."""
        at = group_at(batch.group)
        annotations = {DECISION_ANNOTATION: write_decision(batch.decision)}
        body = {"metadata": {"uid": batch.group_uid, "annotations": annotations}}
        back_off = BackOff()
        while True:
            try:
                self._client.patch(at.kind, at.name, body, at.namespace)
            except (KubeConflict, KubeNotFound) as answer:
                return answer.message, False
            except NotLeading as lost:
                return lost.message, False
            except BoughError as error:
                if _is_final(error) or self._workers.pause(back_off.wait_s()):
                    return error.message, True
            else:
                return "", False

    def _bind(self, batch: Batch, placed: PlacedPod) -> BindResult:
        namespace, name = split_name(placed.pod)
        back_off = BackOff()
        while True:
            try:
                self._client.bind(name, namespace, placed.node, placed.uid, within_s=self._within_s)
            except KubeNotFound as answer:
                return BindResult(batch, placed, "", answer.message)
            except KubeConflict as answer:
                node = self._node_of(placed)
                return BindResult(batch, placed, node, "" if node else answer.message)
            except NotLeading as lost:
                return BindResult(batch, placed, "", lost.message)
            except BoughError as error:
                if _is_final(error) or self._workers.pause(back_off.wait_s()):
                    return BindResult(batch, placed, "", error.message, lasting=True)
            else:
                return BindResult(batch, placed, placed.node)

    def _node_of(self, placed: PlacedPod) -> str:
        """The node that a pod has, if it is still the same one; an earlier try may have worked."""
        namespace, name = split_name(placed.pod)
        try:
            pod = self._client.get(PODS, name, namespace)
        except BoughError:
            # Not known: it counts as held until the watch says otherwise.
            return placed.node
        return (pod.spec.node_name or "") if pod.metadata.uid == placed.uid else ""


def _is_final(error: BoughError) -> bool:
    """Whether the same request would be refused again: it is wrong, or not allowed."""
    if isinstance(error, Busy) or not isinstance(error, KubeRefused):
        return False
    return 400 <= error.status < 500
