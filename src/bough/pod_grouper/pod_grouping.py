"""For one pod: its PodGroup, or that it is a gang of one, or why it has to wait."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from bough.core.gang.validation import check_pod_group
from bough.errors import Invalid
from bough.formats.kai.pod import (
    DOOR_LABEL,
    PREEMPTIBILITY_LABEL,
    PRIORITY_LABEL,
    PROJECT_LABEL,
    QUEUE_LABEL,
)
from bough.formats.live.objects import LiveOwnerReference, LivePod
from bough.formats.live.owners import LiveOwner
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import PodGroup, Preemptibility
from bough.model.problem import Severity, clip
from bough.pod_grouper.grove import GANG_LABEL, GROVE, POD_GANG, pod_gang
from bough.pod_grouper.owner_chain import Owner, OwnerSource, owners_of
from bough.pod_grouper.owner_gangs import (
    WORKLOADS,
    Gathering,
    Member,
    Progress,
    checked,
    gathered,
)

#: The longest name that an object may have.
_LONGEST_NAME = 253
_UID = 36
TOPOLOGY = "kai.scheduler/topology"
REQUIRED = "kai.scheduler/topology-required-placement"
PREFERRED = "kai.scheduler/topology-preferred-placement"


class Owners(OwnerSource, Protocol):
    """Where owners are found, some of them also by name."""

    def named(self, key: tuple[str, str], namespace: str, name: str) -> LiveOwner | None:
        """An owner, by name."""
        ...

    def progress(self, job_set: LiveOwner) -> Mapping[str, Progress]:
        """What the Jobs of a JobSet have done already, by the names of its replicated jobs."""
        ...


class Grouped(NamedTuple):
    """A pod that belongs to a PodGroup."""

    group: PodGroup
    #: The leaf that it belongs to; empty if the PodGroup has no subgroups.
    subgroup: str
    #: The topmost owner of the pod: when it is deleted, so is the PodGroup.
    owner: LiveOwnerReference
    #: The uid of the object that the PodGroup is made from.
    made_of: str
    #: The LocalQueue of Kueue that the gang goes through; empty if none is named.
    door: str = ""


class Verdict(NamedTuple):
    """The result for one pod."""

    #: If this is `None` and there is no reason to wait, the pod is a gang of one.
    grouped: Grouped | None = None
    waits: str = ""
    #: The uids of all owners that the verdict depends on.
    owners: tuple[str, ...] = ()


def judge(pod: LivePod, source: Owners) -> Verdict:
    """Find the gang of a pod; a failure to look up owners is raised, as it may pass."""
    chain = owners_of(pod.metadata, source)
    uids = tuple(each.reference.uid for each in chain)
    if not chain:
        return Verdict()
    if any(each.key[0] == GROVE for each in chain) and GANG_LABEL in (pod.metadata.labels or {}):
        return _of_pod_gang(pod, chain, source, uids)
    for owner in reversed(chain):
        if owner.found is not None and owner.key in WORKLOADS:
            member = Member(owner.found, pod, source.progress(owner.found))
            try:
                found = gathered(owner.key, member)
                return Verdict(_grouped(pod, owner.found, found, chain), owners=uids)
            except Invalid as error:
                return Verdict(waits=_waits(str(owner), error), owners=uids)
    return Verdict(owners=uids)


def _of_pod_gang(
    pod: LivePod, chain: tuple[Owner, ...], source: Owners, uids: tuple[str, ...]
) -> Verdict:
    name = (pod.metadata.labels or {})[GANG_LABEL]
    gang = source.named(POD_GANG, pod.metadata.namespace or "", name)
    if gang is None:
        return Verdict(waits=f"PodGang/{name}, which is not there yet", owners=uids)
    uids = (*uids, gang.metadata.uid or "")
    try:
        found = checked(pod_gang(gang, pod))
        return Verdict(_grouped(pod, gang, found, chain), owners=uids)
    except Invalid as error:
        return Verdict(waits=_waits(f"PodGang/{name}", error), owners=uids)


def _waits(owner: str, error: Invalid) -> str:
    return clip(f"the PodGroup of {owner}, which cannot be made: {error.message}")


def _grouped(
    pod: LivePod, made_of: LiveOwner, found: Gathering, chain: tuple[Owner, ...]
) -> Grouped:
    """The PodGroup made from an owner; for each label the topmost owner that sets it wins.

    Raises `Invalid` if the owner describes one that breaks a rule: it would never start.
    """
    labels = _merged([pod.metadata.labels or {}, *(each.labels for each in chain)])
    notes = _merged([*(each.annotations for each in chain), made_of.metadata.annotations or {}])
    uid = made_of.metadata.uid or ""
    group = PodGroup(
        name=group_name(made_of.metadata.name, uid, found.suffix),
        namespace=pod.metadata.namespace,
        queue=labels.get(QUEUE_LABEL) or labels.get(PROJECT_LABEL, ""),
        min_member=None if found.subgroups else found.min_member,
        min_sub_group=sum(each.parent is None for each in found.subgroups) or None,
        subgroups=found.subgroups,
        constraint=found.constraint or _constraint(notes),
        priority_class=labels.get(PRIORITY_LABEL)
        or found.priority_class
        or pod.spec.priority_class_name
        or None,
        preemptibility=_preemptibility(labels.get(PREEMPTIBILITY_LABEL)),
    )
    problem = next((e for e in check_pod_group(group) if e.severity is Severity.ERROR), None)
    if problem is not None:
        raise Invalid(f"{problem.field}: {problem.message}")
    return Grouped(group, found.subgroup, chain[-1].reference, uid, labels.get(DOOR_LABEL, ""))


def group_name(owner: str, uid: str, suffix: str = "") -> str:
    """The name of the PodGroup made from an owner, the same as KAI's pod grouper gives it."""
    rest = f"-{uid}-{suffix}" if suffix else f"-{uid}"
    return f"pg-{owner[: _LONGEST_NAME - len('pg-') - len(rest)].rstrip('.-')}{rest}"


def _merged(found: list[dict[str, str]]) -> dict[str, str]:
    """All of them as one; later ones override earlier ones."""
    return {name: value for each in found for name, value in each.items()}


def _constraint(notes: dict[str, str]) -> TopologyConstraint | None:
    required, preferred = notes.get(REQUIRED) or None, notes.get(PREFERRED) or None
    if required is None and preferred is None:
        return None
    return TopologyConstraint(notes.get(TOPOLOGY) or None, required, preferred)


def _preemptibility(text: str | None) -> Preemptibility | None:
    return next((known for known in Preemptibility if text == known.value), None)
