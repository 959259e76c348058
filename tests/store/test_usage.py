"""GPU-hours: guaranteed, preemptible and borrowed, by pool and by user."""

from __future__ import annotations

import pytest

from bough.errors import Invalid
from bough.model.cluster import Resources
from bough.model.workflow import GroupSpec, Priority, TaskSpec, WorkflowSpec
from tests.store.scheduling import cluster
from tests.store.usecases import HOUR_MS, By, get_usage, pools
from tests.store.world import START_MS, refusal

pytestmark = pytest.mark.postgresql

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


def test_a_time_that_has_not_begun_is_refused(world):
    cluster(world, 1, p=1)

    status, _ = refusal(get_usage, world.site, world.admin, world.time.ms)

    assert Invalid.http_status == status
