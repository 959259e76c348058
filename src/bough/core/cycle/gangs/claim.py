"""One gang in the working copy: what it is, and what is cheap to know about it.

What it holds at any moment is the world's. Must not know the other gangs.
"""

from __future__ import annotations

from bough.core.gang.order import Order
from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState


class Claim:
    """A gang that runs, waits, or both. Its tree is laid out when it is first asked for."""

    __slots__ = ("_order", "_tree", "ending", "gang", "line", "name", "queue", "running", "waiting")

    def __init__(self, gang: Gang, order: Order) -> None:
        self.gang = gang
        self.name = gang.name
        self.queue = gang.queue
        self._order = order
        self._tree: GangTree | None = None
        #: Pods that hold a place, pods that were told to give theirs up, whether any wants one.
        self.running: tuple[Pod, ...] = tuple(
            pod for pod in gang.pods if pod.state is PodState.RUNNING
        )
        self.ending: tuple[Pod, ...] = tuple(
            pod for pod in gang.pods if pod.state is PodState.RELEASING and pod.node is not None
        )
        self.waiting = any(pod.state is PodState.PENDING for pod in gang.pods)
        #: Who goes first: priority, then submit time, then name.
        self.line = (-gang.priority, gang.submitted_ms, gang.name)

    @property
    def tree(self) -> GangTree:
        """The gang as a tree of subgroups."""
        if self._tree is None:
            self._tree = GangTree.of(self.gang, self._order)
        return self._tree

    @property
    def age(self) -> tuple[int, str]:
        """When it was submitted; the newest is the first victim, of equals the last by name."""
        return (self.gang.submitted_ms, self.name)

    @property
    def may_have_surplus(self) -> bool:
        """Whether it may hold more than it needs; `False` without laying out the tree."""
        gang = self.gang
        if gang.subgroups:
            return bool(self.running)
        needed = len(gang.pods) if gang.minimum is None else gang.minimum
        return len(self.running) > needed
