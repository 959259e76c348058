"""Databases for the tests: one of each kind for the whole run, and a fresh copy for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from bough.store import Store
from bough.store.database import make_engine
from bough.store.migration import upgrade
from bough.store.schema import METADATA

SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres.sh"
_NUMBERS = count()
#: On which databases all stories are told: SQLite by default, PostgreSQL in CI, too.
KINDS = os.environ.get("BOUGH_TEST_DATABASES", "sqlite").split()

Told = TypeVar("Told")


#: Where files are kept in memory, on machines that have enough of it.
_MEMORY, _ENOUGH_BYTES = Path("/dev/shm"), 1 << 30  # noqa: S108  a folder of this run is made there


@contextmanager
def folder_in_memory() -> Iterator[Path]:
    """A new folder for what is gone after the tests: a commit need not wait for the disk."""
    has_room = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ENOUGH_BYTES
    with tempfile.TemporaryDirectory(
        prefix="bough-sqlite-", dir=_MEMORY if has_room else None, ignore_cleanup_errors=True
    ) as name:
        yield Path(name)


class _Engines:
    """Engines by address. One that is used again has its statements compiled already."""

    def __init__(self) -> None:
        self._engines: dict[str, sa.Engine] = {}

    def open(self, address: str) -> Store:
        """A store of a database that was made here; what is in it is given back, not closed."""
        if address not in self._engines:
            self._engines[address] = make_engine(address)
        return Store(self._engines[address])


class SqliteFiles(_Engines):
    """SQLite databases, copied from one that was migrated once."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._template = folder / "template.db"
        self._fresh: list[str] = []
        #: Databases that have something in them already, and what was told of that, by name.
        self._prepared: dict[str, tuple[Path, Any]] = {}
        store = Store.open(self._template)
        upgrade(store)
        store.close()

    def make(self, *, migrated: bool = True) -> str:
        if migrated and self._fresh:
            return self._fresh.pop()
        path = self._folder / f"test-{next(_NUMBERS)}.db"
        if migrated:
            shutil.copyfile(self._template, path)
        return f"sqlite:///{path}"

    def make_prepared(self, name: str, prepare: Callable[[Store], Told]) -> tuple[str, Told]:
        """A copy of a database that is prepared once, and what preparing it returned."""
        if name not in self._prepared:
            path = self._folder / f"prepared-{name}.db"
            shutil.copyfile(self._template, path)
            store = Store.open(path)
            told = prepare(store)
            store.close()
            self._prepared[name] = (path, told)
        path, told = self._prepared[name]
        address = self.make()
        shutil.copyfile(path, address.removeprefix("sqlite:///"))
        return address, told

    def give_back(self, address: str) -> None:
        """A database that was made here and is not used any more."""
        self.open(address).close()
        path = Path(address.removeprefix("sqlite:///"))
        # What is still open somewhere has a log beside it, and is left alone.
        if not path.with_name(f"{path.name}-wal").exists():
            shutil.copyfile(self._template, path)
            self._fresh.append(address)


class PostgresServer(_Engines):
    """PostgreSQL databases, copied from one that was migrated once, and emptied to be used again.

    To empty one costs a tenth of what copying does.
    """

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = sa.make_url(url)
        self._admin = sa.create_engine(
            self._url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        self._run("CREATE DATABASE bough_template")
        store = Store.open(self._address("bough_template"))
        upgrade(store)
        with store.read() as connection:
            self._first_rows = {
                table: [row._asdict() for row in connection.execute(sa.select(table))]
                for table in METADATA.sorted_tables
            }
            found = connection.exec_driver_sql("SELECT version_num FROM alembic_version")
            self._revision = found.scalar_one()
            found = connection.exec_driver_sql("SELECT sequencename FROM pg_sequences")
            self._sequences = sorted(found.scalars())
        store.close()
        self._emptied: list[str] = []

    def make(self, *, migrated: bool = True) -> str:
        if migrated and self._emptied:
            return self._emptied.pop()
        name = f"test_{next(_NUMBERS)}"
        template = "bough_template" if migrated else "template1"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self._address(name)

    def give_back(self, address: str) -> None:
        """A database that was made here and is not used any more."""
        store = self.open(address)
        store.close()
        with store.engine.begin() as connection:
            connection.exec_driver_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            # Without triggers: what is only added to is removed, too.
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            emptied = "; ".join(f'DELETE FROM "{table.name}"' for table in self._first_rows)  # noqa: S608
            again = "; ".join(f'ALTER SEQUENCE "{each}" RESTART' for each in self._sequences)
            connection.exec_driver_sql(f"{emptied}; {again}")
            connection.execute(
                sa.text("UPDATE alembic_version SET version_num = :revision"),
                {"revision": self._revision},
            )
            for table, rows in self._first_rows.items():
                if rows:
                    connection.execute(sa.insert(table), rows)
        self._emptied.append(address)

    def close(self) -> None:
        for engine in (self._admin, *self._engines.values()):
            engine.dispose()

    def _address(self, name: str) -> str:
        return self._url.set(database=name).render_as_string(hide_password=False)

    def _run(self, statement: str) -> None:
        with self._admin.connect() as connection:
            connection.execute(sa.text(statement))


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Start a server for this run. Without the program the tests are skipped, but not in CI."""
    folder = Path(tempfile.mkdtemp(prefix="bough-postgres-"))
    folder.chmod(0o755)
    command = [SCRIPT, "start", folder, *(["durable"] if durable else [])]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        if started.returncode:
            message = f"PostgreSQL cannot be had: {started.stderr.strip()}"
            if os.environ.get("CI") == "true":
                pytest.fail(message)
            pytest.skip(message)
        server = PostgresServer(started.stdout.strip())
        yield server
        server.close()
    finally:
        if started.returncode == 0:
            subprocess.run([SCRIPT, "stop", folder], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)
