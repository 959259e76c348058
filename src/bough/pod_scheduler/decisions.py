"""A decision about a gang, written on its PodGroup before the first of its pods is bound.

This way no gang stays half-bound: the next leader reads what was decided, and finishes it where
the nodes still have room, or else takes all of it back.
"""

from __future__ import annotations

import base64
import logging
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from bough.model.cluster import Node, Resources
from bough.model.gang import PodState
from bough.model.snapshot import Snapshot
from bough.pod_scheduler.cluster import ClusterView, GangKey
from bough.pod_scheduler.decision_seal import DecisionSeal
from bough.pod_scheduler.gang_maker import SeenGroup
from bough.pod_scheduler.pod_view import SeenPod, holds_room

LOG = logging.getLogger(__name__)
#: All annotations of an object share 256 KiB; a decision leaves some of that to others.
LONGEST_PLAIN = 100_000
#: The prefix of a compressed decision, and the largest size that it may expand to: a user
#: who may edit PodGroups could otherwise write one that fills the memory.
COMPRESSED, MOST_EXPANDED = "zlib:", 16 * 2**20
#: Enough of a uid to tell a pod from an earlier pod of the same name: uids are random.
UID_LENGTH = 8


class PlacedPod(NamedTuple):
    """A pod and the node that was chosen for it."""

    pod: str
    uid: str
    node: str


class Unfinished(NamedTuple):
    """A decision that was only partly carried out."""

    group: str
    #: The pods that are not bound yet.
    left: tuple[PlacedPod, ...]
    #: The pods that are bound, and run.
    bound: tuple[SeenPod, ...]
    #: Why it cannot be finished; empty if it can.
    obstacle: str


class _WrittenPod(msgspec.Struct, frozen=True):
    uid: str
    node: str


def write_decision(placed: Iterable[PlacedPod]) -> str:
    """A decision as the text of an annotation; one about thousands of pods is compressed."""
    pods = {each.pod: _WrittenPod(each.uid, each.node) for each in placed}
    plain = msgspec.json.encode(pods, order="sorted")
    if len(plain) <= LONGEST_PLAIN:
        return plain.decode()
    pods = {name: _WrittenPod(each.uid[:UID_LENGTH], each.node) for name, each in pods.items()}
    plain = msgspec.json.encode(pods, order="sorted")
    return COMPRESSED + base64.b64encode(zlib.compress(plain, 9)).decode()


def read_decision(text: str) -> tuple[PlacedPod, ...]:
    """The decision in an annotation; empty if we cannot have written it."""
    try:
        plain = _expanded(text) if text.startswith(COMPRESSED) else text.encode()
        found = msgspec.json.decode(plain, type=dict[str, _WrittenPod]) if plain else {}
    except (msgspec.MsgspecError, ValueError, zlib.error):
        return ()
    return tuple(PlacedPod(name, each.uid, each.node) for name, each in found.items())


def _expanded(text: str) -> bytes:
    """Decompress a decision, up to the size that we would have written."""
    packed = base64.b64decode(text.removeprefix(COMPRESSED), validate=True)
    return zlib.decompressobj().decompress(packed, MOST_EXPANDED)


def unfinished(view: ClusterView, snapshot: Snapshot, seal: DecisionSeal) -> Iterator[Unfinished]:
    """The decisions of earlier leaders that were only partly carried out, by name of the PodGroup.

    Room that one of them gets is no longer free for those after it. What is not sealed was written
    by a user: such a gang is planned like any other.
    """
    free = _free(snapshot)
    nodes = {node.name: node for node in snapshot.nodes}
    for name in sorted(view.groups):
        group = view.groups[name]
        found = _left(view, name, group)
        if found is None:
            continue
        if not seal.is_ours(group.uid, group.decision, group.seal):
            LOG.warning(
                "PodGroup %s: ignoring a decision that no scheduler of this name made", name
            )
            continue
        left, bound = found
        obstacle = _obstacle(view, name, left, nodes, free)
        if not obstacle:
            for each in left:
                free[each.node] = _minus(free[each.node], view.pods.seen[each.pod])
        yield Unfinished(name, left, bound, obstacle)


def _left(
    view: ClusterView, name: str, group: SeenGroup
) -> tuple[tuple[PlacedPod, ...], tuple[SeenPod, ...]] | None:
    left: list[PlacedPod] = []
    bound: list[SeenPod] = []
    for each in read_decision(group.decision):
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
