"""Scenarios 97 and 99 to 108: nothing is lost, and the sum holds, whatever comes at once."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.control.credential_keys import CredentialKeys
from bough.control.scheduling.apply_plan import apply
from bough.control.scheduling.snapshot import SnapshotBuilder
from bough.core.cycle.plan import plan
from bough.errors import Conflict, Invalid, NotFound, Unavailable
from bough.model.backend import Observation, Sight
from bough.model.policy import OSMO
from bough.model.subpool import SubpoolState
from bough.model.workflow import TaskStatus, Workflow, WorkflowStatus
from bough.store.lease import Lease
from bough.store.migration import upgrade
from tests.store.racers import (
    PAIRS,
    at_once,
    create_in_processes,
    race_deletes_with_submissions,
)
from tests.store.usecases import (
    Bell,
    Scheduler,
    Site,
    Store,
    VirtualBackend,
    authenticate,
    cancelling,
    node_sync,
    observations,
    pass_key,
    pool_store,
    pools,
    query,
    start,
    submit,
    subpool_drain,
    subpools,
)
from tests.store.world import World, big_node, job, newest_revision
from tests.warm import Program

pytestmark = pytest.mark.postgresql

#: How often a race is run; more in a soak.
ROUNDS = int(os.environ.get("BOUGH_RACE_ROUNDS", "6"))


def resize(world: World, guarantee: int):
    changes = {"resources": {"gpu": {"guarantee": guarantee}}}
    return lambda: pools.patch_pool(world.site, world.admin, "team", changes)


def refused(results: list[object]) -> list[object]:
    return sorted(each for each in results if isinstance(each, int))


def test_scenario_100_of_two_that_do_not_both_fit_exactly_one_is_created(team):
    for _ in range(5):
        results = at_once(lambda: team.create("a", 60), lambda: team.create("b", 60))

        assert [409] == refused(results)
        assert 40 == team.leaf_quotas()["_shared"]
        for name in team.leaf_quotas():
            if name != "_shared":
                team.delete(name)


def test_scenario_101_fifty_at_once_from_several_processes(team, database):
    names = [f"s{number}" for number in range(50)]

    results = create_in_processes(database, names, quota=3, processes=3)

    assert (33, [409] * 17) == (results.count("created"), refused(results))
    assert 1 == team.leaf_quotas()["_shared"]
    assert team.invariant_holds()


def test_scenario_102_one_name_is_created_once(team):
    results = at_once(*[lambda: team.create("a", 1)] * 8)

    assert [409] * 7 == refused(results)
    assert {"_shared": 99, "a": 1} == team.leaf_quotas()


def test_scenario_103_an_update_and_a_delete_at_once_leave_a_legal_state(divided):
    for _ in range(5):
        results = at_once(lambda: divided.update("b", 60), lambda: divided.delete("a"))

        shared = divided.leaf_quotas()["_shared"]
        assert (shared, refused(results)) in [(20, []), (40, [409])]
        divided.update("b", 40)
        divided.create("a", 30)


def test_scenario_104_a_workflow_is_refused_or_counted_but_never_lost(team):
    """What a delete and a submission at once must leave is asserted after each round."""
    race_deletes_with_submissions(team, ROUNDS)

    raced = subpools.list_subpools(team.site, team.admin, "team", include_archived=True)
    assert [SubpoolState.ARCHIVED] * PAIRS == [each.subpool.state for each in raced]


def test_scenario_106_a_drain_and_a_create_at_once_lose_no_quota(divided):
    for _ in range(5):
        workflow = divided.run(5, "team--a")
        divided.delete("a")
        (task,) = divided.tasks(workflow)
        ended = Observation(task.attempt, Sight.ENDED, divided.time.ms, exit_code=0)
        observations._write(divided.site, {workflow.uuid: [ended]})

        archived, created = at_once(
            lambda: subpool_drain.check_drain(divided.site, "team--a"),
            lambda: divided.create("a", 25).quota,
        )

        assert (archived, created) in [(True, 25), (True, 409)]
        assert divided.invariant_holds()
        if created == 409:
            divided.create("a", 25)
        divided.update("a", 30)


def test_scenario_106_two_checks_at_once_archive_once(divided):
    workflow = divided.run(5, "team--a")
    divided.delete("a")
    (task,) = divided.tasks(workflow)
    ended = Observation(task.attempt, Sight.ENDED, divided.time.ms, exit_code=0)
    observations._write(divided.site, {workflow.uuid: [ended]})

    results = at_once(*[lambda: subpool_drain.check_drain(divided.site, "team--a")] * 4)

    assert [False, False, False, True] == sorted(results)
    entries = subpools.subpool_history(divided.site, divided.admin, "team", "a")
    assert ["ACTIVE", "DELETING", "ARCHIVED"] == [each.data["state"] for each in entries]


def test_scenario_107_a_pool_that_shrinks_while_it_is_divided(team):
    team.split(a=30, b=40)
    assert [] == refused(at_once(resize(team, 90), lambda: team.create("c", 20)))
    assert 0 == team.leaf_quotas()["_shared"]
    team.delete("c")
    resize(team, 100)()

    results = at_once(resize(team, 89), lambda: team.create("d", 20))

    assert 1 == len(refused(results))
    assert team.invariant_holds()


def test_scenario_108_decisions_that_arrive_out_of_order_leave_the_newest(team):
    workflow = team.submit(50)
    older = SnapshotBuilder(team.site).take()
    decided_before = plan(older.snapshot, OSMO)
    team.create("a", 60)
    team.update("a", 40)
    inside = team.submit(40, "team--a")
    newer = SnapshotBuilder(team.site).take()
    decided = plan(newer.snapshot, OSMO)

    assert 2 == apply(team.site, newer, decided).started
    tree = team.queues()
    tasks = [team.tasks(each) for each in (workflow, inside)]
    assert apply(team.site, older, decided_before).stale

    assert tree == team.queues()
    assert {"_shared": 60, "a": 40} == team.leaf_quotas()
    assert tasks == [team.tasks(each) for each in (workflow, inside)]
    team.settle()
    assert [WorkflowStatus.RUNNING] * 2 == [team.status(each) for each in (workflow, inside)]


def test_a_plan_that_comes_too_late_changes_nothing(team):
    workflow = team.submit(50)
    view = SnapshotBuilder(team.site).take()
    decided = plan(view.snapshot, OSMO)
    team.create("a", 60)

    assert apply(team.site, view, decided).stale
    assert WorkflowStatus.PENDING is team.status(workflow)
    assert {TaskStatus.SCHEDULING} == {task.status for task in team.tasks(workflow)}


def test_a_plan_is_applied_once_whichever_server_made_it(team):
    workflow = team.submit(50)
    view = SnapshotBuilder(team.site).take()
    decided = plan(view.snapshot, OSMO)

    assert [1, 0] == [apply(team.site, view, decided).started for _ in range(2)]
    assert 1 == len(team.tasks(workflow, every=True))


def test_what_was_cancelled_while_it_was_planned_does_not_start(team):
    cancelled, other = team.submit(50), team.submit(50)
    view = SnapshotBuilder(team.site).take()
    decided = plan(view.snapshot, OSMO)
    cancelling.cancel(team.site, team.admin, cancelled.workflow_id)

    applied = apply(team.site, view, decided)

    assert (False, 1, 1) == (applied.stale, applied.started, applied.void)
    assert WorkflowStatus.FAILED_CANCELED is team.status(cancelled)
    team.settle()
    assert WorkflowStatus.RUNNING is team.status(other)


def test_submissions_while_the_scheduler_works_are_all_kept_and_run(team):
    bell, stop = Bell(), threading.Event()
    thread = threading.Thread(target=team.scheduler.run, args=(bell, stop, 0.01))
    thread.start()

    def submit_some(count: int) -> list[str]:
        found = []
        for _ in range(count):
            accepted = submit(team.site, team.admin, "team", job(1)).workflow
            found.append(accepted.workflow_id)
            bell()
        return found

    results = at_once(*[lambda: submit_some(5)] * 4)
    deadline = time.monotonic() + 60
    while team.rows()["team"].usage.quota_used < 20 and time.monotonic() < deadline:
        time.sleep(0.02)
    stop.set()
    bell()
    thread.join(30)

    names = [name for part in results for name in part]
    assert sorted(f"job-{number}" for number in range(1, 21)) == sorted(names)
    assert (100, 20, 80) == team.numbers()


# Which server decides

HOLD = """
import sys, time
from bough.store import Store
from bough.store.lease import Lease
lease = Lease(Store.open(sys.argv[1]))
print(lease.held(), flush=True)
time.sleep(600)
"""


def test_the_lease_of_a_server_that_is_killed_goes_to_another(store, database):
    lease = Lease(store)
    try:
        with Program(HOLD, database) as holder:
            assert "True" == holder.stdout.readline().strip()
            assert not lease.held()
            holder.kill()
            deadline = time.monotonic() + 30
            while not lease.held() and time.monotonic() < deadline:
                time.sleep(0.05)
            assert lease.held()
    finally:
        lease.release()


def test_of_two_servers_one_decides_until_it_lets_go(team):
    assert team.scheduler.cycle().leads
    workflow = team.submit(5)
    other = Scheduler(team.site, (VirtualBackend(team.backend.nodes(), team.time.now_ms),))
    try:
        assert not other.cycle().leads
        team.scheduler.release()
        assert other.cycle().leads
        assert not team.scheduler.cycle().leads
        assert WorkflowStatus.RUNNING is team.status(workflow)
    finally:
        other.release()


def test_a_node_that_changes_makes_a_plan_for_the_old_one_void(team):
    team.submit(50)
    view = SnapshotBuilder(team.site).take()
    decided = plan(view.snapshot, OSMO)
    team.backend.offer((big_node(10),))
    node_sync.sync(team.site, team.backend.name, team.backend.nodes())

    assert apply(team.site, view, decided).stale


# Any sequence of operations

NAMES = ("a", "b", "c")
ACTIVE, DELETING, ARCHIVED = SubpoolState
#: The diagram of the design; no subpool ever goes another way.
ARROWS = {
    (None, ACTIVE),
    (ACTIVE, DELETING),
    (ACTIVE, ARCHIVED),
    (DELETING, ARCHIVED),
    (ARCHIVED, ACTIVE),
}
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["create", "update", "delete", "submit", "finish", "resize", "wait"]),
        st.sampled_from(NAMES),
        st.integers(0, 70),
    ),
    min_size=1,
    max_size=14,
)
Arrow = tuple[SubpoolState | None, SubpoolState]


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("sequences") / "template.db"
    store = Store.open(path)
    upgrade(store)
    World(store).pool("team", 100)
    store.close()
    return path


@given(OPERATIONS)
def test_scenarios_097_and_099_any_sequence_keeps_the_sum_and_the_diagram(template, operations):
    assert _live(template, operations) <= ARROWS


def test_scenario_097_each_arrow_of_the_diagram_is_taken(template):
    busy = [("create", "a", 60), ("submit", "a", 10), ("delete", "a", 0)]
    empty = [("create", "b", 10), ("delete", "b", 0), ("create", "b", 5), ("resize", "b", 0)]

    assert {(None, ACTIVE), (ACTIVE, DELETING)} == _live(template, busy)
    drained = {(None, ACTIVE), (ACTIVE, DELETING), (DELETING, ARCHIVED)}
    assert drained == _live(template, [*busy, ("wait", "a", 20), ("finish", "a", 0)])
    assert ARROWS - drained | {(None, ACTIVE)} == _live(template, empty)


def _live(template: Path, operations: list[tuple[str, str, int]]) -> set[Arrow]:
    """Do one after the other, and look at the sum each time; all changes of state there were."""
    path = template.with_name(f"{time.monotonic_ns()}.db")
    path.write_bytes(template.read_bytes())
    store = Store.open(path)
    world = World(store)
    seen: dict[str, SubpoolState] = {}
    taken: set[Arrow] = set()
    try:
        for operation in operations:
            _attempt(world, *operation)
            with store.read() as connection:
                members = pool_store.list_subpools(connection, "team")
                total = pool_store.find_pool(connection, "team").gpu.guarantee
            shared = world.leaf_quotas()["_shared"]
            quotas = [each.quota for each in members if each.state is ACTIVE]
            assert total == shared + sum(quotas)
            assert all(type(each) is int and each >= 0 for each in (shared, *quotas))
            now = {each.subpool: each.state for each in members}
            assert seen.keys() <= now.keys()
            taken |= {(seen.get(name), now[name]) for name in now if seen.get(name) != now[name]}
            # Only what is empty is archived, and only what is not is left to drain.
            for name, state in now.items():
                if state is not ACTIVE:
                    assert (state is DELETING) == bool(_unfinished(world, name))
            seen = now
        # What happened between two looks is in the history.
        for name in seen:
            entries = subpools.subpool_history(world.site, world.admin, "team", name)
            lived = [SubpoolState(each.data["state"]) for each in entries]
            taken |= {pair for pair in pairwise([None, *lived]) if pair[0] is not pair[1]}
        return taken
    finally:
        world.close()
        store.close()
        for each in path.parent.glob(f"{path.name}*"):
            each.unlink()


def _unfinished(world: World, name: str) -> list[Workflow]:
    found = query.list_workflows(
        world.site, world.admin, query.Filter(pools=(f"team--{name}",))
    ).workflows
    return [each for each in found if not each.status.finished]


def _attempt(world: World, operation: str, name: str, number: int) -> None:
    try:
        if operation == "create":
            world.create(name, number)
        elif operation == "update":
            world.update(name, number)
        elif operation == "delete":
            world.delete(name)
        elif operation == "submit":
            world.submit(number, f"team--{name}")
            world.settle()
        elif operation == "finish":
            for each in _unfinished(world, name):
                world.cancel(each)
        elif operation == "wait":
            world.time.pass_minutes(number)
            world.settle()
        else:
            resize(world, 40 + number)()
    except (Invalid, NotFound, Conflict):
        pass


def test_several_may_connect_to_a_new_file_at_once(tmp_path):
    """SQLite refuses without waiting when two begin to write ahead at the same time."""
    for number in range(60):
        stores = [Store.open(tmp_path / f"{number}.db") for _ in range(4)]

        def connect(store: Store) -> int:
            with store.read() as connection:
                return connection.exec_driver_sql("SELECT 1").scalar_one()

        assert [1] * 4 == at_once(*(partial(connect, store) for store in stores))
        for store in stores:
            store.close()


def test_two_servers_may_start_at_once(databases):
    url = databases.make(migrated=False)
    stores = [Store.open(url) for _ in range(3)]

    started = at_once(*(lambda store=store: start(Site(store)) for store in stores))

    assert [newest_revision()] * 3 == [each.revision for each in started]
    secrets = [each.admin_token for each in started if each.admin_token is not None]
    assert 1 == len(secrets)
    assert "admin" == authenticate(Site(stores[0]), secrets[0]).name
    keys = CredentialKeys()
    sites = [Site(store, credential_keys=keys) for store in stores]
    sealed = at_once(*(partial(pass_key.sealed_key, site) for site in sites))
    assert 1 == len({pass_key.open_key(sites[0], each) for each in sealed})
    for store in stores:
        store.close()


def test_the_loop_goes_on_after_something_went_wrong(team, caplog):
    class Broken(VirtualBackend):
        calls = 0

        def observe(self):
            self.calls += 1
            if self.calls <= 2:
                raise ValueError("a bug")
            return super().observe()

    team.scheduler.release()
    backend = Broken(team.backend.nodes(), team.time.now_ms)
    scheduler = Scheduler(team.site, (backend,))
    workflow = team.submit(5)
    bell, stop = Bell(), threading.Event()
    thread = threading.Thread(target=scheduler.run, args=(bell, stop, 0.01))
    thread.start()
    deadline = time.monotonic() + 30
    while team.status(workflow) is not WorkflowStatus.RUNNING and time.monotonic() < deadline:
        time.sleep(0.02)
    stop.set()
    bell()
    thread.join(30)

    assert WorkflowStatus.RUNNING is team.status(workflow)
    assert ["Backend default does not answer: a bug"] == [each.message for each in caplog.records]


def test_databases_that_cannot_be_opened_say_so():
    for url, expected in (
        ("mysql://x/y", "not supported"),
        ("sqlite://", "names no file"),
        ("postgresql://host:port/x", "cannot be read"),
    ):
        with pytest.raises(Invalid, match=expected):
            Store.open(url)
    store = Store.open("postgresql://nobody@/x?host=/nowhere")
    with pytest.raises(Unavailable, match="does not answer"), store.read():
        pass


def test_a_sqlite_file_is_its_owners_alone(tmp_path):
    path = tmp_path / "new.db"
    Store.open(path).close()

    assert 0o600 == path.stat().st_mode & 0o777
