"""Room inside SQLite's own files, so that little can still be written when the disk is full.

Free pages in the database, and a log that is as long already, belong to nothing else: a file that
is given up when the disk is full would at once be taken by what has filled it. This helps on file
systems that write in place, as ext4 and xfs do. PostgreSQL has to care for its own disk.
"""

from __future__ import annotations

import os

import sqlalchemy as sa

from bough.store.database import Store

#: Thousands of cancellations fit into it.
RESERVE_BYTES = 8 << 20
_TABLE = "bough_reserve"


def keep_reserve(store: Store, size: int = RESERVE_BYTES) -> bool:
    """Make room where there is less than half of it; whether anything was done."""
    if not store.is_sqlite:
        return False
    with store.read() as connection:
        free = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
        page = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
        left = sa.inspect(connection).has_table(_TABLE)
    if free * page >= size // 2 and _log_bytes(store) >= size // 2 and not left:
        return False
    with store.write() as connection:
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {_TABLE}")
        connection.exec_driver_sql(f"CREATE TABLE {_TABLE} (filler BLOB)")
        connection.execute(
            sa.text(f"INSERT INTO {_TABLE} VALUES (zeroblob(:size))"),  # noqa: S608 - a constant
            {"size": size},
        )
    # In a transaction of its own: pages that are freed where they were made are never written.
    with store.write() as connection:
        connection.exec_driver_sql(f"DROP TABLE {_TABLE}")
    return True


def _log_bytes(store: Store) -> int:
    try:
        return os.stat(f"{store.engine.url.database}-wal").st_size
    except OSError:
        return 0
