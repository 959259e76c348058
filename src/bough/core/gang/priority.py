"""What a priority stands for, and which gangs are preemptible by default."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.model.pod_group import Preemptibility
from bough.model.problem import Problem, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from bough.model.pod_group import MemberPod, PodGroup, PriorityClass

#: The priorities that an installation of KAI, and any cluster, brings along.
BUILT_IN_PRIORITIES = {
    "train": 50,
    "build-preemptible": 75,
    "build": 100,
    "inference": 125,
    "system-cluster-critical": 2_000_000_000,
    "system-node-critical": 2_000_001_000,
}
#: The prefix of priorities that are not meant for users' gangs.
SYSTEM = "system-"
DEFAULT_PRIORITY = 50
#: From this priority on a gang is not preemptible, unless it says otherwise.
NON_PREEMPTIBLE_FROM = 100


def find_priority(name: str | None, classes: Sequence[PriorityClass]) -> int:
    """The number that a name stands for; where it is unknown, or none, the default is meant."""
    known = known_priorities(classes)
    if name in known:
        return known[name]
    return next((each.value for each in classes if each.default), DEFAULT_PRIORITY)


def known_priorities(classes: Sequence[PriorityClass]) -> dict[str, int]:
    """The priorities that have a name."""
    return {**BUILT_IN_PRIORITIES, **{each.name: each.value for each in classes}}


def check_priorities(
    pod_groups: Iterable[PodGroup],
    members: Iterable[MemberPod],
    classes: Sequence[PriorityClass],
) -> Iterator[Problem]:
    """Every gang that names an unknown priority: it has the default instead."""
    known, default = known_priorities(classes), find_priority(None, classes)
    named = [
        (f"PodGroup/{each.key}", ("spec", "priorityClassName"), each.priority_class)
        for each in pod_groups
        if not each.priority
    ]
    # A pod names it by a label or in its spec.
    named += [
        (f"Pod/{each.pod.name}", (), each.priority_class) for each in members if not each.group
    ]
    for subject, path, name in named:
        if name and name not in known:
            message = f"there is no PriorityClass {name!r}; {default} counts, the default"
            yield Problem(path, message, Severity.WARNING, subject)


def is_preemptible(said: Preemptibility | None, priority: int) -> bool:
    """Whether a gang may be taken for others, as it says or by its priority."""
    if said is not None:
        return said is Preemptibility.PREEMPTIBLE
    return priority < NON_PREEMPTIBLE_FROM
