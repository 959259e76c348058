"""Opening a database, and reading and writing it in transactions.

A reader sees one moment. On SQLite there is one writer at a time, from its first statement on; on
PostgreSQL writers lock the rows that a rule is about (see `pools.lock`). Errors of the driver
leave as ours. Nothing outside is called while a transaction is open.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from functools import wraps
from pathlib import Path
from random import random
from time import monotonic, sleep
from typing import Any, ParamSpec, TypeVar

import msgspec
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError, DisconnectionError, IntegrityError, SQLAlchemyError

from bough.errors import Conflict, Invalid, Unavailable
from bough.store.change_detection import moments_of
from bough.store.sqlite_turns import FileTurns
from bough.store.write_batches import WAIT_S, WriteBatches

#: After so long without use a connection to PostgreSQL is tried before it is used.
IDLE_S = 1.0
#: How often work is tried that the database gives up.
TRIES = 5
#: PostgreSQL's codes of a transaction that it ends for others: a deadlock, a failed serialisation,
#: and one whose server was idle for too long (`_BEGIN_WRITING`), which so never came to its commit.
_GIVEN_UP = ("40P01", "40001", "25P03")
#: How servers connect to PostgreSQL, unless the URL says otherwise. A database whose machine is
#: gone without a word is given up after a minute; systems wait for two hours by themselves, and
#: with a request all that wait for its locks would.
_CONNECTING = {
    "fallback_application_name": "bough",
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_SYNCHRONOUS = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
#: A server that is frozen while it writes has rows locked. PostgreSQL takes them from it, before
#: another server may decide in its place; and servers see to it that it does (`END_FROZEN`). And
#: before a transaction has its own number, it notes the last number of an event (`event_order`).
_BEGIN_WRITING = (
    "SELECT set_config('idle_in_transaction_session_timeout', '8s', true), "
    "set_config('bough.begun_after', "
    "coalesce(pg_sequence_last_value(to_regclass('events_number_seq')), 0)::text, true)"
)
#: PostgreSQL's own timeout does not run within a batch of statements, nor after one until the next
#: statement, nor while an answer is not taken. So what writes and has waited for its server for as
#: long is ended by another one, by the clock of the database alone.
END_FROZEN = sa.text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
    "WHERE datname = current_database() AND usename = current_user "
    "AND application_name = current_setting('application_name') "
    "AND backend_xid IS NOT NULL AND wait_event_type = 'Client' "
    "AND state_change < clock_timestamp() - interval '8s'"
)
_RETRY_S = 0.005
_WRITES = "bough_writes"
_USED = "bough_used"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class Store:
    """One database. Threads may share it; each transaction belongs to one thread."""

    def __init__(self, engine: sa.Engine) -> None:
        self.engine = engine
        self.is_sqlite = engine.dialect.name == "sqlite"
        self._file_turns = FileTurns(engine.url.database or "") if self.is_sqlite else None
        self._turns: WriteBatches | None = None
        if self._file_turns is not None:
            self._turns = WriteBatches(self._connect_to_write, self._file_turns)
        self._check: Callable[[sa.Connection], None] | None = None
        #: Tells whether anything has changed.
        self.moments = moments_of(engine)

    @classmethod
    def open(cls, url: str | Path) -> Store:
        """Open a database by its URL, or a SQLite file by its path; a new file is made."""
        return cls(make_engine(url))

    def checked(self, check: Callable[[sa.Connection], None]) -> Store:
        """The same database, of which every writing transaction begins with a check."""
        same = copy(self)
        same._check = check
        return same

    def close(self) -> None:
        """Give all connections back."""
        if self.moments is not None:
            self.moments.close()
        self.engine.dispose()
        if self._file_turns is not None:
            self._file_turns.close()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """Read one moment of the database."""
        options: dict[str, Any] = {}
        if not self.is_sqlite:
            options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with _our_errors(), self.engine.connect() as connection:
            connection.execution_options(**options)
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Write in one transaction: all of it happens, or nothing."""
        if self._turns is not None:
            with _our_errors(), self._turns.write() as connection:
                self._begin(connection)
                yield connection
        else:
            with _our_errors(), self.engine.connect() as connection, connection.begin():
                connection.exec_driver_sql(_BEGIN_WRITING)
                self._begin(connection)
                yield connection
        _THREAD.commits += 1

    def run_outside_transactions(self, *statements: str) -> None:
        """Run what the database refuses in a transaction."""
        with _our_errors(), self.engine.connect() as connection:
            if self.is_sqlite:
                # The driver begins none by itself.
                driver: Any = connection.connection.driver_connection
                try:
                    for each in statements:
                        driver.execute(each).close()
                except sqlite3.Error as error:
                    raise Unavailable(f"The database does not answer: {error}") from error
                return
            alone = connection.execution_options(isolation_level="AUTOCOMMIT")
            for each in statements:
                alone.exec_driver_sql(each)

    def _begin(self, connection: sa.Connection) -> None:
        if self._check is not None:
            self._check(connection)

    def _connect_to_write(self) -> sa.Connection:
        return self.engine.connect().execution_options(**{_WRITES: True})


class GivenUp(Unavailable):
    """PostgreSQL ended this transaction so that another could go on; nothing of it was done."""


class _Thread(threading.local):
    """What this thread has committed, of any database."""

    commits = 0


_THREAD = _Thread()


def again_if_given_up(work: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Retry work, a few times, where the database gave it up before any of it was committed.

    All requests pass through here, and each transaction of the loop; so does what comes after the
    first transaction of a request.
    """

    @wraps(work)
    def repeated(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        kept = _THREAD.commits
        for _ in range(TRIES - 1):
            try:
                return work(*args, **kwargs)
            except GivenUp:
                if _THREAD.commits != kept:
                    raise
                # Of random length, so that those that collided do not collide again.
                sleep(random() * _RETRY_S)  # noqa: S311
        return work(*args, **kwargs)

    return repeated


def make_engine(url: str | Path) -> sa.Engine:
    """Make an engine for `postgresql://…`, `sqlite:///…` or the path of a SQLite file."""
    address = _address(url)
    try:
        return _make(address)
    except ImportError:
        raise Invalid(
            "PostgreSQL needs a driver; install the package with its extra, bough[postgres]."
        ) from None


def _make(address: sa.URL) -> sa.Engine:
    options: dict[str, Any] = {
        "json_serializer": _to_json,
        "json_deserializer": msgspec.json.decode,
        # The connection that was used last knows the most statements already.
        "pool_use_lifo": True,
    }
    if address.drivername.startswith("postgresql"):
        driver = address.set(drivername="postgresql+psycopg")
        said = {name: value for name, value in _CONNECTING.items() if name not in address.query}
        engine = sa.create_engine(
            driver, connect_args=said, pool_size=10, max_overflow=20, **options
        )
        event.listen(engine, "connect", _commit_to_disk)
        event.listen(engine, "checkin", _note_use)
        event.listen(engine, "checkout", _try_if_idle)
        return engine
    _make_file(address.database)
    engine = sa.create_engine(address, connect_args={"timeout": WAIT_S}, pool_size=20, **options)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _commit_to_disk(connection: Any, _record: object) -> None:
    """Let a commit wait for the disk, also where the database is configured not to wait."""
    before, connection.autocommit = connection.autocommit, True
    connection.execute(_SYNCHRONOUS)
    connection.autocommit = before


def _note_use(_connection: object, record: Any) -> None:
    record.info[_USED] = monotonic()


def _try_if_idle(connection: Any, record: Any, _proxy: object) -> None:
    """A connection that was idle may be dead; one that was just used is not asked again."""
    if monotonic() - record.info.get(_USED, monotonic()) < IDLE_S:
        return
    try:
        connection.execute("SELECT 1")
        connection.rollback()
    except connection.Error as error:
        raise DisconnectionError from error


def _to_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _address(url: str | Path) -> sa.URL:
    if isinstance(url, Path) or "://" not in url:
        return sa.URL.create("sqlite", database=str(url))
    try:
        address = sa.make_url(url)
    except (SQLAlchemyError, ValueError):
        raise Invalid(
            "The database URL cannot be read; write it like "
            "postgresql://user@host/name or sqlite:////path/to/file."
        ) from None
    if address.drivername.split("+")[0] not in ("postgresql", "postgres", "sqlite"):
        raise Invalid(
            f"The database {address.drivername} is not supported; use postgresql:// or sqlite://."
        )
    if address.drivername.startswith("postgres"):
        return address.set(drivername="postgresql")
    if not address.database:
        raise Invalid("The database URL names no file; write it like sqlite:////path/to/file.")
    return address


def _make_file(path: str | None) -> None:
    """Make the file so that only its owner can read it: it holds credentials."""
    if path and not os.path.exists(path):
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # Transactions are begun by `_begin_sqlite`, not by the driver's own guess.
    connection.isolation_level = None
    cursor = connection.cursor()
    _write_ahead(cursor)
    # What was answered with success is on the disk.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    # Undoing a part of a transaction needs no room on a disk that may be full.
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.close()


def _write_ahead(cursor: sqlite3.Cursor) -> None:
    """Let readers and a writer not wait for each other.

    While several connect to a new file at once this is refused, without waiting for the others.
    """
    until = monotonic() + WAIT_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > until:
                raise
            sleep(_RETRY_S)
        else:
            return


def _begin_sqlite(connection: sa.Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES, False)
    # By the driver itself: SQLAlchemy would take longer for it than for many a question.
    driver: Any = connection.connection.driver_connection
    try:
        driver.execute("BEGIN IMMEDIATE" if writes else "BEGIN").close()
    except sqlite3.Error as error:
        raise Unavailable(f"The database does not answer: {error}") from error


@contextmanager
def _our_errors() -> Iterator[None]:
    try:
        yield
    except IntegrityError as error:
        raise Conflict(f"The database refused the change: {_first_line(error)}") from error
    except (DBAPIError, SQLAlchemyError) as error:
        kind = GivenUp if _sqlstate(error) in _GIVEN_UP else Unavailable
        raise kind(f"The database does not answer: {_first_line(error)}") from error


def _sqlstate(error: SQLAlchemyError) -> str | None:
    return getattr(error.orig, "sqlstate", None) if isinstance(error, DBAPIError) else None


def _first_line(error: SQLAlchemyError) -> str:
    text = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    return text.strip().partition("\n")[0][:300]
