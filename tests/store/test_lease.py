"""Which server decides: it is taken from one that is frozen, and that one then changes nothing."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from bough.control.scheduling import machine_backends
from bough.errors import NotLeading
from bough.model.backend import Leadership, Machine, Start
from bough.model.workflow import WorkflowStatus
from bough.store import lease as lease_module
from bough.store.lease import Lease
from bough.store.settings import counter, raise_counter
from tests.store.usecases import Scheduler, Store, VirtualBackend
from tests.store.world import World
from tests.warm import Program

pytestmark = pytest.mark.postgresql

#: A holder in a process of its own: it writes for as long as it can, and says how that goes.
HOLDER = """
import sys
import sqlalchemy as sa
from bough.errors import BoughError
from bough.store import Store, lease
from bough.store.settings import raise_counter
lease.BEAT_S, lease.EXPIRY_S, lease.MARGIN_S = 0.1, 4.0, 0.5
store = Store.open(sys.argv[1])
held = lease.Lease(store)
checked = store.checked(held.check)
print(held.held(), flush=True)
for line in sys.stdin:
    try:
        if line == "write\\n":
            with checked.write() as connection:
                raise_counter(connection, "written")
        elif line.startswith("hold"):
            writing = checked.write()
            connection = writing.__enter__()
            raise_counter(connection, "written")
            driver = connection.connection.driver_connection
            if line == "hold after a batch\\n":
                rows = [{"n": f"{number}"} for number in range(3)]
                statement = sa.text("UPDATE counters SET value = value WHERE name = :n")
                connection.execute(statement, rows)
            elif line == "hold within a batch\\n":
                batch = driver.pipeline()
                batch.__enter__()
                driver.execute("UPDATE counters SET value = value")
                driver.pgconn.send_flush_request()
                driver.pgconn.flush()
            elif line == "hold without reading\\n":
                driver.pgconn.send_query(b"SELECT repeat('x', 1000000) FROM generate_series(1, 99)")
        elif line == "order\\n":
            held.leadership()
        print("done", flush=True)
    except BoughError as error:
        print(type(error).__name__, flush=True)
"""


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for name, seconds in (("BEAT_S", 0.1), ("LOOK_S", 0.1), ("EXPIRY_S", 4.0), ("MARGIN_S", 0.5)):
        monkeypatch.setattr(lease_module, name, seconds)


class Holder(Program):
    def __init__(self, database: str) -> None:
        super().__init__(HOLDER, database)
        assert "True" == self.line()

    def line(self) -> str:
        return self.stdout.readline().strip()

    def tell(self, what: str) -> None:
        self.stdin.write(f"{what}\n")
        self.stdin.flush()

    def ask(self, what: str) -> str:
        self.tell(what)
        return self.line()

    def thaw(self) -> None:
        self.send_signal(signal.SIGCONT)


@pytest.fixture
def lease(store) -> Iterator[Lease]:
    made = Lease(store)
    yield made
    made.release()


def taken(lease: Lease, within_s: float = 30) -> bool:
    until = time.monotonic() + within_s
    while not lease.held():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def written(store: Store) -> int:
    with store.read() as connection:
        return counter(connection, "written")


def test_a_lease_is_kept_for_as_long_as_its_holder_lives(database, lease):
    with Holder(database) as other:
        assert not taken(lease, within_s=lease_module.EXPIRY_S + 1)
        assert "done" == other.ask("write")
        other.kill()
        assert taken(lease)


def test_the_lease_of_a_frozen_server_is_taken_and_its_writes_and_orders_are_refused(
    database, store, lease
):
    with Holder(database) as frozen:
        assert ("done", "done") == (frozen.ask("write"), frozen.ask("order"))
        frozen.freeze()
        # Both are under way when it is frozen.
        frozen.tell("write")
        frozen.tell("order")
        assert taken(lease)
        assert lease.leadership().number == 2
        frozen.thaw()
        assert ("NotLeading", "NotLeading") == (frozen.line(), frozen.line())
        assert 1 == written(store)


def test_a_server_that_is_frozen_alone_goes_on_under_its_number(database, store):
    with Holder(database) as frozen:
        frozen.freeze()
        time.sleep(lease_module.EXPIRY_S + 0.5)
        frozen.thaw()
        assert "done" == frozen.ask("write")
        assert 1 == written(store)


def test_orders_go_on_where_no_beat_could_be_written_and_no_other_server_took_the_lease(
    lease, monkeypatch
):
    for name, seconds in (("BEAT_S", 600.0), ("LOOK_S", 600.0), ("EXPIRY_S", 2.0)):
        monkeypatch.setattr(lease_module, name, seconds)
    assert lease.held()
    first = lease.leadership()
    time.sleep(1.6)
    second = lease.leadership()
    assert (first.number, True) == (second.number, second.until_ms > first.until_ms)


@pytest.mark.parametrize("moment", ["", " after a batch", " within a batch", " without reading"])
def test_what_a_frozen_server_has_begun_to_write_is_taken_from_it(moment, database, store, lease):
    """PostgreSQL ends its transaction; SQLite has one file, and waits for it."""
    if moment and store.is_sqlite:
        return
    with Holder(database) as frozen:
        assert "done" == frozen.ask(f"hold{moment}")
        frozen.freeze()
        if store.is_sqlite:
            frozen.kill()
        assert taken(lease)
        with store.checked(lease.check).write() as connection:
            assert 1 == raise_counter(connection, "written")


def test_a_leader_whose_lease_was_taken_decides_nothing_more_until_it_leads_again(
    team, monkeypatch
):
    monkeypatch.setattr(lease_module, "EXPIRY_S", 600.0)
    workflow = team.submit(5)
    thief = Lease(team.site.store)
    try:
        assert thief._mark.set(2)
        with team.site.store.write() as connection:
            connection.execute(sa.text("UPDATE leadership SET number = 2"))
        assert not team.scheduler.cycle().leads
        assert not team.scheduler.cycle().leads
        assert WorkflowStatus.PENDING is team.status(workflow)
        thief.release()
        assert taken_by(team.scheduler)
        team.settle()
        assert WorkflowStatus.RUNNING is team.status(workflow)
    finally:
        thief.release()


def taken_by(scheduler: Scheduler) -> bool:
    until = time.monotonic() + 30
    while not scheduler.cycle().leads:
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def test_every_write_of_the_loop_is_refused_to_an_older_leader(team: World):
    """Whatever it is doing when another one takes over: nothing of it is kept."""
    team.run(5)
    with team.site.store.write() as connection:
        connection.execute(sa.text("UPDATE leadership SET number = number + 1"))
    with pytest.raises(NotLeading), team.scheduler._site.store.write() as connection:
        raise_counter(connection, "written")
    assert 0 == written(team.site.store)


def test_no_lease_is_taken_while_a_server_of_an_earlier_version_decides(store, database, lease):
    """It holds a lock alone: of a file, or of PostgreSQL."""
    if store.is_sqlite:
        holds = (
            "import fcntl, os, sys; from bough.store import Store;"
            "file = os.open(Store.open(sys.argv[1]).engine.url.database + '.lease', 66, 0o600);"
            "fcntl.flock(file, fcntl.LOCK_EX)"
        )
    else:
        holds = (
            "import sys; from bough.store import Store;"
            "connection = Store.open(sys.argv[1]).engine.connect();"
            "connection.exec_driver_sql('SELECT pg_advisory_lock(%d)' % 0x626F756768)"
        )
    with Program(f"{holds}; print('held', flush=True); sys.stdin.read()", database) as earlier:
        assert "held" == earlier.stdout.readline().strip()
        assert not lease.held()
        earlier.kill()
        assert taken(lease)


class OfMachine(VirtualBackend):
    """A backend of one machine, which refuses orders that come too late."""

    until_ms = 0
    refused = 0

    @property
    def machine(self) -> Machine:
        return Machine("m1", "here")

    def lead(self, leadership: Leadership) -> None:
        self.until_ms = leadership.until_ms

    def start(self, start: Start) -> None:
        if lease_module.now_ms() >= self.until_ms:
            self.refused += 1
            raise NotLeading
        super().start(start)


def test_orders_of_a_machine_hold_only_until_it_could_be_declared_lost(team, monkeypatch):
    """What was frozen with an order in its hand is refused, and orders again once it has looked."""
    backend = OfMachine(team.backend.nodes(), team.time.now_ms)
    team.scheduler.release()
    scheduler = Scheduler(team.site, (backend,))
    try:
        monkeypatch.setattr(machine_backends, "ORDERS_S", 0.0)
        workflow = team.submit(5)
        for _ in range(3):
            scheduler.cycle()
        assert backend.refused
        assert WorkflowStatus.PENDING is team.status(workflow)
        monkeypatch.setattr(machine_backends, "ORDERS_S", 12.0)
        for _ in range(3):
            team.time.pass_minutes(0.1)
            scheduler.cycle()
        assert WorkflowStatus.RUNNING is team.status(workflow)
        assert 0 < backend.until_ms - lease_module.now_ms() < 1_000 * machine_backends.SILENT_S
    finally:
        scheduler.release()
