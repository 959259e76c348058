"""Groups of one workflow, and what starts or ends first of them."""

from __future__ import annotations

from bough.model.workflow import Priority, TaskStatus, WorkflowSpec
from tests.store.scheduling import cluster, later
from tests.store.world import one_group

HIGH, LOW = Priority.HIGH, Priority.LOW


def test_the_groups_of_a_workflow_start_in_the_order_of_its_file(world):
    cluster(world, 1, p=1)
    names = ("zeta", "alpha", "middle")
    groups = tuple(one_group(1, name=name) for name in names)
    workflow = world.submit(0, "p", spec=WorkflowSpec("ordered", groups))
    started = []
    for _ in names:
        world.settle()
        (running,) = [task for task in world.tasks(workflow) if task.status is TaskStatus.RUNNING]
        started.append(running.name.partition("-")[0])
        world.finish(workflow)
    assert list(names) == started


def test_of_one_workflow_the_last_group_is_preempted_first(world):
    cluster(world, 2, p=2)
    groups = tuple(one_group(1, name=name) for name in ("zeta", "alpha"))
    low = world.submit(0, "p", LOW, spec=WorkflowSpec("low", groups))
    world.settle()
    later(world, 1, "p", HIGH)
    world.settle()
    left = [task.name for task in world.tasks(low) if task.status is TaskStatus.RUNNING]
    assert ["zeta-task-0"] == left
