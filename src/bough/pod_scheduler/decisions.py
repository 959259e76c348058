"""What was decided about gangs, and what of it an earlier leader left half done.

Decisions are recorded before the first pod is bound (`decision_records`). This way no gang stays
half-bound: the next leader reads what was decided, and finishes it where the nodes still have room,
or else takes all of it back.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from bough.model.cluster import Node, Resources
from bough.model.gang import PodState
from bough.model.snapshot import Snapshot
from bough.pod_scheduler.cluster import ClusterView, GangKey
from bough.pod_scheduler.pod_view import SeenPod, holds_room

#: Longer texts are compressed.
LONGEST_PLAIN = 100_000
#: The prefix of compressed decisions, and the largest size that they may expand to: a record that
#: was tampered with could otherwise fill the memory.
COMPRESSED, MOST_EXPANDED = "zlib:", 64 * 2**20
#: Little time for most of what can be saved: pods wait for it.
COMPRESSION_LEVEL = 1
#: Enough of a uid to tell a pod from an earlier pod of the same name: uids are random.
UID_LENGTH = 8


class PlacedPod(NamedTuple):
    """A pod and the node that was chosen for it."""

    pod: str
    uid: str
    node: str


#: For each PodGroup, by its key: what was decided about its pods.
Decisions = Mapping[str, tuple[PlacedPod, ...]]


class Batch(NamedTuple):
    """Pods of one gang that are bound together."""

    gang: str
    pods: tuple[PlacedPod, ...]
    #: The key of its PodGroup; empty if it has none.
    group: str = ""
    #: What to record first: everything that is decided about the gang and not bound yet, these pods
    #: included. Empty: record nothing.
    decision: tuple[PlacedPod, ...] = ()
    #: Whether other pods were evicted to make room for them.
    nominated: bool = False


class Unfinished(NamedTuple):
    """A decision that was only partly carried out."""

    group: str
    #: The pods that are not bound yet.
    left: tuple[PlacedPod, ...]
    #: The pods that are bound, and run.
    bound: tuple[SeenPod, ...]
    #: Why it cannot be finished; empty if it can.
    obstacle: str


class Standing(NamedTuple):
    """How far a decision is carried out, with what was decided since."""

    #: Whether some of its pods wait, and whether some have a node.
    waits: bool
    placed: bool


class _WrittenPod(msgspec.Struct, frozen=True):
    uid: str
    node: str


def write_decisions(decisions: Decisions) -> str:
    """Decisions as a text; that of a thousand pods is compressed."""
    plain = _encoded(decisions, None)
    if len(plain) <= LONGEST_PLAIN:
        return plain.decode()
    packed = zlib.compress(_encoded(decisions, UID_LENGTH), COMPRESSION_LEVEL)
    return COMPRESSED + base64.b64encode(packed).decode()


def _encoded(decisions: Decisions, uid_length: int | None) -> bytes:
    written = {
        group: {each.pod: _WrittenPod(each.uid[:uid_length], each.node) for each in placed}
        for group, placed in decisions.items()
    }
    return msgspec.json.encode(written)


def read_decisions(text: str) -> Decisions | None:
    """The decisions in a text; `None` if we cannot have written it."""
    try:
        plain = _expanded(text) if text.startswith(COMPRESSED) else text.encode()
        found = msgspec.json.decode(plain, type=dict[str, dict[str, _WrittenPod]])
    except (msgspec.MsgspecError, ValueError, RecursionError, zlib.error):
        return None
    return {
        group: tuple(PlacedPod(name, each.uid, each.node) for name, each in pods.items())
        for group, pods in found.items()
    }


def _expanded(text: str) -> bytes:
    """Decompress decisions, up to the size that we would have written."""
    packed = base64.b64decode(text.removeprefix(COMPRESSED), validate=True)
    return zlib.decompressobj().decompress(packed, MOST_EXPANDED)


def standing(view: ClusterView, decision: Iterable[PlacedPod]) -> Standing:
    """How far a decision is carried out; a pod that is being bound counts as placed."""
    waits = placed = False
    for each in decision:
        pod = view.pods.seen.get(each.pod)
        if pod is None or not _is_meant(pod.uid, each.uid):
            continue
        state = view.pods.member(pod).pod.state
        waits = waits or state is PodState.PENDING
        placed = placed or state in (PodState.RUNNING, PodState.RELEASING)
    return Standing(waits, placed)


def unfinished(view: ClusterView, snapshot: Snapshot, decisions: Decisions) -> Iterator[Unfinished]:
    """The decisions of earlier leaders that were only partly carried out, by name of the PodGroup.

    Room that one of them gets is no longer free for those after it.
    """
    free: dict[str, Resources] | None = None
    nodes = {node.name: node for node in snapshot.nodes}
    for name in sorted(decisions):
        found = _left(view, name, decisions[name]) if name in view.groups else None
        if found is None:
            continue
        left, bound = found
        free = _free(snapshot) if free is None else free
        obstacle = _obstacle(view, name, left, nodes, free)
        if not obstacle:
            for each in left:
                free[each.node] = _minus(free[each.node], view.pods.seen[each.pod])
        yield Unfinished(name, left, bound, obstacle)


def _left(
    view: ClusterView, name: str, decision: Iterable[PlacedPod]
) -> tuple[tuple[PlacedPod, ...], tuple[SeenPod, ...]] | None:
    left: list[PlacedPod] = []
    bound: list[SeenPod] = []
    for each in decision:
        pod = view.pods.seen.get(each.pod)
        if pod is None or not _is_meant(pod.uid, each.uid):
            continue
        if not pod.ours or pod.member.group != name:
            continue
        if pod.member.pod.state is PodState.PENDING:
            left.append(each._replace(uid=pod.uid))
        elif pod.member.pod.state is PodState.RUNNING:
            bound.append(pod)
    return (tuple(left), tuple(bound)) if left and bound else None


def _is_meant(uid: str, written: str) -> bool:
    """Whether a pod is the one that was decided about, not a later one of the same name."""
    return uid == written or (len(written) == UID_LENGTH and uid.startswith(written))


def _obstacle(
    view: ClusterView,
    name: str,
    left: Iterable[PlacedPod],
    nodes: Mapping[str, Node],
    free: Mapping[str, Resources],
) -> str:
    if GangKey(False, name) not in view.gangs:
        return view.broken.get(name, "it is no longer a gang")
    rest = dict(free)
    for each in left:
        node = nodes.get(each.node)
        if node is None or node.cordoned:
            return f"node {each.node} takes no pods any more"
        rest[each.node] = _minus(rest[each.node], view.pods.seen[each.pod])
        if _is_short(rest[each.node]):
            return f"node {each.node} has no room any more"
    return ""


def _free(snapshot: Snapshot) -> dict[str, Resources]:
    """What is free on each node; pods that are being deleted still hold their room."""
    free = {node.name: node.capacity for node in snapshot.nodes}
    for row in snapshot.gangs.values():
        for gang in row:
            for pod in gang.pods:
                if holds_room(pod) and pod.node in free:
                    free[pod.node] = _less(free[pod.node], pod.requests)
    return free


def _minus(free: Resources, pod: SeenPod) -> Resources:
    return _less(free, pod.member.pod.requests)


def _less(free: Resources, taken: Resources) -> Resources:
    other = dict(free.other)
    for name, amount in taken.other:
        other[name] = other.get(name, 0) - amount
    return Resources(
        gpus=free.gpus - taken.gpus,
        cpu_milli=free.cpu_milli - taken.cpu_milli,
        memory_bytes=free.memory_bytes - taken.memory_bytes,
        pods=free.pods - taken.pods,
        other=tuple(sorted(other.items())),
    )


def _is_short(free: Resources) -> bool:
    counted = (free.gpus, free.cpu_milli, free.memory_bytes, free.pods)
    return min(counted) < 0 or any(amount < 0 for _, amount in free.other)
