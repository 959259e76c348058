"""The PodGroup that is made from an owner, and whether an existing one differs from it."""

from __future__ import annotations

from typing import Any

from bough.formats.kai.pod import DOOR_LABEL
from bough.formats.live.kai import live_pod_group
from bough.formats.live.objects import LivePodGroup
from bough.model.gang import TopologyConstraint
from bough.model.pod_group import PodGroup, SubGroupSpec
from bough.pod_grouper.pod_grouping import Grouped

#: The uid of the owner that a PodGroup was made from. One without this was written by a user.
MADE_OF = "bough.made-of"


def is_made(written: LivePodGroup) -> bool:
    """Whether a PodGroup was made from an owner, not written by a user."""
    return MADE_OF in (written.metadata.annotations or {})


def is_current(written: LivePodGroup, wanted: PodGroup) -> bool:
    """Whether a PodGroup that we made is still right."""
    said = live_pod_group(written)
    return not said.problems and pod_group_spec(said.made) == pod_group_spec(wanted)


def new_pod_group(wanted: Grouped) -> dict[str, Any]:
    """The PodGroup to create."""
    owner = wanted.owner
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {
            "name": wanted.group.name,
            "annotations": {MADE_OF: wanted.made_of},
            **({"labels": {DOOR_LABEL: wanted.door}} if wanted.door else {}),
            "ownerReferences": [
                {
                    "apiVersion": owner.api_version,
                    "kind": owner.kind,
                    "name": owner.name,
                    "uid": owner.uid,
                }
            ],
        },
        "spec": _without_nothing(pod_group_spec(wanted.group)),
    }


def pod_group_spec(group: PodGroup) -> dict[str, Any]:
    """All fields that the owner decides; `None` for those that it says nothing about."""
    return {
        "queue": group.queue or None,
        "minMember": group.min_member,
        "minSubGroup": group.min_sub_group,
        "subGroups": [_subgroup(each) for each in group.subgroups] or None,
        "topologyConstraint": _constraint(group.constraint),
        "priorityClassName": group.priority_class,
        "preemptibility": None if group.preemptibility is None else group.preemptibility.value,
    }


def _subgroup(each: SubGroupSpec) -> dict[str, Any]:
    return _without_nothing(
        {
            "name": each.name,
            "parent": each.parent,
            "minMember": each.min_member,
            "minSubGroup": each.min_sub_group,
            "topologyConstraint": _constraint(each.constraint),
        }
    )


def _constraint(found: TopologyConstraint | None) -> dict[str, str] | None:
    if found is None:
        return None
    return _without_nothing(
        {
            "topology": found.topology,
            "requiredTopologyLevel": found.required,
            "preferredTopologyLevel": found.preferred,
        }
    )


def _without_nothing(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}
