"""Nodes that are drained, and nodes that vanish."""

from __future__ import annotations

from bough.errors import Forbidden, NotFound
from bough.model.access import Actor
from bough.model.cluster import Resources
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.scheduling import statuses
from tests.store.usecases import node_cordon, node_list, record_store, settings, submit
from tests.store.world import big_node, job, refusal

NORMAL, LOW = Priority.NORMAL, Priority.LOW


def two_nodes(world, gpus: int = 2) -> None:
    world.backend.offer((big_node(gpus, "one"), big_node(gpus, "two")))
    world.pool("p", 2 * gpus)
    world.settle()


def gang(world, tasks: int = 2, gpus: int = 1, **fields: object):
    """A group of tasks that do not fit onto one node."""
    members = tuple(
        TaskSpec(f"task-{number}", Resources(gpus=gpus), lead=number == 0)
        for number in range(tasks)
    )
    spec = WorkflowSpec("gang", (GroupSpec("group", members, **fields),))  # type: ignore[arg-type]
    return world.submit(0, "p", NORMAL, spec=spec)


def test_what_is_on_a_drained_node_comes_again_elsewhere(world):
    two_nodes(world)
    workflows = [world.submit(1, "p", NORMAL) for _ in range(2)]
    world.settle()
    (node,) = {task.node for each in workflows for task in world.tasks(each)}

    drained = node_cordon.drain_node(world.site, world.admin, node)
    assert (True, 2, 0) == (drained.node.cordoned, drained.told, drained.left)
    world.settle()

    assert [Status.RUNNING] * 2 == statuses(world, *workflows)
    latest, before = world.tasks(workflows[0], every=True)
    other = "two" if node == "one" else "one"
    assert (1, other, TaskStatus.RUNNING) == (latest.retry_id, latest.node, latest.status)
    assert (TaskStatus.FAILED_EVICTED, 3004, "drain") == (
        before.status,
        before.exit_code,
        before.releasing,
    )
    expected = f"Task was evicted from node {node}, which is drained. Exit Action: RESCHEDULE"
    assert before.failure_message.startswith(expected)


def test_what_is_told_to_leave_gets_its_grace(world):
    two_nodes(world)
    changes = {"termination_grace": "45s"}
    settings.patch_workflow_settings(world.site, world.admin, changes)
    workflow = world.submit(1, "p", NORMAL)
    world.settle()
    (task,) = world.tasks(workflow)

    node_cordon.drain_node(world.site, world.admin, task.node)

    with world.site.store.read() as connection:
        (message,) = record_store.list_outbox(connection, ["default"])
    told = {"attempts": [task.attempt], "reason": "drain", "grace_s": 45, "again": False}
    assert told == message.payload
    assert TaskStatus.RUNNING is world.tasks(workflow)[0].status


def test_what_runs_may_be_left_on_a_drained_node(world):
    two_nodes(world)
    workflow = world.submit(1, "p", NORMAL)
    world.settle()
    (task,) = world.tasks(workflow)

    drained = node_cordon.drain_node(world.site, world.admin, task.node, leave=True)
    next_one = world.submit(2, "p", NORMAL)
    world.settle()

    assert (0, 1) == (drained.told, drained.left)
    assert task == world.tasks(workflow)[0]
    assert task.node != world.tasks(next_one)[0].node
    node_cordon.set_cordoned(world.site, world.admin, task.node, cordoned=False)
    assert not [
        each for each in node_list.list_nodes(world.site, world.admin) if each.node.cordoned
    ]


def test_draining_is_for_administrators_and_for_nodes_that_there_are(world):
    two_nodes(world)

    ann = Actor("ann", ("osmo-p-admin", "osmo-default"))
    assert Forbidden.http_status == refusal(node_cordon.drain_node, world.site, ann, "one")[0]
    expected = (NotFound.http_status, "Node three not found.")
    assert expected == refusal(node_cordon.drain_node, world.site, world.admin, "three")


def test_what_was_on_a_node_that_vanished_comes_again_elsewhere(world):
    two_nodes(world)
    workflow = world.submit(1, "p", NORMAL)
    world.settle()
    (task,) = world.tasks(workflow)
    (left,) = [each for each in world.backend.nodes() if each.name != task.node]

    world.backend.offer((left,))
    world.settle()

    latest, before = world.tasks(workflow, every=True)
    assert (TaskStatus.RUNNING, left.name) == (latest.status, latest.node)
    assert (TaskStatus.FAILED_EVICTED, 3004) == (before.status, before.exit_code)
    assert before.failure_message.startswith(f"Task was lost with its node {task.node}.")
    assert 0 == settings.get_workflow_settings(world.site, world.admin).max_retry_per_task


def test_what_was_on_a_node_that_vanished_can_be_left_as_it_is(world):
    two_nodes(world)
    settings.patch_workflow_settings(world.site, world.admin, {"vanished_node": "leave"})
    workflow = world.submit(1, "p", NORMAL)
    world.settle()
    (task,) = world.tasks(workflow)
    everything = world.backend.nodes()

    world.backend.offer(each for each in everything if each.name != task.node)
    world.settle()
    assert [task] == world.tasks(workflow, every=True)

    world.backend.offer(everything)
    world.settle()
    world.finish(workflow)
    assert Status.COMPLETED is world.status(workflow)


def test_a_gang_starts_again_as_a_whole_with_its_lead(world):
    two_nodes(world, gpus=1)
    workflow = gang(world)
    world.settle()
    (lead,) = [task for task in world.tasks(workflow) if task.lead]

    node_cordon.drain_node(world.site, world.admin, lead.node)
    world.settle()
    assert Status.PENDING is world.status(workflow)
    assert {(1, TaskStatus.SCHEDULING)} == {
        (task.retry_id, task.status) for task in world.tasks(workflow)
    }
    ended = {t.name: t.status for t in world.tasks(workflow, every=True) if t.status.finished}
    assert {"task-0": TaskStatus.FAILED_EVICTED, "task-1": TaskStatus.RESCHEDULED} == ended

    node_cordon.set_cordoned(world.site, world.admin, lead.node, cordoned=False)
    world.settle()
    assert {TaskStatus.RUNNING} == {task.status for task in world.tasks(workflow)}


def test_a_gang_on_several_nodes_of_which_one_vanishes_comes_again_where_there_is_room(world):
    offered = tuple(big_node(1, name) for name in ("one", "two", "three"))
    world.backend.offer(offered)
    world.pool("p", 3)
    workflow = gang(world, tasks=2)
    world.settle()
    (lead,) = [task for task in world.tasks(workflow) if task.lead]

    left = tuple(each for each in offered if each.name != lead.node)
    world.backend.offer(left)
    world.settle()

    assert {(1, TaskStatus.RUNNING)} == {(t.retry_id, t.status) for t in world.tasks(workflow)}
    assert {each.name for each in left} == {task.node for task in world.tasks(workflow)}
    ended = {t.name: t.status for t in world.tasks(workflow, every=True) if t.status.finished}
    assert {"task-0": TaskStatus.FAILED_EVICTED, "task-1": TaskStatus.RESCHEDULED} == ended


def test_a_gang_goes_on_while_one_that_is_not_its_lead_comes_again(world):
    world.backend.offer(big_node(1, name) for name in ("one", "two", "three"))
    world.pool("p", 3)
    workflow = gang(world)
    world.settle()
    lead, other = world.tasks(workflow)

    node_cordon.drain_node(world.site, world.admin, other.node)
    world.settle()

    assert Status.RUNNING is world.status(workflow)
    now_lead, now_other = world.tasks(workflow)
    assert lead == now_lead
    assert (1, TaskStatus.RUNNING) == (now_other.retry_id, now_other.status)
    assert now_other.node not in (lead.node, other.node)


def test_a_gang_that_cannot_be_whole_again_gives_up_what_it_has(world):
    """It waits for what it lost as long as that may take, and then as a whole, holding nothing."""
    two_nodes(world, gpus=1)
    workflow = gang(world)
    world.settle()
    lead, other = world.tasks(workflow)

    node_cordon.drain_node(world.site, world.admin, other.node)
    world.settle()
    assert Status.RUNNING is world.status(workflow)
    world.time.pass_minutes(0.9)
    world.settle()
    assert lead == world.tasks(workflow)[0]
    world.time.pass_minutes(0.2)
    world.settle()

    assert Status.PENDING is world.status(workflow)
    assert [TaskStatus.SCHEDULING] * 2 == [task.status for task in world.tasks(workflow)]
    _, ended = [task for task in world.tasks(workflow, every=True) if task.lead]
    text = "Task was evicted: its group had less than it needs. Exit Action: RESCHEDULE"
    assert (TaskStatus.FAILED_EVICTED, True) == (
        ended.status,
        (ended.failure_message or "").startswith(text),
    )
    node_cordon.set_cordoned(world.site, world.admin, other.node, cordoned=False)
    world.settle()
    assert Status.RUNNING is world.status(workflow)


def test_an_elastic_gang_that_has_what_it_needs_goes_on_with_less(world):
    two_nodes(world, gpus=1)
    workflow = gang(world, minimum=1)
    world.settle()
    lead, other = world.tasks(workflow)
    assert {"one", "two"} == {lead.node, other.node}

    node_cordon.drain_node(world.site, world.admin, other.node)
    world.settle()
    world.time.pass_minutes(10)
    world.settle()

    assert Status.RUNNING is world.status(workflow)
    assert lead == world.tasks(workflow)[0]


def test_exit_actions_decide_what_follows_a_drain(world):
    two_nodes(world)
    task = TaskSpec("task", Resources(gpus=1), lead=True, exit_actions={"FAIL": "3004"})
    spec = WorkflowSpec("once", (GroupSpec("group", (task,)),))
    workflow = world.submit(0, "p", NORMAL, spec=spec)
    world.settle()

    node_cordon.drain_node(world.site, world.admin, world.tasks(workflow)[0].node)
    world.settle()

    assert Status.FAILED_EVICTED is world.status(workflow)


def test_a_node_that_comes_back_takes_nothing_new_where_that_was_said_before(world):
    two_nodes(world)
    one, two = world.backend.nodes()
    node_cordon.drain_node(world.site, world.admin, "one")
    for offered in ((two,), (one, two)):
        world.backend.offer(offered)
        world.settle()

    def cordoned() -> list[bool]:
        return [each.node.cordoned for each in node_list.list_nodes(world.site, world.admin)]

    assert [True, False] == cordoned()
    node_cordon.set_cordoned(world.site, world.admin, "one", cordoned=False)
    for offered in ((two,), (one, two)):
        world.backend.offer(offered)
        world.settle()
    assert [False, False] == cordoned()


def test_a_task_that_no_node_is_large_enough_for_is_accepted_with_a_warning(world):
    two_nodes(world, gpus=1)
    found = submit(world.site, world.admin, "p", job(2), Priority.LOW)

    text = "Task group-task-0 needs 2 GPUs, and no node has more than 1; it waits until one does."
    assert (text,) == found.warnings
    assert () == submit(world.site, world.admin, "p", job(1), Priority.LOW).warnings
