"""Which of several servers decides: one lease, with an expiry and a number that only rises.

The lease is a row: its number, and a beat that the holder counts up every few seconds. A server
that wants it watches the row: it takes it, with the next number, where the row stood still for
longer than `EXPIRY_S` by its own clock. So no two clocks are compared. It takes it at once where
the holder is known to be dead: beside the row, the holder has a mark of its number that the system
removes with its process, an advisory lock of PostgreSQL or a lock on a file beside SQLite's.

Whatever the loop writes checks the number in the same transaction, which no takeover can pass by. A
holder that was frozen, or cut off, counts its lease as expired before another one can take it.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from bough.errors import NotLeading, Unavailable
from bough.model.backend import Leadership
from bough.store.database import END_FROZEN, Store
from bough.store.schema import LEADERSHIP

#: How often the holder beats; how long it may be silent; how much sooner it considers its own lease
#: expired.
BEAT_S = 3.0
EXPIRY_S = 10.0
MARGIN_S = 1.0
#: How often the others look for the beat.
LOOK_S = 1.0
#: After so long without a cycle the loop hangs, and the lease is not kept for it.
STUCK_S = 120.0
#: Any number that nothing else in the same PostgreSQL database uses for advisory locks.
_CLASS = 0x626F7567
#: What versions without numbers hold; they take part as long as it is held.
_EARLIER_LOCK = 0x626F756768
_FILE_LOCK = "hhqqi4x"

_ROW = sa.select(LEADERSHIP.c.number, LEADERSHIP.c.beat)
_IS_MINE = sa.select(LEADERSHIP.c.number).where(LEADERSHIP.c.number == sa.bindparam("mine"))
#: A takeover changes the key and waits for these; a beat does not.
_STAYS_MINE = _IS_MINE.with_for_update(read=True, key_share=True)
_BEAT = (
    sa.update(LEADERSHIP)
    .where(LEADERSHIP.c.number == sa.bindparam("mine"))
    .values(beat=LEADERSHIP.c.beat + 1)
)
_TAKE = (
    sa.update(LEADERSHIP)
    .where(LEADERSHIP.c.number == sa.bindparam("last"))
    .values(number=LEADERSHIP.c.number + 1, holder=sa.bindparam("by"), beat=LEADERSHIP.c.beat + 1)
)


class Lease:
    """The right to decide. Ask again before every cycle: it may have been lost."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._mark: _Mark = _FileMark(store) if store.is_sqlite else _ConnectionMark(store)
        self._lock = threading.RLock()
        self._number: int | None = None
        #: Until when it is certain that no other has it, and when the loop last asked, in
        #: milliseconds of a clock that goes on while this process, or the machine, does not.
        self._until_ms = 0
        self._asked_ms = 0
        #: The row as it was last seen to change, and when.
        self._seen: tuple[tuple[int, int], int] | None = None
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def held(self) -> bool:
        """Whether this server decides; the lease is taken if it is free."""
        with self._lock:
            self._asked_ms = now_ms()
            if self._number is not None and now_ms() < self._until_ms:
                return True
            self._start_thread()
            # Where the database is away, nothing is known of the lease.
            with suppress(SQLAlchemyError, Unavailable, OSError):
                return self._renew() or self._take()
            return False

    def leadership(self) -> Leadership:
        """The number of this server's lease, and until when it certainly has it.

        On SQLite no beat can be written while a large plan is, so the lease may have expired
        without another server that took it: then it is renewed now.
        """
        with self._lock:
            if self._number is not None and now_ms() >= self._until_ms:
                with suppress(SQLAlchemyError, Unavailable, OSError):
                    self._renew()
            if self._number is None or now_ms() >= self._until_ms:
                raise NotLeading
            return Leadership(self._number, self._until_ms)

    def check(self, connection: sa.Connection) -> None:
        """Refuse a transaction unless this server leads; none other does before it ends."""
        number = self._number
        if number is None or connection.execute(_STAYS_MINE, {"mine": number}).first() is None:
            raise NotLeading

    def release(self) -> None:
        """Let another server decide."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            self._lose()

    def _lose(self) -> None:
        self._number = None
        self._seen = None
        self._mark.remove()

    def _renew(self) -> bool:
        """Write a beat; whether this server still has the lease."""
        number, before_ms = self._number, now_ms()
        if number is None:
            return False
        if self._mark.keep(number) and self._mark.change(_BEAT, {"mine": number}):
            self._until_ms = before_ms + int(1_000 * (EXPIRY_S - MARGIN_S))
            return True
        self._lose()
        return False

    def _look(self) -> tuple[int, int]:
        """The number of the lease, and for how long the row has stood still."""
        row = self._mark.read()
        if self._seen is None or self._seen[0] != row:
            self._seen = row, now_ms()
        return row[0], now_ms() - self._seen[1]

    def _take(self) -> bool:
        number, silent_ms = self._look()
        if silent_ms < 1_000 * EXPIRY_S and self._mark.is_set(number):
            return False
        before_ms = now_ms()
        holder = f"{socket.gethostname()}/{os.getpid()}"
        if not self._mark.set(number + 1):
            return False
        if not self._mark.change(_TAKE, {"last": number, "by": holder}):
            self._mark.remove()
            return False
        self._number = number + 1
        self._until_ms = before_ms + int(1_000 * (EXPIRY_S - MARGIN_S))
        return True

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._stopped.clear()
            self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)
            self._thread.start()

    def _beat(self) -> None:
        """Renew the lease for as long as the loop comes by, or see whether its holder does.

        The loop itself may be held up by what a frozen server has locked.
        """
        while not self._stopped.wait(LOOK_S if self._number is None else BEAT_S):
            with self._lock, suppress(SQLAlchemyError, Unavailable, OSError):
                self._mark.end_frozen()
                if self._number is None:
                    self._look()
                elif now_ms() - self._asked_ms < 1_000 * STUCK_S:
                    self._renew()


def now_ms() -> int:
    """A clock that all processes of a machine share, and that nothing sets or stops."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class _Mark(Protocol):
    """Shows whether the process that holds a number is alive; and reads and writes the row."""

    def is_set(self, number: int) -> bool:
        """Whether another one that lives holds this number."""
        ...

    def set(self, number: int) -> bool:
        """Hold a number, unless another one does."""
        ...

    def keep(self, number: int) -> bool:
        """Hold a number that was held, also where that was interrupted."""
        ...

    def remove(self) -> None:
        """Hold no number."""
        ...

    def read(self) -> tuple[int, int]:
        """The number and the beat of the row."""
        ...

    def change(self, statement: sa.Update, values: dict[str, int | str]) -> bool:
        """Change the row; whether it was as the statement expects."""
        ...

    def end_frozen(self) -> None:
        """Take from servers that are frozen while they write what they have locked."""
        ...


class _ConnectionMark:
    """On PostgreSQL: an advisory lock, which lives and dies with a connection of its own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._connection: sa.Connection | None = None
        self._number: int | None = None

    def is_set(self, number: int) -> bool:
        key = _CLASS, _folded(number)
        if not self._ask(sa.func.pg_try_advisory_lock(*key)):
            return True
        self._ask(sa.func.pg_advisory_unlock(*key))
        return False if number else self._is_earlier_version_there()

    def set(self, number: int) -> bool:
        if not self._ask(sa.func.pg_try_advisory_lock(_CLASS, _folded(number))):
            return False
        self._number = number
        # So that no server of an earlier version decides as well.
        self._ask(sa.func.pg_try_advisory_lock(_EARLIER_LOCK))
        return True

    def keep(self, number: int) -> bool:
        return (self._connection is not None and self._number == number) or self.set(number)

    def remove(self) -> None:
        connection, self._connection, self._number = self._connection, None, None
        if connection is not None:
            # Unlocked explicitly: the database may notice the end of the connection late.
            with suppress(SQLAlchemyError):
                connection.execute(sa.select(sa.func.pg_advisory_unlock_all()))
            # Not given back to the pool: a lock would stay with it.
            connection.invalidate()
            connection.close()

    def read(self) -> tuple[int, int]:
        row = self._execute(_ROW).one()
        return row.number, row.beat

    def change(self, statement: sa.Update, values: dict[str, int | str]) -> bool:
        return self._execute(statement, values).rowcount == 1

    def end_frozen(self) -> None:
        self._execute(END_FROZEN)

    def _is_earlier_version_there(self) -> bool:
        if self._ask(sa.func.pg_try_advisory_lock(_EARLIER_LOCK)):
            self._ask(sa.func.pg_advisory_unlock(_EARLIER_LOCK))
            return False
        return True

    def _ask(self, function: sa.ColumnElement[bool]) -> bool:
        return bool(self._execute(sa.select(function)).scalar())

    def _execute(
        self, statement: sa.Executable, values: dict[str, int | str] | None = None
    ) -> sa.CursorResult[sa.Row[tuple[int, ...]]]:
        try:
            if self._connection is None:
                fresh = self._store.engine.connect()
                self._connection = fresh.execution_options(isolation_level="AUTOCOMMIT")
                # A takeover waits for what a frozen server has begun no longer than for its turn.
                self._connection.exec_driver_sql("SET lock_timeout = '2s'")
            return self._connection.execute(statement, values or {})
        except SQLAlchemyError:
            self.remove()
            raise


class _FileMark:
    """On SQLite: a byte of a file beside the database, locked until the process dies."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._path = f"{store.engine.url.database}.lease"
        self._file: int | None = None
        self._number: int | None = None

    def is_set(self, number: int) -> bool:
        asked = struct.pack(_FILE_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _folded(number), 1, 0)
        found = fcntl.fcntl(self._open(), fcntl.F_OFD_GETLK, asked)
        if struct.unpack(_FILE_LOCK, found)[0] != fcntl.F_UNLCK:
            return True
        return False if number else not self._take_earlier_lock()

    def set(self, number: int) -> bool:
        asked = struct.pack(_FILE_LOCK, fcntl.F_WRLCK, os.SEEK_SET, _folded(number), 1, 0)
        try:
            fcntl.fcntl(self._open(), fcntl.F_OFD_SETLK, asked)
        except OSError:
            return False
        self._number = number
        # So that no server of an earlier version decides as well.
        self._take_earlier_lock()
        return True

    def keep(self, number: int) -> bool:
        return self._number == number

    def remove(self) -> None:
        file, self._file, self._number = self._file, None, None
        if file is not None:
            os.close(file)

    def read(self) -> tuple[int, int]:
        with self._store.read() as connection:
            row = connection.execute(_ROW).one()
        return row.number, row.beat

    def change(self, statement: sa.Update, values: dict[str, int | str]) -> bool:
        with self._store.write() as connection:
            return connection.execute(statement, values).rowcount == 1

    def end_frozen(self) -> None:
        """The file stays locked until the process goes on, or ends."""

    def _open(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        return self._file

    def _take_earlier_lock(self) -> bool:
        try:
            fcntl.flock(self._open(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def _folded(number: int) -> int:
    """A number as the systems' locks can have it."""
    return number % 2**31
