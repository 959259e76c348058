"""Writers on SQLite share a commit where the disk is slow, and each stands for itself alone."""

from __future__ import annotations

import threading
import time

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from bough.errors import Conflict, Unavailable
from tests.store.racers import at_once
from tests.store.usecases import Store, setting_store

pytestmark = pytest.mark.postgresql


class Disk:
    """Counts commits, and makes each take some time."""

    def __init__(self, store: Store, seconds: float) -> None:
        self.commits = 0
        self.full = False
        self._seconds = seconds
        event.listen(store.engine, "commit", self._commit)

    def _commit(self, _connection: sa.Connection) -> None:
        self.commits += 1
        time.sleep(self._seconds)
        if self.full:
            raise sa.exc.OperationalError("COMMIT", {}, OSError("the disk is full"))


@pytest.fixture
def store(sqlite_files):
    opened = sqlite_files.open(sqlite_files.make())
    yield opened
    opened.close()


def raise_counter(store: Store, name: str = "n") -> int:
    with store.write() as connection:
        return setting_store.raise_counter(connection, name)


def value(store: Store, name: str = "n") -> int:
    with store.read() as connection:
        return setting_store.counter(connection, name)


def test_many_at_once_wait_for_a_slow_disk_together(store):
    disk = Disk(store, 0.05)
    raise_counter(store)

    found = at_once(*[lambda: raise_counter(store)] * 12)

    assert sorted(found) == list(range(2, 14))
    assert 13 == value(store)
    assert disk.commits < 13


def test_a_writer_that_fails_is_undone_alone(store):
    Disk(store, 0.05)
    raise_counter(store)

    def fail() -> None:
        with store.write() as connection:
            setting_store.raise_counter(connection, "n")
            setting_store.raise_counter(connection, "never")
            raise Conflict("no")

    results = at_once(*[lambda: raise_counter(store), fail] * 6)

    assert 6 == results.count(409)
    assert (7, 0) == (value(store), value(store, "never"))


def test_no_writer_is_answered_with_success_for_what_is_not_on_the_disk(store):
    disk = Disk(store, 0.05)
    raise_counter(store)
    disk.full = True

    results = at_once(*[lambda: raise_counter(store)] * 6)

    disk.full = False
    assert [503] * 6 == results
    assert 1 == value(store)
    assert 2 == raise_counter(store)


def test_a_transaction_is_closed_although_the_next_writer_gives_up(store, monkeypatch):
    Disk(store, 0.2)
    raise_counter(store)
    began, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        with store.write() as connection:
            setting_store.raise_counter(connection, "n")
            began.set()
            assert go_on.wait(30)

    writer = threading.Thread(target=slow)
    writer.start()
    assert began.wait(30)
    monkeypatch.setattr("bough.store.write_batches.WAIT_S", 0.1)
    with pytest.raises(Unavailable, match="busy"):
        raise_counter(store)
    go_on.set()
    writer.join(30)

    assert not writer.is_alive()
    assert 2 == value(store)


def test_what_was_answered_is_on_the_disk(store):
    with store.write() as connection:
        assert 2 == connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        assert "wal" == connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()


@pytest.mark.parametrize(
    ("configured", "used"), [("off", "on"), ("local", "local"), ("remote_apply", "remote_apply")]
)
def test_postgresql_waits_for_the_disk_though_it_is_configured_not_to(postgres, configured, used):
    address = postgres.make()
    name = sa.make_url(address).database
    with postgres.open(address).engine.begin() as connection:
        connection.exec_driver_sql(f"ALTER DATABASE {name} SET synchronous_commit = {configured}")

    # What holds for a database is read where a connection begins.
    opened = Store.open(address)
    with opened.write() as connection:
        found = connection.exec_driver_sql("SHOW synchronous_commit").scalar_one()
    opened.close()

    assert used == found


def test_a_change_that_fails_half_way_leaves_nothing(store):
    def change() -> None:
        with store.write() as connection:
            setting_store.raise_counter(connection, setting_store.VERSION)
            raise Conflict("no")

    with pytest.raises(Conflict):
        change()

    with store.read() as connection:
        assert 0 == setting_store.counter(connection, setting_store.VERSION)
