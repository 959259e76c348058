"""A server that is killed while it archives: each workflow is in one place, and is whole there."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from bough.store.schema import ARCHIVE, ARCHIVED_STRETCHES, GROUPS, SPECS, TASKS, WORKFLOWS
from tests.store.usecases import Store, get_usage, query, settings
from tests.store.world import START_MS, World, job
from tests.warm import Program

WORKFLOWS_EACH = 40
KILLS = 6
DAYS_MS = 2 * 24 * 3_600 * 1_000
#: Archives one after the other, and says so before each: so it is killed somewhere in one.
PROGRAM = """
import sys
from bough.control.site import Site
from bough.control.workflows import archive
from bough.store import Store

class Time:
    def now_ms(self):
        return int(sys.argv[2])

archive.AT_ONCE = 1
site = Site(Store.open(sys.argv[1]), Time())
print("ready", flush=True)
while archive.archive_due(site):
    print("one", flush=True)
print("all", flush=True)
"""


def test_what_is_archived_when_the_server_is_killed_is_neither_lost_nor_twice(tmp_path: Path):
    path = tmp_path / "site.db"
    names, before = fill(path)
    now_ms = START_MS + DAYS_MS
    here, there = names, list[str]()
    for turn in range(KILLS + 1):
        with Program(PROGRAM, str(path), str(now_ms)) as running:
            for _ in range(2 + turn):
                running.stdout.readline()
            if turn < KILLS:
                running.kill()
            else:
                assert "all" == running.stdout.read().split()[-1]
        here, there, halves = look(path)
        assert names == sorted([*here, *there])
        assert [] == halves
        assert before == usage(path)
    assert ([], names) == (here, there)


def fill(path: Path) -> tuple[list[str], int]:
    """Workflows that ended long ago; their names, and all GPU time."""
    from bough.store.migration import upgrade

    store = Store.open(path)
    upgrade(store)
    world = World(store)
    world.pool("team", 100)
    names: list[str] = []
    for _ in range(WORKFLOWS_EACH):
        workflow = world.submit(2, spec=job(2, tasks=2))
        names.append(workflow.workflow_id)
    world.settle()
    world.time.pass_minutes(10)
    for name in names:
        world.finish(query.get_workflow(world.site, world.admin, name).workflow)
    settings.patch_workflow_settings(world.site, world.admin, {"archive_after": "1d"})
    world.close()
    store.close()
    return sorted(names), usage(path)


def look(path: Path) -> tuple[list[str], list[str], list[str]]:
    """Those not archived, those archived, and what belongs to none of either."""
    store = Store.open(path)
    with store.read() as connection:
        here = connection.execute(sa.select(WORKFLOWS.c.uuid, WORKFLOWS.c.workflow_id)).all()
        there = connection.execute(sa.select(ARCHIVE.c.uuid, ARCHIVE.c.workflow_id)).all()
        halves: list[str] = []
        for table, owners in (
            (GROUPS, here),
            (TASKS, here),
            (SPECS, here),
            (ARCHIVED_STRETCHES, there),
        ):
            found = set(connection.execute(sa.select(table.c.workflow_uuid)).scalars())
            halves += [f"{table.name} {each}" for each in found ^ {row.uuid for row in owners}]
    store.close()
    return sorted(row[1] for row in here), sorted(row[1] for row in there), halves


def usage(path: Path) -> int:
    store = Store.open(path)
    world = World(store)
    world.time.ms += DAYS_MS
    found = get_usage(world.site, world.admin, START_MS).total.total_ms
    store.close()
    return found
