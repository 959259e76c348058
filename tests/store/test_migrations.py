"""The history of the tables: scenarios 134 to 139; the last step is what queries expect."""

from __future__ import annotations

import json

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from bough.errors import Conflict, Unavailable
from bough.model.change_record import AuditEntry, EventKind, StoredEvent
from bough.model.workflow import Priority, TaskStatus, WorkflowStatus
from bough.store.migration import FOUNDATION, current_revision, upgrade
from bough.store.schema import METADATA
from tests.store.usecases import Store, access, change_history, change_records, query, start, users
from tests.store.world import START_MS, World, newest_revision, refusal

pytestmark = pytest.mark.postgresql


def run(store: Store, statement: str, **values: object) -> None:
    with store.write() as connection:
        connection.execute(sa.text(statement), values)


@pytest.fixture
def old(databases):
    """A database of the first revision, with pools, and workflows that run and wait."""
    store = Store.open(databases.make(migrated=False))
    upgrade(store, FOUNDATION)
    for name, guarantee in (("team", 100), ("default", None)):
        run(
            store,
            "INSERT INTO pools (name, gpu_guarantee, gpu_weight, config, created_ms) "
            "VALUES (:name, :guarantee, 1, :config, 0)",
            name=name,
            guarantee=guarantee,
            config=json.dumps({"description": name}),
        )
    run(
        store,
        "INSERT INTO nodes (name, backend, gpus, cpu_milli, memory_bytes, storage_bytes, "
        "task_slots, labels, cordoned) VALUES ('node-0', 'default', 100, 1000, 1000, 1000, 100, "
        "'{}', false)",
    )
    insert_workflow(store, 1, "RUNNING", 60, "node-0")
    insert_workflow(store, 2, "SCHEDULING", 50, None)
    yield store
    store.close()


def insert_workflow(store: Store, number: int, status: str, gpus: int, node: str | None) -> None:
    spec = {
        "name": "group",
        "tasks": [{"name": "task", "requests": {"gpus": gpus}, "lead": True}],
    }
    workflow_status = "RUNNING" if node else "PENDING"
    run(
        store,
        "INSERT INTO workflows (uuid, workflow_id, name, number, submitted_by, pool, backend, "
        "priority, status, submitted_ms, labels, tags, warnings) VALUES (:uuid, :id, 'job', "
        ":number, 'ann', 'team', 'default', 'NORMAL', :status, :submitted, '{}', '[]', '[]')",
        uuid=f"w{number}",
        id=f"job-{number}",
        number=number,
        status=workflow_status,
        submitted=START_MS + number,
    )
    run(
        store,
        "INSERT INTO task_groups (uuid, workflow_uuid, name, position, queue, status, spec, gpus, "
        "remaining_upstream) VALUES (:uuid, :workflow, 'group', 0, 'osmo-pool-ns-team', :status, "
        ":spec, :gpus, '[]')",
        uuid=f"g{number}",
        workflow=f"w{number}",
        status=status,
        gpus=gpus,
        spec=json.dumps(spec),
    )
    run(
        store,
        "INSERT INTO tasks (uuid, retry_id, workflow_uuid, group_uuid, name, status, gpus, lead, "
        "node, growth) VALUES (:uuid, 0, :workflow, :group, 'task', :status, :gpus, true, :node, "
        "false)",
        uuid=f"t{number}",
        workflow=f"w{number}",
        group=f"g{number}",
        status=status,
        gpus=gpus,
        node=node,
    )
    run(
        store,
        "INSERT INTO counters (name, value) VALUES ('workflow:job', :number) "
        "ON CONFLICT (name) DO UPDATE SET value = :number",
        number=number,
    )


@pytest.fixture
def migrated(old):
    upgrade(old)
    world = World(old)
    yield world
    world.close()


def of(world: World, number: int):
    return query.get_workflow(world.site, world.admin, f"job-{number}")


def test_the_last_revision_has_the_tables_that_queries_expect(store):
    with store.read() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert [] == compare_metadata(context, METADATA)


def test_scenario_135_what_runs_goes_on_untouched_and_new_work_goes_to_the_shared_leaf(migrated):
    assert {"_shared": 100} == migrated.leaf_quotas()
    assert {"_shared": None} == migrated.leaf_quotas("default")
    before = of(migrated, 1)
    assert "osmo-pool-ns-team" == before.groups[0].queue
    assert WorkflowStatus.RUNNING is before.workflow.status
    migrated.settle()

    after = of(migrated, 1)
    assert before.tasks == after.tasks
    assert "osmo-pool-ns-team" == after.groups[0].queue
    assert WorkflowStatus.RUNNING is after.workflow.status
    assert "osmo-pool-ns-team--_shared" == migrated.queue_of(migrated.submit(5))


def test_scenario_136_what_waits_is_moved_and_starts_when_there_is_room(migrated):
    assert "osmo-pool-ns-team--_shared" == of(migrated, 2).groups[0].queue
    migrated.settle()
    assert WorkflowStatus.PENDING is of(migrated, 2).workflow.status

    migrated.finish(of(migrated, 1).workflow)

    assert WorkflowStatus.RUNNING is of(migrated, 2).workflow.status


def test_scenario_136_a_retry_of_what_ran_goes_to_the_shared_leaf(migrated):
    run(migrated.site.store, "UPDATE workflows SET priority = 'LOW' WHERE uuid = 'w1'")
    migrated.settle()
    assert WorkflowStatus.PENDING is of(migrated, 1).workflow.status

    assert "osmo-pool-ns-team--_shared" == of(migrated, 1).groups[0].queue


def test_scenario_137_use_from_before_counts_as_the_pools_own(migrated):
    migrated.settle()
    assert (100, 60, 40) == migrated.numbers()

    migrated.create("a", 50)

    assert (50, 60, -10) == migrated.numbers()


def test_scenario_138_migrating_twice_changes_nothing(migrated):
    def everything() -> list[object]:
        with migrated.site.store.read() as connection:
            return [connection.execute(sa.select(table)).all() for table in METADATA.sorted_tables]

    before = everything()
    assert newest_revision() == upgrade(migrated.site.store)
    assert before == everything()
    with migrated.site.store.read() as connection:
        columns = "parent_pool, subpool_name, subpool_state"
        rows = connection.execute(sa.text(f"SELECT {columns} FROM pools")).all()  # noqa: S608
    assert {(None, None, None)} == {tuple(row) for row in rows}


def test_what_is_on_a_node_is_on_that_of_its_backend(migrated):
    with migrated.site.store.read() as connection:
        held = connection.execute(sa.text("SELECT backend, node FROM tasks ORDER BY uuid")).all()
        nodes = connection.execute(sa.text("SELECT backend, name, gpus FROM nodes")).all()
    assert [("default", "node-0"), (None, None)] == [tuple(row) for row in held]
    assert [("default", "node-0", 100)] == [tuple(row) for row in nodes]


def test_limits_of_what_is_not_over_are_counted_from_where_it_last_got_anywhere(old):
    run(old, "UPDATE workflows SET queue_timeout_s = 10, exec_timeout_s = 20")
    run(old, "UPDATE task_groups SET queued_ms = 1000, started_ms = 5000 WHERE uuid = 'g1'")
    run(
        old,
        "INSERT INTO outbox (created_ms, kind, backend, subject) VALUES "
        "(0, 'start', 'default', 'job-1'), (0, 'stop', 'default', 'job-1')",
    )
    upgrade(old)

    with old.read() as connection:
        columns = "since_ms, due_ms, nominated"
        rows = connection.execute(
            sa.text(f"SELECT {columns} FROM task_groups ORDER BY uuid")  # noqa: S608
        ).all()
        kinds = connection.execute(sa.text("SELECT kind FROM outbox")).scalars().all()
    # The first runs; the second waits, and it is not known since when.
    submitted_ms = START_MS + 2
    assert [(5_000, 25_000, False), (submitted_ms, submitted_ms + 10_000, False)] == [
        tuple(row) for row in rows
    ]
    assert ["stop"] == kinds


def test_scenario_134_a_pool_that_is_not_divided_behaves_as_before(migrated):
    migrated.settle()
    next_one = migrated.submit(40)
    assert "job-3" == next_one.workflow_id
    migrated.settle()
    assert (100, 100, 0) == migrated.numbers()
    assert 400 == refusal(migrated.submit, 101)[0]
    migrated.cancel(of(migrated, 1).workflow)

    assert WorkflowStatus.FAILED_CANCELED is of(migrated, 1).workflow.status
    assert [WorkflowStatus.RUNNING] * 2 == [
        of(migrated, number).workflow.status for number in (2, 3)
    ]
    low = migrated.run(10, priority=Priority.LOW)
    assert (100, 90, 10) == migrated.numbers()
    migrated.run(10, priority=Priority.NORMAL)
    assert WorkflowStatus.PENDING is migrated.status(low)


SUBPOOL = (
    "INSERT INTO pools (name, gpu_guarantee, created_ms, parent_pool, subpool_name, subpool_state) "
    "VALUES (:name, :quota, 0, :parent, :short, :state)"
)


def insert_subpool(store: Store, **values: object) -> None:
    given = {"name": "team--a", "quota": 30, "parent": "team", "short": "a", "state": "ACTIVE"}
    run(store, SUBPOOL, **{**given, **values})


def test_scenario_139_the_database_refuses_what_cannot_be(team):
    store = team.site.store
    insert_subpool(store)
    for values in (
        {},
        {"name": "team--b"},
        {"name": "x", "parent": None},
        {"name": "x", "short": None, "state": None},
        {"name": "team--x--y", "short": "x--y"},
        {"name": "team--_x", "short": "_x"},
        {"name": "nope--b", "parent": "nope", "short": "b"},
        {"name": "team--b", "short": "b", "state": "GONE"},
        {"name": "team--b", "short": "b", "state": None},
        {"name": "team--b", "short": "b", "quota": None},
        {"name": "team--b", "short": "b", "quota": -1},
        {"name": "other", "short": "b"},
        {"name": "team--b", "short": "b", "quota": 71},
    ):
        with pytest.raises(Conflict):
            insert_subpool(store, **values)
    assert team.invariant_holds()


def test_scenario_139_the_database_keeps_the_sum_whatever_is_changed(divided):
    store = divided.site.store
    for statement in (
        "UPDATE pools SET gpu_guarantee = 89 WHERE name = 'team'",
        "UPDATE pools SET gpu_guarantee = NULL WHERE name = 'team'",
        "UPDATE pools SET gpu_guarantee = 41 WHERE name = 'team--a'",
        "DELETE FROM pools WHERE name = 'team'",
    ):
        with pytest.raises(Conflict):
            run(store, statement)
    divided.delete("a")
    divided.update("b", 80)
    with pytest.raises(Conflict):
        run(store, "UPDATE pools SET subpool_state = 'ACTIVE' WHERE name = 'team--a'")
    assert divided.invariant_holds()


def test_audit_and_events_are_only_added_to_and_history_is_never_deleted(team):
    store = team.site.store
    with store.write() as connection:
        change_records.add_audit(connection, AuditEntry(0, "ann", "x", "y"))
        change_records.add_events(connection, [StoredEvent(EventKind.POOL_CHANGED, 0, "team")])
    for statement in (
        "UPDATE audit SET actor = 'eve'",
        "DELETE FROM audit",
        "UPDATE events SET message = ''",
        "DELETE FROM events",
        "DELETE FROM config_history",
    ):
        with pytest.raises(Conflict):
            run(store, statement)
    assert change_history.list_audit(team.site, team.admin)


def test_a_database_of_a_newer_program_is_left_alone(store):
    run(store, "UPDATE alembic_version SET version_num = '9999'")

    status, message = refusal(upgrade, store)

    assert (Unavailable.http_status, True) == (status, "newer than this program" in message)


def test_an_empty_database_gets_tables_a_pool_and_an_administrator(databases):
    store = Store.open(databases.make(migrated=False))
    world = World(store)
    with store.read() as connection:
        assert current_revision(connection) is None

    started = start(world.site)

    assert (newest_revision(), ()) == (started.revision, started.warnings)
    assert started.admin_token is not None
    world.settle()
    assert (100, 0, 100) == world.numbers("default")
    assert start(world.site).admin_token is None
    world.close()
    store.close()


def test_what_runs_before_a_restart_is_found_again(team):
    workflow = team.run(5)

    again = team.restarted()
    again.settle()

    assert WorkflowStatus.RUNNING is again.status(workflow)
    assert [TaskStatus.RUNNING] == [task.status for task in again.tasks(workflow)]
    again.finish(workflow)
    assert WorkflowStatus.COMPLETED is again.status(workflow)


def test_users_and_tokens_of_before_get_identities_of_their_own_and_go_on(old):
    upgrade(old, "0003")
    for name in ("ann", "ben"):
        run(old, f"INSERT INTO users (name, created_ms, created_by) VALUES ('{name}', 0, 'x')")  # noqa: S608
        run(
            old,
            'INSERT INTO tokens ("user", name, hash, description, expires_ms, created_ms) '
            "VALUES (:user, 'laptop', :hash, '', :expires, 0)",
            user=name,
            hash=access.hash_secret(f"bough-{name}"),
            expires=START_MS * 2,
        )
    upgrade(old)

    with old.read() as connection:
        for table in ("users", "tokens"):
            found = connection.execute(sa.text(f"SELECT uuid FROM {table}")).scalars().all()  # noqa: S608
            assert (2, 2, True) == (len(found), len(set(found)), all(found))
    world = World(old)
    assert "ann" == access.authenticate(world.site, "bough-ann").name
    world.close()


def test_roles_of_before_are_bound_to_the_pools_that_they_are_about(old):
    upgrade(old, "0008")
    statements = [
        {"effect": "Allow", "actions": ["workflow:*"], "resources": ["pool/team", "pool/gone"]},
        {"effect": "Deny", "actions": ["workflow:Cancel"], "resources": ["pool/team--b"]},
    ]
    run(
        old,
        "INSERT INTO roles (name, description, statements) VALUES ('writers', '', :statements)",
        statements=json.dumps(statements),
    )
    secret = access.hash_secret("bough-ann")
    given = {"ann": ("osmo-team-user", "osmo-gone-admin", "osmo-admin"), "ben": ("writers",)}
    for user, roles in given.items():
        run(old, "INSERT INTO users VALUES (:name, 0, 'x', :name)", name=user)
        for role in roles:
            values = {"user": user, "role": role}
            run(old, "INSERT INTO user_roles VALUES (:user, :role, 'root', 5)", **values)
    run(old, "INSERT INTO tokens VALUES ('ann', 'pc', :hash, '', 9e15, 0, 'pc')", hash=secret)
    for role in given["ann"][:2]:
        run(old, "INSERT INTO token_roles VALUES ('ann', 'pc', :role)", role=role)
    upgrade(old)
    world = World(old)
    site, admin = world.site, world.admin

    told = start(site).warnings
    assert 3 == sum("gone" in each or "team--b" in each for each in told)
    ann, ben = access.authenticate(site, "bough-ann"), access.recognise(site, "ben")
    assert ("osmo-default", "osmo-team-user") == ann.roles
    assert "osmo-admin" in access.recognise(site, "ann").roles
    shown = {each.role: each.assigned_ms for each in users.get_user(site, admin, "ann").roles}
    assert {"osmo-admin": 5, "osmo-gone-admin": 5, "osmo-team-user": 5} == shown
    for actor in (ann, ben):
        world.submit(1, "team", actor=actor)
    # What named no pool then says nothing about one that gets the name later.
    world.pool("gone", 1)
    for actor in (access.authenticate(site, "bough-ann"), access.recognise(site, "ben")):
        assert 403 == refusal(world.submit, 1, "gone", actor=actor)[0]
    users.change_roles(site, admin, "ann", add=("osmo-gone-admin",))
    assert "osmo-gone-admin" in access.recognise(site, "ann").roles
    assert 1 == [each.role for each in users.get_user(site, admin, "ann").roles].count(
        "osmo-gone-admin"
    )
    world.close()
