"""A snapshot that was brought in step is the one that would be taken anew, whatever happened."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st

from bough.control.pools.pool_fields import pool_document
from bough.control.pools.pool_words import PoolWords
from bough.control.records import change_history
from bough.control.scheduling.snapshot import REREAD_MS, SnapshotBuilder, SnapshotView
from bough.core.cycle.waits import Waits
from bough.errors import Conflict, Invalid, NotFound
from bough.model.cluster import Resources
from bough.model.reason import WaitReason
from bough.model.workflow import ALIVE, Priority, WorkflowStatus
from bough.store.migration import upgrade
from bough.store.schema import WORKFLOWS
from tests.store.databases import PostgresServer
from tests.store.usecases import (
    Explainer,
    Store,
    new_explainer,
    node_cordon,
    node_sync,
    pools,
    query,
    task_store,
)
from tests.store.world import World, big_node, job

pytestmark = pytest.mark.postgresql

POOLS = ("team", "other", "team--a", "team--b")
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("submit", "cycle", "finish", "cancel", "create", "update", "delete"),
                *("resize", "limit", "rename", "cordon", "offer"),
            ]
        ),
        st.sampled_from(POOLS),
        st.integers(1, 70),
    ),
    min_size=1,
    max_size=16,
)


def same_pictures(world: World, kept: SnapshotBuilder | None = None) -> bool:
    """Whether a builder that remembers sees what a new one sees; by default the scheduler's own."""
    now = (kept or world.scheduler.live.builder).take()
    fresh = SnapshotBuilder(world.site).take()
    assert fresh.snapshot == now.snapshot
    assert _seen(fresh) == _seen(now)
    if kept is None:
        # The scheduler did not plan for what was taken from its view.
        world.scheduler.live._is_ahead = True
        # What the scheduler writes about its own plans is known to itself alone.
        assert (fresh.waits.told(), fresh.nominated) == (now.waits.told(), now.nominated)
    return True


def same_explanations(world: World, kept: Explainer) -> bool:
    """Whether a builder that remembers says why work waits as a new one does."""
    waiting = query.Filter(statuses=(WorkflowStatus.PENDING,))
    for each in query.list_workflows(world.site, world.admin, waiting).workflows[:3]:
        fresh = new_explainer(world.site).explain(world.admin, each.workflow_id)
        assert fresh == kept.explain(world.admin, each.workflow_id)
    return True


def stored_is_what_the_plan_says(world: World) -> bool:
    """Whether each group waits, in the store, for what a plan says that is read one by one."""
    decided = world.scheduler.live.decide()
    view, plan = decided.view, decided.plan
    words, stored = PoolWords(world.site), view.waits.told()
    for wait in Waits(view.snapshot, view.policy, plan).every():
        entry = view.entries[wait.workload]
        said = (wait.reason, wait.say(words))
        if entry.pool in view.offline:
            said = (WaitReason.BACKEND.value, view.offline[entry.pool])
        (group,) = query.get_workflow(world.site, world.admin, entry.workflow.uuid).groups
        assert said == (group.wait_reason, group.wait_message) == stored[group.uuid]
    return True


def b(world: World) -> str:
    return world.site.leaf_queue("team", "b")


def _seen(view: SnapshotView) -> dict[str, tuple[object, ...]]:
    return {
        name: (entry.workflow, entry.group.status, entry.tasks, entry.pool, entry.queue)
        for name, entry in view.entries.items()
    }


def test_what_is_not_touched_stays_the_same_object(team):
    team.split(a=30, b=40)
    for pool in ("team--a", "team--b", "team"):
        team.submit(5, pool)
    kept = SnapshotBuilder(team.site)
    before = kept.take().snapshot
    assert not kept.look()

    team.submit(5, "team--a")

    assert kept.look()
    after = kept.take().snapshot
    a = team.site.leaf_queue("team", "a")
    assert (1, 2) == (len(before.gangs[a]), len(after.gangs[a]))
    assert before.gangs[a][0] is after.gangs[a][0]
    assert before.gangs[b(team)] is after.gangs[b(team)]
    assert before.queues is after.queues
    assert before.nodes is after.nodes
    assert same_pictures(team, kept)


@pytest.fixture
def on_postgresql(postgres: PostgresServer) -> Iterator[World]:
    address = postgres.make()
    world = World(postgres.open(address))
    world.pool("team", 100)
    world.settle()
    yield world
    world.close()
    postgres.give_back(address)


def test_a_transaction_of_another_database_of_the_same_server_holds_nothing_up(
    on_postgresql, postgres
):
    team = on_postgresql
    team.split(a=30, b=40)
    for pool in ("team--a", "team--b"):
        team.submit(5, pool)
    address = postgres.make()
    with postgres.open(address).engine.begin() as other:
        other.exec_driver_sql("SELECT txid_current()")
        kept = SnapshotBuilder(team.site)
        before = kept.take().snapshot
        for _ in range(2):
            submitted = team.submit(5, "team--a")
            assert kept.look()
            # What changed is read, and not everything.
            assert before.gangs[b(team)] is kept.take().snapshot.gangs[b(team)]
            told = change_history.events_after(team.site, team.admin, 0)
            assert submitted.workflow_id in {each.subject for each in told}
        assert not kept.look()
    postgres.give_back(address)
    assert same_pictures(team, kept)


def test_an_event_is_told_only_when_no_earlier_one_can_follow(on_postgresql):
    team = on_postgresql
    before = change_history.last_event(team.site)
    with team.site.store.engine.connect() as late:
        late.exec_driver_sql("SELECT txid_current(), nextval('events_number_seq')")
        submitted = team.submit(5)
        assert [] == change_history.events_after(team.site, team.admin, before)
        late.rollback()
    told = change_history.events_after(team.site, team.admin, before)
    assert submitted.workflow_id in {each.subject for each in told}


def test_what_a_plan_did_itself_is_seen_without_reading_the_estate(team):
    workflow = team.submit(5)
    team.settle()
    kept = SnapshotBuilder(team.site)
    kept.take()

    team.finish(workflow)
    team.submit(7)
    team.settle()

    assert kept.look()
    assert same_pictures(team, kept)


def test_the_groups_that_room_is_made_for_are_seen_on_rereading(team):
    team.submit(5)
    kept = SnapshotBuilder(team.site)
    kept.take()
    (entry,) = kept.take().entries.values()
    with team.site.store.write() as connection:
        task_store.write_nominations(connection, [(entry.group.uuid, {"task": "node-0"})])

    assert {} == kept.take().snapshot.progress
    kept.reread_nominated()

    (progress,) = kept.take().snapshot.progress.values()
    assert (True, {"task": "node-0"}) == (progress.nominated, progress.places)
    assert same_pictures(team, kept)


def test_what_no_event_tells_of_is_seen_when_everything_is_read_anew(team):
    team.submit(5)
    kept = SnapshotBuilder(team.site)
    kept.take()
    kept.take()
    with team.site.store.write() as connection:
        connection.execute(sa.update(WORKFLOWS).values(submitted_by="somebody"))
    (entry,) = kept.take().entries.values()
    assert "root" == entry.workflow.submitted_by

    team.time.ms += REREAD_MS

    (entry,) = kept.take().entries.values()
    assert "somebody" == entry.workflow.submitted_by
    assert same_pictures(team, kept)


def test_a_workflow_that_is_committed_late_is_not_missed(team):
    """Numbers of events are drawn before the commit: here the first is kept after the second."""
    kept = SnapshotBuilder(team.site)
    kept.take()
    kept.take()
    if team.site.store.is_sqlite:
        team.submit(1)
    else:
        with team.site.store.engine.begin() as late:
            # A writer of an event has changed something before, and so is a transaction.
            late.exec_driver_sql("SELECT txid_current(), nextval('events_number_seq')")
            for _ in range(3):
                team.submit(1)
                assert kept.look()
                kept.take()
            late.exec_driver_sql(
                "INSERT INTO events (number, at_ms, kind, subject, message) "
                "SELECT currval('events_number_seq'), 0, 'task.status', 'job-1', ''"
            )
    assert kept.look()
    assert same_pictures(team, kept)
    assert not kept.look()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("snapshots") / "template.db"
    store = Store.open(path)
    upgrade(store)
    world = World(store)
    world.pool("team", 100)
    world.pool("other", 50)
    world.split(a=30, b=40)
    world.close()
    store.close()
    return path


#: The last change is to the nodes alone: why the last workflow waits was written before it.
WRITTEN_BEFORE = [
    *(("submit", pool, gpus) for pool, gpus in (("other", 2), ("team", 2), ("other", 45))),
    *(("submit", "team", gpus) for gpus in (9, 8, 68)),
    ("finish", "team", 1),
    ("cordon", "team", 1),
]


@example(WRITTEN_BEFORE)
@given(OPERATIONS)
def test_any_sequence_leaves_the_picture_that_a_new_one_would_be(template, operations):
    path = template.with_name(f"{time.monotonic_ns()}.db")
    path.write_bytes(template.read_bytes())
    store = Store.open(path)
    world = World(store)
    explainer = new_explainer(world.site)
    try:
        for operation in operations:
            try:
                _do(world, *operation)
            except (Invalid, NotFound, Conflict):
                continue
            assert same_pictures(world)
            assert same_explanations(world, explainer)
            if operation[0] in ("cycle", "finish", "cancel"):
                world.settle()
                assert stored_is_what_the_plan_says(world)
    finally:
        world.close()
        store.close()
        path.unlink()


def _do(world: World, operation: str, pool: str, number: int) -> None:
    parent, _, subpool = pool.partition("--")
    if operation == "create":
        world.create(subpool or "c", number, parent)
    elif operation == "update":
        world.update(subpool or "c", number, parent)
    elif operation == "delete":
        world.delete(subpool or "c", parent)
    elif operation in ("resize", "limit", "rename", "cordon", "offer"):
        _configure(world, operation, parent, number)
    else:
        _work(world, operation, pool, number)


def _work(world: World, operation: str, pool: str, number: int) -> None:
    if operation == "submit":
        priority = list(Priority)[number % 3]
        world.time.ms += number
        world.submit(number, pool, priority, spec=job(number - number % 2 or 1, tasks=1))
    elif operation == "cycle":
        world.settle()
    elif operation in ("finish", "cancel"):
        wanted = query.Filter(pools=(pool,), statuses=ALIVE)
        found = query.list_workflows(world.site, world.admin, wanted).workflows
        for each in found[:2]:
            (world.finish if operation == "finish" else world.cancel)(each)


def _configure(world: World, operation: str, parent: str, number: int) -> None:
    site, admin = world.site, world.admin
    if operation == "resize":
        changes = {"resources": {"gpu": {"guarantee": 50 + number}}}
        pools.patch_pool(site, admin, parent, changes)
    elif operation == "limit":
        pools.patch_pool(site, admin, parent, {"user_gpu_limit": number % 20})
    elif operation == "rename":
        pools.rename_pool(site, admin, "other", "third")
        pools.rename_pool(site, admin, "third", "other")
    elif operation == "cordon":
        node_cordon.set_cordoned(site, admin, "node-0", cordoned=bool(number % 2))
    else:
        world.backend.offer((big_node(60 + number),))
        node_sync.sync(site, world.backend.name, world.backend.nodes())


def test_for_a_new_quota_no_workflow_is_read_again(team):
    builder = SnapshotBuilder(team.site)
    team.submit(5, "team")
    builder.take()
    before = dict(builder._live.groups)

    pools.patch_pool(team.site, team.admin, "team", {"resources": {"gpu": {"guarantee": 60}}})

    assert builder.look()
    after = builder._live.groups
    assert [True] == [after[uuid] is each for uuid, each in before.items()]
    assert same_pictures(team, builder)


def test_the_workflows_of_a_pool_go_with_its_name_also_where_another_pool_has_it_now(team):
    team.pool("other", 10)
    builder = SnapshotBuilder(team.site)
    team.submit(5, "other")
    builder.take()
    config = pools.get_pool(team.site, team.admin, "other").pool

    pools.rename_pool(team.site, team.admin, "other", "third")
    pools.put_pools(team.site, team.admin, {"other": pool_document(config)})

    assert same_pictures(team, builder)
    assert ["third"] == [each.workflow.pool for each in builder._live.groups.values()]


def test_what_others_hold_is_no_new_version_and_makes_nothing_else_anew(team):
    held = {"big-node": Resources(gpus=10, pods=1)}
    others = {team.backend.name: held}
    builder = SnapshotBuilder(team.site, lambda: others)
    team.submit(5, "team")
    before = builder.take().snapshot
    assert not builder.look()

    others = {team.backend.name: {"big-node": Resources(gpus=20, pods=2)}}

    assert builder.look()
    after = builder.take().snapshot
    assert before.version == after.version
    assert before.nodes is after.nodes
    queues = sorted(set(before.gangs) - {"others"})
    assert [True] == [before.gangs[queue] is after.gangs[queue] for queue in queues]
    (gang,) = after.gangs["others"]
    assert ("big-node", 20) == (gang.pods[0].node, gang.pods[0].requests.gpus)


def test_what_others_hold_is_not_given_to_tasks(team):
    node = team.backend.nodes()[0]
    held = {node.name: Resources(gpus=node.gpus - 5, pods=1)}
    team.backend.used_by_others = lambda: held
    fits, waits = team.submit(5, "team"), team.submit(5, "team")
    team.settle()

    assert [WorkflowStatus.RUNNING, WorkflowStatus.PENDING] == [
        team.status(fits),
        team.status(waits),
    ]
    held = {}
    team.settle()
    assert WorkflowStatus.RUNNING is team.status(waits)
