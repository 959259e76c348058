"""One term as leader, from the first list to the last request: listen, plan, carry out, repeat.

Other threads put what they hear, and the results of requests, into an inbox. The view and the
memo are used under one lock, by the loop and by questions.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import msgspec

from bough.core.cycle.gave_way import GaveWay
from bough.core.cycle.memo import Memo
from bough.core.cycle.plan import plan
from bough.core.explain.evictions import excess_texts
from bough.core.gang.sufficiency import is_complete
from bough.core.gang.tree import GangTree
from bough.kube.client import KubeClient
from bough.kube.objects import Kind
from bough.kube.watching import Follower
from bough.model.gang import PodState
from bough.model.plan import Eviction, Plan
from bough.model.policy import Policy
from bough.model.snapshot import Progress, Snapshot
from bough.model.words import OBJECT_WORDS
from bough.pod_grouper.grouper import Grouper
from bough.pod_scheduler.binder import Binder, BindResult
from bough.pod_scheduler.cluster import ClusterView, GangKey, Heard
from bough.pod_scheduler.counters import Counters
from bough.pod_scheduler.decision_records import Course, DecisionRecords, RecordResult, RecordWrite
from bough.pod_scheduler.decisions import Batch, PlacedPod, Unfinished, standing, unfinished
from bough.pod_scheduler.evictor import Ending, EndResult, Evictor
from bough.pod_scheduler.kinds import ECHOING, WATCHED, WATCHED_WITH_KUEUE
from bough.pod_scheduler.lease import LeaseHolder
from bough.pod_scheduler.pace import Pace
from bough.pod_scheduler.reporter import Reporter

LOG = logging.getLogger(__name__)
#: How often to plan without an event: minimum runtimes and grace periods end without one.
TICK_S = 1.0
#: How long no plan is made at most while all that is heard is that pods were bound.
LONGEST_REST_S = 10.0
#: How long a pod that could not be bound keeps its place: by then the watch has shown why, or, if
#: the failure is lasting, its cause may be gone.
KEPT_S, KEPT_LASTING_S = 0.5, 10.0
#: How long to wait at most before records are read again, as a missing right may be there by then.
LONGEST_WAIT_S = 5.0
#: How long requests in flight may take at shutdown.
PATIENCE_S = 8.0


class Settings(msgspec.Struct, frozen=True):
    """How this scheduler decides, and for which pods."""

    scheduler_name: str
    policy: Policy
    #: Whether PodGroups are made from the owners of pods.
    group: bool = True
    #: Whether Kueue's objects set the quota, not KAI's.
    kueue: bool = False


class Session:
    """The scheduler while it leads."""

    def __init__(
        self,
        client: KubeClient,
        holder: LeaseHolder,
        settings: Settings,
        counters: Counters,
        records: DecisionRecords,
    ) -> None:
        self._client = client
        self._records = records
        self._holder = holder
        self._settings = settings
        self._counters = counters
        self.view = ClusterView(
            settings.scheduler_name,
            settings.policy.gangs.staleness_grace_ms,
            grouped=settings.group,
            kueue=settings.kueue,
        )
        self.memo = Memo()
        self._lock = threading.Lock()
        self._inbox: deque[Callable[[], None]] = deque()
        self._bell = threading.Event()
        self._grouper = (
            Grouper(client, settings.scheduler_name, self._heard_of_ungrouped, self._only_binds)
            if settings.group
            else None
        )
        watched = WATCHED_WITH_KUEUE if settings.kueue else WATCHED
        self._followers = [self._follower(kind) for kind in watched]
        self._binder = Binder(
            client, self._heard_of_bind, self._heard_of_record, holder.times.within_s
        )
        self._evictor = Evictor(client, self._heard_of_end, holder.times.within_s)
        self._reporter = Reporter(client, counters, lambda: self._binder.waiting)
        #: What each plan hands to the next one.
        self.progress: dict[str, Progress] = {}
        self._gave_way = GaveWay()
        #: By PodGroup, then by pod: decisions that have no result yet.
        self._in_flight: dict[str, dict[str, PlacedPod]] = {}
        #: Failed binds, and until when each pod keeps its place.
        self._kept: list[tuple[float, BindResult]] = []
        #: By uid: pods that cannot be evicted yet, because of a disruption budget or a failure.
        self._blocked: dict[str, EndResult] = {}
        self.decided: tuple[Snapshot, Plan] | None = None
        #: Whether the first plan is being carried out; whether what became of it must be heard, as
        #: a pod could not be bound or was told to end.
        self._began = self._needs_news = False
        #: When the last plan was made, whether anything is left to decide after it, and whether
        #: something was heard since that a plan may depend on.
        self._planned_s, self._settled, self._news = 0.0, False, True
        self._pace = Pace()
        #: When the loop last made progress.
        self.beat_s = time.monotonic()

    def run(self, stopping: threading.Event) -> None:
        """Schedule until the Lease is lost or the process stops."""
        for follower in self._followers:
            follower.start()
        self._binder.start()
        self._evictor.start()
        self._reporter.start()
        if self._grouper is not None:
            self._grouper.start()
        try:
            # Records are read while the lists are on their way.
            if self._read_records(stopping) and self._wait_for_lists(stopping):
                with self.looking():
                    self._recover()
                self._go_on(stopping)
        finally:
            self._binder.stop(PATIENCE_S)
            self._evictor.stop(PATIENCE_S)
            self._reporter.stop(PATIENCE_S)
            if self._grouper is not None:
                self._grouper.stop(PATIENCE_S)
            for follower in self._followers:
                follower.stop(PATIENCE_S)

    @property
    def failures(self) -> list[str]:
        """Why kinds cannot be followed, or decisions not be recorded.

        A missing optional kind is not a failure.
        """
        found = [self._records.failure, *(each.failure for each in self._followers)]
        return [each for each in found if each]

    @contextmanager
    def looking(self) -> Generator[None]:
        """Hold the lock, so that the view and the memo do not change."""
        with self._lock:
            yield

    # The loop

    def _read_records(self, stopping: threading.Event) -> bool:
        def gives_up(wait_s: float) -> bool:
            self.beat_s = time.monotonic()
            return stopping.wait(min(wait_s, LONGEST_WAIT_S)) or not self._holder.leads

        return self._records.read(gives_up)

    def _wait_for_lists(self, stopping: threading.Event) -> bool:
        for follower in self._followers:
            while not follower.wait_until_listed(0.1):
                # Still healthy: it waits for rights or for the apiserver, and a restart would not
                # help.
                self.beat_s = time.monotonic()
                if stopping.is_set() or not self._holder.leads:
                    return False
            # Take in this list while the longer ones are still on their way.
            with self.looking():
                self.take_in()
        return True

    def _go_on(self, stopping: threading.Event) -> None:
        while not stopping.is_set() and self._holder.leads:
            started_s = time.thread_time()
            with self.looking():
                self.beat_s = time.monotonic()
                if self._can_rest():
                    self.take_in()
                    self._record()
                else:
                    self._cycle()
            used_s = time.thread_time() - started_s
            stopping.wait(self._pace.pause_s(used_s, self._binder.waiting))
            self._bell.wait(TICK_S)
            self._bell.clear()

    def _can_rest(self) -> bool:
        """Whether another plan can wait: nothing waits, and all news is that pods were bound."""
        settled = self._settled and not (self._news or self._kept) and self._binder.waiting > 0
        return settled and time.monotonic() - self._planned_s < LONGEST_REST_S

    def _cycle(self) -> None:
        self._planned_s = time.monotonic()
        self._news = False
        self.take_in()
        started_s = time.perf_counter()
        snapshot = self.view.take(_now_ms(), self.progress)
        decided = plan(snapshot, self._settings.policy, self.memo)
        self._counters.planned(time.perf_counter() - started_s, decided)
        self._pace.planned(decided)
        self.decided = (snapshot, decided)
        self._settled = not (decided.waits or decided.evictions or decided.nominations)
        self._carry_out(decided)
        self._began = True
        self._note_progress(decided)
        self._give_up_endings(decided)
        self._reporter.look(
            self.view, self.decided, self._settings.policy, self.memo, self.blocked_for
        )

    def take_in(self) -> None:
        """Take in everything from the inbox, and let pods wait again whose time is up."""
        while self._inbox:
            self._inbox.popleft()()
        now_s = time.monotonic()
        due = [each for each in self._kept if each[0] <= now_s]
        self._kept = [each for each in self._kept if each[0] > now_s]
        for _, result in due:
            self._unbind(result)

    def _unbind(self, result: BindResult) -> None:
        """Let a pod wait again; room that was freed for it stays reserved for it."""
        pod, uid, node = result.placed
        gang = result.batch.gang
        if self.view.unbind(pod, uid) and result.batch.nominated:
            before = self.progress.get(gang, Progress())
            places = {**before.places, pod: node}
            known = msgspec.structs.replace(before, nominated=True, places=places)
            self.progress = {**self.progress, gang: known}

    def _put(self, what: Callable[[], None], *, news: bool = True) -> None:
        """Put something into the inbox.

        news:  whether a plan may depend on it.
        """
        self._inbox.append(what)
        if news:
            self._news = True
        self._bell.set()

    def _follower(self, kind: Kind[Any]) -> Follower[Any]:
        def hear(heard: Heard) -> None:
            self._put(lambda: self.view.hear(kind, heard))
            if self._grouper is not None:
                self._grouper.hear(kind, heard)

        follower = Follower(self._client, kind, hear)
        if kind in ECHOING:
            follower.yield_to(self._only_binds)
        return follower

    def _only_binds(self) -> bool:
        """Whether pods are being bound, and nothing but that is under way.

        True also before the first plan. Most that is heard then is what was just written.
        """
        return not self._began or (self._binder.waiting > 0 and not self._needs_news)

    # Carrying out decisions

    def _carry_out(self, decided: Plan) -> None:
        why = excess_texts(self.memo, decided, OBJECT_WORDS) if decided.evictions else {}
        for eviction in decided.evictions:
            self._evict(eviction, why.get(eviction.workload, ""))
        binds: dict[str, list[tuple[str, str]]] = {}
        for bind in decided.binds:
            binds.setdefault(bind.workload, []).append((bind.pod, bind.node))
        batches = [each for each in itertools.starmap(self._place, binds.items()) if each.pods]
        if any(each.decision for each in batches):
            self._records.add(batches)
        else:
            for each in batches:
                self._binder.bind(each)
        self._record()

    def _record(self) -> None:
        """Record what waits for that, as far as there are slots; it is bound after that."""
        while (write := self._records.next_write(self._judge)) is not None:
            if isinstance(write, RecordWrite):
                self._binder.bind_recorded(write)
                continue
            why = f"the decision about its {len(write.decision)} pods is too large to be recorded"
            LOG.warning("PodGroup %s: %s", write.group, why)
            for each in write.pods:
                self._take_bind(BindResult(write, each, "", why, lasting=True, unrecorded=True))

    def _judge(self, group: str, decision: tuple[PlacedPod, ...]) -> Course:
        """What became of what was decided about a gang."""
        stands = standing(self.view, decision)
        kept = any(result.batch.group == group for _, result in self._kept)
        if kept or group in self._in_flight or (stands.waits and stands.placed):
            return Course.UNFINISHED
        return Course.NOT_BEGUN if stands.waits else Course.OVER

    def _place(self, gang: str, places: list[tuple[str, str]]) -> Batch:
        """Count pods as bound; return what to send for them."""
        key = self.view.by_name.get(gang)
        seen = self.view.pods.seen
        placed = tuple(PlacedPod(pod, seen[pod].uid, node) for pod, node in places if pod in seen)
        if key is None or not placed:
            return Batch(gang, ())
        for each in placed:
            self.view.bind(*each)
        nominated = self.progress.get(gang, Progress()).nominated
        return self._batch(key, gang, placed)._replace(nominated=nominated)

    def _batch(self, key: GangKey, gang: str, placed: tuple[PlacedPod, ...]) -> Batch:
        """What to send for a gang.

        A single pod needs no record: it is bound or not, and cannot be left half-bound.
        """
        if key.alone:
            return Batch(gang, placed)
        in_flight = self._in_flight.setdefault(key.name, {})
        recorded = {each.pod for each in self._records.of(key.name)} - in_flight.keys()
        in_flight.update((each.pod, each) for each in placed)
        if len(in_flight) == 1 and not self._waits(recorded):
            return Batch(gang, placed, key.name)
        return Batch(gang, placed, key.name, tuple(in_flight.values()))

    def _waits(self, pods: set[str]) -> bool:
        """Whether any of these pods still waits.

        Then the old decision about it must be overwritten, or a later leader would carry it out.
        """
        known = (self.view.pods.seen.get(name) for name in pods)
        return any(pod and pod.member.pod.state is PodState.PENDING for pod in known)

    def _evict(self, eviction: Eviction, why: str) -> None:
        key = self.view.by_name.get(eviction.workload)
        if key is None:
            return
        beneficiary = f" for {eviction.preemptor}" if eviction.preemptor else ""
        told = f"evicted{beneficiary} ({eviction.rule.value}){f': {why}' if why else ''}"
        if not (key.alone or eviction.pods):
            self._reporter.tell_disrupted(self.view.groups[key.name], told)
        for pod in list(self.view.members_of(key)):
            inner = self.view.pods.member(pod).pod
            chosen = not eviction.pods or inner.name in eviction.pods
            if chosen and inner.state is PodState.RUNNING:
                self._end(eviction.workload, pod.name, pod.uid, eviction.preemptor or "", told)

    def _end(self, gang: str, pod: str, uid: str, preemptor: str, why: str) -> None:
        self._needs_news = True
        self.view.end(pod, uid)
        self._evictor.end(Ending(gang, pod, uid, preemptor, why))

    def _note_progress(self, decided: Plan) -> None:
        """Keep what the plan hands to the next one."""
        found = {
            each.workload: Progress(nominated=True, places=each.pods)
            for each in decided.nominations
        }
        if self._settings.policy.gives_way_once:
            self._gave_way.note(decided)
            for name in tuple(self._gave_way):
                if name not in self.view.by_name:
                    self._gave_way.forget(name)
                    continue
                before = found.get(name, Progress())
                given = self._gave_way.to(name)
                found[name] = msgspec.structs.replace(before, gave_way_to=given)
        if found != self.progress:
            self.progress = found
            self._bell.set()

    def _give_up_endings(self, decided: Plan) -> None:
        """Stop trying to evict pods for a gang that no longer waits for their room."""
        waiting = {each.workload for each in decided.nominations}
        for uid, result in list(self._blocked.items()):
            ending = result.ending
            seen = self.view.pods.seen.get(ending.pod)
            gone = seen is None or seen.uid != uid
            if gone or (ending.preemptor and ending.preemptor not in waiting):
                del self._blocked[uid]
                self._evictor.forget(uid)
                self.view.stay(ending.pod, uid)

    def blocked_for(self, gang: str) -> str:
        """The pods that block a gang because they must not end yet, and why; empty if none do."""
        found = [each for each in self._blocked.values() if each.ending.preemptor == gang]
        if not found:
            return ""
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        return f"pod {found[0].ending.pod} cannot be evicted yet: {found[0].message}{more}"

    # Results

    def _heard_of_ungrouped(self, pod: str, uid: str, waits: str) -> None:
        self._put(lambda: self.view.leave_ungrouped(pod, uid, waits))

    def _heard_of_bind(self, result: BindResult) -> None:
        bound = result.node == result.placed.node
        self._put(lambda: self._take_bind(result), news=not bound)

    def _take_bind(self, result: BindResult) -> None:
        placed = result.placed
        in_flight = self._in_flight.get(result.batch.group, {})
        if in_flight.get(placed.pod) == placed:
            del in_flight[placed.pod]
            if not in_flight:
                del self._in_flight[result.batch.group]
        if result.node == placed.node:
            self._counters.bound += 1
            return
        self._counters.not_bound += 1
        self._needs_news = True
        if not result.unrecorded:
            LOG.warning("%s was not bound to %s: %s", placed.pod, placed.node, result.message)
        if result.node:
            self.view.bind(placed.pod, placed.uid, result.node)
            return
        kept_s = KEPT_LASTING_S if result.lasting else KEPT_S
        self._kept.append((time.monotonic() + kept_s, result))

    def _heard_of_record(self, write: RecordWrite, result: RecordResult) -> None:
        news = bool(result.message)
        self._put(lambda: self._records.take_result(write, result), news=news)

    def _heard_of_end(self, result: EndResult) -> None:
        self._put(lambda: self._take_end(result))

    def _take_end(self, result: EndResult) -> None:
        ending = result.ending
        if result.ended:
            self._counters.evicted += 1
            self._blocked.pop(ending.uid, None)
        elif result.given_up:
            self._blocked.pop(ending.uid, None)
            self.view.stay(ending.pod, ending.uid)
            LOG.warning("%s could not be evicted: %s", ending.pod, result.message)
        else:
            if ending.uid not in self._blocked:
                LOG.info("%s cannot be evicted yet: %s", ending.pod, result.message)
            self._blocked[ending.uid] = result

    # What the last leader left unfinished

    def _recover(self) -> None:
        self.take_in()
        self.view.take(_now_ms())
        self.progress = self.view.promised()
        for found in unfinished(self.view, self.view.take(_now_ms()), self._records.newest()):
            if found.obstacle:
                self._take_back(found)
            else:
                LOG.info("PodGroup %s: completing an earlier decision", found.group)
                self._in_flight[found.group] = {each.pod: each for each in found.left}
                for each in found.left:
                    self.view.bind(*each)
                gang = self.view.gangs[GangKey(False, found.group)].name
                self._binder.bind(Batch(gang, found.left, found.group))

    def _take_back(self, found: Unfinished) -> None:
        gang = self.view.gangs.get(GangKey(False, found.group))
        if gang is not None and is_complete(GangTree.of(gang)):
            return
        LOG.info("PodGroup %s: withdrawing an earlier decision: %s", found.group, found.obstacle)
        why = f"evicted: its gang could not be started whole: {found.obstacle}"
        for pod in found.bound:
            self._end(found.group, pod.name, pod.uid, "", why)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
