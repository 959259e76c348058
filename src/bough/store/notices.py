"""Notices between servers that share a PostgreSQL database: there is work, or the lease is free.

A notice only says that there is something to look at; a server that misses one finds the same at
the next tick. With SQLite one server at a time decides, and needs none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from bough.store.database import Store

LOG = logging.getLogger(__name__)

CHANNEL = "bough"
#: How long a stop may take, and after how many times as much silence the connection is tried.
_LISTEN_S = 0.2
_SILENCE = 50
#: How long to wait before a lost connection is made again: at first, and at most.
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 5.0


class Notice(StrEnum):
    """What a notice says."""

    #: Something has changed that the deciding server should look at.
    WORK = "work"
    #: The lease is free.
    FREE = "free"


class Notices:
    """Listens over a connection of its own, which is made again whenever it is lost."""

    def __init__(self, store: Store, hear: Callable[[Notice], None]) -> None:
        self._store = store
        self._hear = hear
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Listen from now on."""
        if not self._store.is_sqlite:
            self._thread = threading.Thread(target=self._run, name="notices", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def call(self, notice: Notice) -> None:
        """Tell all servers, this one too. An unreachable database is no failure."""
        if self._store.is_sqlite:
            return
        query = sa.select(sa.func.pg_notify(CHANNEL, notice.value))
        with suppress(SQLAlchemyError), self._store.engine.connect() as connection:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(query)

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        # A connection that is not made by way of the engine fails in the driver's own words.
        driver_error: type[Exception] = self._store.engine.dialect.loaded_dbapi.Error
        while not self._stopping.is_set():
            try:
                connection = self._connect()
            except (SQLAlchemyError, driver_error):
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            else:
                pause_s = _FIRST_PAUSE_S
                # Notices may have been missed while the connection was down.
                self._hear(Notice.WORK)
                self._listen(connection)
            self._stopping.wait(pause_s)

    def _connect(self) -> Any:
        """A connection that the pool does not know of any more."""
        borrowed = self._store.engine.raw_connection()
        connection: Any = borrowed.dbapi_connection
        borrowed.detach()
        return connection

    def _listen(self, connection: Any) -> None:
        """Listen until told to stop, or until the connection is lost."""
        try:
            connection.autocommit = True
            connection.execute(f"LISTEN {CHANNEL}")
            silent = 0
            while not self._stopping.is_set():
                calls = connection.notifies(timeout=_LISTEN_S, stop_after=1)
                heard = {each.payload for each in calls}
                for notice in Notice:
                    if notice.value in heard:
                        self._hear(notice)
                silent = 0 if heard else silent + 1
                if silent >= _SILENCE:
                    connection.execute("SELECT 1")
                    silent = 0
        except connection.Error as error:
            LOG.info("notices of other servers are interrupted for a moment: %s", error)
        finally:
            connection.close()
