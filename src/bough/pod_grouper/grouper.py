"""The loop that makes PodGroups from owners, and puts their pods into them.

Its state is used by its own thread only; other threads put what they hear into an inbox. Every
write can be repeated, and two groupers that run at the same time write the same.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from bough.errors import BoughError
from bough.formats.kai.pod import GROUP_ANNOTATION, SUBGROUP_LABEL
from bough.formats.live.objects import LivePod, LivePodGroup, LivePodSpec
from bough.formats.live.owners import LiveOwner
from bough.kube.client import KubeClient
from bough.kube.decoding import WatchEvent, WatchEventKind
from bough.kube.failures import AlreadyExists, KubeNotFound
from bough.kube.objects import Kind
from bough.kube.watching import Follower, Relisted
from bough.model.pod_group import qualified
from bough.pod_grouper.kinds import FOLLOWED, POD_GROUPS, PODS
from bough.pod_grouper.manifest import (
    MADE_OF,
    is_current,
    is_made,
    new_pod_group,
    pod_group_spec,
)
from bough.pod_grouper.owner_view import OwnerView
from bough.pod_grouper.pod_grouping import Grouped, judge

LOG = logging.getLogger(__name__)
#: How long to wait for the lists of owners before pods are looked at anyway.
LISTS_S = 15.0
#: How long owners are not listed while pods that need no PodGroup are being bound.
YIELDS_S, LOOKS_EVERY_S = 10.0, 0.05
#: How long to wait before a retry.
AGAIN_S = 2.0
#: How many requests are sent in parallel.
IN_FLIGHT = 8
_ENDED = ("Succeeded", "Failed")

Key = tuple[str, str]
Heard = Relisted[Any] | WatchEvent[Any]
#: Called for each pod that gets no PodGroup, with its name, its uid and the reason why it waits; no
#: reason: it is a gang of one.
Told = Callable[[str, str, str], object]


class Grouper:
    """Makes the PodGroups for the pods of one scheduler."""

    def __init__(
        self,
        client: KubeClient,
        scheduler_name: str,
        told: Told,
        busy: Callable[[], bool] | None = None,
    ) -> None:
        """busy:  whether more urgent requests are being sent, which is binding pods."""
        self._busy = busy or (lambda: False)
        self._client = client
        self._scheduler_name = scheduler_name
        self._told = told
        self._changed = threading.Condition()
        self._inbox: deque[Callable[[], None]] = deque()
        self._closing = False
        self._owners = OwnerView(client)
        self._followers = [self._follower(key, kind) for key, kind in FOLLOWED.items()]
        self._pods: dict[Key, LivePod] = {}
        self._groups: dict[Key, LivePodGroup] = {}
        #: For each owner, by uid: the pods whose verdict depends on it. Below, the reverse.
        self._pods_of: dict[str, set[Key]] = {}
        self._owners_of: dict[Key, tuple[str, ...]] = {}
        #: For each PodGroup: what each of its pods requires of it.
        self._members: dict[Key, dict[Key, Grouped]] = {}
        self._group_of: dict[Key, Key] = {}
        #: Owners that are gone: the PodGroups made from them go when their pods are gone, too.
        self._gone: set[str] = set()
        self._dirty: dict[Key, None] = {}
        self._again: dict[Key, float] = {}
        self._thread = threading.Thread(target=self._run, name="kube-group", daemon=True)
        self._pool = ThreadPoolExecutor(IN_FLIGHT, thread_name_prefix="kube-group")
        #: How many PodGroups were written, and how many pods were put into one.
        self.made = self.joined = 0

    def start(self) -> None:
        """Start the threads."""
        self._thread.start()

    def stop(self, patience_s: float) -> None:
        """Stop the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        for follower in self._followers:
            follower.stop(patience_s)
        self._thread.join(patience_s)
        self._pool.shutdown(wait=False, cancel_futures=True)

    def hear(self, kind: Kind[Any], heard: Heard) -> None:
        """Take in an event or a list of pods or PodGroups; from any thread."""
        if kind is PODS:
            what = partial(self._hear, heard, self._pods, self._put_pod, self._remove_pod)
            if _is_plain(heard):
                # Not worth waking the loop, which comes by within a second.
                self._inbox.append(what)
            else:
                self._put(what)
        elif kind is POD_GROUPS:
            self._put(lambda: self._hear(heard, self._groups, self._put_group, self._remove_group))

    # Taking in events

    def _follower(self, key: tuple[str, str], kind: Kind[LiveOwner]) -> Follower[LiveOwner]:
        def hear(heard: Relisted[LiveOwner] | WatchEvent[LiveOwner]) -> None:
            self._put(lambda: self._hear_owner(key, heard))

        return Follower(self._client, kind, hear)

    def _put(self, what: Callable[[], None]) -> None:
        with self._changed:
            self._inbox.append(what)
            self._changed.notify_all()

    def _hear(
        self,
        heard: Heard,
        known: Iterable[Key],
        put: Callable[[Any], object],
        remove: Callable[[Key], object],
    ) -> None:
        if isinstance(heard, Relisted):
            there = {_key(each) for each in heard.items}
            for key in [each for each in known if each not in there]:
                remove(key)
            for each in heard.items:
                put(each)
        elif heard.kind is WatchEventKind.DELETED:
            remove(_key(heard.object))
        elif heard.kind is not WatchEventKind.BOOKMARK:
            put(heard.object)

    def _hear_owner(
        self, key: tuple[str, str], heard: Relisted[LiveOwner] | WatchEvent[LiveOwner]
    ) -> None:
        gone: list[str] = []
        if isinstance(heard, Relisted):
            gone = self._owners.keep_only(key, (_key(each) for each in heard.items))
            for each in heard.items:
                self._owners.put(key, each)
        elif heard.kind is WatchEventKind.DELETED:
            gone = [self._owners.remove(key, *_key(heard.object))]
        elif heard.kind is not WatchEventKind.BOOKMARK:
            self._owners.put(key, heard.object)
        self._gone.update(each for each in gone if each)
        for uid in self._owners.take_changed():
            self._mark(self._pods_of.get(uid, ()))

    def _put_pod(self, pod: LivePod) -> None:
        key = _key(pod)
        ours = pod.spec.scheduler_name == self._scheduler_name
        # A pod of a native PodGroup has its group already.
        native = pod.spec.scheduling_group is not None
        owned = bool(pod.metadata.owner_references) and not native
        if not ours or not owned or pod.status.phase in _ENDED:
            self._remove_pod(key)
            return
        kept = LivePod(pod.metadata, LivePodSpec(priority_class_name=pod.spec.priority_class_name))
        if self._pods.get(key) != kept:
            self._pods[key] = kept
            self._mark((key,))

    def _remove_pod(self, key: Key) -> None:
        if self._pods.pop(key, None) is None:
            return
        self._forget_verdict(key)
        self._dirty.pop(key, None)
        self._again.pop(key, None)

    def _put_group(self, group: LivePodGroup) -> None:
        key = _key(group)
        before = self._groups.get(key)
        self._groups[key] = group
        if before is not None and before.spec != group.spec:
            self._mark(self._members.get(key, ()))

    def _remove_group(self, key: Key) -> None:
        if self._groups.pop(key, None) is not None:
            self._mark(self._members.get(key, ()))

    def _mark(self, pods: Iterable[Key]) -> None:
        self._dirty.update(dict.fromkeys(each for each in pods if each in self._pods))

    # The loop

    def _run(self) -> None:
        self._wait_until_needed()
        if not self._closing:
            self._list_owners()
        while not self._closing:
            try:
                self._take_in()
                self._settle()
            except Exception:
                LOG.exception("PodGroups could not be created")
                time.sleep(AGAIN_S)
            with self._changed:
                self._changed.wait_for(lambda: self._closing or self._inbox, self._pause_s())

    def _wait_until_needed(self) -> None:
        """Wait for a pod that has owners, or until nothing is more urgent, for a while at most.

        Owners are of a dozen kinds, and to list and watch each of them costs a connection.
        """
        until_s = time.monotonic() + YIELDS_S
        while not self._closing and self._busy() and time.monotonic() < until_s:
            self._take_in()
            if self._pods:
                return
            with self._changed:
                self._changed.wait_for(lambda: self._closing, LOOKS_EVERY_S)

    def _list_owners(self) -> None:
        for follower in self._followers:
            follower.start()
        until_s = time.monotonic() + LISTS_S
        for follower in self._followers:
            while not follower.wait_until_listed(0.1):
                if self._closing or time.monotonic() > until_s:
                    break

    def _pause_s(self) -> float:
        return 0.0 if self._dirty else AGAIN_S / 2

    def _take_in(self) -> None:
        while self._inbox:
            self._inbox.popleft()()
        now_s = time.monotonic()
        for key in [key for key, due_s in self._again.items() if due_s <= now_s]:
            del self._again[key]
            self._mark((key,))

    def _settle(self) -> None:
        dirty, self._dirty = list(self._dirty), {}
        groups = dict.fromkeys(each for key in dirty if (each := self._judge(key)) is not None)
        for group in groups:
            self._join(group)
        if self._gone:
            self._remove_orphans()

    def _judge(self, key: Key) -> Key | None:
        """Find the gang of a pod; return its PodGroup if we make that."""
        pod = self._pods[key]
        said = (pod.metadata.annotations or {}).get(GROUP_ANNOTATION, "")
        named = self._groups.get((key[0], said))
        if named is not None and not is_made(named):
            self._forget_verdict(key)
            return None
        try:
            verdict = judge(pod, self._owners)
        except BoughError as error:
            self._tell(pod, f"the PodGroup of its owner, which cannot be read: {error.message}")
            self._again[key] = time.monotonic() + AGAIN_S
            return None
        self._forget_verdict(key)
        self._owners_of[key] = verdict.owners
        for uid in verdict.owners:
            self._pods_of.setdefault(uid, set()).add(key)
        grouped = verdict.grouped
        if grouped is None:
            self._tell(pod, verdict.waits)
            if verdict.waits:
                self._again[key] = time.monotonic() + AGAIN_S
            return None
        group = (key[0], grouped.group.name)
        if said not in ("", grouped.group.name):
            # A user wrote this name on the pod, so it stays, whether that PodGroup exists or not.
            return None
        self._members.setdefault(group, {})[key] = grouped
        self._group_of[key] = group
        return group

    def _forget_verdict(self, key: Key) -> None:
        for uid in self._owners_of.pop(key, ()):
            pods = self._pods_of.get(uid, set())
            pods.discard(key)
            if not pods:
                self._pods_of.pop(uid, None)
        group = self._group_of.pop(key, None)
        if group is not None:
            members = self._members[group]
            del members[key]
            if not members:
                del self._members[group]

    def _tell(self, pod: LivePod, waits: str) -> None:
        metadata = pod.metadata
        if GROUP_ANNOTATION not in (metadata.annotations or {}):
            self._told(qualified(metadata.namespace, metadata.name), metadata.uid or "", waits)

    # Writing

    def _join(self, group: Key) -> None:
        """Bring a PodGroup up to date, and put its pods into it."""
        members = self._members[group]
        # Pods may be created one after the other, so the one that requires most decides.
        wanted = max(members.values(), key=lambda each: each.group.min_member or 0)
        try:
            made = self._make(group, wanted)
        except BoughError as error:
            LOG.warning("PodGroup %s/%s: %s", *group, error.message)
            self._again.update(dict.fromkeys(members, time.monotonic() + AGAIN_S))
            return
        due = [each for each in members.items() if made or not self._is_named(each[0])]
        list(self._pool.map(lambda each: self._name(*each), due))

    def _make(self, key: Key, wanted: Grouped) -> bool:
        """Create or change a PodGroup, unless a user wrote it; return whether it is one of ours."""
        namespace, name = key
        known = self._groups.get(key)
        if known is None:
            try:
                known = self._client.create(POD_GROUPS, new_pod_group(wanted), namespace)
                self.made += 1
            except AlreadyExists:
                known = self._client.get(POD_GROUPS, name, namespace)
            self._groups[key] = known
        if not is_made(known):
            return False
        if not is_current(known, wanted.group):
            uid = known.metadata.uid
            body = {"metadata": {"uid": uid}, "spec": pod_group_spec(wanted.group)}
            self._groups[key] = self._client.patch(POD_GROUPS, name, body, namespace)
            self.made += 1
        return True

    def _is_named(self, key: Key) -> bool:
        return GROUP_ANNOTATION in (self._pods[key].metadata.annotations or {})

    def _name(self, key: Key, grouped: Grouped) -> None:
        """Write on a pod which PodGroup it belongs to, unless it says so already."""
        metadata = self._pods[key].metadata
        labels = {SUBGROUP_LABEL: grouped.subgroup} if grouped.subgroup else {}
        notes = {GROUP_ANNOTATION: grouped.group.name}
        said = {**(metadata.annotations or {}), **(metadata.labels or {})}
        if {**notes, **labels}.items() <= said.items():
            return
        body = {"metadata": {"uid": metadata.uid, "annotations": notes, "labels": labels}}
        try:
            self._client.patch(PODS, metadata.name, body, key[0])
            self.joined += 1
        except KubeNotFound:
            return
        except BoughError as error:
            LOG.warning("pod %s/%s: %s", *key, error.message)
            self._put(lambda: self._again.update({key: time.monotonic() + AGAIN_S}))

    def _remove_orphans(self) -> None:
        """Remove PodGroups made from owners that are gone, once their pods are gone, too."""
        named = {
            (key[0], (pod.metadata.annotations or {}).get(GROUP_ANNOTATION, ""))
            for key, pod in self._pods.items()
        }
        for key, group in list(self._groups.items()):
            made_of = (group.metadata.annotations or {}).get(MADE_OF, "")
            if made_of not in self._gone or key in named:
                continue
            try:
                self._client.delete(POD_GROUPS, key[1], key[0], group.metadata.uid or "")
            except BoughError as error:
                LOG.debug("PodGroup %s/%s: %s", *key, error.message)
            self._groups.pop(key, None)
        left = {(each.metadata.annotations or {}).get(MADE_OF) for each in self._groups.values()}
        self._gone &= {each for each in left if each}


def _key(written: Any) -> Key:
    metadata = written.metadata
    return metadata.namespace or "", metadata.name


def _is_plain(heard: Heard) -> bool:
    """Whether it is about a pod without owners, of which no PodGroup is made."""
    if isinstance(heard, Relisted) or heard.kind is WatchEventKind.DELETED:
        return False
    return heard.kind is WatchEventKind.BOOKMARK or not heard.object.metadata.owner_references
