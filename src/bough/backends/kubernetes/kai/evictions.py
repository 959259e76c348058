"""What KAI evicted, from its Events on PodGroups; told apart from what people deleted.

KAI deletes the pods that it evicts, just as people delete pods. Its Event names only the gang, so
a pod of that gang that was deleted at about the same time counts as evicted, unless it was created
after the Event: it is of the next attempt then, as the PodGroup of a gang keeps its name.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from bough.kube.objects import Kind, KubePod, Meta

#: The reason in those Events.
EVICT = "Evict"
#: How far apart a deletion and its Event may be.
_APART_MS = 60_000


class _About(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class KubeEvent(msgspec.Struct, frozen=True, rename="camel"):
    """An Event, reduced to what matters for an eviction."""

    metadata: Meta = Meta()
    reason: str = ""
    message: str = ""
    involved_object: _About = _About()
    last_timestamp: str | None = None

    @property
    def at_ms(self) -> int:
        """When it last happened."""
        times = (self.last_timestamp, self.metadata.creation_timestamp)
        return max((time_ms(each) for each in times if each), default=0)


KUBE_EVENTS: Kind[KubeEvent] = Kind("api/v1", "events", KubeEvent)


class Evictions:
    """The last eviction of each gang, by the name of its PodGroup."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, str]] = {}

    def take(self, event: KubeEvent) -> str | None:
        """Take in an Event; return the PodGroup that it is about, if it is about an eviction."""
        about = event.involved_object
        if event.reason != EVICT or about.kind != "PodGroup":
            return None
        at_ms, _ = self._last.get(about.name, (0, ""))
        if event.at_ms >= at_ms:
            self._last[about.name] = event.at_ms, event.message or EVICT
        return about.name

    def of(self, pod_group: str, created_ms: int, deleted_ms: int | None) -> str:
        """Why a pod created and deleted at these times was evicted; empty if it was not.

        created_ms:  when it was created, or first seen to run.
        deleted_ms:  `None` if no server was there to see when.
        """
        at_ms, message = self._last.get(pod_group, (0, ""))
        apart_ms = 0 if deleted_ms is None else abs(at_ms - deleted_ms)
        # The times of Events are whole seconds.
        after_creation = at_ms >= created_ms // 1_000 * 1_000
        return message if after_creation and apart_ms <= _APART_MS else ""

    def forget(self, pod_group: str) -> None:
        """Nothing is left of a gang: forget its eviction."""
        self._last.pop(pod_group, None)


def created_ms(pod: KubePod) -> int:
    """When a pod was created, by the apiserver's clock."""
    return time_ms(pod.metadata.creation_timestamp or "")


def deleted_ms(pod: KubePod) -> int | None:
    """When a pod was deleted, by the apiserver's clock; `None` if it was not."""
    by = pod.metadata.deletion_timestamp
    if by is None:
        return None
    return time_ms(by) - (pod.metadata.deletion_grace_period_seconds or 0) * 1_000


def time_ms(text: str) -> int:
    """Parse a time as the apiserver writes it."""
    try:
        return int(datetime.fromisoformat(text).timestamp() * 1_000)
    except ValueError:
        return 0
