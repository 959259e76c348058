"""`bough kube schedule` as a process: sets everything up, runs it, and shuts it down."""

from __future__ import annotations

import base64
import logging
import os
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import msgspec

from bough.errors import BoughError, Invalid, Unavailable
from bough.formats.policy_file import read_policy_file, refuse_faults
from bough.kube.client import KubeClient, Patch
from bough.kube.kubeconfig import find_access
from bough.model.policy import KAI, KUEUE
from bough.pod_scheduler import questions
from bough.pod_scheduler.counters import Counters
from bough.pod_scheduler.decision_records import DecisionRecords
from bough.pod_scheduler.http_listener import Listener, Reply, Routes
from bough.pod_scheduler.kinds import SECRETS
from bough.pod_scheduler.leadership_term import Session, Settings
from bough.pod_scheduler.lease import LeaseHolder, LeaseTimes

LOG = logging.getLogger(__name__)
#: The annotation of the Lease that says how to reach its holder.
ADDRESS_ANNOTATION = "bough.address"
POD_ANNOTATION = "bough.pod"
#: A leading scheduler without a cycle for this long reports that it is not healthy.
STUCK_S = 120.0
#: Requests in parallel: bindings, evictions, and some for everything else.
IN_FLIGHT = 24


class Options(msgspec.Struct, frozen=True):
    """The settings from the command line."""

    scheduler_name: str = "bough"
    policy: str | None = None
    kubeconfig: str | None = None
    context: str | None = None
    lease_namespace: str = "bough-system"
    lease_duration: int = 15
    listen: str = ":8270"
    #: Whether PodGroups are made from the owners of pods.
    group: bool = True
    #: Whose objects set the quota: `kai` or `kueue`.
    quota: str = "kai"


def schedule(options: Options) -> None:
    """Schedule pods until told to stop."""
    _log_to_standard_error()
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    Scheduler(options).run(stopping)


def lease_name(scheduler_name: str) -> str:
    """The name of the Lease, and of the Secret that holds the token for questions."""
    return f"bough-scheduler-{scheduler_name}"


class Scheduler:
    """Waits for the Lease, leads while it holds it, and answers questions all the time."""

    def __init__(self, options: Options) -> None:
        kueue = options.quota == "kueue"
        policy = KUEUE if kueue else KAI
        if options.policy is not None:
            policy = refuse_faults(read_policy_file(options.policy, policy))
        access = find_access(kubeconfig=options.kubeconfig, context=options.context)
        self._options = options
        self._settings = Settings(options.scheduler_name, policy, options.group, kueue)
        self._client = KubeClient(access)
        self._counters = Counters()
        self._session: Session | None = None
        self._token = secrets.token_urlsafe(32)
        self._beat_s = time.monotonic()
        self._listener = Listener(options.listen, self._token, self._routes())
        name = os.environ.get("HOSTNAME") or socket.gethostname()
        self._holder = LeaseHolder(
            self._client,
            options.lease_namespace,
            lease_name(options.scheduler_name),
            f"{name}_{secrets.token_hex(4)}",
            self._whereabouts(),
            LeaseTimes(options.lease_duration),
        )

    def run(self, stopping: threading.Event) -> None:
        """Lead whenever it holds the Lease, until told to stop."""
        self._listener.start()
        self._holder.start()
        LOG.info("answering on port %d", self._listener.port)
        try:
            while not stopping.is_set():
                self._beat_s = time.monotonic()
                if self._holder.wait_until_leading(0.5) and not stopping.is_set():
                    self._lead(stopping)
        finally:
            self._holder.stop()
            self._listener.stop()
            self._client.close()

    def _lead(self, stopping: threading.Event) -> None:
        # The guard refuses to send a write once another scheduler may hold the Lease.
        client = KubeClient(self._client.access, IN_FLIGHT, guard=self._holder.demand)
        name, where = lease_name(self._options.scheduler_name), self._options.lease_namespace
        records = DecisionRecords(client, where, name, self._holder)
        session = Session(client, self._holder, self._settings, self._counters, records)
        self._session = session
        # In a thread of its own, so that no pod waits for it.
        publishing = threading.Thread(target=self._publish, args=(client,), daemon=True)
        try:
            publishing.start()
            session.run(stopping)
        except BoughError as error:
            LOG.warning("not leading any more: %s", error.message)
            stopping.wait(1.0)
        finally:
            self._session = None
            client.close()

    def _publish(self, client: KubeClient) -> None:
        """Publish the token in a Secret, so that those who may read the Secret may ask."""
        name = lease_name(self._options.scheduler_name)
        data = {"token": base64.b64encode(self._token.encode()).decode()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}
        where = self._options.lease_namespace
        try:
            client.patch(SECRETS, name, body, where, Patch.APPLY, manager="bough")
        except BoughError as error:
            LOG.warning("questions cannot be answered: %s", error.message)

    def _whereabouts(self) -> dict[str, str]:
        """How `bough kube why` reaches this process: by the apiserver if a pod, else directly."""
        host = self._options.listen.rpartition(":")[0]
        own = os.environ.get("POD_IP") or host or "127.0.0.1"
        found = {ADDRESS_ANNOTATION: f"{own}:{self._listener.port}", POD_ANNOTATION: ""}
        if os.environ.get("POD_NAME"):
            namespace = os.environ.get("POD_NAMESPACE", self._options.lease_namespace)
            found[POD_ANNOTATION] = f"{namespace}/{os.environ['POD_NAME']}"
        return found

    # Answers

    def _routes(self) -> Routes:
        return Routes(
            self._healthy,
            self._ready,
            self._metrics,
            {
                "/why": self._asking(
                    lambda session, asked: questions.why(
                        session,
                        self._settings.policy,
                        _kind(asked),
                        asked.get("namespace") or "default",
                        asked.get("name", ""),
                    )
                ),
                "/queues": self._asking(lambda session, _: questions.queues(session)),
            },
        )

    def _asking(
        self, answer: Callable[[Session, dict[str, str]], object]
    ) -> Callable[[dict[str, str]], object]:
        def ask(asked: dict[str, str]) -> object:
            session = self._session
            if session is None or session.decided is None:
                raise Unavailable("this scheduler does not decide now; another one may")
            return answer(session, asked)

        return ask

    def _healthy(self) -> Reply:
        session = self._session
        beat_s = self._beat_s if session is None else session.beat_s
        stuck = time.monotonic() - beat_s > STUCK_S
        return Reply(500, b"no cycle for too long\n") if stuck else Reply(200, b"ok\n")

    def _ready(self) -> Reply:
        session = self._session
        failures = [self._holder.failure, *(session.failures if session else [])]
        text = "; ".join(each for each in failures if each)
        if not text and session is not None and session.decided is None:
            text = "it has not planned yet"
        return Reply(503, f"{text}\n".encode()) if text else Reply(200, b"ok\n")

    def _metrics(self) -> Reply:
        return Reply(200, self._counters.text(leads=self._holder.leads).encode())


def _kind(asked: dict[str, str]) -> str:
    kind = asked.get("kind", "")
    if kind not in ("pod", "podgroup"):
        raise Invalid(f"kind: {kind!r} must be pod or podgroup")
    return kind


def _log_to_standard_error() -> None:
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
    )
