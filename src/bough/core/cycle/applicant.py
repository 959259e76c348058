"""A workload that waits for quota, as a cycle sees it: where it stands, what its pods ask for.

Must not know flavors or quota.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from bough.core.cycle.standing import Standing, priority_of, standing_of
from bough.core.quota.usage import PODS
from bough.model.policy import Policy
from bough.model.workload import PodSet, Workload


class Applicant:
    """A workload that waits in a queue."""

    __slots__ = ("key", "shape", "standing", "workload")

    def __init__(self, workload: Workload, policy: Policy) -> None:
        self.workload = workload
        self.standing: Standing = standing_of(workload, policy)
        self.key = self.standing.key
        self.shape = shape_of(workload, policy)


def shape_of(workload: Workload, policy: Policy) -> bytes:
    """Equal for workloads of which a cycle would say the same: same priority, same pods."""
    parts: list[object] = [priority_of(workload, policy)]
    for each, count in zip(workload.pod_sets, counts_of(workload), strict=True):
        template = each.template
        parts += (each.name, count, each.min_count, each.topology, template.requests)
        parts += (template.node_selector, template.affinity, template.tolerations)
    return msgspec.msgpack.encode(parts, order="deterministic")


class Ask(NamedTuple):
    """What the pods of a set ask for together."""

    pod_set: PodSet
    pods: int
    #: Totals.
    requests: dict[str, int]


def counts_of(workload: Workload) -> tuple[int, ...]:
    """How many pods of each set need quota: finished ones do not."""
    finished = workload.reclaimable_pods
    if not finished:
        return tuple([each.count for each in workload.pod_sets])
    return tuple(max(0, each.count - finished.get(each.name, 0)) for each in workload.pod_sets)


def asks_of(
    applicant: Applicant, counts: Sequence[int] | None, *, with_pods: bool
) -> list[list[Ask]]:
    """What the workload asks for, pod sets that must get the same flavors together.

    Without counts, for all pods that are not finished. The pods themselves are counted where the
    queue wants them to be.
    """
    groups: dict[str | int, list[Ask]] = {}
    pod_sets = applicant.workload.pod_sets
    for index, count in enumerate(counts_of(applicant.workload) if counts is None else counts):
        pod_set = pod_sets[index]
        requests = {name: each * count for name, each in pod_set.template.requests.items()}
        if with_pods:
            requests[PODS] = count
        topology = pod_set.topology
        name = index if topology is None or topology.group is None else topology.group
        groups.setdefault(name, []).append(Ask(pod_set, count, requests))
    return list(groups.values())
