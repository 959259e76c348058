"""Gangs that several tests build."""

from __future__ import annotations

from bough.core.gang.tree import GangTree
from bough.model.gang import Gang, Pod, PodState, SubGroup


def leaders_and_workers(**changes: object) -> Gang:
    """Two replicas of a leader and two workers, written in the order that the design uses."""
    subgroups = [
        SubGroup(name=name, parent=parent, minimum=minimum)
        for replica in ("one", "two")
        for name, parent, minimum in (
            (replica, None, None),
            (f"leader-{replica}", replica, 1),
            (f"workers-{replica}", replica, 2),
        )
    ]
    pods = [
        Pod(name=f"{kind}-{replica}-{index}", subgroup=f"{kind}-{replica}")
        for replica in ("one", "two")
        for kind, count in (("leader", 1), ("workers", 2))
        for index in range(count)
    ]
    fields: dict[str, object] = {"pods": tuple(pods), "minimum": 1, **changes}
    return Gang(name="gang", queue="q", subgroups=tuple(subgroups), **fields)  # type: ignore[arg-type]


def replicas(running: list[int], *, size: int, minimum: int | None, waiting: int = 0) -> GangTree:
    """Equal replicas of which so many pods run, and so many more of each wait."""
    pods = [
        Pod(
            f"r{number}-{index}",
            subgroup=f"r{number}",
            state=PodState.RUNNING if index < count else PodState.PENDING,
        )
        for number, count in enumerate(running)
        for index in range(count + waiting)
    ]
    subgroups = tuple(SubGroup(f"r{number}", minimum=size) for number in range(len(running)))
    return GangTree.of(Gang("gang", "q", tuple(pods), subgroups, minimum))
