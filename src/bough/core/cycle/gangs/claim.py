"""One gang in the working copy: what it is, and what is cheap to know about it.

What it holds at any moment is the world's. Must not know the other gangs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bough.core.gang.order import Order
from bough.core.gang.predicate import is_stale
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState

if TYPE_CHECKING:
    from bough.core.cycle.gangs.wants import Wants


class Claim:
    """A gang that runs, waits, or both. Its tree is laid out when it is first asked for."""

    __slots__ = (
        "_order",
        "_tree",
        "age",
        "elastic",
        "ending",
        "gang",
        "has_nodes",
        "line",
        "name",
        "queue",
        "running",
        "waiting",
        "wants",
    )

    def __init__(self, gang: Gang, order: Order) -> None:
        self.gang = gang
        self.name = gang.name
        self.queue = gang.queue
        self._order = order
        self._tree: GangTree | None = None
        #: What it wants as long as it holds what it held when it was made; see `wants.wants_of`.
        self.wants: Wants | None = None
        #: Whether nodes are large enough for that; as long, and for as long as there are no others.
        self.has_nodes: bool | None = None
        #: Pods that hold a place, pods that were told to give theirs up, whether it wants more.
        self.running: tuple[Pod, ...] = tuple(
            pod for pod in gang.pods if pod.state is PodState.RUNNING
        )
        self.ending: tuple[Pod, ...] = tuple(
            pod for pod in gang.pods if pod.state is PodState.RELEASING and pod.node is not None
        )
        self.waiting = not gang.pods or any(
            pod.state in {PodState.PENDING, PodState.GATED} for pod in gang.pods
        )
        #: Who goes first: priority, then submit time, then name.
        self.line = (-gang.priority, gang.submitted_ms, gang.name)
        #: When it was submitted; the newest is the first victim, of equals the last by name.
        self.age = (gang.submitted_ms, gang.name)
        #: Whether it may hold more than it needs; known without laying out the tree.
        self.elastic = bool(gang.subgroups or len(self.running) > _needed(gang))

    @property
    def tree(self) -> GangTree:
        """The gang as a tree of subgroups."""
        if self._tree is None:
            self._tree = GangTree.of(self.gang, self._order)
        return self._tree

    @property
    def is_stale(self) -> bool:
        """Whether it runs with less than it needs."""
        if not self.running or (
            not self.gang.subgroups and len(self.running) >= _needed(self.gang)
        ):
            return False
        return is_stale(self.tree)


def _needed(gang: Gang) -> int:
    return len(gang.pods) if gang.minimum is None else gang.minimum
