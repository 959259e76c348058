"""Pods as last reported by the watch, and decisions about them that it has not shown yet.

A pod that was bound counts as bound at once, and one that was told to end as ending, until the
watch says so itself: otherwise the next cycle would decide about the same pod or room again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from bough.formats.kai.pod import DOOR_LABEL
from bough.formats.live.objects import LivePod
from bough.formats.live.pods import live_member
from bough.model.gang import Pod, PodState
from bough.model.pod_group import DEFAULT_NAMESPACE, MemberPod, qualified

_ENDED = (PodState.SUCCEEDED, PodState.FAILED)
_SCHEDULED = "PodScheduled"


class SeenPod(NamedTuple):
    """A pod as last reported by the watch."""

    member: MemberPod
    uid: str
    #: Whether this scheduler may place and evict it.
    ours: bool
    #: The message of its condition PodScheduled=False; empty if it has none.
    unscheduled: str = ""
    #: The claims whose volumes it mounts, as NAMESPACE/NAME.
    claims: tuple[str, ...] = ()
    #: Whether it has owners, of which a PodGroup may be made.
    owned: bool = False
    #: The node on which a scheduler is freeing room for it, as its status says; empty if none.
    nominated: str = ""
    #: The LocalQueue of Kueue that it names; empty if none.
    door: str = ""

    @property
    def name(self) -> str:
        """Its name with the namespace."""
        return self.member.pod.name

    @property
    def expected_at(self) -> str:
        """The node on which it will start, while it waits for room there; empty if none."""
        return self.nominated if self.member.pod.state is PodState.PENDING else ""


class PodView:
    """All pods, by name with the namespace."""

    def __init__(self, scheduler_name: str, *, grouped: bool = False) -> None:
        """grouped:  PodGroups are made from owners, and pods with owners wait for that."""
        self._scheduler_name = scheduler_name
        self._grouped = grouped
        #: For each pod without a PodGroup: its uid, and why it waits; empty if it needs none.
        self._ungrouped: dict[str, tuple[str, str]] = {}
        self.seen: dict[str, SeenPod] = {}
        #: For each pod that was bound: its uid and its node.
        self._bound: dict[str, tuple[str, str]] = {}
        #: For each pod that was told to end: its uid.
        self._ended: dict[str, str] = {}
        #: Claims that are bound to their volumes.
        self.claims: set[str] = set()
        #: Pods for which room is being freed.
        self.nominated: set[str] = set()

    def read(self, written: LivePod) -> SeenPod:
        """Read a pod from what the apiserver sent."""
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
        """Take in a pod; return what was known before, and whether that differs for a plan."""
        before = self.seen.get(pod.name)
        was = None if before is None else self.member(before)
        if before is not None and before.member == pod.member:
            # Keep the old object, so that what was made from it stays identical as well.
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
        """A pod is gone; return what was known of it."""
        self._bound.pop(name, None)
        self._ended.pop(name, None)
        self._ungrouped.pop(name, None)
        self.nominated.discard(name)
        return self.seen.pop(name, None)

    def member(self, pod: SeenPod) -> MemberPod:
        """A pod with the decisions that the watch has not shown yet."""
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
        """A pod gets no PodGroup: it needs none, or `waits`; return whether that is news."""
        if not self._is(name, uid) or self._ungrouped.get(name) == (uid, waits):
            return False
        self._ungrouped[name] = (uid, waits)
        return True

    def bind(self, name: str, uid: str, node: str) -> None:
        """A pod was given a node, and the request for it is being sent."""
        if self._is(name, uid):
            self._bound[name] = (uid, node)

    def unbind(self, name: str, uid: str) -> bool:
        """The bind of a pod failed; return whether that is news."""
        if self._bound.get(name, ("", ""))[0] != uid:
            return False
        del self._bound[name]
        return True

    def end(self, name: str, uid: str) -> None:
        """A pod was told to end."""
        if self._is(name, uid):
            self._ended[name] = uid

    def stay(self, name: str, uid: str) -> bool:
        """A pod was not told to end after all; return whether that is news."""
        if self._ended.get(name) != uid:
            return False
        del self._ended[name]
        return True

    def _is(self, name: str, uid: str) -> bool:
        seen = self.seen.get(name)
        return seen is not None and seen.uid == uid

    def _settle(self, pod: SeenPod) -> None:
        """Forget decisions that the watch now shows, or that an earlier pod of this name got."""
        inner = pod.member.pod
        bound, ended = self._bound.get(pod.name), self._ended.get(pod.name)
        over = inner.state in _ENDED
        if bound is not None and (bound[0] != pod.uid or inner.node is not None or over):
            del self._bound[pod.name]
        if ended is not None and (ended != pod.uid or over or inner.state is PodState.RELEASING):
            del self._ended[pod.name]


def _claims(written: LivePod) -> Iterator[str]:
    """The claims of a pod; the claim of an ephemeral volume is called POD-VOLUME."""
    metadata = written.metadata
    for each in written.spec.volumes or ():
        if each.persistent_volume_claim is not None:
            yield qualified(metadata.namespace, each.persistent_volume_claim.claim_name)
        elif each.ephemeral is not None:
            yield qualified(metadata.namespace, f"{metadata.name}-{each.name}")


def holds_room(pod: Pod) -> bool:
    """Whether a pod occupies room on a node."""
    return pod.node is not None and pod.state not in _ENDED


def split_name(full_name: str) -> tuple[str, str]:
    """Split NAMESPACE/NAME."""
    namespace, _, name = full_name.rpartition("/")
    return namespace or DEFAULT_NAMESPACE, name
