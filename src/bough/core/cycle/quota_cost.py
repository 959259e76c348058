"""How much a pod counts against the quota of its queue.

A queue lists resources in groups, and for each group flavors in order; a gang gets one flavor of
each group. What a queue does not list, it does not limit; but where GPUs are counted in any queue,
they are in all, so that a queue without a quota of GPUs has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice, product

from bough.model.cluster import Resources
from bough.model.gang import Pod
from bough.model.quota import Cohort, FlavorResource, Queue, quotas_of

#: Combinations of flavors that are tried for a gang; more groups than one are rare.
MOST_CHOICES = 64

#: From each listed resource to the flavor it is taken from.
Flavors = Mapping[str, str]


class QuotaCost:
    """How one queue counts."""

    __slots__ = ("_by_request", "choices", "flavors")

    def __init__(self, queue: Queue, gpus: FlavorResource | None = None) -> None:
        """`gpus`: the flavor and resource as which GPUs count that the queue does not list."""
        listed = {name for group in queue.resource_groups for name in group.covered_resources}
        unlisted: dict[str, str] = {}
        if gpus is not None and not any(map(is_gpu, listed)):
            unlisted = {gpus.resource: gpus.flavor}
        groups = [group for group in queue.resource_groups if group.flavors]
        combined = product(*(group.flavors for group in groups))
        #: The flavors a gang may get, the best first.
        self.choices: tuple[Flavors, ...] = tuple(
            {
                resource: flavor.name
                for group, flavor in zip(groups, flavors, strict=True)
                for resource in group.covered_resources
            }
            | unlisted
            for flavors in islice(combined, MOST_CHOICES)
        )
        #: All that the queue lists.
        self.flavors: frozenset[str] = frozenset(
            flavor.name for group in groups for flavor in group.flavors
        )
        self._by_request: dict[tuple[int, Resources], dict[FlavorResource, int]] = {}

    def choice_of(self, flavor: str | None) -> int:
        """The choice that counts for a pod on a node of this flavor: the first that has it."""
        for number, flavors in enumerate(self.choices):
            if flavor is not None and flavor in flavors.values():
                return number
        return 0

    def nodes_of(self, choice: int) -> tuple[str | None, ...]:
        """The flavors of the nodes on which a pod counts for a choice; `None`: nodes without one.

        How much a pod counts is seen from its node alone, so no node may serve two choices.
        """
        found = (flavor for flavor in sorted(self.flavors) if self.choice_of(flavor) == choice)
        return (*found, None) if choice == 0 else tuple(found)

    def price(self, requests: Resources, choice: int) -> Mapping[FlavorResource, int]:
        """How much one pod counts."""
        key = (choice, requests)
        found = self._by_request.get(key)
        if found is None:
            found = self._by_request[key] = {
                FlavorResource(flavor, resource): amount
                for resource, flavor in self.choices[choice].items()
                if (amount := amount_of(requests, resource))
            }
        return found

    def total(self, pods: Iterable[Pod], choice: int) -> dict[FlavorResource, int]:
        """How much several pods count together."""
        if not self.choices:
            return {}
        total: dict[FlavorResource, int] = {}
        for pod in pods:
            for what, amount in self.price(pod.requests, choice).items():
                total[what] = total.get(what, 0) + amount
        return total


def amount_of(requests: Resources, resource: str) -> int:
    """How much of a resource, by the name that a quota gives it, is asked for."""
    if is_gpu(resource):
        return requests.gpus
    if resource == "cpu":
        return requests.cpu_milli
    if resource == "memory":
        return requests.memory_bytes
    if resource == "pods":
        return requests.pods or 1
    return dict(requests.other).get(resource, 0)


def is_gpu(resource: str) -> bool:
    """Whether GPUs are meant, by the name that a quota gives them."""
    return resource == "gpu" or resource.endswith("/gpu")


def first_gpus(declared: Iterable[Cohort | Queue]) -> FlavorResource | None:
    """The first flavor and resource as which GPUs are counted, if they are counted at all."""
    found = (what for each in declared for what in quotas_of(each.resource_groups))
    return min((what for what in found if is_gpu(what.resource)), default=None)
