"""Deletes the data of attempts that did not complete from the claim, with a pod of its own.

One such pod runs at a time and takes everything that has accumulated. The pods of the attempts
themselves are the record of what to delete: they stay until the cleaner has finished.
"""

from __future__ import annotations

import contextlib
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable

from bough.backends.kubernetes.data_folders import cleaner
from bough.backends.kubernetes.names import CLEANER, SITE
from bough.backends.kubernetes.options import DataVolume, KubernetesOptions
from bough.backends.kubernetes.pod_view import is_over
from bough.kube.client import KubeClient
from bough.kube.failures import KubeConflict, KubeFailure, KubeNotFound, KubeRefused
from bough.kube.objects import PODS, KubePod

LOG = logging.getLogger(__name__)
#: How many folders one pod deletes.
_AT_ONCE = 200
#: After this many failures in a row the folders stay, and the log says so.
_TRIES = 3
_AGAIN_S, _LOOK_S, _LONGEST_S = 5.0, 60.0, 900.0


class DataCleaner:
    """The folders to delete. Any thread can call it; `work` is called by one at a time."""

    def __init__(
        self,
        client: KubeClient,
        options: KubernetesOptions,
        volume: DataVolume,
        node: Callable[[], str | None],
        dropped: Callable[[tuple[str, ...]], None],
    ) -> None:
        """Both functions are called without the lock.

        node:     a node that a pod can run on, if there is one
        dropped:  nothing of these attempts is left to delete; they are not noted again
        """
        self._client = client
        self._options = options
        self._volume = volume
        self._node = node
        self._dropped = dropped
        self._lock = threading.Lock()
        self._waiting: dict[str, None] = {}
        #: All cleaner pods that exist, including those of an earlier server.
        self._pods: dict[str, KubePod] = {}
        #: The cleaner pod of this server, what it deletes, and until when to wait for it.
        self._running: tuple[str, tuple[str, ...], float] | None = None
        self._failures = 0

    def is_cleaner(self, pod: KubePod) -> bool:
        """Whether a pod is a cleaner of this site."""
        labels = pod.metadata.labels or {}
        here = pod.metadata.namespace == self._options.namespace
        return here and labels.get(SITE) == self._options.site and CLEANER in labels

    def note(self, attempts: Iterable[str]) -> None:
        """Note that what these attempts left must be deleted."""
        with self._lock:
            held = () if self._running is None else self._running[1]
            self._waiting |= dict.fromkeys(each for each in attempts if each not in held)

    def hear(self, pod: KubePod, *, gone: bool) -> None:
        """Take in the state of a cleaner pod."""
        with self._lock:
            if gone:
                self._pods.pop(pod.metadata.name, None)
                self._end_one(pod.metadata.name)
            else:
                self._pods[pod.metadata.name] = pod

    def relist(self) -> None:
        """Forget the cleaner pods, as all of them are about to be reported again."""
        with self._lock:
            self._pods.clear()

    def work(self) -> float | None:
        """Do the next step; return after how long to look again, `None` if nothing is left."""
        try:
            self._remove_over()
        except KubeFailure as error:
            LOG.info("a finished cleaner pod could not be deleted yet: %s", error.message)
            return _AGAIN_S
        with self._lock:
            given_up = tuple(self._waiting) if self._failures >= _TRIES else ()
        if given_up:
            text = "what %d attempts left stays on the claim %s: it could not be dropped"
            LOG.warning(text, len(given_up), self._volume.claim)
            self._dropped(given_up)
        with self._lock:
            for each in given_up:
                self._waiting.pop(each, None)
                self._failures = 0
            if self._running is not None:
                return _LOOK_S
            if not self._waiting:
                return None
        return self._begin()

    def _begin(self) -> float:
        node = self._node()
        if node is None:
            return _LOOK_S
        with self._lock:
            attempts = tuple(self._waiting)[:_AT_ONCE]
            name = f"bough-cleaner-{secrets.token_hex(6)}"
            self._running = name, attempts, time.monotonic() + _LONGEST_S
            for each in attempts:
                del self._waiting[each]
        body = cleaner(self._volume, self._options.site, name, node, attempts)
        try:
            self._client.create(PODS, body, self._options.namespace)
        except KubeFailure as error:
            LOG.info("folders could not be dropped yet: %s", error.message)
            with self._lock:
                self._end_one(name, counts=isinstance(error, KubeRefused))
            return _AGAIN_S
        return _LOOK_S

    def _remove_over(self) -> None:
        """Delete the cleaner pods that have ended."""
        with self._lock:
            late = self._running is not None and time.monotonic() > self._running[2]
            own = "" if self._running is None else self._running[0]
            if late and own not in self._pods:
                self._end_one(own)
            over = [
                pod for name, pod in self._pods.items() if is_over(pod) or (late and name == own)
            ]
            running = self._running
        for pod in over:
            name, uid = pod.metadata.name, pod.metadata.uid
            if running is not None and running[0] == name:
                self._judge(pod, running[1])
            with contextlib.suppress(KubeNotFound, KubeConflict):
                self._client.delete(PODS, name, self._options.namespace, uid=uid, grace_s=0)
            with self._lock:
                self._pods.pop(name, None)

    def _judge(self, pod: KubePod, attempts: tuple[str, ...]) -> None:
        """Read how this server's cleaner ended, before it is deleted."""
        if pod.status.phase != "Succeeded":
            LOG.warning("folders were not dropped: %s", pod.status.message or "it failed")
            with self._lock:
                self._end_one(pod.metadata.name)
            return
        self._dropped(attempts)
        with self._lock:
            self._running, self._failures = None, 0

    def _end_one(self, name: str, *, counts: bool = True) -> None:
        """A cleaner ended too early: what it had to delete waits again. Call under the lock."""
        if self._running is not None and self._running[0] == name:
            self._waiting |= dict.fromkeys(self._running[1])
            self._running = None
            self._failures += counts
