"""The backend `kubernetes` where KAI places pods: Bough admits groups, and keeps KAI's queues."""

from __future__ import annotations

import logging
from collections.abc import Callable

import msgspec

from bough.backends.kubernetes.attempt_state import PodAttempt
from bough.backends.kubernetes.backend import KubernetesBackend, nothing
from bough.backends.kubernetes.kai.evictions import (
    EVICT,
    KUBE_EVENTS,
    Evictions,
    KubeEvent,
    created_ms,
    deleted_ms,
)
from bough.backends.kubernetes.kai.gang_manifest import let_kai_place, pod_group, pod_group_name
from bough.backends.kubernetes.kai.pod_groups import (
    WATCHED_POD_GROUPS,
    GangView,
    KaiPodGroup,
    NotOurs,
    PodGroups,
)
from bough.backends.kubernetes.kai.queue_keeper import LOOK_S, QueueKeeper
from bough.backends.kubernetes.kai.wanted_objects import Owner
from bough.backends.kubernetes.names import SITE
from bough.backends.kubernetes.options import KubernetesOptions
from bough.backends.kubernetes.pod_view import PodSight
from bough.kube.client import KubeClient
from bough.kube.decoding import WatchEvent
from bough.kube.failures import KubeFailure
from bough.kube.objects import KubePod
from bough.kube.watching import Follower, Relisted
from bough.model.backend import Launch, Leadership, Observation, Sight, Start
from bough.model.queue_tree import QueueReport, QueueTree

LOG = logging.getLogger(__name__)
#: Entry in the work queue: compare the queues of the cluster with ours.
_QUEUES = "="
#: Prefix of an entry in the work queue: check the PodGroup of the group whose uuid follows.
_GANG = "+"
_SWEEP_AGAIN_S = 10.0
_REPAIR_AGAIN_S = 2.0
#: How long to wait for KAI's Event about a pod that was deleted.
_WORD_MS = 3_000
#: How long a pod may be bound to an unknown node: it may be new, and not reported yet.
_UNKNOWN_MS = 5_000


class KaiBackend(KubernetesBackend):
    """Runs tasks as pods that KAI places. Any thread can call it."""

    def __init__(
        self,
        options: KubernetesOptions,
        client: KubeClient,
        now_ms: Callable[[], int],
        wake: Callable[[], None] = nothing,
        name: str = "default",
    ) -> None:
        super().__init__(options, client, now_ms, wake, name)
        owner = Owner(options.site, name)
        self._keeper = QueueKeeper(client, owner, now_ms, self._leads, wake)
        self._pod_groups = PodGroups(client, options, self._has_group)
        self._writer.pod_groups = self._pod_groups
        self._evictions = Evictions()
        self._view = GangView()
        #: PodGroups that cannot be repaired, by the uuid of the group: why not.
        self._troubles: dict[str, str] = {}
        place = options.namespace
        labels = f"{SITE}={options.site}"
        self._gangs = Follower(
            client, WATCHED_POD_GROUPS, self._hear_gang, namespace=place, labels=labels
        )
        self._events = Follower(
            client, KUBE_EVENTS, self._hear_events, namespace=place, fields=f"reason={EVICT}"
        )

    def begin(self) -> None:
        """Start to follow the cluster."""
        super().begin()
        self._gangs.start()
        self._events.start()

    def close(self) -> None:
        """Stop following the cluster; its pods keep running."""
        self._gangs.stop(5.0)
        self._events.stop(5.0)
        super().close()

    def lead(self, leadership: Leadership) -> None:
        """Carry out all further orders under this lease."""
        news = leadership.number != self._leadership.number
        super().lead(leadership)
        if news:
            self._queue.note(_QUEUES)

    def keep_queues(self, tree: QueueTree) -> None:
        """Bring the queues of the cluster in step with a tree, and keep them so."""
        if self._keeper.want(tree):
            self._queue.note(_QUEUES)

    def queue_report(self) -> QueueReport:
        """What was found and repaired in the cluster."""
        report = self._keeper.report()
        with self._lock:
            troubles = (*report.troubles, *self._troubles.values())
        return msgspec.structs.replace(report, troubles=tuple(sorted(troubles)))

    def forget_repairs(self, count: int) -> None:
        """The first `count` repairs are recorded, and need not be reported again."""
        self._keeper.forget(count)

    def observe(self) -> tuple[Observation, ...]:
        """All attempts.

        One whose pod was deleted is left out until KAI has had time to say that it evicted it.
        """
        now_ms = self._now_ms()
        with self._lock:
            self._lose_unplaced(now_ms)
            return tuple(each for each in super().observe() if not _is_fresh_loss(each, now_ms))

    def _lose_unplaced(self, now_ms: int) -> None:
        """Give up pods that are bound to nodes that do not exist: no kubelet will run them."""
        if not self._nodes.wait_until_listed(0):
            return
        there = {each.name for each in self._cluster.offered()}
        for each in self._attempts.values():
            if each.over or each.told or not each.node or each.node in there:
                continue
            if each.sight.sight is Sight.STARTING and now_ms - each.begun_ms > _UNKNOWN_MS:
                each.node_gone = True
                text = f"It was bound to node {each.node}, which is not there."
                each.put(PodSight(Sight.LOST, text), now_ms)
                self._finish_log(each)

    # Orders

    def _accept(self, launch: Launch) -> PodAttempt:
        known = super()._accept(launch)
        if known.ran_since_ms is not None:
            known.group = launch.about.get("group_uuid", "")
            self._judge_loss(known)
        return known

    def _prepare(self, known: PodAttempt, start: Start, launch: Launch) -> None:
        super()._prepare(known, start, launch)
        terms, objects = start.gang, known.objects
        if terms is None or objects is None:
            return
        let_kai_place(objects.pod, launch, terms)
        made = pod_group(self._options.site, start, terms)
        known.objects = objects.with_pod_group(made)
        known.gang_waits = self._view.waits(known.group)
        self._view.want(known.group, made)
        if known.has_pod:
            self._judge_gang(known.group)
        else:
            self._pod_groups.again(known.group)

    # Work, done by the workers

    def _work(self, attempt: str) -> float | None:
        if attempt == _QUEUES:
            return self._keeper.work()
        if attempt.startswith(_GANG):
            return self._repair(attempt.removeprefix(_GANG))
        return super()._work(attempt)

    def _repair(self, group: str) -> float | None:
        """Repair the PodGroup of a group after others changed or deleted it, and report that."""
        with self._lock:
            wanted = self._view.wanted(group)
            if wanted is None or not self._has_pods(group):
                self._troubles.pop(group, None)
                return None
        if not self._leads():
            return 1.0
        try:
            drift = self._pod_groups.repair(wanted)
        except NotOurs as error:
            with self._lock:
                self._troubles[group] = f"{error.message}."
            self._wake()
            return LOOK_S
        except KubeFailure as error:
            LOG.info("a PodGroup could not be repaired yet: %s", error.message)
            return _REPAIR_AGAIN_S
        with self._lock:
            self._troubles.pop(group, None)
        if drift:
            self._keeper.note(f"PodGroup/{pod_group_name(group)}", drift)
        return None

    def _drop(self, attempt: str) -> str | None:
        group = super()._drop(attempt)
        if group is not None:
            with self._lock:
                if not self._has_group(group):
                    self._view.drop(group)
            self._pod_groups.drop(group)
        return group

    def _sweep(self) -> float | None:
        again_s = super()._sweep()
        if again_s is not None:
            return again_s
        try:
            self._pod_groups.sweep()
        except KubeFailure as error:
            LOG.info("leftover PodGroups could not be removed yet: %s", error.message)
            return _SWEEP_AGAIN_S
        return None

    # Events from the watches

    def _take(self, pod: KubePod) -> str | None:
        attempt = super()._take(pod)
        if attempt is not None:
            self._judge_deletion(self._attempts[attempt])
        return attempt

    def _take_gone(self, known: PodAttempt) -> None:
        self._judge_deletion(known)
        super()._take_gone(known)

    def _judge_deletion(self, known: PodAttempt) -> None:
        """Check whether KAI said that it evicted the gang of a deleted pod."""
        if known.evicted or known.told:
            return
        pod, name = known.pod, pod_group_name(known.group)
        if pod is None:
            since_ms = known.ran_since_ms
            known.evicted = "" if since_ms is None else self._evictions.of(name, since_ms, None)
        elif (at_ms := deleted_ms(pod)) is not None:
            known.evicted = self._evictions.of(name, created_ms(pod), at_ms)

    def _judge_loss(self, known: PodAttempt) -> None:
        self._judge_deletion(known)
        known.correct_loss(self._now_ms(), _WORD_MS)

    def _hear_events(self, heard: Relisted[KubeEvent] | WatchEvent[KubeEvent]) -> None:
        events = heard.items if isinstance(heard, Relisted) else (heard.object,)
        with self._lock:
            named = {name for each in events if (name := self._evictions.take(each)) is not None}
            for each in self._attempts.values():
                if each.group and pod_group_name(each.group) in named:
                    self._judge_loss(each)
        if named:
            self._wake()

    def _hear_gang(self, heard: Relisted[KaiPodGroup] | WatchEvent[KaiPodGroup]) -> None:
        now_ms, news = self._now_ms(), False
        with self._lock:
            groups = self._view.hear(heard)
            for each in self._attempts.values():
                if each.group in groups and each.pod is not None and not each.over:
                    each.gang_waits = self._view.waits(each.group)
                    news |= each.look_again(now_ms)
            for group in groups:
                if not self._view.there(group):
                    self._evictions.forget(pod_group_name(group))
                self._judge_gang(group)
        if news:
            self._wake()

    def _judge_gang(self, group: str) -> None:
        """Queue a repair if the PodGroup of a group is not as it should be."""
        if self._view.differs(group) and self._has_pods(group):
            self._queue.note(f"{_GANG}{group}")

    def _has_pods(self, group: str) -> bool:
        """Whether a group has pods that KAI has placed or still has to place."""
        return any(
            each.has_pod and not each.over and not each.told
            for each in self._attempts.values()
            if each.group == group
        )


def _is_fresh_loss(seen: Observation, now_ms: int) -> bool:
    return seen.sight is Sight.LOST and 0 <= now_ms - seen.at_ms < _WORD_MS
