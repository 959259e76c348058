"""How far the database is, asked as cheaply as each kind allows: whether anything has changed.

Every request asks this first, so a moment is read beside SQLAlchemy, by a connection of its own
that is in no transaction. SQLite tells from memory that it shares between processes whether
another connection has committed anything; PostgreSQL is asked in one statement.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import suppress
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import sqlalchemy as sa

from bough.errors import Unavailable

#: Counters: the changes of users, tokens, roles and the names of pools; and of what submissions are
#: checked against (`settings`).
ACCESS = "access"
SETUP = "setup"

_SQLITE = "SELECT name, value FROM counters WHERE name IN (?, ?)"
_POSTGRESQL = (
    "SELECT txid_current_snapshot()::text, "
    "(SELECT value FROM counters WHERE name = %s), (SELECT value FROM counters WHERE name = %s)"
)


class Moment(NamedTuple):
    """A moment of the database."""

    #: Another text after every commit of anything, by any process.
    state: str
    #: The counters of rights and of what submissions are checked against, at that moment or later.
    access: int
    setup: int


class Moments(Protocol):
    """Says how far a database is. Threads may share it."""

    #: Whether that takes microseconds, and never waits for another process.
    at_once: bool

    def now(self) -> Moment:
        """The latest moment. Whatever is read after this is of this moment or a later one."""
        ...

    def close(self) -> None:
        """Close the connection; the next question opens another."""
        ...


_OF_ENGINES: WeakKeyDictionary[sa.Engine, Moments] = WeakKeyDictionary()


def moments_of(engine: sa.Engine) -> Moments | None:
    """The moments of a database, the same for all that use one engine.

    `None`: each connection has a database of its own, in memory.
    """
    found = _OF_ENGINES.get(engine)
    path = engine.url.database
    if found is None and engine.dialect.name != "sqlite":
        found = PostgresMoments(engine.dialect, engine.url)
    elif found is None and path and path != ":memory:":
        found = SqliteMoments(path)
    if found is not None:
        _OF_ENGINES[engine] = found
    return found


class SqliteMoments:
    """By the number that SQLite changes with every commit of another connection."""

    at_once = True

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        #: How many connections there were: each has numbers of its own.
        self._opened = 0
        self._number = -1
        self._latest: Moment | None = None

    def now(self) -> Moment:
        """The latest moment."""
        with self._lock:
            try:
                return self._look()
            except sqlite3.Error as error:
                self._drop()
                raise Unavailable(f"The database does not answer: {error}") from error

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._drop()

    def _look(self) -> Moment:
        if self._connection is None:
            # It writes nothing, so every commit is that of another one. It never waits for a lock.
            self._connection = sqlite3.connect(
                self._path, timeout=0, isolation_level=None, check_same_thread=False
            )
            self._opened += 1
        (number,) = self._connection.execute("PRAGMA data_version").fetchone()
        if self._latest is None or number != self._number:
            # Counters may be of a later moment than the number; then the next number is another.
            counted = dict(self._connection.execute(_SQLITE, (ACCESS, SETUP)).fetchall())
            state = f"{self._opened}:{number}"
            self._latest = Moment(state, counted.get(ACCESS, 0), counted.get(SETUP, 0))
            self._number = number
        return self._latest

    def _drop(self) -> None:
        connection, self._connection, self._latest = self._connection, None, None
        if connection is not None:
            connection.close()


#: A connection that was cut off without a word is given up after so long, unless the URL says more.
_PATIENCE = {"connect_timeout": 5, "tcp_user_timeout": 5_000}
#: How long a question waits for one that is not answered, in seconds.
_TURN_S = 1.0


class PostgresMoments:
    """By the transactions that can be seen."""

    at_once = False

    def __init__(self, dialect: sa.Dialect, url: sa.URL) -> None:
        self._dialect = dialect
        self._url = url
        self._lock = threading.Lock()
        self._connection: Any = None

    def now(self) -> Moment:
        """The latest moment."""
        if not self._lock.acquire(timeout=_TURN_S):
            raise Unavailable("The database has not answered an earlier question yet.")
        try:
            return self._ask()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Close the connection; one that does not answer ends with the process."""
        if self._lock.acquire(timeout=_TURN_S):
            try:
                self._drop()
            finally:
                self._lock.release()

    def _ask(self) -> Moment:
        errors: Any = self._dialect.loaded_dbapi.Error
        if self._connection is not None:
            with suppress(errors):
                return self._look()
            # The database may have ended it while it was idle.
            self._drop()
        try:
            return self._look()
        except errors as error:
            self._drop()
            said = str(error).strip().partition("\n")[0][:300]
            raise Unavailable(f"The database does not answer: {said}") from error

    def _look(self) -> Moment:
        if self._connection is None:
            where, options = self._dialect.create_connect_args(self._url)
            asked = {"fallback_application_name": "bough", **_PATIENCE, **options}
            self._connection = self._dialect.connect(*where, **asked, autocommit=True)
        state, access, setup = self._connection.execute(_POSTGRESQL, (ACCESS, SETUP)).fetchone()
        return Moment(state, access or 0, setup or 0)

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
