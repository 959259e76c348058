"""Binds what was planned: gang by gang in the order of the plan, several requests in parallel.

What is decided about gangs of several pods is recorded first. The loop is told the result for each
pod: bound, or refused for good (409 and 404 are answers). A request that got no answer may have
been carried out, so it is repeated until an answer comes.
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
from bough.kube.failures import KubeConflict, KubeNotFound, is_final
from bough.pod_scheduler.decision_records import RecordResult, RecordWrite, send_record
from bough.pod_scheduler.decisions import Batch, PlacedPod
from bough.pod_scheduler.kinds import PODS
from bough.pod_scheduler.pod_view import split_name
from bough.pod_scheduler.request_threads import Workers

LOG = logging.getLogger(__name__)
#: How many requests are sent in parallel.
IN_FLIGHT = 16


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
    #: Whether it was not tried, as its decision could not be recorded.
    unrecorded: bool = False


class Binder:
    """Threads that send the binds that the loop decided."""

    def __init__(
        self,
        client: KubeClient,
        told: Callable[[BindResult], object],
        recorded: Callable[[RecordWrite, RecordResult], object],
        within_s: int = 0,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        """told:  called with the result for each pod, from any thread.

        recorded:  called with the result of each record, from any thread.

        within_s:  how long the apiserver may work on a request.
        """
        self._client = client
        self._told = told
        self._recorded = recorded
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

    def bind_recorded(self, write: RecordWrite) -> None:
        """Record what was decided, and then bind it: all batches, in their order."""
        with self._lock:
            self._waiting += sum(len(batch.pods) for batch in write.batches)
        self._workers.put(partial(self._record, write))

    @property
    def waiting(self) -> int:
        """How many pods have no result yet."""
        return self._waiting

    def stop(self, patience_s: float) -> None:
        """Stop: finish gangs of which something was sent, and do not begin others."""
        self._workers.stop(patience_s)
        with self._lock:
            self._waiting = 0

    def _record(self, write: RecordWrite) -> None:
        try:
            result = send_record(self._client, write, self._workers.pause)
        except Exception:
            LOG.exception("a record failed")
            result = RecordResult("", "it failed", lasting=True)
        for batch in write.batches:
            if not result.message or not batch.decision:
                self._workers.put(partial(self._begin, batch))
                continue
            for each in batch.pods:
                why, lasting = result.message, result.lasting
                self._answer(BindResult(batch, each, "", why, lasting, unrecorded=True))
        self._recorded(write, result)

    def _begin(self, batch: Batch) -> None:
        self._workers.go_on(partial(self._finish, batch, each) for each in batch.pods)

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
                if is_final(error) or self._workers.pause(back_off.wait_s()):
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
