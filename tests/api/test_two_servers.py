"""Two servers on one PostgreSQL: one decides, never both, and each hears of the other."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import sqlalchemy as sa

from bough.backends.virtual import VirtualBackend
from bough.control.pools import pools
from bough.control.scheduling.loop import Bell
from bough.control.site import Site
from bough.control.workflows.submission import submit
from bough.model.access import Actor
from bough.model.change_record import EventKind
from bough.server.scheduler_thread import Engine
from bough.store import Store
from bough.store.schema import COUNTERS, EVENTS, OUTBOX, TASKS
from tests.api.house import spec
from tests.api.served import Served
from tests.store.world import big_node, job

ADMIN = Actor("root", ("osmo-admin", "osmo-default"))
WAIT_S = 60
#: So long that only a call can wake a loop.
NEVER_S = 3_600.0
#: A gang that was given its nodes.
STARTS = sa.select(EVENTS).where(
    EVENTS.c.kind == EventKind.TASK_STATUS.value,
    EVENTS.c.message == "INITIALIZING",
    EVENTS.c.data["nodes"].as_string().is_not(None),
)
#: Connections to this database that listen for calls, and the one that holds the lease.
LISTENERS = (
    "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN %' AND datname = current_database()"
)
HOLDER = (
    "SELECT pid FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
    "WHERE locktype = 'advisory' AND granted AND datname = current_database()"
)


class Server:
    """A server without a socket: a store, a scheduler in its thread, nodes that hold GPUs."""

    def __init__(self, url: str, tick_s: float) -> None:
        bell = Bell()
        self.site = Site(Store.open(url), namespace="ns", wake=bell)
        self.backend = VirtualBackend((big_node(100),), self.site.clock.now_ms)
        self.engine = Engine(self.site, (self.backend,), bell, tick_s)
        self.engine.start()

    def submit(self, gpus: int = 1) -> None:
        submit(self.site, ADMIN, "team", job(gpus))

    def ask(self, query: sa.Select | str) -> list:
        with self.site.store.read() as connection:
            return connection.execute(sa.text(query) if isinstance(query, str) else query).all()

    def pids(self, query: str) -> set[int]:
        """The processes of the database that a query finds."""
        return {pid for (pid,) in self.ask(query)}

    def end(self, pids: set[int]) -> None:
        """Cut connections."""
        self.ask(sa.select(*(sa.func.pg_terminate_backend(pid) for pid in sorted(pids))))

    def on_nodes(self) -> int:
        held = sa.select(sa.func.count()).where(TASKS.c.status == "RUNNING")
        return self.ask(held)[0][0]

    def close(self) -> None:
        self.engine.stop()
        self.site.store.close()


@pytest.fixture
def serve(postgres) -> Iterator[Callable[[float], Server]]:
    """Makes servers on one database with a pool of 100 GPUs."""
    url = postgres.make()
    store = Store.open(url)
    gpu = {"guarantee": 100, "maximum": -1, "weight": 1}
    pools.put_pools(Site(store, namespace="ns"), ADMIN, {"team": {"resources": {"gpu": gpu}}})
    store.close()
    made: list[Server] = []

    def make(tick_s: float = NEVER_S) -> Server:
        made.append(Server(url, tick_s))
        return made[-1]

    yield make
    for server in made:
        server.close()


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.02)


def test_what_is_submitted_to_one_server_wakes_the_one_that_decides(serve):
    first = serve()
    until(lambda: first.engine.leads and first.engine.counts.cycles)
    second = serve()

    second.submit()

    until(lambda: first.on_nodes() == 1)
    assert (True, False) == (first.engine.leads, second.engine.leads)


def test_a_server_that_stops_calls_another_to_decide(serve):
    first = serve()
    until(lambda: first.engine.leads)
    second = serve()
    until(lambda: second.engine._notices._thread is not None)

    first.engine.stop()

    until(lambda: second.engine.leads)
    second.submit()
    until(lambda: second.on_nodes() == 1)


def test_calls_are_heard_again_after_the_connection_was_lost(serve):
    first = serve()
    until(lambda: first.engine.leads and first.engine.counts.cycles)
    second = serve()
    until(lambda: len(first.pids(LISTENERS)) == 2)
    before = first.pids(LISTENERS)

    first.end(before)

    until(lambda: len(first.pids(LISTENERS) - before) == 2)
    second.submit()
    until(lambda: first.on_nodes() == 1)


def test_a_leader_whose_connection_is_cut_stops_deciding_and_nothing_is_decided_twice(serve):
    first, second = serve(0.05), serve(0.05)
    until(lambda: first.engine.leads or second.engine.leads)

    def submit_some(server: Server) -> None:
        for _ in range(20):
            server.submit()
            time.sleep(0.02)

    with ThreadPoolExecutor(2) as executor:
        for server in (first, second):
            executor.submit(submit_some, server)
        for _ in range(5):
            holder = first.pids(HOLDER)
            first.end(holder)
            until(partial(_is_held_by_others, first, holder))

    until(lambda: first.on_nodes() == 40)
    until(lambda: [first.engine.leads, second.engine.leads].count(True) == 1)
    until(lambda: not first.ask(sa.select(OUTBOX.c.number)))
    _nothing_was_decided_twice(first.site.store, gangs=40)
    decided = first.engine.counts.started + second.engine.counts.started
    assert 40 == decided
    # Every plan that was applied raised the version by one, and what configured the pool did.
    plans = first.ask(STARTS.with_only_columns(EVENTS.c.written_in).distinct())
    nodes = first.ask(
        sa.select(EVENTS.c.written_in).where(EVENTS.c.kind == EventKind.NODE_CHANGED.value)
    )
    (version,) = first.ask(sa.select(COUNTERS.c.value).where(COUNTERS.c.name == "version"))[0]
    assert version == 1 + len(nodes) + len(plans)


@pytest.mark.served
def test_of_two_servers_the_other_takes_over_from_one_that_is_killed(postgres, tmp_path):
    """While submissions come in: all that were accepted run, each started once."""
    url = postgres.make(migrated=False)
    options = ("--database", url, "--gpus", "64", "--namespace", "ns")
    body = {"file": spec(1)}
    with (
        Served(tmp_path / "one", *options) as one,
        # The same folder: the token of the first administrator is there.
        Served(tmp_path / "one", *options) as two,
    ):
        assert one.until(lambda: one.get("/health")["schedules"])
        path = "/api/pool/default/workflow"
        accepted: list[str] = []
        for number in range(16):
            if number == 8:
                one.stop(signal.SIGKILL)
            answer = (two if number % 2 or number >= 8 else one).ask("POST", path, json=body)
            assert 200 == answer.status_code, answer.text
            accepted.append(answer.json()["name"])

        two.until(lambda: two.get("/health")["schedules"])
        listed = "/api/workflow?all_users=true&all_pools=true&limit=100&statuses=RUNNING"
        two.until(lambda: len(two.get(listed)["workflows"]) == 16)

        running = {each["name"] for each in two.get(listed)["workflows"]}
        assert sorted(accepted) == sorted(running)
        usage = two.get("/api/pool_quota?all_pools=true")["resource_sum"]
        assert ("16", "48") == (usage["total_usage"], usage["total_free"])
    watcher = Store.open(url)
    try:
        _nothing_was_decided_twice(watcher, gangs=16)
    finally:
        watcher.close()


def _is_held_by_others(server: Server, before: set[int]) -> bool:
    return bool(server.pids(HOLDER) - before)


def _nothing_was_decided_twice(store: Store, gangs: int) -> None:
    """Every gang was given nodes once, and its backend was told."""
    with store.read() as connection:
        started = Counter(connection.execute(STARTS.with_only_columns(EVENTS.c.subject)).scalars())
        attempts = connection.execute(sa.select(TASKS.c.uuid)).all()
        untold = connection.execute(sa.select(OUTBOX.c.number)).all()
    assert (gangs, {1}) == (len(started), set(started.values()))
    assert (gangs, []) == (len(attempts), untold)
