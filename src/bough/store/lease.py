"""Which of several servers decides: one lease, taken by the first and free again when it dies.

On PostgreSQL it is an advisory lock that lives and dies with a connection of its own. On SQLite it
is a lock on a file beside the database, which the system releases when the process dies.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from bough.store.database import Store

#: Any number that nothing else in the same PostgreSQL database uses for an advisory lock.
_LEASE_LOCK = 0x626F756768


class Lease:
    """The right to decide. Ask again before every decision: it may have been lost."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection: sa.Connection | None = None
        self._file: int | None = None

    def held(self) -> bool:
        """Whether this server decides; it is taken if it is free."""
        return self._hold_file() if self._store.is_sqlite else self._hold_connection()

    def release(self) -> None:
        """Release the lease."""
        if self._connection is not None:
            # Said, not left to the end of the connection, which the database notices when it does.
            with suppress(SQLAlchemyError):
                self._connection.execute(sa.select(sa.func.pg_advisory_unlock(_LEASE_LOCK)))
            self._drop_connection()
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _hold_connection(self) -> bool:
        try:
            if self._connection is not None:
                # The lock is held as long as the connection is.
                self._connection.execute(sa.text("SELECT 1"))
                return True
            return self._take_connection()
        except SQLAlchemyError:
            self._drop_connection()
            return False

    def _take_connection(self) -> bool:
        connection = self._store.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self._connection = connection
        taken = connection.execute(sa.select(sa.func.pg_try_advisory_lock(_LEASE_LOCK))).scalar()
        if not taken:
            self._connection = None
            connection.close()
        return bool(taken)

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            # Not given back to the pool: the lock would stay with it.
            connection.invalidate()
            connection.close()

    def _hold_file(self) -> bool:
        if self._file is not None:
            return True
        path = f"{self._store.engine.url.database}.lease"
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            return False
        self._file = file
        return True
