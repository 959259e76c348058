"""Work that the database gives up is done again, unless a part of it was kept."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from functools import partial

import pytest
import sqlalchemy as sa

from bough.store import Store, migration
from bough.store import database as database_module
from bough.store.database import GivenUp, again_if_given_up
from bough.store.settings import raise_counter
from tests.store.racers import at_once

pytestmark = pytest.mark.postgresql

_IDLE = "SET LOCAL idle_in_transaction_session_timeout = '{}'"


def test_work_that_the_database_gives_up_for_other_work_is_done_again(store):
    """Two lock the same two rows, each the other first: PostgreSQL ends one of them."""
    meeting = threading.Barrier(2)

    @again_if_given_up
    def count(first: str, second: str) -> None:
        with store.write() as connection:
            raise_counter(connection, first)
            # On SQLite there is one writer at a time, and so no meeting.
            with suppress(threading.BrokenBarrierError):
                meeting.wait(0.5)
            raise_counter(connection, second)

    assert [None, None] == at_once(partial(count, "a", "b"), partial(count, "b", "a"))
    with store.write() as connection:
        assert (3, 3) == (raise_counter(connection, "a"), raise_counter(connection, "b"))


def test_work_of_which_a_part_was_kept_is_not_done_again(store):
    tries: list[str] = []

    @again_if_given_up
    def count_and_fail() -> None:
        tries.append("again")
        with store.write() as connection:
            raise_counter(connection, "kept")
        raise GivenUp("The second transaction was ended.")

    with pytest.raises(GivenUp):
        count_and_fail()
    assert ["again"] == tries


def test_work_that_was_idle_for_too_long_is_done_again(store, monkeypatch):
    """As that of a server on a machine with no time for it: PostgreSQL takes its locks away."""
    if store.is_sqlite:
        return
    monkeypatch.setattr(database_module, "_BEGIN_WRITING", _IDLE.format("100ms"))
    tries: list[int] = []

    @again_if_given_up
    def count() -> None:
        with store.write() as connection:
            tries.append(raise_counter(connection, "a"))
            if len(tries) == 1:
                _await_end_of_transaction(store, connection)
                monkeypatch.setattr(database_module, "_BEGIN_WRITING", _IDLE.format("60s"))
            raise_counter(connection, "a")

    count()

    assert [1, 1] == tries
    with store.write() as connection:
        assert 3 == raise_counter(connection, "a")


def test_a_migration_that_was_idle_for_too_long_is_made_again(databases, monkeypatch):
    """So that a server starts on a busy machine, too."""
    store = databases.open(databases.make(migrated=False))
    if store.is_sqlite:
        return
    monkeypatch.setattr(database_module, "_BEGIN_WRITING", _IDLE.format("100ms"))
    tries: list[str] = []
    migrate = migration.migrate

    def slow(connection: sa.Connection, revision: str) -> str:
        tries.append(revision)
        if len(tries) == 1:
            _await_end_of_transaction(store, connection)
            monkeypatch.setattr(database_module, "_BEGIN_WRITING", _IDLE.format("60s"))
        return migrate(connection, revision)

    monkeypatch.setattr(migration, "migrate", slow)

    assert migration.latest_revision() == migration.upgrade(store)
    assert ["head", "head"] == tries


def _await_end_of_transaction(store: Store, connection: sa.Connection) -> None:
    """Do nothing with a transaction until PostgreSQL has ended it."""
    driver = connection.connection.driver_connection
    assert driver is not None
    there = sa.text("SELECT count(*) FROM pg_stat_activity WHERE pid = :pid")
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with store.read() as other:
            if not other.execute(there, {"pid": driver.info.backend_pid}).scalar():
                return
        time.sleep(0.02)
    pytest.fail("the transaction goes on")


def test_a_database_whose_machine_is_gone_is_given_up_within_a_minute_unless_the_url_says_otherwise(
    store, database
):
    if store.is_sqlite:
        return
    with store.read() as connection:
        asked = connection.connection.driver_connection.info.get_parameters()
    idle, pause, many = (int(asked[f"keepalives_{name}"]) for name in ("idle", "interval", "count"))
    assert (60, 60_000) == (idle + pause * many, int(asked["tcp_user_timeout"]))
    patient = Store.open(f"{database}&tcp_user_timeout=5000&connect_timeout=3")
    try:
        with patient.read() as connection:
            asked = connection.connection.driver_connection.info.get_parameters()
    finally:
        patient.close()
    assert ("5000", "3") == (asked["tcp_user_timeout"], asked["connect_timeout"])
