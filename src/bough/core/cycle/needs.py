"""What a gang of pod sets needs of the flavors of its queue, whatever is free of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bough.core.cycle.claim import counts_of
from bough.core.cycle.flavor_eligibility import why_unsuitable
from bough.core.cycle.forest import FlavorGroup, Leaf, Slot
from bough.core.quota.usage import PODS
from bough.model.gang import Gang
from bough.model.workload import Flavor, PodSet


class Ask(NamedTuple):
    """What the pods of a set ask for together."""

    pod_set: PodSet
    pods: int
    #: Totals.
    requests: dict[str, int]


class Scan(NamedTuple):
    """A search through the flavors of one resource group."""

    #: The first of those that are wanted of the group; `None`: the queue does not list it.
    resource: str
    group: FlavorGroup | None
    wanted: tuple[str, ...]


class Need:
    """Pod sets that must get the same flavors, and what a queue has for them.

    Depends on the shape of a gang and on its queue alone, so it is worked out once.
    """

    __slots__ = ("asks", "faults", "flavors", "requests", "scans")

    def __init__(self, asks: list[Ask], leaf: Leaf) -> None:
        self.asks = asks
        self.requests = _total(asks)
        #: In the order of the resources that they begin with.
        self.scans: list[Scan] = []
        covered: set[str] = set()
        for resource in sorted(self.requests):
            group = leaf.groups.get(resource)
            if resource in covered or (group is None and not self.requests[resource]):
                continue
            names = () if group is None else group.resources
            wanted = tuple(name for name in names if name in self.requests)
            covered.update(wanted)
            self.scans.append(Scan(resource, group, wanted))
        #: By flavor: why it does not suit the pods, for the flavors that were asked about.
        self.flavors: Mapping[str, Flavor] = {}
        self.faults: dict[str, str | None] = {}

    def first_suitable(
        self, scan: Scan, flavors: Mapping[str, Flavor]
    ) -> tuple[int, dict[str, Slot]]:
        """The first flavor of a group that suits the pods, with its place; without slots: none."""
        listed = () if scan.group is None else scan.group.flavors
        for position, (name, slots) in enumerate(listed):
            if self.fault_of(name, flavors) is None:
                return position, slots
        return 0, {}

    def fault_of(self, name: str, flavors: Mapping[str, Flavor]) -> str | None:
        """Why a flavor does not suit the pods; `None` if it does."""
        if self.flavors is not flavors:
            self.flavors, self.faults = flavors, {}
        elif name in self.faults:
            return self.faults[name]
        flavor = flavors.get(name)
        if flavor is None:
            fault: str | None = f"there is no flavor {name}"
        else:
            faults = (why_unsuitable(flavor, ask.pod_set) for ask in self.asks)
            fault = next((each for each in faults if each is not None), None)
        self.faults[name] = fault
        return fault


def needs_of(leaf: Leaf, gang: Gang, counts: Sequence[int] | None = None) -> list[Need]:
    """What a gang needs of its queue's flavors, for all of its pods or for so many of each set."""
    return [Need(asks, leaf) for asks in asks_of(gang, counts, with_pods=PODS in leaf.groups)]


def asks_of(gang: Gang, counts: Sequence[int] | None, *, with_pods: bool) -> list[list[Ask]]:
    """What a gang asks for, pod sets that must get the same flavors together.

    Without counts, for all pods that are not finished. The pods themselves are counted where the
    queue wants them to be.
    """
    groups: dict[str | int, list[Ask]] = {}
    for index, count in enumerate(counts_of(gang) if counts is None else counts):
        pod_set = gang.pod_sets[index]
        requests = {name: each * count for name, each in pod_set.template.requests.items()}
        if with_pods:
            requests[PODS] = count
        topology = pod_set.topology
        name = index if topology is None or topology.group is None else topology.group
        groups.setdefault(name, []).append(Ask(pod_set, count, requests))
    return list(groups.values())


def _total(asks: list[Ask]) -> dict[str, int]:
    if len(asks) == 1:
        return asks[0].requests
    total: dict[str, int] = {}
    for ask in asks:
        for resource, amount in ask.requests.items():
            total[resource] = total.get(resource, 0) + amount
    return total
