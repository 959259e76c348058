"""Writers of one SQLite file, one after another, several of them in one commit.

A commit waits for the disk. Meanwhile the next writer writes into the same transaction, in a
savepoint that can be undone alone, and all of them are answered when it is on the disk. So many
writers at the same time wait for a slow disk once, not once each.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from bough.errors import Unavailable
from bough.store.sqlite_turns import FileTurns

#: How long a writer waits for its turn before it gives up.
WAIT_S = 30
#: A transaction takes in others for as long as the last commit took, and not for longer than this.
LONGEST_S = 0.05
#: How often a waiting writer checks that its batch leader is still alive.
_LOOK_S = 0.05
#: The savepoint before what one writer does.
_PART = "part_of_batch"


class WriteBatches:
    """Gives writers their turns."""

    def __init__(self, connect: Callable[[], sa.Connection], file_turns: FileTurns) -> None:
        self._connect = connect
        #: Between processes. Threads of one process queue here, where waiting is not polling.
        self._file_turns = file_turns
        self._turn = threading.Lock()
        self._count = threading.Lock()
        self._waiting = 0
        self._batch: _Batch | None = None
        self._commit_s = 0.0

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """Write in one transaction: all of it happens, or nothing; on the disk at the end."""
        self._take_turn()
        try:
            batch = self._batch = self._batch or _Batch(self._connect(), self._file_turns)
            try:
                with batch.part() as connection:
                    yield connection
            finally:
                if self._is_full(batch):
                    self._close(batch)
        finally:
            self._turn.release()
        self._wait(batch)

    def _take_turn(self) -> None:
        with self._count:
            self._waiting += 1
        try:
            taken = self._turn.acquire(timeout=WAIT_S)
        finally:
            with self._count:
                self._waiting -= 1
        if not taken:
            raise Unavailable("The database is busy with other changes; try again.")

    def _is_full(self, batch: _Batch) -> bool:
        age_s = monotonic() - batch.since_s
        open_s = min(self._commit_s, LONGEST_S)
        return not self._waiting or not batch.parts or batch.broken or age_s >= open_s

    def _close(self, batch: _Batch) -> None:
        """Commit, and tell all writers of the batch the outcome."""
        self._batch = None
        start_s = monotonic()
        batch.close()
        self._commit_s = monotonic() - start_s

    def _wait(self, batch: _Batch) -> None:
        while not batch.done.wait(_LOOK_S):
            # The next writer should have continued it, and gave up.
            if self._turn.acquire(blocking=False):
                try:
                    if self._batch is batch:
                        self._close(batch)
                finally:
                    self._turn.release()
        if batch.error is not None:
            raise batch.error


class _Batch:
    """One transaction with the parts of several writers."""

    def __init__(self, connection: sa.Connection, file_turns: FileTurns) -> None:
        self._connection = connection
        self._file_turns = file_turns
        try:
            file_turns.take(WAIT_S)
            self._transaction = connection.begin()
        except BaseException:
            connection.close()
            file_turns.give_back()
            raise
        self.since_s = monotonic()
        #: How many have written.
        self.parts = 0
        #: What one of them did could not be undone alone.
        self.broken = False
        self.done = threading.Event()
        self.error: Exception | None = None

    @contextmanager
    def part(self) -> Iterator[sa.Connection]:
        """What one writer does; undone alone if it fails. The first is the whole so far."""
        if not self.parts:
            yield self._connection
            self.parts = 1
            return
        self._run(f"SAVEPOINT {_PART}")
        self.broken = True
        try:
            yield self._connection
        except BaseException:
            self._run(f"ROLLBACK TO {_PART}", f"RELEASE {_PART}")
            self.broken = False
            raise
        self._run(f"RELEASE {_PART}")
        self.broken = False
        self.parts += 1

    def _run(self, *statements: str) -> None:
        """Run statements by the driver: a savepoint of SQLAlchemy costs as much as two inserts."""
        driver: Any = self._connection.connection.driver_connection
        try:
            for each in statements:
                driver.execute(each).close()
        except sqlite3.Error as error:
            raise Unavailable(f"The database does not answer: {error}") from error

    def close(self) -> None:
        """Commit what was written, if anything was; never raises."""
        try:
            if self.broken:
                raise Unavailable("The database could not undo a change; try again.")
            if self.parts:
                self._transaction.commit()
        except Exception as error:
            self.error = error
            # Its state is unknown.
            self._connection.invalidate()
        finally:
            # Undoes whatever was not committed.
            with suppress(SQLAlchemyError):
                self._connection.close()
            self._file_turns.give_back()
            self.done.set()
