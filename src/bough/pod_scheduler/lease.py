"""Which of several schedulers leads: the holder of a Lease in the cluster, which it renews.

No two clocks are compared. Another scheduler takes the Lease once it has seen no change for the
Lease's duration, by its own clock. The holder stops relying on the Lease some time earlier, counted
from the moment when it sent its last successful renewal. A bind or an eviction that it sent before
that cannot take effect under another leader, as it says how long the apiserver may work on it.
"""

from __future__ import annotations

import datetime
import logging
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bough.errors import BoughError, NotLeading
from bough.kube.client import KubeClient
from bough.kube.failures import AlreadyExists, KubeConflict, KubeNotFound
from bough.pod_scheduler.kinds import LEASES

LOG = logging.getLogger(__name__)


class LeaseTimes(NamedTuple):
    """How long each step may take, derived from the duration of the Lease."""

    duration_s: int = 15

    @property
    def relied_s(self) -> float:
        """How long the holder relies on its last renewal: less than others wait."""
        return 0.6 * self.duration_s

    @property
    def within_s(self) -> int:
        """How long the apiserver may work on a bind or an eviction of the holder."""
        return max(1, self.duration_s // 4)

    @property
    def every_s(self) -> float:
        """How often the Lease is renewed, or checked by those that wait for it."""
        return self.duration_s / 7.5

    @property
    def patience_s(self) -> float:
        """How long to wait for the answer to a request about the Lease."""
        return self.duration_s / 3


def boot_time_s() -> float:
    """A clock that also runs while the process or the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class LeaseHolder:
    """Holds a Lease, or waits for it, in a thread of its own."""

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        identity: str,
        annotations: dict[str, str] | None = None,
        times: LeaseTimes | None = None,
        clock: Callable[[], float] = boot_time_s,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._annotations = annotations or {}
        self.times = times or LeaseTimes()
        self._clock = clock
        self._held_until_s = 0.0
        self._seen: tuple[str, float] | None = None
        #: The Lease as this scheduler last wrote it; `None` if another may have changed it since.
        self._own: dict[str, Any] | None = None
        #: How often the Lease had changed its holder when this scheduler last took it.
        self.term = 0
        self._stopping = threading.Event()
        self._changed = threading.Condition()
        #: Why the Lease cannot be taken or renewed; empty if nothing is wrong.
        self.failure = ""
        self._thread = threading.Thread(target=self._run, name="kube-lease", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, *, release: bool = True) -> None:
        """Stop; if the Lease is released, another scheduler can lead at once."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(2 * self.times.patience_s)
        if release and self.leads:
            self._held_until_s = 0.0
            self._release()

    @property
    def leads(self) -> bool:
        """Whether this scheduler leads."""
        return self._clock() < self._held_until_s

    def demand(self) -> None:
        """Raise `NotLeading` unless this scheduler leads; called right before anything is sent."""
        if not self.leads:
            raise NotLeading("the Lease was not renewed in time")

    def wait_until_leading(self, timeout_s: float) -> bool:
        """Wait for the Lease; return whether it is held now."""
        with self._changed:
            self._changed.wait_for(lambda: self.leads or self._stopping.is_set(), timeout_s)
        return self.leads

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._step()
                self.failure = ""
            except BoughError as error:
                if error.message != self.failure:
                    LOG.warning("the Lease %s: %s", self._name, error.message)
                self.failure = error.message
            self._stopping.wait(self.times.every_s)

    def _step(self) -> None:
        """Renew the Lease, take it, or only check it."""
        if not self._renew():
            self._look()

    def _renew(self) -> bool:
        """Renew the Lease with one request, if it is as this scheduler last wrote it."""
        if self._own is None:
            return False
        asked_s, own = self._clock(), self._own
        # An answer that does not come leaves open which version it has now.
        self._own = None
        try:
            self._hold(self._written(own, own["spec"], takes=False), asked_s)
        except (KubeConflict, KubeNotFound):
            return False
        return True

    def _look(self) -> None:
        """Read the Lease, and renew or take it if that is possible."""
        asked_s = self._clock()
        try:
            lease = self._get()
        except KubeNotFound:
            lease = {"metadata": {"name": self._name, "namespace": self._namespace}, "spec": {}}
        spec: dict[str, Any] = lease.get("spec") or {}
        holder = str(spec.get("holderIdentity") or "")
        if holder not in ("", self.identity) and not self._is_over(lease, asked_s):
            return
        written = self._written(lease, spec, takes=holder != self.identity)
        try:
            self._hold(written, asked_s)
        except (KubeConflict, AlreadyExists):
            self._seen = None

    def _hold(self, written: dict[str, Any], asked_s: float) -> None:
        """Write the Lease; if that works, it is held.

        asked_s:  from when we rely on it: before the request was sent, as no other scheduler can
            have seen the renewal earlier than that.
        """
        self._own = self._write(written)
        self.term = int(written["spec"].get("leaseTransitions") or 0)
        led = self.leads
        with self._changed:
            self._held_until_s = asked_s + self.times.relied_s
            self._changed.notify_all()
        # After a sleep the answer may be older than the time that it is good for.
        if not led and self.leads:
            LOG.info("%s leads now", self.identity)

    def _is_over(self, lease: dict[str, Any], now_s: float) -> bool:
        """Whether the Lease has not changed for its duration, by our own clock."""
        version = str(lease["metadata"].get("resourceVersion", ""))
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, self._clock())
            return False
        spec: dict[str, Any] = lease.get("spec") or {}
        said = spec.get("leaseDurationSeconds")
        duration_s = said if isinstance(said, int) and said > 0 else self.times.duration_s
        return now_s - self._seen[1] > duration_s

    def _written(
        self, lease: dict[str, Any], spec: dict[str, Any], *, takes: bool
    ) -> dict[str, Any]:
        now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        metadata = dict(lease["metadata"])
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **self._annotations}
        changed = {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.times.duration_s,
            "renewTime": now,
        }
        if takes:
            changed["acquireTime"] = now
            changed["leaseTransitions"] = int(spec.get("leaseTransitions") or 0) + 1
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": changed,
        }

    def _get(self) -> dict[str, Any]:
        target = f"/{LEASES.api}/namespaces/{self._namespace}/leases/{self._name}"
        return self._client.ask("GET", target, timeout_s=self.times.patience_s)

    def _write(self, lease: dict[str, Any]) -> dict[str, Any]:
        target, method = f"/{LEASES.api}/namespaces/{self._namespace}/leases", "POST"
        if lease["metadata"].get("resourceVersion"):
            target, method = f"{target}/{self._name}", "PUT"
        return self._client.ask(method, target, lease, timeout_s=self.times.patience_s)

    def _release(self) -> None:
        try:
            lease = self._get()
            spec: dict[str, Any] = lease.get("spec") or {}
            if spec.get("holderIdentity") == self.identity:
                lease["spec"] = {**spec, "holderIdentity": "", "leaseDurationSeconds": 1}
                self._write(lease)
        except BoughError as error:
            LOG.warning("the Lease %s could not be released: %s", self._name, error.message)
