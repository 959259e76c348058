"""Databases for the tests: one of each kind for the whole run, and a fresh copy for each test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
import sqlalchemy as sa

from bough.store import Store
from bough.store.migration import upgrade

SCRIPT = Path(__file__).parents[2] / "scripts" / "postgres.sh"
_NUMBERS = count()


class SqliteFiles:
    """SQLite databases, copied from one that was migrated once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._template = folder / "template.db"
        store = Store.open(self._template)
        upgrade(store)
        store.close()

    def make(self, *, migrated: bool = True) -> str:
        path = self._folder / f"test-{next(_NUMBERS)}.db"
        if migrated:
            shutil.copyfile(self._template, path)
        return f"sqlite:///{path}"


class PostgresServer:
    """PostgreSQL databases, copied from one that was migrated once."""

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self._admin = sa.create_engine(
            self._url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        self._run("CREATE DATABASE bough_template")
        store = Store.open(self._address("bough_template"))
        upgrade(store)
        store.close()

    def make(self, *, migrated: bool = True) -> str:
        name = f"test_{next(_NUMBERS)}"
        template = "bough_template" if migrated else "template1"
        self._run(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self._address(name)

    def close(self) -> None:
        self._admin.dispose()

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
