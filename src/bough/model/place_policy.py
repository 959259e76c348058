"""How places are chosen where there is a choice, as a value."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Packing(StrEnum):
    """Which of the nodes that fit is taken."""

    #: The one with the fewest free GPUs: large holes stay for large pods.
    BEST_FIT = "best_fit"
    #: The one with the largest part of its GPUs free.
    SPREAD = "spread"


class NodeOrder(StrEnum):
    """Which of several nodes that are equally good is taken."""

    #: The first by name, in plain string order: `node10` comes before `node2`.
    NAME = "name"
    #: The first in the order in which the nodes were given.
    GIVEN = "given"


class PlacePolicy(msgspec.Struct, frozen=True):
    """The choices that placement leaves open."""

    packing: Packing = Packing.BEST_FIT
    order: NodeOrder = NodeOrder.NAME
    #: Pods without GPUs go to nodes without any first, and then by free CPU instead of free GPUs.
    cpu_pods_by_cpu: bool = False
    #: A preferred domain in which the subgroup has pods already comes before tighter ones.
    near_running: bool = True
    #: Pods that only prefer a level may use nodes outside of the topology, after all others, and
    #: pods that run there leave it open where the others go together. Otherwise such nodes are as
    #: good as absent: no pod with a level uses them, and none joins pods that run there.
    outside: bool = True
    #: Pods that fit into no single preferred domain fill the roomiest first, and go on with the
    #: next; otherwise with the tightest that holds all that is left.
    roomiest_first: bool = False
    #: Of subgroups that are all needed, those that are hardest to place come first; otherwise they
    #: come in their order.
    hardest_first: bool = True
    #: How many choices of a domain, a subgroup or a node one search may try before it gives up.
    work: int = 4000
    #: Remember what did not fit. Costs memory, saves time, never changes an answer.
    remember: bool = True


#: How KAI chooses, as far as it is recorded.
KAI_PLACEMENT = PlacePolicy(
    cpu_pods_by_cpu=True,
    near_running=False,
    outside=False,
    roomiest_first=True,
    hardest_first=False,
)
