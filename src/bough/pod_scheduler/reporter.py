"""Shows with plain kubectl what `bough kube why` says: writes conditions, events and counts.

It compares with what the apiserver has, so nothing is written twice, even after a restart. If
only numbers changed, they are written again after a while. Bindings are sent before all of it.
"""

from __future__ import annotations

import datetime
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from bough.core.cycle.memo import Memo
from bough.core.cycle.waits import is_waiting
from bough.errors import BoughError
from bough.formats.live.objects import LivePodGroupStatus
from bough.kube.client import KubeClient, Patch
from bough.kube.failures import KubeRefused
from bough.kube.objects import Kind
from bough.model.gang import Gang, Pod, PodState
from bough.model.plan import Plan, Wait
from bough.model.policy import Policy
from bough.model.snapshot import Snapshot
from bough.pod_scheduler.cluster import ClusterView, GangKey
from bough.pod_scheduler.counters import Counters
from bough.pod_scheduler.gang_maker import STALE_ANNOTATION, SeenGroup
from bough.pod_scheduler.gang_sentences import Sentences
from bough.pod_scheduler.kinds import COHORTS, EVENTS, PODS, QUEUES, group_at
from bough.pod_scheduler.kueue_tree import KueueTree
from bough.pod_scheduler.pod_view import SeenPod, split_name
from bough.pod_scheduler.queue_totals import QueueTotals
from bough.pod_scheduler.request_threads import Workers
from bough.pod_scheduler.status_text import (
    Telling,
    disrupted_status,
    group_status,
    is_told,
    native_status,
    no_group,
    said_reason,
    telling,
)

LOG = logging.getLogger(__name__)
#: How often gangs are compared, and how often queues.
GANGS_EVERY_S, QUEUES_EVERY_S = 1.0, 5.0
#: How long to wait before only a number is updated.
NUMBERS_S = 30.0
#: How long reports wait for bindings at most.
YIELDS_S = 10.0
IN_FLIGHT = 2
FORBIDDEN = 403


class _Write(NamedTuple):
    """One request to send."""

    kind: Kind[Any]
    name: str
    namespace: str
    body: dict[str, Any]
    below: str = "status"
    how: Patch = Patch.MERGE


class _Mark(NamedTuple):
    """What a gang was compared with when its report was complete."""

    gang: Gang | None
    status: LivePodGroupStatus | None
    told: Telling

    def is_still(self, gang: Gang | None, status: LivePodGroupStatus | None, told: Telling) -> bool:
        """Whether nothing changed since."""
        return self.gang is gang and self.status is status and self.told == told


class Reporter:
    """Compares what was decided with what the apiserver has, and writes the news in threads."""

    def __init__(self, client: KubeClient, counters: Counters, busy: Callable[[], int]) -> None:
        """busy:  how many bindings have no answer yet."""
        self._client = client
        self._counters = counters
        self._busy = busy
        self._workers = Workers(IN_FLIGHT, "kube-report")
        self._lock = threading.Lock()
        #: For each subject: the next write; a newer one replaces it.
        self._due: dict[str, _Write] = {}
        # The first look waits for bindings as well.
        self._looked_s = time.monotonic() - GANGS_EVERY_S
        self._queues_s = 0.0
        self._totals = QueueTotals()
        #: For each waiting gang: the reason, and its sentence.
        self._known: dict[str, tuple[Wait, str]] = {}
        #: Gangs whose report the apiserver has in full.
        self._marks: dict[GangKey, _Mark] = {}
        #: Gangs of which the next look may have news, though they stay what they are.
        self._open: list[GangKey] = []
        #: By uid of a single pod: the reason in its last event.
        self._said: dict[str, str] = {}
        #: What we are not allowed to write; logged once.
        self._forbidden: set[str] = set()
        #: For each subject: what was sent, and when.
        self._sent: dict[str, tuple[object, float]] = {}

    def start(self) -> None:
        """Start the threads."""
        self._workers.start()

    def stop(self, patience_s: float) -> None:
        """Stop; the next leader finds out by itself what was not written."""
        self._workers.stop(patience_s)

    def look(
        self,
        view: ClusterView,
        decided: tuple[Snapshot, Plan],
        policy: Policy,
        memo: Memo,
        blocked_for: Callable[[str], str],
    ) -> None:
        """Report what is new; returns at once if the last look was recent.

        memo:  the one that the plan was just made with.
        """
        now_s = time.monotonic()
        if now_s - self._looked_s < (YIELDS_S if self._busy() else GANGS_EVERY_S):
            return
        self._looked_s = now_s
        self._sent = {
            name: each for name, each in self._sent.items() if now_s - each[1] < NUMBERS_S
        }
        if len(self._said) > 2 * len(view.pods.seen):
            there = {pod.uid for pod in view.pods.seen.values()}
            self._said = {uid: each for uid, each in self._said.items() if uid in there}
        snapshot = decided[0]
        if now_s - self._queues_s >= QUEUES_EVERY_S:
            self._queues_s = now_s
            self._tell_queues(view, snapshot)
            if view.kueue is not None:
                self._tell_cohorts(view.kueue)
        with Sentences(decided, policy, memo, self._known) as sentences:
            self._tell_gangs(view, sentences, blocked_for, now_s)
            self._known = sentences.told
        for name, why in view.broken.items():
            key = GangKey(False, name)
            self._tell_gang(view, key, None, telling("invalid", why, waits=True), now_s)
        for key in view.without_group():
            self._tell_gang(view, key, None, no_group(key.name), now_s)
        self._tell_stale(view)
        self._tell_nominated(view, decided[1], now_s)

    # What is reported

    def _tell_gangs(
        self,
        view: ClusterView,
        sentences: Sentences,
        blocked_for: Callable[[str], str],
        now_s: float,
    ) -> None:
        """Report what is new about all gangs.

        One that wants nothing, and of which the apiserver has all, is looked at again only when it,
        or its PodGroup, is not what it was: no plan changes what is told of it.
        """
        planned = filter(None, map(view.by_name.get, sorted(sentences.apart)))
        due = dict.fromkeys((*self._open, *sorted(view.news), *planned))
        view.news.clear()
        self._open = []
        for key in due:
            gang = view.gangs.get(key)
            told = None if gang is None else sentences.of(gang, blocked_for)
            if gang is None:
                self._marks.pop(key, None)
            elif told is not None and self._tell_gang(view, key, gang, told, now_s):
                self._marks[key] = _Mark(gang, _status(view, key), told)
                if told.waits or is_waiting(gang):
                    self._open.append(key)
            else:
                self._open.append(key)

    def _tell_gang(
        self, view: ClusterView, key: GangKey, gang: Gang | None, told: Telling, now_s: float
    ) -> bool:
        """Report what is new about a gang; return whether the apiserver has all of it."""
        mark = self._marks.get(key)
        if mark is not None and mark.is_still(gang, _status(view, key), told):
            return True
        pods = list(view.members_of(key))
        done = bool(pods)
        if pods and key.name in view.groups and not key.alone:
            # The pods as they were when the plan was made; later binds are reported next time.
            known = _inner(view, pods) if gang is None else gang.pods
            done = self._tell_group(view.groups[key.name], gang, known, told, now_s)
        for pod in pods if told.waits else ():
            inner = view.pods.member(pod).pod
            if inner.state is PodState.PENDING and inner.node is None:
                done &= self._tell_pod(pod, told, now_s, alone=key.alone)
        return done

    def _tell_group(
        self, seen: SeenGroup, gang: Gang | None, pods: Iterable[Pod], told: Telling, now_s: float
    ) -> bool:
        key = seen.group.key
        if seen.group.native:
            runs = any(pod.state is PodState.RUNNING for pod in pods)
            status = native_status(told, _now(), seen.status, runs=runs)
        else:
            status = group_status(gang, pods, told, _now(), seen.status)
        if is_told(status, seen.status):
            return True
        changed = said_reason(seen.status) != told.reason
        if not self._is_due(f"podgroup/{key}", (told.reason, status.get("phase")), now_s):
            return False
        self._put_status(seen, f"podgroup/{key}", status)
        if changed:
            about = (group_at(key).api_version, "PodGroup", seen.uid)
            self._put_event(seen.group.full_name, about, told)
        return False

    def tell_disrupted(self, seen: SeenGroup, why: str) -> None:
        """Report that all of a gang is evicted.

        Only native PodGroups have a condition for that; the pods are marked one by one.
        """
        if seen.group.native:
            self._put_status(seen, f"disrupted/{seen.group.key}", disrupted_status(why, _now()))

    def _put_status(self, seen: SeenGroup, subject: str, status: dict[str, Any]) -> None:
        at = group_at(seen.group.key)
        body = {"metadata": {"uid": seen.uid}, "status": status}
        # Conditions of a native PodGroup are merged by type, as others may write some as well.
        how = Patch.STRATEGIC if seen.group.native else Patch.MERGE
        self._put(subject, _Write(at.kind, at.name, at.namespace, body, how=how))

    def _tell_pod(self, pod: SeenPod, told: Telling, now_s: float, *, alone: bool) -> bool:
        if pod.unscheduled == told.message:
            return True
        if not self._is_due(f"pod/{pod.name}", told.reason, now_s):
            return False
        namespace, name = split_name(pod.name)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": told.message,
        }
        body = {"metadata": {"uid": pod.uid}, "status": {"conditions": [condition]}}
        self._put(f"pod/{pod.name}", _Write(PODS, name, namespace, body, how=Patch.STRATEGIC))
        if alone and self._said.get(pod.uid) != told.reason:
            self._said[pod.uid] = told.reason
            self._put_event(pod.name, ("v1", "Pod", pod.uid), told)
        return False

    def _is_due(self, subject: str, what: object, now_s: float) -> bool:
        """Whether this differs from what was sent, or was sent long ago."""
        sent = self._sent.get(subject)
        if sent is not None and sent[0] == what and now_s - sent[1] < NUMBERS_S:
            return False
        self._sent[subject] = (what, now_s)
        return True

    def _put_event(
        self, full_name: str, about: tuple[str, str, str], told: Telling, reason: str = ""
    ) -> None:
        namespace, name = split_name(full_name)
        version, kind, uid = about
        now, own_name = _now(), f"{name[:200]}.{secrets.token_hex(8)}"
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": own_name, "namespace": namespace},
            "involvedObject": {
                "apiVersion": version,
                "kind": kind,
                "namespace": namespace,
                "name": name,
                "uid": uid,
            },
            "reason": reason or ("Unschedulable" if told.waits else "Scheduled"),
            "message": f"{told.reason}: {told.message}" if told.waits else told.message,
            "type": "Warning" if told.waits else "Normal",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
            "source": {"component": "bough"},
            "reportingComponent": "bough",
        }
        self._put(f"event/{own_name}", _Write(EVENTS, "", namespace, event))

    def _tell_queues(self, view: ClusterView, snapshot: Snapshot) -> None:
        for name, status in self._totals.statuses(snapshot, view.queues.queues).items():
            sent = self._sent.get(f"queue/{name}")
            if sent is None or sent[0] != status:
                self._put(f"queue/{name}", _Write(QUEUES, name, "", {"status": status}))
            # Compared with what was last written, as the status of queues is not read.
            self._sent[f"queue/{name}"] = (status, time.monotonic())

    def _tell_cohorts(self, tree: KueueTree) -> None:
        """Say on cohorts that they are in a cycle, or no longer are; on others, nothing."""
        for name, condition in tree.conditions.items():
            said = tree.said[name]
            known = next((each for each in said.conditions if each.type == condition.type), None)
            status = "True" if condition.status else "False"
            written = None if known is None else (known.status, known.reason, known.message)
            wanted = (status, condition.reason, condition.message)
            if written == wanted or (written is None and condition.status):
                continue
            if not self._is_due(f"cohort/{name}", wanted, time.monotonic()):
                continue
            body = {
                "type": condition.type,
                "status": status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": _now(),
            }
            others = [
                {"type": each.type, "status": each.status, "reason": each.reason}
                | {"message": each.message, "lastTransitionTime": _now()}
                for each in said.conditions
                if each.type != condition.type
            ]
            patch = {"metadata": {"uid": said.uid}, "status": {"conditions": [*others, body]}}
            self._put(f"cohort/{name}", _Write(COHORTS, name, "", patch))
            told = Telling(condition.reason, condition.message, waits=not condition.status)
            about = ("kueue.x-k8s.io/v1beta2", "Cohort", said.uid)
            self._put_event(name, about, told, reason=condition.reason)

    def _tell_stale(self, view: ClusterView) -> None:
        """Write on PodGroups since when they are stale, for the next leader."""
        for name, seen in view.groups.items():
            since_ms = view.stale_since_ms.get(name)
            if since_ms == seen.stale_since_ms or GangKey(False, name) not in view.gangs:
                continue
            text = None if since_ms is None else _written_ms(since_ms)
            if self._is_due(f"stale/{name}", text, time.monotonic()):
                at = group_at(name)
                body = {"metadata": {"uid": seen.uid, "annotations": {STALE_ANNOTATION: text}}}
                self._put(f"stale/{name}", _Write(at.kind, at.name, at.namespace, body, ""))

    def _tell_nominated(self, view: ClusterView, plan: Plan, now_s: float) -> None:
        """Write on pods where room is being freed for them, for the next leader and other tools."""
        places = {pod: node for each in plan.nominations for pod, node in each.pods.items()}
        for name in {**places, **dict.fromkeys(sorted(view.pods.nominated))}:
            pod = view.pods.seen.get(name)
            node = places.get(name, "")
            if pod is None or not pod.ours or view.pods.member(pod).pod.node is not None:
                continue
            if pod.nominated == node or pod.member.pod.state is not PodState.PENDING:
                continue
            if self._is_due(f"nominated/{name}", node, now_s):
                namespace, own_name = split_name(name)
                status = {"nominatedNodeName": node or None}
                body = {"metadata": {"uid": pod.uid}, "status": status}
                self._put(f"nominated/{name}", _Write(PODS, own_name, namespace, body))

    # Sending

    def _put(self, subject: str, write: _Write) -> None:
        with self._lock:
            waits = subject in self._due
            self._due[subject] = write
        if not waits:
            self._workers.put(partial(self._write_due, subject))

    def _write_due(self, subject: str) -> None:
        self._yield_to_bindings()
        with self._lock:
            write = self._due.pop(subject)
        self._write(write)

    def _yield_to_bindings(self) -> None:
        until_s = time.monotonic() + YIELDS_S
        while self._busy() and time.monotonic() < until_s and not self._workers.pause(0.1):
            pass

    def _write(self, write: _Write) -> None:
        try:
            if write.kind is EVENTS:
                self._client.create(EVENTS, write.body, write.namespace)
            else:
                self._client.patch(
                    write.kind, write.name, write.body, write.namespace, write.how, write.below
                )
            self._counters.written += 1
        except BoughError as error:
            LOG.debug("%s %s: %s", write.kind.plural, write.name, error.message)
            what = f"{write.kind.plural}/{write.below}".rstrip("/")
            if isinstance(error, KubeRefused) and error.status == FORBIDDEN:
                if what not in self._forbidden:
                    LOG.warning("%s cannot be written: %s", what, error.message)
                self._forbidden.add(what)


def _status(view: ClusterView, key: GangKey) -> LivePodGroupStatus | None:
    seen = None if key.alone else view.groups.get(key.name)
    return None if seen is None else seen.status


def _inner(view: ClusterView, pods: list[SeenPod]) -> Iterator[Pod]:
    for pod in pods:
        yield view.pods.member(pod).pod


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _written_ms(moment_ms: int) -> str:
    moment = datetime.datetime.fromtimestamp(moment_ms / 1000, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
