"""Binds what was planned: gang by gang in the order of the plan, several requests in parallel.

For a gang of several pods the decision is written on its PodGroup first. The loop is told the
result for each pod: bound, or refused for good (409 and 404 are answers). A request that got no
answer may have been carried out, so it is repeated until an answer comes.
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
from bough.pod_scheduler.decision_seal import DecisionSeal
from bough.pod_scheduler.decisions import PlacedPod, write_decision
from bough.pod_scheduler.gang_maker import DECISION_ANNOTATION, SEAL_ANNOTATION
from bough.pod_scheduler.kinds import PODS, group_at
from bough.pod_scheduler.pod_view import split_name
from bough.pod_scheduler.workers import Workers

LOG = logging.getLogger(__name__)
#: How many requests are sent in parallel.
IN_FLIGHT = 16


class Batch(NamedTuple):
    """Pods of one gang that are bound together."""

    gang: str
    pods: tuple[PlacedPod, ...]
    #: The key of its PodGroup; empty if it has none.
    group: str = ""
    group_uid: str = ""
    #: What to write on the PodGroup first: everything that is decided about the gang and not bound
    #: yet, these pods included. Empty: write nothing.
    decision: tuple[PlacedPod, ...] = ()
    #: Whether other pods were evicted to make room for them.
    nominated: bool = False


class BindResult(NamedTuple):
    """The result for one pod."""

    batch: Batch
    placed: PlacedPod
    #: The node that it is bound to, which may be another than planned; empty if it is not bound.
    node: str
    #: Why it is not bound.
    message: str = ""
    #: Whether an immediate retry would be refused again.
    lasting: bool = False


class Binder:
    """Threads that send the binds that the loop decided."""

    def __init__(
        self,
        client: KubeClient,
        told: Callable[[BindResult], object],
        seal: DecisionSeal,
        within_s: int = 0,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        """told:  called with the result for each pod, from any thread.

        seal:  of the decisions that are written.

        within_s:  how long the apiserver may work on a request.
        """
        self._client = client
        self._told = told
        self._seal = seal
        self._within_s = within_s
        self._workers = Workers(in_flight, "kube-bind")
        self._lock = threading.Lock()
        self._waiting = 0

    def start(self) -> None:
        """Start the threads."""
        self._workers.start()

    def bind(self, batch: Batch) -> None:
        """Bind the pods of a gang, after all batches that were added before."""
        with self._lock:
            self._waiting += len(batch.pods)
        self._workers.put(partial(self._begin, batch))

    @property
    def waiting(self) -> int:
        """How many pods have no result yet."""
        return self._waiting

    def stop(self, patience_s: float) -> None:
        """Stop: finish gangs of which something was sent, and do not begin others."""
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
            LOG.exception("a bind request failed")
            result = BindResult(batch, placed, "", "it failed", lasting=True)
        self._answer(result)

    def _answer(self, result: BindResult) -> None:
        with self._lock:
            self._waiting -= 1
        self._told(result)

    def _write(self, batch: Batch) -> tuple[str, bool]:
        """Write a decision on its PodGroup; return why that failed, and whether that will last."""
        at = group_at(batch.group)
        decision = write_decision(batch.decision)
        seal = self._seal.of(batch.group_uid, decision)
        annotations = {DECISION_ANNOTATION: decision, SEAL_ANNOTATION: seal}
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
        """The node of a pod if it is still the same pod: an earlier try may have worked."""
        namespace, name = split_name(placed.pod)
        try:
            pod = self._client.get(PODS, name, namespace)
        except BoughError:
            # Unknown, so the pod counts as bound until the watch says otherwise.
            return placed.node
        return (pod.spec.node_name or "") if pod.metadata.uid == placed.uid else ""


def _is_final(error: BoughError) -> bool:
    """Whether the same request would be refused again: it is invalid, or forbidden."""
    if isinstance(error, Busy) or not isinstance(error, KubeRefused):
        return False
    return 400 <= error.status < 500
