"""All writers lock in one order, so that none of them waits for another that waits for it."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
import sqlalchemy as sa

from bough.control.workflows.moving import move_workflow
from bough.errors import BoughError, Conflict, Invalid
from bough.store import write_batches
from tests.store.locks import watching
from tests.store.racers import at_once
from tests.store.usecases import (
    Bell,
    Store,
    cancelling,
    history_export,
    node_cordon,
    policy,
    pools,
    profiles,
    query,
    settings,
)
from tests.store.world import World, big_node

pytestmark = pytest.mark.postgresql

#: How often ten requests are sent at once; more in a soak.
ROUNDS = int(os.environ.get("BOUGH_RACE_ROUNDS", "6"))
NODES = 4
WORKFLOWS = 30


@pytest.fixture
def crowded(world: World) -> World:
    """Pools `team` and `other` on the same four nodes of 25 GPUs, with as much work as fits."""
    world.backend.offer(tuple(big_node(25, f"node-{number}") for number in range(NODES)))
    world.pool("team", 50)
    world.pool("other", 50)
    world.create("part", 10)
    for number in range(WORKFLOWS):
        world.submit(5, ("team", "other", "team--part")[number % 3])
    world.settle()
    return world


def deadlocks(store: Store) -> int:
    """How many PostgreSQL has ended in this database."""
    if store.is_sqlite:
        return 0
    with store.engine.connect() as connection:
        return connection.execute(
            sa.text("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        ).scalar_one()


def requests(world: World) -> list[Callable[[], object]]:
    """Everything that changes what plans depend on, and what they change, at a few places."""
    site, admin = world.site, world.admin
    node = f"node-{random.randrange(NODES)}"
    name = f"job-{random.randrange(1, WORKFLOWS + 1)}"
    interval = {"subpool_drain_check_interval": "5m"}
    return [
        partial(node_cordon.drain_node, site, admin, node),
        partial(node_cordon.set_cordoned, site, admin, node, cordoned=True),
        partial(node_cordon.set_cordoned, site, admin, node, cordoned=False),
        partial(cancelling.cancel, site, admin, name),
        partial(move_workflow, site, admin, name, random.choice(("team", "other"))),
        partial(query.tag, site, admin, name, add=("seen",)),
        partial(world.submit, 5, random.choice(("team", "other"))),
        partial(pools.patch_pool, site, admin, "other", {"description": name}),
        partial(world.update, "part", random.randrange(5, 15)),
        partial(settings.patch_workflow_settings, site, admin, interval),
    ]


def test_drains_cordons_cancels_and_moves_never_end_each_other(crowded):
    """While the scheduler decides, too: none is told to try again, and PostgreSQL ends none."""
    site = crowded.site
    before = deadlocks(site.store)
    failures: Counter[str] = Counter()
    stop, bell = threading.Event(), Bell()
    loop = threading.Thread(target=crowded.scheduler.run, args=(bell, stop, 0.01))

    def ask(request: Callable[[], object]) -> None:
        bell()
        try:
            request()
        except BoughError as error:
            if error.http_status >= 500:
                failures[str(error)[:200]] += 1

    loop.start()
    try:
        for _ in range(ROUNDS):
            at_once(*(partial(ask, request) for request in requests(crowded)))
    finally:
        stop.set()
        bell()
        loop.join(30)
    # What a connection counted is told by it once a second at most, and when it is closed.
    site.store.close()
    time.sleep(0 if site.store.is_sqlite else 0.1)
    assert (Counter(), 0) == (failures, deadlocks(site.store) - before)


def test_every_writer_locks_in_the_order_that_is_written_down(crowded):
    site, admin, team = crowded.site, crowded.admin, crowded
    with watching(site.store.engine) as watch:
        for _ in range(3):
            for request in requests(crowded):
                with suppress(Conflict, Invalid):
                    request()
            team.settle()
        team.cohort("above", quota=10)
        team.pool("third", 10, cohort="above")
        world_of_two = {name: {"description": "two at once"} for name in ("team", "third")}
        with suppress(Conflict, Invalid):
            pools.put_pools(site, admin, world_of_two)
        pools.rename_pool(site, admin, "other", "another")
        team.delete("part")
        team.check_drains()
        policy.put_policy(site, admin, policy.Written(fields={"preset": "kai"}))
        actor = team.user("una", "osmo-user")
        profiles.set_profile(site, actor, {"pool": "another"})
        pools.delete_pool(site, admin, "third")
        team.backend.offer((big_node(25, "node-9"),))
        team.time.pass_minutes(10)
        team.settle()
        settings.patch_workflow_settings(site, admin, {"archive_after": "1d"})
        team.time.pass_minutes(10 * 24 * 60)
        team.settle()
        page = history_export.read_page(site, admin, team.time.ms, None, 100)
        history_export.drop(site, admin, [each["workflow"]["uuid"] for each in page.workflows])
        pools.rename_pool(site, admin, "another", "other")
    assert {"pools", "the version", "nodes", "workflows", "task_groups"} <= watch.locked
    assert {"workflow_specs", "archived_workflows"} <= watch.locked
    assert [] == sorted(set(watch.faults))


def test_writers_that_share_a_commit_have_an_order_each(store, monkeypatch):
    """As the lease, whose thread writes now and then, and a request at the same moment."""
    if not store.is_sqlite:
        return
    turns = store._turns
    monkeypatch.setattr(write_batches, "LONGEST_S", 60)
    turns._commit_s = 60.0
    begun = threading.Event()

    def first() -> None:
        with store.write() as connection:
            connection.exec_driver_sql("DELETE FROM profiles")
            begun.set()
            while not turns._waiting:
                time.sleep(0.001)

    def second() -> None:
        begun.wait()
        with store.write() as connection:
            connection.exec_driver_sql("UPDATE leadership SET beat = beat + 1")

    with watching(store.engine) as watch:
        at_once(first, second)
    assert ({"profiles", "leadership"}, []) == (watch.locked, watch.faults)
