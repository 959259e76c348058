"""The index of a pool's data: which path has which content, drafts, and how much space is used.

One SQLite file for each pool, written by the server and by supervisors, each change in one
transaction. Callers write a content to disk before they name it here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from bough.model.pool_data import DataEntry, DataFile, PoolSpace

#: How long a writer waits for others.
_WAIT_S = 60.0
#: The most values in one query.
_AT_ONCE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS files (
    path TEXT PRIMARY KEY, sha256 TEXT NOT NULL, size INTEGER NOT NULL,
    executable INTEGER NOT NULL, modified_ns INTEGER NOT NULL,
    stored_ms INTEGER NOT NULL, used_ms INTEGER NOT NULL, owner TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS files_by_content ON files (sha256);
CREATE INDEX IF NOT EXISTS files_by_use ON files (used_ms);
CREATE TABLE IF NOT EXISTS contents (
    sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS incoming (
    sha256 TEXT PRIMARY KEY, size INTEGER NOT NULL, touched_ms INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS drafts (
    draft TEXT NOT NULL, path TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL,
    executable INTEGER NOT NULL, modified_ns INTEGER NOT NULL, touched_ms INTEGER NOT NULL,
    PRIMARY KEY (draft, path)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS drafts_by_content ON drafts (sha256);
CREATE TABLE IF NOT EXISTS total (one INTEGER PRIMARY KEY CHECK (one = 1), bytes INTEGER NOT NULL);
INSERT OR IGNORE INTO total VALUES (1, 0);
"""
_FILE = "path, size, sha256, executable, modified_ns, stored_ms, owner, used_ms"


class _Range(NamedTuple):
    """All paths below a path, as a range of the sort order."""

    first: str
    last: str


class Index:
    """The index of one pool, open for one thread."""

    def __init__(self, path: Path) -> None:
        new = not path.exists()
        self._connection = sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)
        if new:
            os.chmod(path, 0o600)
        self._connection.execute("PRAGMA synchronous = FULL")
        if not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone():
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")

    def close(self) -> None:
        """Close it."""
        self._connection.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction; other writers wait."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    # Contents

    def known(self, checksums: Iterable[str]) -> set[str]:
        """Which of these contents exist."""
        wanted = list(dict.fromkeys(checksums))
        return {
            row[0]
            for row in self._among("SELECT sha256 FROM contents WHERE sha256 IN ({})", wanted)
        }

    def sizes(self, checksums: Iterable[str]) -> dict[str, int]:
        """Which of these contents exist, and their sizes."""
        wanted = list(dict.fromkeys(checksums))
        return dict(self._among("SELECT sha256, size FROM contents WHERE sha256 IN ({})", wanted))

    def drafted(self, checksums: Iterable[str]) -> dict[str, set[int]]:
        """Which of these contents drafts name, and their sizes, each as its draft says."""
        wanted = list(dict.fromkeys(checksums))
        query = "SELECT DISTINCT sha256, size FROM drafts WHERE sha256 IN ({})"
        found: dict[str, set[int]] = {}
        for sha256, size in self._among(query, wanted):
            found.setdefault(sha256, set()).add(size)
        return found

    def add_content(self, sha256: str, size: int) -> None:
        """Record a content that is on disk."""
        self._connection.execute("INSERT INTO contents VALUES (?, ?)", (sha256, size))
        self._connection.execute("UPDATE total SET bytes = bytes + ?", (size,))
        self._connection.execute("DELETE FROM incoming WHERE sha256 = ?", (sha256,))

    def expect(self, sha256: str, size: int, now_ms: int) -> None:
        """Reserve space for a content that has begun to arrive."""
        self._connection.execute(
            "INSERT OR REPLACE INTO incoming VALUES (?, ?, ?)", (sha256, size, now_ms)
        )

    def used_bytes(self) -> int:
        """The size of all contents, those that are still arriving included."""
        (kept,) = self._connection.execute("SELECT bytes FROM total").fetchone()
        (coming,) = self._connection.execute(
            "SELECT COALESCE(SUM(size), 0) FROM incoming"
        ).fetchone()
        return kept + coming

    def is_expected(self, sha256: str) -> bool:
        """Whether space is already reserved for a content."""
        query = "SELECT 1 FROM incoming WHERE sha256 = ?"
        return self._connection.execute(query, (sha256,)).fetchone() is not None

    def unnamed(self) -> list[str]:
        """The contents that neither a file nor a draft has."""
        query = """SELECT sha256 FROM contents WHERE sha256 NOT IN (SELECT sha256 FROM files)
                   AND sha256 NOT IN (SELECT sha256 FROM drafts)"""
        return [row[0] for row in self._connection.execute(query)]

    def forget_contents(self, checksums: Sequence[str]) -> None:
        """Forget contents that were dropped."""
        for sha256 in checksums:
            query = "DELETE FROM contents WHERE sha256 = ? RETURNING size"
            found = self._connection.execute(query, (sha256,)).fetchone()
            if found is not None:
                self._connection.execute("UPDATE total SET bytes = bytes - ?", (found[0],))

    # Drafts

    def add_to_draft(self, draft: str, entries: Sequence[DataEntry], now_ms: int) -> int:
        """Add files to a draft; returns how many it has now."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (draft, e.path, e.sha256, e.size_bytes, e.executable, e.modified_ns, now_ms)
                for e in entries
            ],
        )
        query = "SELECT COUNT(*) FROM drafts WHERE draft = ?"
        return self._connection.execute(query, (draft,)).fetchone()[0]

    def count_drafted(self) -> int:
        """How many files all drafts have."""
        return self._connection.execute("SELECT COUNT(*) FROM drafts").fetchone()[0]

    def draft_entries(self, draft: str) -> list[DataEntry]:
        """The files of a draft."""
        query = """SELECT path, sha256, size, executable, modified_ns FROM drafts
                   WHERE draft = ? ORDER BY path"""
        rows = self._connection.execute(query, (draft,))
        return [DataEntry(row[0], row[1], row[2], bool(row[3]), row[4]) for row in rows]

    def drop_draft(self, draft: str) -> None:
        """Delete a draft that was published or given up."""
        self._connection.execute("DELETE FROM drafts WHERE draft = ?", (draft,))

    def drop_old(self, last_ms: int) -> None:
        """Drop drafts and reserved space that were not touched since a time."""
        self._connection.execute("DELETE FROM drafts WHERE touched_ms < ?", (last_ms,))
        self._connection.execute("DELETE FROM incoming WHERE touched_ms < ?", (last_ms,))

    # Files

    def put_files(self, entries: Iterable[DataEntry], now_ms: int, owner: str) -> None:
        """Add files, or replace those with the same paths."""
        self._connection.executemany(
            "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (e.path, e.sha256, e.size_bytes, e.executable, e.modified_ns, now_ms, now_ms, owner)
                for e in entries
            ],
        )

    def count_files(self) -> int:
        """How many files there are."""
        return self._connection.execute("SELECT COUNT(*) FROM files").fetchone()[0]

    def find(self, space: PoolSpace, path: str) -> DataFile | None:
        """The file of a path."""
        query = f"SELECT {_FILE} FROM files WHERE path = ?"  # noqa: S608 - no text of users
        row = self._connection.execute(query, (path,)).fetchone()
        return None if row is None else _file(space, row)

    def list_below(self, space: PoolSpace, path: str, after: str, limit: int) -> list[DataFile]:
        """The files at and below a path, after one of them."""
        where, values = _at(path)
        query = f"SELECT {_FILE} FROM files WHERE {where} AND path > ? ORDER BY path LIMIT ?"  # noqa: S608 - no text of users
        rows = self._connection.execute(query, (*values, after, limit))
        return [_file(space, row) for row in rows]

    def among_files(self, paths: Sequence[str]) -> list[str]:
        """Which of these paths are files."""
        return [row[0] for row in self._among("SELECT path FROM files WHERE path IN ({})", paths)]

    def has_below(self, path: str) -> bool:
        """Whether a path is a folder."""
        found = _below(path)
        query = "SELECT 1 FROM files WHERE path >= ? AND path < ? LIMIT 1"
        return self._connection.execute(query, found).fetchone() is not None

    def use(self, path: str, now_ms: int) -> None:
        """Note that everything at and below a path is used now, so that it is kept longer."""
        where, values = _at(path)
        query = f"UPDATE files SET used_ms = ? WHERE {where} AND used_ms < ?"  # noqa: S608 - no text of users
        self._connection.execute(query, (now_ms, *values, now_ms))

    def delete(self, path: str) -> int:
        """Remove everything at and below a path; returns how many files."""
        where, values = _at(path)
        query = f"DELETE FROM files WHERE {where}"  # noqa: S608 - no text of users
        return self._connection.execute(query, values).rowcount

    def expire(self, last_ms: int) -> int:
        """Remove files that were not used since a time; returns how many."""
        return self._connection.execute("DELETE FROM files WHERE used_ms < ?", (last_ms,)).rowcount

    def _among(self, query: str, values: Sequence[str]) -> Iterator[tuple[str, int]]:
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            yield from self._connection.execute(query.format(", ".join("?" * len(some))), some)


@contextmanager
def opened_index(path: Path) -> Iterator[Index]:
    """Open an index for the length of the block."""
    with closing(Index(path)) as index:
        yield index


def _at(path: str) -> tuple[str, tuple[str, ...]]:
    """The condition for a path and everything below it; an empty path is above everything."""
    if not path:
        return "path > ?", ("",)
    return "(path = ? OR (path >= ? AND path < ?))", (path, *_below(path))


def _below(path: str) -> _Range:
    # The character after the slash sorts after everything that begins with the slash.
    return _Range(f"{path}/", f"{path}0")


def _file(space: PoolSpace, row: tuple[str, int, str, int, int, int, str, int]) -> DataFile:
    path, size, sha256, executable, modified_ns, stored_ms, owner, used_ms = row
    until_ms = used_ms + space.keep_s * 1_000
    return DataFile(path, size, sha256, bool(executable), modified_ns, stored_ms, owner, until_ms)
