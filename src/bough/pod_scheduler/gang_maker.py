"""Makes one gang at a time: from a PodGroup with its pods, or from a pod that belongs to none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from bough.core.gang.from_pod_group import gang_name, normalise, with_queue
from bough.core.gang.sufficiency import is_stale
from bough.core.gang.tree import GangTree
from bough.core.gang.validation import check_pod_group
from bough.formats.kai.pod import DOOR_LABEL
from bough.formats.live.kai import live_native_pod_group, live_pod_group
from bough.formats.live.objects import LiveNativePodGroup, LivePodGroup, LivePodGroupStatus
from bough.formats.live.pods import live_time_ms
from bough.model.cluster import Topology
from bough.model.gang import Gang
from bough.model.pod_group import MemberPod, PodGroup, PriorityClass
from bough.model.problem import Problem, Severity

#: The annotation that says since when a gang has run with less than it needs.
STALE_ANNOTATION = "kai.scheduler/stale-podgroup-timestamp"


class SeenGroup(NamedTuple):
    """A PodGroup as last reported."""

    group: PodGroup
    uid: str
    #: What is wrong with single fields.
    problems: tuple[Problem, ...] = ()
    stale_since_ms: int | None = None
    status: LivePodGroupStatus = LivePodGroupStatus()
    #: The LocalQueue of Kueue that it names; empty if none.
    door: str = ""


class Declared(NamedTuple):
    """What gangs refer to: topologies, priority classes and the default grace period."""

    topologies: tuple[Topology, ...] = ()
    priority_classes: tuple[PriorityClass, ...] = ()
    #: How long a gang may run with less than it needs, unless its PodGroup says otherwise.
    grace_ms: int | None = None


def read_group(written: LivePodGroup | LiveNativePodGroup) -> SeenGroup:
    """Read a PodGroup, of KAI or of Kubernetes itself, from what the apiserver sent."""
    if isinstance(written, LiveNativePodGroup):
        read = live_native_pod_group(written)
    else:
        read = live_pod_group(written)
    annotations = written.metadata.annotations or {}
    return SeenGroup(
        read.made,
        written.metadata.uid or "",
        read.problems,
        live_time_ms(annotations.get(STALE_ANNOTATION)),
        written.status,
        (written.metadata.labels or {}).get(DOOR_LABEL, ""),
    )


def why_broken(seen: SeenGroup, topologies: Sequence[Topology]) -> str:
    """Why a PodGroup cannot make a gang; empty if nothing is wrong."""
    found = (*seen.problems, *check_pod_group(seen.group, topologies or None))
    wrong = [each for each in found if each.severity is Severity.ERROR]
    return "; ".join(f"{each.field}: {each.message}" for each in wrong)


def gang_of_group(
    seen: SeenGroup,
    members: Iterable[MemberPod],
    declared: Declared,
    since_ms: int,
    *,
    taken: bool = False,
) -> Gang:
    """The gang of a valid PodGroup, its oldest pod first.

    since_ms:  since when it has been stale, if it is.
    taken:  whether another PodGroup already uses its name.
    """
    pods = sorted(members, key=_age)
    group = with_queue(seen.group, pods)
    gang = normalise(
        group,
        [each.pod for each in pods],
        declared.topologies,
        declared.priority_classes,
        starts_ms=[each.started_ms for each in pods if each.started_ms is not None],
        name=gang_name(group, taken=taken),
    )
    if not is_stale(GangTree.of(gang)):
        return gang
    due_ms = _due(since_ms, group, declared.grace_ms)
    return msgspec.structs.replace(gang, stale_since_ms=due_ms)


def _due(since_ms: int, group: PodGroup, grace_ms: int | None) -> int:
    """The time since when it counts as stale, moved if it has a grace period of its own."""
    own_s = group.staleness_grace_s
    if own_s is None or grace_ms is None:
        return since_ms
    return since_ms + 1000 * own_s - grace_ms


def _age(member: MemberPod) -> tuple[bool, int, str]:
    return (member.created_ms is None, member.created_ms or 0, member.pod.name)
