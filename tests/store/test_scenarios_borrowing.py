"""Scenarios 156 to 175: borrowing, reclaim, levels, gangs; and what surrounds them."""

from __future__ import annotations

import contextlib

from bough.errors import Unavailable
from bough.model.backend import Launch, Start
from bough.model.change_record import EventKind
from bough.model.cluster import Resources
from bough.model.subpool import SubpoolState
from bough.model.workflow import GroupSpec, Priority, TaskSpec, TaskStatus, WorkflowSpec
from bough.model.workflow import WorkflowStatus as Status
from tests.store.scheduling import cluster, later, statuses
from tests.store.usecases import Filter, Scheduler, VirtualBackend, event_order, pools, query

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


def borrowing(world):
    """4 GPUs of two pools; pool1 has borrowed one of pool2's."""
    cluster(world, 4, pool1=2, pool2=2)
    first, second = later(world, 1, "pool1", NORMAL), later(world, 1, "pool1", LOW)
    fourth = later(world, 1, "pool2", NORMAL)
    third = later(world, 1, "pool1", LOW)
    world.settle()
    assert [Status.RUNNING] * 4 == statuses(world, first, second, third, fourth)
    return first, second, third, fourth


def test_scenarios_156_157_and_172_borrowed_gpus_are_reclaimed_and_given_back(world):
    _, second, third, _ = borrowing(world)
    fifth = later(world, 1, "pool2", NORMAL)
    world.settle()
    assert [Status.RUNNING, Status.PENDING, Status.RUNNING] == statuses(world, second, third, fifth)

    world.finish(fifth)

    assert Status.RUNNING is world.status(third)
    assert 1 == world.tasks(third)[0].retry_id


def test_scenario_158_normal_never_borrows(world):
    cluster(world, 4, pool1=2, pool2=2)
    for pool, count in (("pool1", 2), ("pool2", 1)):
        for _ in range(count):
            later(world, 1, pool, NORMAL)
    waiting = later(world, 1, "pool1", NORMAL)
    world.settle()

    assert Status.PENDING is world.status(waiting)


def test_scenario_159_low_of_a_pool_within_its_quota_is_safe_from_others(world):
    cluster(world, 4, pool1=2, pool2=3)
    normal, low = later(world, 1, "pool1", NORMAL), later(world, 1, "pool1", LOW)
    for _ in range(2):
        later(world, 1, "pool2", NORMAL)
    world.settle()
    inside_its_quota = later(world, 1, "pool2", NORMAL)
    world.settle()

    assert [Status.RUNNING, Status.RUNNING, Status.PENDING] == statuses(
        world, normal, low, inside_its_quota
    )


def test_scenario_159_low_is_safe_from_what_is_beyond_anothers_quota(world):
    cluster(world, 4, pool1=2, pool2=2)
    ours = [later(world, 1, "pool1", NORMAL), later(world, 1, "pool1", LOW)]
    theirs = [later(world, 1, "pool2", NORMAL) for _ in range(2)]
    world.settle()
    beyond = later(world, 1, "pool2", NORMAL)
    world.settle()

    assert [*[Status.RUNNING] * 4, Status.PENDING] == statuses(world, *ours, *theirs, beyond)


def test_scenario_160_borrowing_ends_at_the_nodes_and_at_the_maximum(world):
    cluster(world, 4, pool2=2)
    world.pool("pool1", 2, maximum=3)
    lows = [later(world, 1, "pool1", LOW) for _ in range(4)]
    world.settle()
    assert [Status.RUNNING] * 3 + [Status.PENDING] == statuses(world, *lows)

    others = [later(world, 1, "pool2", LOW) for _ in range(2)]
    world.settle()

    assert 1 == statuses(world, *others).count(Status.RUNNING)


def test_scenario_161_capacity_is_not_quota(world):
    borrowing(world)

    usage = {name: row.usage for name, row in world.rows().items()}
    assert (1, 2, 3, 4) == (
        usage["pool1"].quota_used,
        usage["pool1"].quota_limit,
        usage["pool1"].total_usage,
        usage["pool1"].total_capacity,
    )
    assert (1, 1, 4) == (
        usage["pool2"].quota_used,
        usage["pool2"].total_usage,
        usage["pool2"].total_capacity,
    )


def test_scenario_163_guaranteed_work_takes_back_just_what_it_needs(world):
    cluster(world, 100, B=50)
    world.pool("A", 30, maximum=70)
    later(world, 30, "A", NORMAL)
    lows = [later(world, 4, "A", LOW) for _ in range(10)]
    later(world, 30, "B", NORMAL)
    world.settle()
    assert [Status.RUNNING] * 10 == statuses(world, *lows)

    more = later(world, 4, "B", NORMAL)
    world.settle()

    assert Status.RUNNING is world.status(more)
    assert 1 == statuses(world, *lows).count(Status.PENDING)


def test_scenarios_164_and_165_low_waits_and_normal_preempts_its_own_pools_low(world):
    cluster(world, 100, B=50)
    world.pool("A", 30, maximum=70)
    later(world, 25, "A", NORMAL)
    lows = [later(world, 5, "A", LOW) for _ in range(8)]
    later(world, 35, "B", NORMAL)
    world.settle()
    waiting = later(world, 5, "A", LOW)
    world.settle()
    assert Status.PENDING is world.status(waiting)

    normal = later(world, 5, "A", NORMAL)
    world.settle()

    assert Status.RUNNING is world.status(normal)
    assert 1 == statuses(world, *lows).count(Status.PENDING)
    assert (30, 30, 0) == world.numbers("A")


def test_scenario_166_idle_gpus_are_shared_by_weight(world):
    cluster(world, 20)
    world.pool("A", 0, weight=1)
    world.pool("B", 0, weight=3)
    for _ in range(20):
        later(world, 1, "A", LOW)
        later(world, 1, "B", LOW)
    world.settle()

    assert (5, 15) == tuple(world.rows()[name].usage.total_usage for name in ("A", "B"))


def test_scenario_167_a_subpools_guarantee_is_reclaimed_from_a_whole_gang(divided):
    low = divided.run(15, priority=LOW)
    divided.run(40, "team--b")
    divided.run(20, "team--c")

    high = divided.submit(30, "team--a")
    divided.settle()

    assert [Status.PENDING, Status.RUNNING] == statuses(divided, low, high)


def test_scenario_167_an_elastic_gang_gives_back_only_what_it_can_spare(divided):
    tasks = tuple(
        TaskSpec(f"task-{number}", Resources(gpus=1), lead=number == 0) for number in range(15)
    )
    elastic = WorkflowSpec("elastic", (GroupSpec("group", tasks, minimum=10),))
    low = divided.submit(0, "team", LOW, spec=elastic)
    divided.settle()
    assert 15 == sum(task.status is TaskStatus.RUNNING for task in divided.tasks(low))
    divided.run(40, "team--b")
    divided.run(20, "team--c")

    high = divided.submit(30, "team--a")
    divided.settle()

    assert [Status.RUNNING, Status.RUNNING] == statuses(divided, low, high)
    assert 10 == sum(task.status is TaskStatus.RUNNING for task in divided.tasks(low))
    given_back = [task for task in divided.tasks(low, every=True) if task.status.finished]
    assert {TaskStatus.RESCHEDULED} == {task.status for task in given_back}
    divided.finish(high)
    assert 15 == sum(task.status is TaskStatus.RUNNING for task in divided.tasks(low))


def test_scenario_168_a_pool_within_its_quota_is_safe_whatever_its_subpools_borrow(world):
    cluster(world, 100, team=60, other=50)
    world.split(a=30, b=30)
    inside, others = later(world, 60, "team--a", LOW), later(world, 40, "other", HIGH)
    world.settle()
    assert [Status.RUNNING, Status.RUNNING] == statuses(world, inside, others)

    # team--a is 30 above its own, and team has just what is its: another pool waits,
    more = later(world, 10, "other", HIGH)
    world.settle()
    assert [Status.RUNNING, Status.PENDING] == statuses(world, inside, more)
    # and a sibling does not.
    sibling = later(world, 10, "team--b", HIGH)
    world.settle()
    assert [Status.PENDING, Status.RUNNING] == statuses(world, inside, sibling)


def test_scenario_168_subpools_reclaim_from_each_other_and_pools_from_pools(world):
    cluster(world, 100, team=60, other=40)
    world.split(a=30, b=30)
    inside = later(world, 60, "team--a", LOW)
    world.settle()
    sibling = later(world, 30, "team--b", HIGH)
    world.settle()
    assert [Status.RUNNING, Status.RUNNING] == statuses(world, inside, sibling)

    theirs = later(world, 40, "other", HIGH)
    world.settle()

    assert [Status.PENDING, Status.RUNNING, Status.RUNNING] == statuses(
        world, inside, sibling, theirs
    )


def test_scenario_169_a_gang_starts_and_ends_as_a_whole(world):
    cluster(world, 4, p=4)
    task = TaskSpec("t", Resources(gpus=1))
    members = tuple(
        TaskSpec(f"task-{number}", task.requests, lead=number == 0) for number in range(4)
    )
    gang = WorkflowSpec("gang", (GroupSpec("group", members),))
    one = later(world, 1, "p", LOW)
    world.settle()
    low = world.submit(0, "p", LOW, spec=gang)
    world.settle()
    assert {TaskStatus.SCHEDULING} == {each.status for each in world.tasks(low)}
    world.cancel(one)
    assert {TaskStatus.RUNNING} == {each.status for each in world.tasks(low)}

    later(world, 1, "p", NORMAL)
    world.settle()

    assert {(1, TaskStatus.SCHEDULING)} == {(t.retry_id, t.status) for t in world.tasks(low)}


def test_scenario_170_the_submit_time_is_kept_over_many_preemptions(world):
    cluster(world, 1, p=1)
    low = later(world, 1, "p", LOW)
    world.settle()
    for retry in (1, 2, 3):
        normal = later(world, 1, "p", NORMAL)
        world.settle()
        world.finish(normal)
        assert retry == world.tasks(low)[0].retry_id

    assert low.submitted_ms == world.get(low).submitted_ms
    assert Status.RUNNING is world.status(low)


def test_scenario_171_low_overtakes_what_waits_for_quota(world):
    cluster(world, 8, p=4, q=4)
    later(world, 4, "p", NORMAL)
    waiting, low = later(world, 1, "p", NORMAL), later(world, 2, "p", LOW)
    world.settle()

    assert [Status.PENDING, Status.RUNNING] == statuses(world, waiting, low)


def test_scenario_174_workflows_are_listed_by_priority_and_status(world):
    cluster(world, 1, p=1)
    task = TaskSpec("task", Resources(gpus=1), lead=True, exit_actions={"FAIL": "3006"})
    gone = world.submit(1, "p", LOW, spec=WorkflowSpec("gone", (GroupSpec("group", (task,)),)))
    world.settle()
    normal, low = later(world, 1, "p", NORMAL), later(world, 1, "p", LOW)
    world.settle()

    def listed(**fields) -> list[str]:
        page = query.list_workflows(world.site, world.admin, Filter(**fields))
        return [each.workflow_id for each in page.workflows]

    assert [low.workflow_id, gone.workflow_id] == listed(priorities=(LOW,))
    assert [low.workflow_id, normal.workflow_id, gone.workflow_id] == listed()
    assert [gone.workflow_id] == listed(statuses=(Status.FAILED_PREEMPTED,))


def test_scenario_175_any_number_of_low_never_delays_what_is_guaranteed(world):
    cluster(world, 4, p=2)
    for _ in range(60):
        later(world, 1, "p", LOW)
    world.settle()
    normal = later(world, 1, "p", NORMAL)

    # One cycle takes a GPU back for it; when that is free, it has it.
    world.scheduler.cycle()
    world.scheduler.cycle()

    assert Status.RUNNING is world.status(normal)


def test_an_eviction_says_for_which_gang_and_at_what_level(world):
    borrowing(world)
    later(world, 1, "pool2", NORMAL)
    world.settle()

    with world.site.store.read() as connection:
        events = event_order.events_after(connection, 0)
    (event,) = [each for each in events if each.kind is EventKind.PREEMPTED]
    assert ("job-4", "reclaim", "job-5/group", "the whole cluster") == (
        event.subject,
        event.data["rule"],
        event.data["preemptor"],
        event.data["level"],
    )


def test_what_runs_goes_on_when_its_pool_shrinks(world):
    cluster(world, 10, p=10)
    normal = later(world, 8, "p", NORMAL)
    world.settle()

    change = pools.patch_pool(
        world.site, world.admin, "p", {"resources": {"gpu": {"guarantee": 4}}}
    )
    world.settle()

    assert Status.RUNNING is world.status(normal)
    assert (4, 8, -4) == world.numbers("p")
    assert () == change.effects.tangled


def test_scenario_162_low_within_its_own_idle_quota_has_borrowed_nothing(world):
    cluster(world, 4, pool1=2, pool2=4)
    lows = [later(world, 1, "pool1", LOW) for _ in range(2)]
    world.settle()
    beyond = [later(world, 1, "pool2", NORMAL) for _ in range(3)]
    world.settle()

    assert [Status.RUNNING] * 2 == statuses(world, *lows)
    assert [Status.RUNNING, Status.RUNNING, Status.PENDING] == statuses(world, *beyond)


def test_scenario_042_what_is_started_around_the_server_is_not_counted(world):
    cluster(world, 4, p=4)
    launch = Launch("stranger/0", "stranger", "node-0", gpus=4)
    world.backend.start(Start("stranger-1", "group", (launch,)))
    world.settle()

    assert (4, 0, 4) == world.numbers("p")
    assert Status.RUNNING is world.status(world.run(4, "p", NORMAL))


class Stubborn(VirtualBackend):
    """Refuses the first calls."""

    refusals = 3

    def start(self, start: Start) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("not now")
        super().start(start)


class Absent(VirtualBackend):
    """Does not answer until it is there again."""

    there = False

    def _answer(self) -> None:
        if not self.there:
            raise Unavailable("nobody at home")

    def nodes(self):
        self._answer()
        return super().nodes()

    def observe(self):
        self._answer()
        return super().observe()

    def start(self, start: Start) -> None:
        self._answer()
        super().start(start)


def test_scenario_065_a_division_that_no_backend_has_heard_of_holds_and_comes_true(team):
    team.scheduler.release()
    backend = Absent(team.backend.nodes(), team.time.now_ms)
    team.backend = backend
    team.scheduler = Scheduler(team.site, (backend,))
    team.create("a", 30)
    inside, beyond = team.submit(30, "team--a"), team.submit(5, "team--a")
    for _ in range(2):
        with contextlib.suppress(Unavailable):
            team.scheduler.cycle()

    assert {"_shared": 70, "a": 30} == team.leaf_quotas()
    assert team.invariant_holds()
    assert SubpoolState.ACTIVE is team.state("a")
    assert [] == list(backend._attempts)

    backend.there = True
    team.settle()
    assert [Status.RUNNING, Status.PENDING] == statuses(team, inside, beyond)
    assert (30, 30, 0) == team.numbers("team--a")


def test_what_a_backend_could_not_be_told_is_told_again(world):
    cluster(world, 4, p=4)
    world.scheduler.release()
    backend = Stubborn(world.backend.nodes(), world.time.now_ms)
    world.backend = backend
    world.scheduler = Scheduler(world.site, (backend,))
    workflow = world.submit(2, "p", NORMAL)

    seen = []
    for _ in range(6):
        world.scheduler.cycle()
        seen.append(world.tasks(workflow)[0].status)

    assert [TaskStatus.INITIALIZING] * 3 + [TaskStatus.RUNNING] * 3 == seen
    assert 0 == backend.refusals
    assert world.invariant_holds("p")
