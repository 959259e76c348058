"""From a pod up to its topmost owner, through any number of owners.

The chain ends at an object without an owner, at an owner that is gone or may not be read, where it
would return to an owner that it already has (a cycle), and below a CronJob: each of its Jobs is a
workload of its own.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from bough.formats.live.objects import LiveMetadata, LiveOwnerReference
from bough.formats.live.owners import LiveOwner, controller_of
from bough.pod_grouper.kinds import TIMERS, group_of

#: Longer chains are cut; no controller makes them.
LONGEST = 32


class Owner(NamedTuple):
    """One owner of a pod, direct or indirect."""

    reference: LiveOwnerReference
    #: The object itself; `None` if it is gone, or may not be read.
    found: LiveOwner | None

    @property
    def key(self) -> tuple[str, str]:
        """Its API group and kind."""
        return group_of(self.reference.api_version), self.reference.kind

    @property
    def labels(self) -> dict[str, str]:
        """Its labels; empty if it could not be read."""
        return (self.found.metadata.labels or {}) if self.found is not None else {}

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations; empty if it could not be read."""
        return (self.found.metadata.annotations or {}) if self.found is not None else {}

    def __str__(self) -> str:
        return f"{self.reference.kind}/{self.reference.name}"


class OwnerSource(Protocol):
    """Where owners are found."""

    def find(self, reference: LiveOwnerReference, namespace: str) -> LiveOwner | None:
        """The object that a reference names; `None` if it is gone, or may not be read."""
        ...


def owners_of(metadata: LiveMetadata, source: OwnerSource) -> tuple[Owner, ...]:
    """The owners of a pod, nearest first."""
    found: list[Owner] = []
    seen = {metadata.uid}
    reference = controller_of(metadata)
    namespace = metadata.namespace or ""
    while reference is not None and reference.uid not in seen and len(found) < LONGEST:
        if found and (group_of(reference.api_version), reference.kind) in TIMERS:
            break
        seen.add(reference.uid)
        owner = Owner(reference, source.find(reference, namespace))
        found.append(owner)
        reference = None if owner.found is None else controller_of(owner.found.metadata)
    return tuple(found)
