"""Pools, workflows and their standing, for the scenarios of scheduling."""

from __future__ import annotations

from bough.model.workflow import Priority
from bough.model.workflow import WorkflowStatus as Status
from tests.store.world import big_node

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


def cluster(world, gpus: int, **quotas: int) -> None:
    """So many GPUs, shared by pools with these quotas."""
    world.backend.offer((big_node(gpus),))
    for name, quota in quotas.items():
        world.pool(name, quota)
    world.settle()


def statuses(world, *members) -> list[Status]:
    return [world.status(each) for each in members]


def later(world, gpus: int, pool: str, priority: Priority):
    """Submit a moment later than everything before."""
    world.time.ms += 1
    return world.submit(gpus, pool, priority)
