"""Room inside the files of SQLite: it is made once, kept, and leaves nothing else behind."""

from __future__ import annotations

import os
from pathlib import Path

import sqlalchemy as sa

from bough.store import Store
from bough.store.migration import upgrade
from bough.store.schema import METADATA
from bough.store.sqlite_reserve import keep_reserve

SIZE = 1 << 20


def free_bytes(store: Store) -> int:
    with store.read() as connection:
        free = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
        return free * connection.exec_driver_sql("PRAGMA page_size").scalar_one()


def test_the_files_have_room_of_their_own_that_is_made_once(tmp_path: Path):
    store = Store.open(tmp_path / "bough.db")
    upgrade(store)
    assert free_bytes(store) < SIZE
    assert keep_reserve(store, SIZE)
    assert free_bytes(store) >= SIZE
    assert os.stat(tmp_path / "bough.db-wal").st_size >= SIZE
    assert not keep_reserve(store, SIZE)
    with store.read() as connection:
        tables = set(sa.inspect(connection).get_table_names())
    assert {*METADATA.tables, "alembic_version"} == tables
    store.close()


def test_what_a_server_left_half_made_is_made_anew(tmp_path: Path):
    store = Store.open(tmp_path / "bough.db")
    upgrade(store)
    with store.write() as connection:
        connection.exec_driver_sql("CREATE TABLE bough_reserve (filler BLOB)")
    assert keep_reserve(store, SIZE)
    with store.read() as connection:
        assert "bough_reserve" not in sa.inspect(connection).get_table_names()
    store.close()
