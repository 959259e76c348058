"""GPU-hours: guaranteed, preemptible and borrowed, by pool and by user."""

from __future__ import annotations

import sqlalchemy as sa

from bough.control.records.accounting import account
from bough.control.records.usage import read_quotas
from bough.errors import Invalid
from bough.model.cluster import Resources
from bough.model.usage_stretch import Stretch
from bough.model.workflow import HOLDING, GroupSpec, Priority, TaskSpec, WorkflowSpec
from bough.store.schema import TASKS, WORKFLOWS
from bough.store.task_search import list_stretches
from tests.store.scheduling import cluster
from tests.store.usecases import HOUR_MS, By, get_usage, pools
from tests.store.world import START_MS, refusal

HIGH, NORMAL, LOW = Priority.HIGH, Priority.NORMAL, Priority.LOW


def hours(world, by: By = By.POOL, since_ms: int = START_MS, until_ms: int | None = None):
    """All, guaranteed, preemptible and borrowed, by name."""
    report = get_usage(world.site, world.admin, since_ms, until_ms, by)
    return {each.name: each.hours for each in (*report.rows, report.total)}


def pass_hours(world, number: float) -> None:
    world.time.ms += int(number * HOUR_MS)
    world.settle()


def test_what_is_guaranteed_and_what_is_borrowed(world):
    cluster(world, 8, p=4, q=4)
    ann, ben = world.user("ann", "osmo-p-user"), world.user("ben", "osmo-p-user")
    world.submit(2, "p", NORMAL, actor=ann)
    world.settle()
    pass_hours(world, 1)
    low = world.submit(4, "p", LOW, actor=ben)
    world.settle()
    pass_hours(world, 2)
    world.finish(low)
    pass_hours(world, 1)

    # Two of ben's four GPUs were beyond the pool's quota, for two hours.
    assert {"p": (16, 8, 8, 4), "total": (16, 8, 8, 4)} == hours(world)
    expected = {"ann": (8, 8, 0, 0), "ben": (8, 0, 8, 4), "total": (16, 8, 8, 4)}
    assert expected == hours(world, By.USER)


def test_only_what_was_held_within_the_time_counts(world):
    cluster(world, 4, p=4)
    world.submit(4, "p", NORMAL)
    world.settle()
    pass_hours(world, 10)

    since_ms = START_MS + 3 * HOUR_MS
    assert (8, 8, 0, 0) == hours(world, By.POOL, since_ms, since_ms + 2 * HOUR_MS)["p"]
    assert (28, 28, 0, 0) == hours(world, By.POOL, since_ms)["total"]


def test_the_quota_of_each_moment_decides_what_was_borrowed(world):
    cluster(world, 8, p=8)
    world.submit(8, "p", LOW)
    world.settle()
    pass_hours(world, 1)
    pools.patch_pool(world.site, world.admin, "p", {"resources": {"gpu": {"guarantee": 2}}})
    pass_hours(world, 1)

    assert (16, 0, 16, 6) == hours(world)["p"]


def test_subpools_and_what_is_left_of_their_pool_have_their_own_quotas(divided):
    for pool, gpus in (("team", 15), ("team--a", 40)):
        divided.submit(gpus, pool, LOW)
    divided.settle()
    pass_hours(divided, 1)

    assert {
        "team": (15, 0, 15, 5),
        "team--a": (40, 0, 40, 10),
        "total": (55, 0, 55, 15),
    } == hours(divided)


def test_what_a_gang_has_beyond_its_minimum_is_not_guaranteed(world):
    cluster(world, 4, p=4)
    tasks = tuple(TaskSpec(f"t{n}", Resources(gpus=1), lead=n == 0) for n in range(4))
    spec = WorkflowSpec("elastic", (GroupSpec("group", tasks, minimum=1),))
    world.submit(0, "p", NORMAL, spec=spec)
    world.settle()
    pass_hours(world, 1)

    assert (4, 1, 3, 0) == hours(world)["p"]


def test_usage_is_what_each_attempt_by_itself_adds_up_to(world):
    cluster(world, 16, p=6, q=4)
    users = [world.user(f"user-{each}", "osmo-p-user", "osmo-q-user") for each in range(4)]
    for number in range(12):
        pool, priority = "pq"[number % 2], (NORMAL, LOW, HIGH)[number % 3]
        tasks = tuple(TaskSpec(f"t{n}", Resources(gpus=1), lead=n == 0) for n in range(3))
        spec = WorkflowSpec("gang", (GroupSpec("group", tasks, minimum=2),))
        name = world.submit(0, pool, priority, actor=users[number % 4], spec=spec)
        world.settle()
        pass_hours(world, 0.25)
        if number % 4 == 3:
            world.finish(name)
            pass_hours(world, 0.5)

    for since_ms in (START_MS, START_MS + HOUR_MS // 3, START_MS + 2 * HOUR_MS):
        until_ms = since_ms + HOUR_MS
        with world.site.store.read() as connection:
            quotas = read_quotas(connection)
            merged = list_stretches(connection, since_ms, until_ms)
            plain = one_by_one(connection, since_ms, until_ms)
        assert len(merged) < len(plain)
        assert account(plain, quotas, since_ms, until_ms) == account(
            merged, quotas, since_ms, until_ms
        )


def one_by_one(connection, since_ms: int, until_ms: int) -> list[Stretch]:
    """Every attempt that had GPUs, read as plainly as can be."""
    both = TASKS.join(WORKFLOWS, WORKFLOWS.c.uuid == TASKS.c.workflow_uuid)
    query = sa.select(TASKS, *(WORKFLOWS.c[name] for name in OF_WORKFLOW)).select_from(both)
    found = []
    for row in connection.execute(query).mappings():
        holds = row["status"] in {each.value for each in HOLDING}
        end_ms = until_ms if row["ended_ms"] is None else row["ended_ms"]
        if row["scheduled_ms"] is None or not (holds or end_ms > since_ms):
            continue
        if row["gpus"] and row["scheduled_ms"] < until_ms and (holds or row["ended_ms"]):
            sure = row["priority"] != LOW.value and not row["growth"]
            who = (row["pool"], row["submitted_by"], row["gpus"], sure, row["submitted_ms"])
            found.append(Stretch(*who, row["scheduled_ms"], end_ms, row["workflow_uuid"]))
    return found


OF_WORKFLOW = ("pool", "submitted_by", "priority", "submitted_ms")


def test_a_time_that_has_not_begun_is_refused(world):
    cluster(world, 1, p=1)

    status, _ = refusal(get_usage, world.site, world.admin, world.time.ms)

    assert Invalid.http_status == status
