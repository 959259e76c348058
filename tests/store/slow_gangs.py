"""Gangs on a cluster where tasks take their time to end, for tests of what follows what."""

from __future__ import annotations

from bough.model.backend import Sight
from bough.model.cluster import Resources
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.backends import grudging
from tests.store.scheduling import cluster
from tests.store.usecases import settings


def slow_cluster(world):
    """8 GPUs of pool `p`, where tasks take their time to end; one retry is allowed."""
    cluster(world, 8, p=8)
    grudging(world)
    settings.patch_workflow_settings(world.site, world.admin, {"max_retry_per_task": 1})
    return world


def gang_spec(tasks: int = 3, gpus: int = 1, **fields: object) -> WorkflowSpec:
    """A gang whose tasks are tried again after exit code 3."""
    members = tuple(
        TaskSpec(
            f"task-{number}",
            Resources(gpus=gpus),
            lead=number == 0,
            exit_actions={"RESCHEDULE": "3"},
        )
        for number in range(tasks)
    )
    return WorkflowSpec("gang", (GroupSpec("group", members, **fields),))  # type: ignore[arg-type]


def gang(world, priority: Priority = Priority.NORMAL, **fields):
    """The same, running."""
    workflow = world.submit(0, "p", priority, spec=gang_spec(**fields))
    world.settle()
    assert Status.RUNNING is world.status(workflow)
    return workflow


def end(world, workflow, **codes: int) -> None:
    """Let tasks of a workflow end by themselves with these exit codes."""
    for task in world.tasks(workflow):
        code = codes.get(task.name.replace("-", "_"))
        if code is not None:
            world.backend.show(task.attempt, Sight.ENDED, code)
    world.settle()


def now(world, workflow) -> list[tuple[int, TaskStatus]]:
    return [(task.retry_id, task.status) for task in world.tasks(workflow)]


def history(world, workflow, name: str) -> list[TaskStatus]:
    """Every attempt of a task, the first one first."""
    tasks = [task for task in world.tasks(workflow, every=True) if task.name == name]
    return [task.status for task in sorted(tasks, key=lambda task: task.retry_id)]
