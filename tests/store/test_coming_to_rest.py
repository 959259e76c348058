"""The server's loop comes to rest: who gave way, and where what moves goes, outlives a restart."""

from __future__ import annotations

import pytest

from bough.control.scheduling.snapshot import SnapshotBuilder
from bough.model.change_record import EventKind
from bough.model.cluster import Resources
from bough.model.gang import SubGroup
from bough.model.workflow import GroupSpec, Priority, TaskSpec, Workflow, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.usecases import Scheduler, Written, event_order, policy, pools
from tests.store.world import World, big_node, job

LOW = Priority.LOW
CIRCLE = "the scheduler does not come to rest"


def plan_by(world: World, preset: str, **fields: object) -> None:
    policy.patch_policy(world.site, world.admin, Written(fields={"preset": preset, **fields}))
    world.settle()


def nodes(world: World, *gpus: int) -> None:
    world.backend.offer(tuple(big_node(each, f"n{at}") for at, each in enumerate(gpus)))


def elastic(name: str, **gpus: tuple[int, ...]) -> WorkflowSpec:
    """A group that runs with one of its subgroups, and takes more if it can; GPUs of its tasks."""
    tasks = tuple(
        TaskSpec(f"{part}-{at}", Resources(gpus=each), subgroup=part, lead=(part, at) == ("r0", 0))
        for part, members in gpus.items()
        for at, each in enumerate(members)
    )
    parts = tuple(SubGroup(part, minimum=len(members)) for part, members in gpus.items())
    group = GroupSpec("group", tasks, minimum=1, subgroups=parts)
    return WorkflowSpec(name, (group,), text=f"workflow: {{name: {name}}}\n")


def submit_low(world: World, pool: str, spec: WorkflowSpec) -> Workflow:
    world.time.ms += 1
    return world.submit(0, pool, LOW, spec=spec)


def preempted(world: World) -> list[tuple[str, str]]:
    """Which workflow was preempted by which rule, in order."""
    with world.site.store.read() as connection:
        events = event_order.events_after(connection, 0, limit=5_000)
    return [(e.subject, e.data["rule"]) for e in events if e.kind is EventKind.PREEMPTED]


def gave_way(world: World) -> dict[str, tuple[str, ...]]:
    """What a loop that begins now would know."""
    progress = SnapshotBuilder(world.site).take().snapshot.progress
    return {name: each.gave_way_to for name, each in progress.items() if each.gave_way_to}


def start_again(world: World) -> None:
    """Another loop for the same cluster, which knows only what is stored."""
    world.scheduler.release()
    world.scheduler = Scheduler(world.site, (world.backend,))


def two_that_take_from_each_other(world: World) -> tuple[Workflow, Workflow]:
    """The first has the better share with one subgroup, the other is within its quota with two."""
    nodes(world, 1, 2, 1, 4)
    world.pool("a", 2, weight=0)
    world.pool("b", 3)
    world.settle()
    first = submit_low(world, "b", elastic("first", r0=(1,), r1=(2, 2, 2), r2=(2, 1, 2)))
    world.settle()
    return first, submit_low(world, "a", elastic("other", r0=(1,) * 3, r1=(1,) * 2, r2=(1,) * 3))


def test_without_the_rule_two_groups_evict_each_other_in_circles(world):
    plan_by(world, "kai-fair", gives_way_once=False)
    two_that_take_from_each_other(world)

    with pytest.raises(AssertionError, match=CIRCLE):
        world.settle()

    assert {"first-1", "other-1"} == {subject for subject, _ in preempted(world)}


def test_what_gave_way_takes_nothing_back_also_after_a_restart(world):
    plan_by(world, "kai-fair")
    first, other = two_that_take_from_each_other(world)
    world.settle()
    assert [("first-1", "reclaim")] == preempted(world)

    start_again(world)
    world.settle()

    assert [("first-1", "reclaim")] == preempted(world)
    assert [Status.RUNNING] * 2 == [world.status(first), world.status(other)]
    assert {"first-1/group": ("other-1/group",)} == gave_way(world)


def test_with_the_rule_switched_on_later_what_happened_before_counts(world):
    plan_by(world, "kai-fair", gives_way_once=False)
    two_that_take_from_each_other(world)
    with pytest.raises(AssertionError, match=CIRCLE):
        world.settle()
    assert {} == gave_way(world)

    plan_by(world, "kai-fair", gives_way_once=True)

    assert {"first-1/group", "other-1/group"} == gave_way(world).keys()


@pytest.mark.parametrize("again", [False, True], ids=["the same loop", "another loop"])
@pytest.mark.parametrize(("rule", "evicted"), [(False, ["job-1", "job-2"]), (True, ["job-1"])])
def test_by_kai_nothing_is_taken_back_when_quota_moves(world, rule, evicted, again):
    nodes(world, 4)
    world.pool("a", 0)
    world.pool("b", 4)
    plan_by(world, "kai", gives_way_once=rule)
    first = submit_low(world, "a", job(4))
    world.settle()
    other = submit_low(world, "b", job(4))
    world.settle()
    assert [("job-1", "reclaim")] == preempted(world)

    if again:
        start_again(world)
    for pool, quota in (("b", 0), ("a", 4)):
        changes = {"resources": {"gpu": {"guarantee": quota}}}
        pools.patch_pool(world.site, world.admin, pool, changes)
    world.settle()

    assert evicted == [subject for subject, _ in preempted(world)]
    runs = (Status.PENDING, Status.RUNNING) if rule else (Status.RUNNING, Status.PENDING)
    assert runs == (world.status(first), world.status(other))


def test_it_is_forgotten_when_the_group_that_gave_way_ends(world):
    nodes(world, 4)
    world.pool("a", 0)
    world.pool("b", 4)
    plan_by(world, "kai")
    first = submit_low(world, "a", job(4))
    world.settle()
    other = submit_low(world, "b", job(4))
    world.settle()
    known = {f"{first.workflow_id}/group": (f"{other.workflow_id}/group",)}
    builder = world.scheduler.live.builder
    assert known == gave_way(world) == dict(builder._gave_way.known)

    world.finish(other)
    assert Status.RUNNING is world.status(first)
    assert known == gave_way(world) == dict(builder._gave_way.known)

    world.finish(first)
    assert {} == gave_way(world) == dict(builder._gave_way.known)


@pytest.mark.parametrize("again", [False, True], ids=["the same loop", "another loop"])
def test_what_moves_goes_where_it_was_promised_room(world, again):
    """One of 9 GPUs in three tasks lies over all nodes, and one of 4 fits once it has moved."""
    nodes(world, 6, 3, 4)
    world.pool("a", 5)
    world.pool("b", 9)
    plan_by(world, "kai-fair")
    first = submit_low(world, "a", job(9, tasks=3))
    world.settle()
    assert ["n0", "n1", "n2"] == sorted(task.node for task in world.tasks(first))
    other = submit_low(world, "a", job(4, tasks=2))
    while not preempted(world):
        assert world.scheduler.cycle().leads
    promised = SnapshotBuilder(world.site).take().snapshot.progress
    assert ["n0", "n0", "n1"] == sorted(promised["job-1/group"].places.values())

    if again:
        start_again(world)
    world.settle()

    assert [("job-1", "move")] == preempted(world)
    assert ["n0", "n0", "n1"] == sorted(task.node for task in world.tasks(first))
    assert ["n2", "n2"] == [task.node for task in world.tasks(other)]
    assert {} == gave_way(world)
