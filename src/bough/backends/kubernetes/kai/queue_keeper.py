"""Keeps the queues of a cluster in step with Bough's: reads all, changes what differs, reports.

Every round is complete in itself: three lists, and what follows from them. If a server is killed
in the middle of a round, the next one finds everything that is left to do.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bough.backends.kubernetes.kai.kai_types import (
    USING_POD_GROUPS,
)
from bough.backends.kubernetes.kai.manifests import KINDS, new_manifest, patch_of
from bough.backends.kubernetes.kai.object_changes import (
    NOTHING_USED,
    Change,
    FoundObjects,
    Used,
    Verb,
    candidates_to_go,
    plan_changes,
)
from bough.backends.kubernetes.kai.wanted_objects import Owner, WantedObjects, wanted_objects
from bough.kube.client import KubeClient
from bough.kube.failures import (
    AlreadyExists,
    KubeConflict,
    KubeFailure,
    KubeNotFound,
    KubeRefused,
)
from bough.kube.objects import PODS, Kind
from bough.model.queue_tree import QueueReport, QueueTree, Repair

LOG = logging.getLogger(__name__)
#: The label of a pod that names its queue.
QUEUE_LABEL = "kai.scheduler/queue"
#: How often to look at the cluster while nothing changes on our side.
LOOK_S = 10.0
#: How long to wait before a retry: after a conflict, and after a failure.
_AGAIN_S, _FAILED_S = 0.2, 5.0
#: Statuses that mean that an object is not accepted as it is: by rights, rules or webhooks.
_NOT_ACCEPTED = (400, 403, 413, 422)
#: How many names go into one label selector: all of them might make it too long.
_NAMES_AT_ONCE = 50


class _Troubles(NamedTuple):
    """What a round could not put right, in sentences: what it found, and what was not accepted."""

    found: tuple[str, ...]
    refused: tuple[str, ...]


class QueueKeeper:
    """Keeps one cluster. Any thread may give it a tree; one worker at a time calls `work`."""

    def __init__(
        self,
        client: KubeClient,
        owner: Owner,
        now_ms: Callable[[], int],
        leads: Callable[[], bool],
        wake: Callable[[], None],
    ) -> None:
        """leads:  whether this server may write now. wake:  called when there is news to report."""
        self._client = client
        self._owner = owner
        self._now_ms = now_ms
        self._leads = leads
        self._wake = wake
        self._lock = threading.Lock()
        self._tree: QueueTree | None = None
        self._wanted: WantedObjects | None = None
        self._report = QueueReport()
        #: What existed at the end of the last round; empty before the first.
        self._known: frozenset[str] = frozenset()

    def want(self, tree: QueueTree) -> bool:
        """Note the tree to follow; return whether it differs from the last one."""
        with self._lock:
            if tree == self._tree:
                return False
            self._tree, self._wanted = tree, None
            return True

    def report(self) -> QueueReport:
        """What was found and repaired."""
        with self._lock:
            return self._report

    def forget(self, count: int) -> None:
        """The first `count` repairs are recorded: drop them from the report."""
        with self._lock:
            rest = self._report.repairs[count:]
            self._report = msgspec.structs.replace(self._report, repairs=rest)

    def note(self, subject: str, drift: str) -> None:
        """Report that something others had changed is repaired."""
        LOG.warning("%s was repaired: %s", subject, drift)
        repair = Repair(self._now_ms(), subject, drift)
        with self._lock:
            repairs = (*self._report.repairs, repair)
            self._report = msgspec.structs.replace(self._report, repairs=repairs)
        self._wake()

    def work(self) -> float | None:
        """Do one round; return after how long the next is due."""
        wanted = self._current()
        if wanted is None:
            return None
        if not self._leads():
            return 1.0
        try:
            troubles = self._round(wanted)
        except (KubeConflict, AlreadyExists) as error:
            LOG.info("queues were changed at the same moment, retrying: %s", error.message)
            return _AGAIN_S
        except KubeNotFound as error:
            self._say((f"The cluster lacks something that KAI installs: {error.message}",))
            return _FAILED_S
        except KubeFailure as error:
            self._say((f"The queues of the cluster cannot be kept in step: {error.message}",))
            return _FAILED_S
        if troubles is None:
            return _AGAIN_S
        self._say((*troubles.found, *troubles.refused), in_step=not troubles.refused)
        return _FAILED_S if troubles.refused else LOOK_S

    def _current(self) -> WantedObjects | None:
        with self._lock:
            tree, wanted = self._tree, self._wanted
        if tree is None or wanted is not None:
            return wanted
        wanted = wanted_objects(tree, self._owner)
        with self._lock:
            if self._tree is tree:
                self._wanted = wanted
        return wanted

    def _round(self, wanted: WantedObjects) -> _Troubles | None:
        """Look and change; return what cannot be repaired.

        `None`: this server may no longer write.
        """
        found = FoundObjects(*(self._read(kind) for kind in KINDS.values()))
        planned = plan_changes(wanted, found, self._owner, self._used(wanted, found), self._known)
        refused: dict[str, str] = {}
        left_out: set[str] = set()
        for change in planned.changes:
            if not self._leads():
                return None
            # Without a change that comes first, a later one could give a pool too much.
            if change.branch not in refused:
                try:
                    self._do(change)
                except KubeRefused as error:
                    if error.status not in _NOT_ACCEPTED or change.carries_all:
                        raise
                    text = f"{change.kind} {change.item.metadata.name} is refused: {error.message}"
                    refused[change.branch] = text
                else:
                    if change.drift:
                        self.note(change.subject, change.drift)
                    continue
            left_out.add(change.subject)
        self._known = frozenset(
            subject
            for kind, items in zip(
                KINDS, (wanted.queues, wanted.topologies, wanted.classes), strict=True
            )
            for name in items
            if (subject := f"{kind}/{name}") not in left_out
        )
        return _Troubles(planned.troubles, tuple(sorted(refused.values())))

    def _read(self, kind: Kind[Any]) -> dict[str, Any]:
        return {each.metadata.name: each for each in self._client.list(kind).items}

    def _used(self, wanted: WantedObjects, found: FoundObjects) -> Used:
        """The deletion candidates that are still in use; reads nothing if there are none."""
        going = candidates_to_go(wanted, found, self._owner)
        if not going.queues and not going.topologies:
            return NOTHING_USED
        groups = self._client.list(USING_POD_GROUPS).items
        queues = {each.spec.queue for each in groups}
        names = sorted(going.queues)
        for start in range(0, len(names), _NAMES_AT_ONCE):
            some = ",".join(names[start : start + _NAMES_AT_ONCE])
            pods = self._client.list(PODS, labels=f"{QUEUE_LABEL} in ({some})").items
            queues |= {(each.metadata.labels or {})[QUEUE_LABEL] for each in pods}
        return Used(
            going.queues & queues,
            going.topologies & {name for each in groups for name in each.topologies},
        )

    # Writing

    def _do(self, change: Change) -> None:
        try:
            self._write(change)
        except KubeNotFound as error:
            # It went after it was listed; or its definition did, which the next list says.
            raise KubeConflict(error.message, error.status, error.reason) from None

    def _write(self, change: Change) -> None:
        kind, item, found = KINDS[change.kind], change.item, change.found
        if found is None:
            self._client.create(kind, new_manifest(change.kind, item))
        elif change.verb is Verb.UPDATE:
            self._client.patch(kind, item.metadata.name, patch_of(item, found))
        else:
            self._client.delete(kind, found.metadata.name, uid=found.metadata.uid)
            if change.verb is Verb.REMAKE:
                self._client.create(kind, new_manifest(change.kind, item))

    def _say(self, troubles: tuple[str, ...], *, in_step: bool = False) -> None:
        with self._lock:
            before = self._report
            since = self._now_ms() if in_step else before.in_step_ms
            self._report = msgspec.structs.replace(before, troubles=troubles, in_step_ms=since)
        if troubles != before.troubles:
            for each in troubles:
                LOG.warning("%s", each)
            self._wake()
