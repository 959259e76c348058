"""Lists and start-up cost by what they show, not by what has ended: read from SQLite's own plans.

The indexes are those of PostgreSQL, too, whose plans go by the sizes of tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import event

from bough.control.scheduling.snapshot import SnapshotBuilder
from bough.model.workflow import ALIVE, TaskStatus, WorkflowStatus
from tests.store.usecases import Filter, TaskFilter, get_usage, query, quotas, task_list
from tests.store.world import World

#: What grows for as long as a site is used.
GROWING = ("workflows", "tasks", "task_groups", "events", "audit", "workflow_specs")
FAILED = WorkflowStatus.FAILED


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
