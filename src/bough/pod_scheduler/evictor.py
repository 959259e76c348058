"""Evicts pods to make room for others, by the eviction API, so disruption budgets hold.

What a budget forbids is tried again after a while; meanwhile the gang that needs the room says
so in its status.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from bough.errors import BoughError, NotLeading
from bough.kube.client import KubeClient, Patch
from bough.kube.failures import Busy, KubeConflict, KubeNotFound, KubeRefused
from bough.pod_scheduler.kinds import PODS
from bough.pod_scheduler.pod_view import split_name
from bough.pod_scheduler.request_threads import Workers
from bough.pod_scheduler.status_text import DISRUPTED, PREEMPTED

LOG = logging.getLogger(__name__)
IN_FLIGHT = 4
#: How long to wait before a retry, when a budget forbade an eviction or no answer came.
AGAIN_S = 2.0
FORBIDDEN = 403


class Ending(NamedTuple):
    """A pod that must end."""

    gang: str
    pod: str
    uid: str
    #: The gang that gets the room; empty if there is none.
    preemptor: str
    #: Why it must end, as a sentence for people.
    message: str


class EndResult(NamedTuple):
    """The result of one attempt to evict a pod."""

    ending: Ending
    #: Whether the pod is ending, or gone.
    ended: bool
    #: Why it is not ending; it is tried again unless `given_up`.
    message: str = ""
    given_up: bool = False


class Evictor:
    """Threads that evict pods."""

    def __init__(
        self,
        client: KubeClient,
        told: Callable[[EndResult], object],
        within_s: int = 0,
        in_flight: int = IN_FLIGHT,
    ) -> None:
        """told:  called with the result for each pod, from any thread.

        within_s:  how long the apiserver may work on a request.
        """
        self._client = client
        self._told = told
        self._within_s = within_s
        self._workers = Workers(in_flight, "kube-evict")
        self._lock = threading.Lock()
        #: By uid: the evictions that are wanted and not done.
        self._due: dict[str, Ending] = {}

    def start(self) -> None:
        """Start the threads."""
        self._workers.start()

    def end(self, ending: Ending) -> None:
        """Evict a pod, after all that were added before."""
        with self._lock:
            self._due[ending.uid] = ending
        self._workers.put(partial(self._try, ending))

    def forget(self, uid: str) -> None:
        """Stop retrying; a request that was sent is not taken back."""
        with self._lock:
            self._due.pop(uid, None)

    def stop(self, patience_s: float) -> None:
        """Stop; the next leader decides again about what was not sent."""
        self._workers.stop(patience_s)

    def _try(self, ending: Ending) -> None:
        if not self._is_due(ending):
            return
        try:
            result = self._evict(ending)
        except Exception:
            LOG.exception("an eviction failed")
            result = EndResult(ending, False, "it failed", given_up=True)
        if result.ended or result.given_up:
            self.forget(ending.uid)
        elif self._is_due(ending):
            self._workers.put_off(partial(self._try, ending), AGAIN_S)
        self._told(result)

    def _is_due(self, ending: Ending) -> bool:
        """Whether this eviction is still wanted, and no newer one has replaced it."""
        with self._lock:
            return self._due.get(ending.uid) is ending

    def _evict(self, ending: Ending) -> EndResult:
        namespace, name = split_name(ending.pod)
        try:
            self._client.evict(name, namespace, ending.uid, within_s=self._within_s)
        except KubeNotFound:
            return EndResult(ending, True)
        except KubeConflict as conflict:
            # Another pod has this name now, or the budget was being changed at this moment.
            return EndResult(ending, not self._is_there(ending), conflict.message)
        except Busy as busy:
            return EndResult(ending, False, busy.message)
        except NotLeading as lost:
            return EndResult(ending, False, lost.message, given_up=True)
        except KubeRefused as refused:
            # The missing right may still be granted; until then the waiting gang says so.
            final = 400 <= refused.status < 500 and refused.status != FORBIDDEN
            return EndResult(ending, False, refused.message, given_up=final)
        except BoughError as error:
            return EndResult(ending, False, error.message)
        self._say_why(ending)
        return EndResult(ending, True)

    def _is_there(self, ending: Ending) -> bool:
        namespace, name = split_name(ending.pod)
        try:
            return self._client.get(PODS, name, namespace).metadata.uid == ending.uid
        except KubeNotFound:
            return False
        except BoughError:
            return True

    def _say_why(self, ending: Ending) -> None:
        """Note on the pod why it ends, as Kubernetes' own scheduler does; the pod may be gone."""
        namespace, name = split_name(ending.pod)
        condition = {
            "type": DISRUPTED,
            "status": "True",
            "reason": PREEMPTED,
            "message": ending.message,
        }
        body = {"metadata": {"uid": ending.uid}, "status": {"conditions": [condition]}}
        try:
            self._client.patch(PODS, name, body, namespace, Patch.STRATEGIC, below="status")
        except BoughError as error:
            LOG.debug("%s: %s", ending.pod, error.message)
