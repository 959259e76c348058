"""A failed workflow is submitted again without what was completed, and finds what that wrote."""

from __future__ import annotations

from bough.errors import Invalid
from bough.model.backend import Sight
from bough.model.cluster import Resources
from bough.model.task_template import CredentialUse, InputSpec, TaskTemplate
from bough.model.workflow import GroupSpec, Priority, TaskSpec, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.backends import grudging
from tests.store.scheduling import cluster
from tests.store.usecases import get_workflow, restart
from tests.store.world import refusal


def step(name: str, *upstream: str) -> GroupSpec:
    """A group of one task that reads what the tasks of the groups before it wrote."""
    inputs = (*(InputSpec(task=f"{each}-task") for each in upstream), InputSpec(url="s3://data"))
    task = TaskSpec(
        f"{name}-task", Resources(gpus=1), lead=True, launch=TaskTemplate(inputs=inputs)
    )
    return GroupSpec(name, (task,), upstream=upstream)


SPEC = WorkflowSpec("serial", (step("a"), step("b", "a"), step("c", "a", "b")))


def end(world, workflow, code: int) -> None:
    for task in world.tasks(workflow):
        if task.status.holds_node:
            world.backend.show(task.attempt, Sight.ENDED, code)
    world.settle()


def reads(world, workflow) -> dict[str, list[tuple[str | None, str | None]]]:
    """What each task reads: of which workflow, and of which task."""
    groups = get_workflow(world.site, world.admin, workflow.uuid).groups
    return {
        task.name: [(each.workflow, each.task) for each in task.launch.inputs]
        for group in groups
        for task in group.spec.tasks
    }


def again(world, workflow):
    found = restart(world.site, world.admin, workflow.workflow_id).workflow
    assert found is not None
    world.settle()
    return found


def test_what_was_completed_is_read_from_where_it_was_completed(world):
    cluster(world, 1, p=1)
    grudging(world)
    first = world.submit(0, "p", Priority.HIGH, spec=SPEC)
    world.settle()
    end(world, first, 0)
    end(world, first, 1)
    assert Status.FAILED is world.status(first)

    second = again(world, first)
    assert ("serial-1", Priority.HIGH) == (second.restarts, second.priority)
    assert {
        "b-task": [("serial-1", "a-task"), (None, None)],
        "c-task": [("serial-1", "a-task"), (None, "b-task"), (None, None)],
    } == reads(world, second)

    end(world, second, 0)
    end(world, second, 1)
    third = again(world, second)
    expected = [("serial-1", "a-task"), ("serial-2", "b-task"), (None, None)]
    assert {"c-task": expected} == reads(world, third)
    (start,) = [each for each in world.backend.starts if each.workflow_id == "serial-3"]
    assert expected == [(i.workflow, i.task) for i in start.launches[0].spec.inputs]
    end(world, third, 0)
    assert Status.COMPLETED is world.status(third)


def test_only_what_has_failed_is_restarted(world):
    cluster(world, 1, p=1)
    grudging(world)
    workflow = world.submit(0, "p", Priority.HIGH, spec=SPEC)

    status, message = refusal(restart, world.site, world.admin, workflow.workflow_id)

    assert (Invalid.http_status, True) == (status, "serial-1 is PENDING" in message)


def test_who_restarts_it_needs_the_credentials_that_it_uses(world):
    cluster(world, 1, p=1)
    grudging(world)
    template = TaskTemplate(command=("true",), credentials=(CredentialUse("hub"),))
    group = GroupSpec("a", (TaskSpec("task", Resources(gpus=1), lead=True, launch=template),))
    first = world.submit(0, "p", Priority.HIGH, spec=WorkflowSpec("secret", (group,)))
    world.settle()
    end(world, first, 1)
    assert world.status(first).failed

    assert (400, "Task task uses the credential hub, which root does not have.") == refusal(
        restart, world.site, world.admin, first.workflow_id
    )
