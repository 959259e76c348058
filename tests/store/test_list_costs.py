"""Lists and start-up cost by what they show, not by what has ended: read from SQLite's own plans.

The indexes are those of PostgreSQL, too, whose plans go by the sizes of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from bough.control.scheduling.snapshot import SnapshotBuilder
from bough.model.workflow import ALIVE, TaskStatus, WorkflowStatus
from tests.bench import crowd
from tests.bench import history as past
from tests.store.usecases import (
    Filter,
    Site,
    TaskFilter,
    get_usage,
    query,
    quotas,
    task_list,
)
from tests.store.world import World

#: What grows for as long as a site is used.
GROWING = ("workflows", "tasks", "task_groups", "events", "audit", "workflow_specs")
FAILED = WorkflowStatus.FAILED
DONE = tuple(each for each in WorkflowStatus if each not in ALIVE)


@pytest.fixture
def site_world(sqlite_files) -> Iterator[World]:
    address = sqlite_files.make()
    world = World(sqlite_files.open(address))
    world.pool("team", 100)
    world.split(a=30)
    for pool in ("team", "team--a", "team"):
        world.submit(30, pool)
    world.settle()
    yield world
    world.close()
    sqlite_files.give_back(address)


def plans(world: World, work: Callable[[], object]) -> list[list[str]]:
    """How SQLite finds what is asked for, step by step, for each question about what grows."""
    asked: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, text: str, values: Any, *_more: Any) -> None:
        asked.append((text, values))

    engine = world.site.store.engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        work()
    finally:
        event.remove(engine, "before_cursor_execute", note)
    found: list[list[str]] = []
    with world.site.store.read() as connection:
        for text, values in asked:
            if text.startswith("SELECT") and any(f" {table}" in text for table in GROWING):
                steps = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)
                found.append([step.detail for step in steps])
    return found


def scans(steps: list[str]) -> list[str]:
    """Steps that look at every row of something that grows."""
    return [each for each in steps if each.startswith(tuple(f"SCAN {name}" for name in GROWING))]


@pytest.mark.parametrize(
    ("wanted", "index"),
    [
        ({"users": ("root",)}, "workflows_user_submitted"),
        ({"pools": ("team",)}, "workflows_pool_submitted"),
        ({"statuses": (FAILED,)}, "workflows_status_submitted"),
    ],
)
def test_a_list_of_workflows_is_read_in_its_order_as_far_as_it_is_shown(site_world, wanted, index):
    site, admin = site_world.site, site_world.admin

    steps, *others = plans(site_world, lambda: query.list_workflows(site, admin, Filter(**wanted)))

    (step,) = steps
    assert step.startswith(f"SEARCH workflows USING INDEX {index}")
    assert [] == [each for more in others for each in scans(more)]


def test_a_list_of_all_workflows_ends_where_the_page_does(site_world):
    site, admin = site_world.site, site_world.admin

    steps, *others = plans(site_world, lambda: query.list_workflows(site, admin, Filter()))

    assert ["SCAN workflows USING INDEX workflows_submitted"] == steps
    assert [] == [each for more in others for each in scans(more)]


@pytest.mark.parametrize(
    "read",
    [
        quotas.pool_quotas,
        quotas.list_queues,
        lambda site, admin: query.list_workflows(site, admin, Filter(statuses=ALIVE)),
        lambda site, admin: task_list.list_tasks(
            site, admin, TaskFilter(statuses=(TaskStatus.RUNNING, TaskStatus.SCHEDULING))
        ),
        lambda site, admin: get_usage(site, admin, site.clock.now_ms() - 1_000),
        lambda site, _admin: SnapshotBuilder(site).take(),
    ],
    ids=["pool list", "queue list", "what is alive", "task list", "usage", "start-up"],
)
def test_what_has_ended_is_not_looked_at(site_world, read):
    found = plans(site_world, lambda: read(site_world.site, site_world.admin))

    assert found
    assert [] == [each for steps in found for each in scans(steps)]


#: The steps of SQLite's own machine between two calls of a counter.
STRIDE = 100
FINISHED = 1_000
SUBPOOLS = 40


class Work(NamedTuple):
    """What the database did: the same on every machine, however busy that is."""

    statements: int
    steps: int


def work_of(site: Site, read: Callable[[], object]) -> Work:
    """What it costs to read something for the first time: nothing that was answered is kept."""
    statements, steps = count(), count()
    site.kept.forget_answers()

    def begin(connection: sa.Connection) -> None:
        driver: Any = connection.connection.driver_connection
        driver.set_progress_handler(lambda: next(steps) and 0, STRIDE)

    def note(*_: Any) -> None:
        next(statements)

    engine = site.store.engine
    listeners = (("begin", begin), ("before_cursor_execute", note))
    for name, listener in listeners:
        event.listen(engine, name, listener)
    try:
        read()
    finally:
        for name, listener in listeners:
            event.remove(engine, name, listener)
    return Work(next(statements), next(steps) * STRIDE)


def reads(site: Site) -> dict[str, Callable[[], object]]:
    """What people and the loop ask for, as commands ask for it."""
    admin = crowd.ADMIN
    current = (TaskStatus.RUNNING, TaskStatus.SCHEDULING, TaskStatus.PROCESSING)
    mine = TaskFilter(statuses=current, users=("user-1",), pools=(crowd.WHOLE,))
    week_ms = 7 * 24 * 3_600 * 1_000
    listed = partial(query.list_workflows, site, admin)
    return {
        "pool list": lambda: quotas.pool_quotas(site, admin),
        "queue list": lambda: quotas.list_queues(site, admin),
        "workflow list": lambda: listed(Filter()),
        "workflow list of a user": lambda: listed(Filter(users=("user-1",))),
        "workflow list of a pool": lambda: listed(Filter(pools=(crowd.WHOLE,))),
        "workflow list of what is alive": lambda: listed(Filter(statuses=ALIVE)),
        "workflow list as long as it can be": lambda: listed(Filter(statuses=ALIVE, limit=10_000)),
        "workflow list of a label": lambda: listed(Filter(no_labels=("team=a",))),
        "task list": lambda: task_list.list_tasks(site, admin, TaskFilter(statuses=current)),
        "task list of a user in a pool": lambda: task_list.list_tasks(site, admin, mine),
        "usage": lambda: get_usage(site, admin, site.clock.now_ms() - week_ms),
        "start-up": lambda: SnapshotBuilder(site).take(),
    }


class Measured(NamedTuple):
    #: By what is read: what it takes without finished workflows, and with many.
    costs: dict[str, tuple[Work, Work]]
    #: By the length of a page of finished workflows.
    pages: dict[int, Work]


@pytest.fixture(scope="module")
def measured(sqlite_files) -> Iterator[Measured]:
    address = sqlite_files.make(migrated=False)
    crowd.fill(address, 100, SUBPOOLS)
    site = Site(sqlite_files.open(address), namespace=crowd.NAMESPACE)
    # What is kept from before a first read is not what this is about.
    few = {what: (read(), work_of(site, read))[1] for what, read in reads(site).items()}
    past.fill(site, FINISHED)
    many = {what: (read(), work_of(site, read))[1] for what, read in reads(site).items()}
    listed = partial(query.list_workflows, site, crowd.ADMIN)
    pages = {
        length: work_of(site, partial(listed, Filter(statuses=DONE, limit=length)))
        for length in (FINISHED // 10, FINISHED)
    }
    yield Measured({what: (few[what], many[what]) for what in few}, pages)
    sqlite_files.give_back(address)


@pytest.fixture
def costs(measured: Measured) -> dict[str, tuple[Work, Work]]:
    return measured.costs


def test_a_thousand_finished_workflows_cost_nothing_noticeable(costs):
    assert [] == [what for what, (few, many) in costs.items() if few.statements != many.statements]
    # A search in a larger index has a few steps more.
    noticed = {
        what: (few.steps, many.steps)
        for what, (few, many) in costs.items()
        if many.steps > 1.2 * few.steps + 1_000
    }
    assert {} == noticed


def test_forty_subpools_are_read_with_as_many_statements_as_one(site_world, costs):
    site, admin = site_world.site, site_world.admin
    for what, read in (
        ("pool list", partial(quotas.pool_quotas, site, admin)),
        ("queue list", partial(quotas.list_queues, site, admin)),
        ("usage", partial(get_usage, site, admin, site.clock.now_ms() - 1_000)),
    ):
        read()
        assert work_of(site, read).statements == costs[what][0].statements


def test_a_page_of_workflows_costs_by_its_length(measured):
    short, long = measured.pages.values()

    assert short.steps > FINISHED // 10
    assert long.steps <= 12 * short.steps
    # Some more statements: what belongs to workflows is read for many of them at once.
    assert long.statements - short.statements < 30
