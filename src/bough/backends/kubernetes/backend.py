"""The backend `kubernetes`: notes what is wanted, lets workers do it, and reports what it sees.

The apiserver keeps all state. A pod is named after its attempt, so nothing is created twice; and
work that a crash interrupted is redone when the next server is given the same orders again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from bough.backends.kubernetes.attempt_state import PodAttempt, Step, number_of
from bough.backends.kubernetes.cluster_state import ClusterState
from bough.backends.kubernetes.creation_rush import CreationRush
from bough.backends.kubernetes.data_cleaner import DataCleaner
from bough.backends.kubernetes.group_objects import TemplateObjects
from bough.backends.kubernetes.group_services import GroupServices
from bough.backends.kubernetes.log_folders import LogFolders
from bough.backends.kubernetes.log_keeper import LogKeeper
from bough.backends.kubernetes.names import attempt_of
from bough.backends.kubernetes.node_tests import NodeTests
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.pod_log_files import PodFiles
from bough.backends.kubernetes.pod_manifest import UnstartablePod, make_objects
from bough.backends.kubernetes.pod_view import TASK_CONTAINER, PodSight
from bough.backends.kubernetes.pod_writer import PodWriter
from bough.backends.kubernetes.work_queue import WorkQueue
from bough.errors import NotLeading, Unavailable
from bough.kube.apiserver_liveness import Pulse
from bough.kube.client import KubeClient
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.failures import KubeFailure
from bough.kube.objects import NODES, PODS, KubeNode, KubePod
from bough.kube.watching import Follower, Relisted
from bough.model.backend import (
    Launch,
    Leadership,
    Observation,
    Sight,
    Start,
    Stop,
)
from bough.model.cluster import Resources
from bough.model.node_test import NodeTest
from bough.model.pool import OfferedNode

LOG = logging.getLogger(__name__)
#: How long a watch may fail before no more tasks are started in this cluster.
_AWAY_S = 10.0
#: Entry in the work queue: sweep Services and objects of groups that are gone. The pause before a
#: retry is `_SWEEP_AGAIN_S`.
_SWEEP = ""
#: Entry in the work queue: delete from the claim what did not complete.
_CLEAN = "-"
#: Entry in the work queue: bring the tests of nodes in step.
_TESTS = "?"
_SWEEP_AGAIN_S = 10.0
#: At least this, so that a pod is never deleted without its kubelet.
_LEAST_GRACE_S = 1
#: How often to check for attempts that take too long.
_LOOK_MS = 1_000


def nothing() -> None:
    """Do nothing: the default for `wake`."""


class KubernetesBackend(PodFiles):
    """Runs tasks as pods. Any thread can call it."""

    def __init__(
        self,
        options: KubernetesOptions,
        client: KubeClient,
        now_ms: Callable[[], int],
        wake: Callable[[], None] = nothing,
        name: str = "default",
    ) -> None:
        super().__init__(LogFolders(options.folder, options.keep_days), name)
        self._options = options
        self._client = client
        self._now_ms = now_ms
        self._wake = wake
        self._lock = threading.RLock()
        self._attempts: dict[str, PodAttempt] = {}
        self._cluster = ClusterState(name)
        self._leadership = Leadership(0, 0)
        self._away_since: float | None = None
        #: When the timeouts were last checked.
        self._looked_ms = -_LOOK_MS
        self._rush = CreationRush(options.workers)
        self._logs = LogKeeper(
            client, self._folders, options.log_bytes, now_ms, self._log_done, self._rush.is_on
        )
        self._services = GroupServices(client, options, self._has_group)
        self._group_objects = TemplateObjects(client, options, self._has_group)
        self._tests = NodeTests(client, options, self._count_nodes)
        volume = options.volume
        self._cleaner = (
            None
            if volume is None
            else DataCleaner(client, options, volume, self._any_node, self._note_dropped)
        )
        self._writer = PodWriter(
            client, options, self._lock, now_ms, self._services, self._group_objects
        )
        #: What the work queue can hold beside attempts.
        self._errands = {_SWEEP: self._sweep, _CLEAN: self._clean, _TESTS: self._test}
        self._queue = WorkQueue(self._work, options.workers, "kube-pods")
        self._nodes = Follower(client, NODES, self._hear_node)
        self._pods = Follower(client, PODS, self._hear_pod)
        self._pods.pause_while(self._rush.is_great, self._rush.goes_on)
        self._pulse = Pulse(client)

    def begin(self) -> None:
        """Start to follow the cluster; its nodes are unknown until the first lists are there."""
        self._queue.start()
        self._logs.start()
        self._nodes.start()
        self._pods.start()
        self._pulse.start()

    def close(self) -> None:
        """Stop following the cluster; its pods keep running."""
        self._pulse.stop()
        self._nodes.stop(5.0)
        self._pods.stop(5.0)
        self._queue.close()
        self._logs.close()
        self._client.close()

    def nodes(self) -> tuple[OfferedNode, ...] | None:
        """The nodes of the cluster; `None` until all nodes and pods are listed."""
        failure = self._nodes.failure or self._pods.failure or self._pulse.failure
        now = time.monotonic()
        if not failure:
            self._away_since = None
        elif self._away_since is None:
            self._away_since = now
        if not (self._nodes.wait_until_listed(0) and self._pods.wait_until_listed(0)):
            if failure:
                raise Unavailable(failure)
            return None
        if self._away_since is not None and now - self._away_since > _AWAY_S:
            raise Unavailable(failure)
        with self._lock:
            return self._cluster.offered()

    def used_by_others(self) -> Mapping[str, Resources]:
        """What pods of others, not of this site, hold on each node."""
        with self._lock:
            return self._cluster.used()

    def lead(self, leadership: Leadership) -> None:
        """Carry out all further orders under this lease."""
        with self._lock:
            if leadership.number != self._leadership.number:
                # Orders of the old lease that are not carried out yet may no longer be wanted.
                for each in list(self._attempts.values()):
                    if each.over or each.has_pod:
                        continue
                    if each.sent:
                        # Its pod may exist or not: create it only if the new leader orders
                        # that again.
                        each.objects = None
                    else:
                        del self._attempts[each.attempt]
                self._queue.note(_SWEEP)
                self._queue.note(_TESTS)
            self._leadership = leadership

    def keep_tests(self, tests: tuple[NodeTest, ...]) -> None:
        """Bring the tests of nodes in step, and close nodes that did not pass."""
        with self._lock:
            conditions = frozenset(name for each in tests for name in each.conditions)
            changed = self._cluster.heed(conditions)
        if self._tests.want(tests):
            self._queue.note(_TESTS)
        if changed:
            self._wake()

    def test_troubles(self) -> tuple[str, ...]:
        """What is wrong with tests that cannot be brought in step."""
        return self._tests.troubles()

    def start(self, start: Start) -> None:
        """Note which tasks must start; those that are already known are left alone."""
        with self._lock:
            self._check_lease()
            for launch in start.launches:
                known = self._attempts.get(launch.attempt)
                if known is None:
                    known = self._accept(launch)
                if not known.over and known.objects is None:
                    self._prepare(known, start, launch)
                if known.next_step() is Step.CREATE:
                    self._rush.note(launch.attempt)
                self._queue.note(launch.attempt)

    def stop(self, stop: Stop) -> None:
        """Note which attempts must end; an unknown attempt counts as ended."""
        now_ms = self._now_ms()
        by_ms = now_ms + max(_LEAST_GRACE_S, stop.grace_s) * 1_000
        with self._lock:
            self._check_lease()
            for attempt in stop.attempts:
                known = self._attempts.get(attempt)
                if known is None:
                    known = PodAttempt(attempt, begun_ms=now_ms, unseen=stop.again)
                    self._attempts[attempt] = known
                if known.stop_by_ms is None or by_ms < known.stop_by_ms:
                    known.stop_by_ms = by_ms
                if not known.sent and known.pod is None:
                    known.objects = None
                    known.put(PodSight(Sight.ENDED, "It was not started.", told=True), now_ms)
                self._queue.note(attempt)
        self._wake()

    def observe(self) -> tuple[Observation, ...]:
        """All attempts, including ended ones, until they are forgotten.

        Those that were just ordered can be missing for a while.
        """
        with self._lock:
            self._look_at_times()
            later = self._rush.delays_reports()
            known = [each for each in self._attempts.values() if not each.forgotten]
            told = (each.tell(later=later) for each in known)
            return tuple(each for each in told if each is not None)

    def forget(self, attempts: tuple[str, ...]) -> None:
        """These ends are stored: delete the pods once their logs are complete."""
        with self._lock:
            for attempt in attempts:
                known = self._attempts.get(attempt)
                if known is not None and known.over:
                    known.forgotten = True
                    self._queue.note(attempt)
        expired = self._folders.expire()
        if expired and self._cleaner is not None:
            self._cleaner.note(expired)
            self._queue.note(_CLEAN)

    # Orders

    def _check_lease(self) -> None:
        """Refuse an order that came so late that another server may lead by now."""
        if not self._leads():
            raise NotLeading

    def _leads(self) -> bool:
        boot_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
        return boot_ms < self._leadership.until_ms

    def _accept(self, launch: Launch) -> PodAttempt:
        now_ms = self._now_ms()
        known = PodAttempt(launch.attempt, begun_ms=now_ms, since_ms=now_ms)
        self._attempts[launch.attempt] = known
        if launch.started_ms is not None:
            known.gone = known.unseen = True
            known.ran_since_ms = launch.started_ms
            known.put(PodSight(Sight.LOST, "Its pod is gone."), now_ms)
        return known

    def _prepare(self, known: PodAttempt, start: Start, launch: Launch) -> None:
        options = self._options
        try:
            known.objects = make_objects(
                options.site, options.namespace, start, launch, options.volume
            )
            known.name, known.group = known.objects.name, launch.about.get("group_uuid", "")
        except UnstartablePod as error:
            if known.has_pod:
                # Its pod was created earlier, when nothing was missing yet.
                return
            known.put(PodSight(Sight.UNSTARTABLE, str(error)), self._now_ms())

    def _look_at_times(self) -> None:
        """Give up attempts that do not start in time, or do not end on a node that is not ready."""
        now_ms = self._now_ms()
        if 0 <= now_ms - self._looked_ms < _LOOK_MS:
            return
        self._looked_ms = now_ms
        for each in self._attempts.values():
            if each.over or each.give_up(self._options.start_timeout_s * 1_000, now_ms):
                continue
            if each.is_stuck(now_ms) and not self._cluster.is_ready(each.node):
                each.take_gone(now_ms)

    # Work, done by the workers

    def _work(self, attempt: str) -> float | None:
        """Do the next step for an attempt; return after how long to look again."""
        errand = self._errands.get(attempt)
        if errand is not None:
            return errand()
        self._rush.begin(attempt)
        known = self._attempts.get(attempt)
        if known is not None and known.forgotten and self._is_done(attempt):
            return None
        with self._lock:
            # Under another lease it may have been given up by now.
            known = self._attempts.get(attempt)
            step = None if known is None else known.next_step()
            if known is None or step is None:
                return None
            if not self._leads():
                # Another server leads, or this one will renew its lease soon.
                return 1.0
            before = known.observed()
            if step is Step.CREATE:
                known.sent = True
        again_s = self._writer.do(step, known)
        with self._lock:
            news = known.observed() != before
            more = known.forgotten or known.next_step() is not None
        if news:
            self._wake()
        if again_s is None and more:
            self._queue.note(attempt)
        return again_s

    def _is_done(self, attempt: str) -> bool:
        """Clean up after an attempt whose end is stored; return whether nothing more is to do."""
        self._note_left(attempt)
        group = self._drop(attempt)
        if group is None:
            return False
        # The Service of a group and its objects are deleted with its last attempt.
        self._services.drop(group)
        if self._group_objects.drop(group):
            self._queue.note_later(_SWEEP, _SWEEP_AGAIN_S)
        return True

    def _drop(self, attempt: str) -> str | None:
        """Forget an attempt that needs nothing more; return its group."""
        with self._lock:
            known = self._attempts.get(attempt)
            if known is None or not known.removable or known.has_pod:
                return None
            del self._attempts[attempt]
            return known.group

    def _note_left(self, attempt: str) -> None:
        """Have an attempt's data deleted if it did not complete, once its end is stored."""
        with self._lock:
            known = self._attempts.get(attempt)
            if known is None or not known.forgotten or not known.leaves_data:
                return
            if self._cleaner is None:
                known.data_dropped = True
                return
            self._cleaner.note((attempt,))
        self._queue.note(_CLEAN)

    def _clean(self) -> float | None:
        if self._cleaner is None:
            return None
        return self._cleaner.work() if self._leads() else 1.0

    def _test(self) -> float | None:
        return self._tests.work() if self._leads() else 1.0

    def _note_dropped(self, attempts: tuple[str, ...]) -> None:
        with self._lock:
            for attempt in attempts:
                known = self._attempts.get(attempt)
                if known is not None:
                    known.data_dropped = True
        for attempt in attempts:
            self._queue.note(attempt)

    def _any_node(self) -> str | None:
        with self._lock:
            return self._cluster.any_open()

    def _count_nodes(self) -> int:
        with self._lock:
            return len(self._cluster.offered())

    def _has_group(self, group: str) -> bool:
        """Whether any attempt of this group is known."""
        with self._lock:
            return any(each.group == group for each in self._attempts.values())

    def _sweep(self) -> float | None:
        """Once per lease, delete what belongs to groups that have no attempts left."""
        if not self._pods.wait_until_listed(0) or not self._leads():
            return 1.0
        try:
            self._services.sweep()
            self._group_objects.sweep()
        except KubeFailure as error:
            LOG.info("leftover objects of groups could not be removed yet: %s", error.message)
            return _SWEEP_AGAIN_S
        return None

    def _log_done(self, attempt: str) -> None:
        with self._lock:
            known = self._attempts.get(attempt)
            if known is not None:
                known.log_done = True
        self._queue.note(attempt)

    # Events from the watches

    def _hear_node(self, heard: Relisted[KubeNode] | WatchEvent[KubeNode]) -> None:
        with self._lock:
            changed = self._cluster.hear_node(heard)
        if changed and self._tests.is_stale():
            self._queue.note(_TESTS)
        if changed:
            self._wake()

    def _hear_pod(self, heard: Relisted[KubePod] | WatchEvent[KubePod]) -> None:
        if isinstance(heard, Relisted):
            with self._lock:
                self._cluster.forget_pods()
                if self._cleaner is not None:
                    self._cleaner.relist()
                there = {attempt for pod in heard.items if (attempt := self._take(pod)) is not None}
                listed = number_of(heard.version)
                for each in list(self._attempts.values()):
                    # A pod created after the list was made is missing in it, but exists.
                    missing = each.has_pod and each.attempt not in there
                    if missing and each.version <= listed:
                        self._take_gone(each)
            news = True
        else:
            with self._lock:
                news = self._hear_event(heard)
        if news:
            self._wake()

    def _hear_event(self, event: WatchEvent[KubePod]) -> bool:
        attempt = self._own(event.object)
        if attempt is None:
            return self._hear_other(event.object, gone=event.kind is WatchEventKind.DELETED)
        before = self._attempts.get(attempt)
        if before is None and event.kind is WatchEventKind.DELETED:
            return False
        seen = None if before is None else before.observed()
        self._take(event.object)
        known = self._attempts[attempt]
        if event.kind is WatchEventKind.DELETED:
            self._take_gone(known)
        if known.sight.sight is Sight.RUNNING and self._rush.is_on():
            # It is reported later, together with many others.
            return False
        return seen != known.observed()

    def _hear_other(self, pod: KubePod, *, gone: bool) -> bool:
        if self._cleaner is not None and self._cleaner.is_cleaner(pod):
            self._cleaner.hear(pod, gone=gone)
            self._queue.note(_CLEAN)
        return self._cluster.hear_other(pod, gone=gone)

    def _own(self, pod: KubePod) -> str | None:
        if pod.metadata.namespace != self._options.namespace:
            return None
        return attempt_of(pod, self._options.site)

    def _take(self, pod: KubePod) -> str | None:
        """Take in a pod; return its attempt, if it belongs to this site."""
        attempt = self._own(pod)
        if attempt is None:
            self._hear_other(pod, gone=False)
            return None
        known = self._attempts.get(attempt)
        if known is None:
            known = self._attempts[attempt] = PodAttempt(attempt)
        known.take(pod, self._now_ms())
        if known.over and not known.log_done:
            self._finish_log(known)
        elif known.sight.sight is Sight.RUNNING:
            self._logs.follow(attempt, *self._place(pod))
        if known.next_step() is not None:
            self._queue.note(attempt)
        return attempt

    def _take_gone(self, known: PodAttempt) -> None:
        known.take_gone(self._now_ms())
        self._finish_log(known)
        self._queue.note(known.attempt)

    def _finish_log(self, known: PodAttempt) -> None:
        if known.pod is not None and not known.log_done:
            self._logs.finish(known.attempt, *self._place(known.pod))

    def _place(self, pod: KubePod) -> tuple[str, str, str]:
        return self._options.namespace, pod.metadata.name, TASK_CONTAINER
