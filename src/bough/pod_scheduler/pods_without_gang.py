"""Pods that belong to no gang: those of other schedulers, and of missing or invalid PodGroups.

They occupy room but no quota: on each node they form one gang in a queue that does not exist, so
no plan touches them.
"""

from __future__ import annotations

from collections.abc import Iterable

from bough.model.cluster import Resources
from bough.model.gang import Gang, Pod, PodState

#: No Queue can have this name, so what is in it counts against no quota.
OTHERS = "(others)"


class Strangers:
    """What such pods hold on each node, summed up again only where it changed."""

    def __init__(self) -> None:
        #: By node, then by pod.
        self._held: dict[str, dict[str, Resources]] = {}
        self._at: dict[str, str] = {}
        self._gangs: dict[str, Gang] = {}
        self._touched: set[str] = set()
        self._row: tuple[Gang, ...] = ()

    def put(self, pod: str, node: str, requests: Resources) -> None:
        """Count a pod on a node."""
        self.remove(pod)
        self._at[pod] = node
        self._held.setdefault(node, {})[pod] = requests
        self._touched.add(node)

    def remove(self, pod: str) -> None:
        """Stop counting a pod: it holds nothing any more, or belongs to a gang."""
        node = self._at.pop(pod, None)
        if node is not None:
            del self._held[node][pod]
            self._touched.add(node)

    def gangs(self) -> tuple[Gang, ...]:
        """One gang for each node; the same objects as long as nothing changed."""
        if not self._touched:
            return self._row
        for node in self._touched:
            held = self._held.get(node)
            if not held:
                self._held.pop(node, None)
                self._gangs.pop(node, None)
                continue
            gang = _gang(node, held.values())
            if self._gangs.get(node) != gang:
                self._gangs[node] = gang
        self._touched.clear()
        self._row = tuple(gang for _, gang in sorted(self._gangs.items()))
        return self._row


def _gang(node: str, held: Iterable[Resources]) -> Gang:
    held = tuple(held)
    other: dict[str, int] = {}
    for each in held:
        for name, amount in each.other:
            other[name] = other.get(name, 0) + amount
    total = Resources(
        gpus=sum(each.gpus for each in held),
        cpu_milli=sum(each.cpu_milli for each in held),
        memory_bytes=sum(each.memory_bytes for each in held),
        pods=sum(each.pods for each in held),
        other=tuple(sorted(other.items())),
    )
    pod = Pod(f"{OTHERS} {node}", requests=total, state=PodState.RUNNING, node=node)
    return Gang(f"{OTHERS} {node}", OTHERS, (pod,), minimum=1, started_ms=0)
