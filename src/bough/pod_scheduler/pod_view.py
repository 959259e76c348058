"""Pods as they were last heard of, and what was decided about them that is not heard of yet.

What was bound counts as held at once, and what was told to end as ending, until a watch says so
itself: no cycle decides about the same pod, or the same room, twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from bough.formats.kai.pod import DOOR_LABEL
from bough.formats.live.objects import LivePod
from bough.formats.live.pods import live_member
from bough.model.gang import Pod, PodState
from bough.model.podgroup import DEFAULT_NAMESPACE, MemberPod, qualified

_ENDED = (PodState.SUCCEEDED, PodState.FAILED)
_SCHEDULED = "PodScheduled"


class SeenPod(NamedTuple):
    """A pod as it was last heard of."""

    member: MemberPod
    uid: str
    #: Whether it is for this scheduler to place, and to end.
    ours: bool
    #: What its condition PodScheduled=False says; empty: it says nothing.
    unscheduled: str = ""
    #: The claims whose volumes it has, by their names within the cluster.
    claims: tuple[str, ...] = ()
    #: Whether a PodGroup may be made of what it belongs to.
    owned: bool = False
    #: The node on which room is being freed for it, as a scheduler wrote it down; empty: none.
    nominated: str = ""
    #: The LocalQueue of Kueue that it names; empty: none.
    door: str = ""

    @property
    def name(self) -> str:
        """Its name within the cluster."""
        return self.member.pod.name

    @property
    def expected_at(self) -> str:
        """The node on which it will start, if it waits for that; empty: none."""
        return self.nominated if self.member.pod.state is PodState.PENDING else ""


class PodView:
    """All pods, by their names within the cluster."""

    def __init__(self, scheduler_name: str, *, grouped: bool = False) -> None:
        """grouped:  PodGroups are made of owners: until it is known of which, their pods wait."""
        self._scheduler_name = scheduler_name
        self._grouped = grouped
        #: By pod that has no PodGroup yet: its uid, and why it waits; nothing: it needs none.
        self._ungrouped: dict[str, tuple[str, str]] = {}
        self.seen: dict[str, SeenPod] = {}
        #: By pod: its uid, and the node that it was given.
        self._bound: dict[str, tuple[str, str]] = {}
        #: By pod: its uid, of those that were told to end.
        self._ended: dict[str, str] = {}
        #: Claims that have their volumes.
        self.claims: set[str] = set()
        #: Pods that wait for room which is being freed.
        self.nominated: set[str] = set()

    def read(self, written: LivePod) -> SeenPod:
        """What a line says about a pod."""
        said = next(
            (
                each.message
                for each in written.status.conditions or ()
                if each.type == _SCHEDULED and each.status == "False"
            ),
            "",
        )
        return SeenPod(
            live_member(written),
            written.metadata.uid or "",
            written.spec.scheduler_name == self._scheduler_name,
            said,
            tuple(_claims(written)),
            bool(written.metadata.owner_references),
            written.status.nominated_node_name or "",
            (written.metadata.labels or {}).get(DOOR_LABEL, ""),
        )

    def put(self, pod: SeenPod) -> tuple[SeenPod | None, bool]:
        """Take in a pod; what it was before, and whether that differs for a plan."""
        before = self.seen.get(pod.name)
        was = None if before is None else self.member(before)
        if before is not None and before.member == pod.member:
            # The same object, so that what was made of it stays the same, too.
            pod = pod._replace(member=before.member)
        self.seen[pod.name] = pod
        if pod.expected_at:
            self.nominated.add(pod.name)
        else:
            self.nominated.discard(pod.name)
        self._settle(pod)
        same = (
            before is not None
            and (before.ours, before.nominated) == (pod.ours, pod.nominated)
            and was == self.member(pod)
        )
        return before, not same

    def remove(self, name: str) -> SeenPod | None:
        """A pod is gone."""
        self._bound.pop(name, None)
        self._ended.pop(name, None)
        self._ungrouped.pop(name, None)
        self.nominated.discard(name)
        return self.seen.pop(name, None)

    def member(self, pod: SeenPod) -> MemberPod:
        """A pod with what was decided about it."""
        inner = pod.member.pod
        bound, ended = self._bound.get(pod.name), self._ended.get(pod.name)
        if bound is not None and inner.node is None:
            waits = inner.state in (PodState.PENDING, PodState.GATED)
            state = PodState.RUNNING if waits else inner.state
            inner = msgspec.structs.replace(inner, state=state, node=bound[1])
        elif inner.state is PodState.PENDING and not inner.unsupported:
            what = self._missing(pod)
            if what:
                inner = msgspec.structs.replace(inner, unsupported=what)
        if ended is not None and inner.state is PodState.RUNNING:
            inner = msgspec.structs.replace(inner, state=PodState.RELEASING)
        if inner is pod.member.pod:
            return pod.member
        return msgspec.structs.replace(pod.member, pod=inner)

    def _missing(self, pod: SeenPod) -> str:
        """What a pod needs that is not there yet."""
        if self._grouped and pod.owned and pod.member.group is None:
            uid, waits = self._ungrouped.get(pod.name, ("", ""))
            if uid != pod.uid:
                return "a PodGroup, which is not made yet"
            if waits:
                return waits
        missing = [each for each in pod.claims if each not in self.claims]
        return f"the volume of claim {missing[0]}, which is not bound to any yet" if missing else ""

    def leave_ungrouped(self, name: str, uid: str, waits: str) -> bool:
        """A pod has no PodGroup, as it needs none or `waits` for one; whether that is news."""
        if not self._is(name, uid) or self._ungrouped.get(name) == (uid, waits):
            return False
        self._ungrouped[name] = (uid, waits)
        return True

    def bind(self, name: str, uid: str, node: str) -> None:
        """A pod was given a node, which the apiserver is told now."""
        if self._is(name, uid):
            self._bound[name] = (uid, node)

    def unbind(self, name: str, uid: str) -> bool:
        """A pod was not given its node after all; whether that is news."""
        if self._bound.get(name, ("", ""))[0] != uid:
            return False
        del self._bound[name]
        return True

    def end(self, name: str, uid: str) -> None:
        """A pod was told to end."""
        if self._is(name, uid):
            self._ended[name] = uid

    def stay(self, name: str, uid: str) -> bool:
        """A pod was not told to end after all; whether that is news."""
        if self._ended.get(name) != uid:
            return False
        del self._ended[name]
        return True

    def _is(self, name: str, uid: str) -> bool:
        seen = self.seen.get(name)
        return seen is not None and seen.uid == uid

    def _settle(self, pod: SeenPod) -> None:
        """Forget what was decided where a watch says it now, or about another pod of the name."""
        inner = pod.member.pod
        bound, ended = self._bound.get(pod.name), self._ended.get(pod.name)
        over = inner.state in _ENDED
        if bound is not None and (bound[0] != pod.uid or inner.node is not None or over):
            del self._bound[pod.name]
        if ended is not None and (ended != pod.uid or over or inner.state is PodState.RELEASING):
            del self._ended[pod.name]


def _claims(written: LivePod) -> Iterator[str]:
    """The claims of a pod; one that is made with it has its name and that of the volume."""
    metadata = written.metadata
    for each in written.spec.volumes or ():
        if each.persistent_volume_claim is not None:
            yield qualified(metadata.namespace, each.persistent_volume_claim.claim_name)
        elif each.ephemeral is not None:
            yield qualified(metadata.namespace, f"{metadata.name}-{each.name}")


def holds_room(pod: Pod) -> bool:
    """Whether a pod takes room on a node."""
    return pod.node is not None and pod.state not in _ENDED


def split_name(full_name: str) -> tuple[str, str]:
    """The namespace and the name of what a name within the cluster stands for."""
    namespace, _, name = full_name.rpartition("/")
    return namespace or DEFAULT_NAMESPACE, name
