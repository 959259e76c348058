"""Brings a database up to date. The only place that imports alembic, which is slow to import.

A start that finds the database up to date does without. Several servers may start at once: one
migrates, the others wait.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from bough.errors import Conflict, Unavailable
from bough.store.database import Store, again_if_given_up

if TYPE_CHECKING:
    from alembic.config import Config

LATEST = "head"
#: The first form of the tables, from before pools could be divided.
FOUNDATION = "0001"

_FOLDER = Path(__file__).parent / "migrations"
#: Where alembic writes the revision.
_TABLE = "alembic_version"
#: Any number that nothing else in the same PostgreSQL database uses for an advisory lock.
_MIGRATION_LOCK = 0x626F756768 + 1


@again_if_given_up
def upgrade(store: Store, revision: str = LATEST) -> str:
    """Bring the database to a revision, and say which one that is. Twice changes nothing."""
    wanted = latest_revision() if revision == LATEST else revision
    with store.read() as connection:
        if current_revision(connection) == wanted:
            return wanted
    return _migrate_alone(store, revision)


def _migrate_alone(store: Store, revision: str) -> str:
    # On a busy machine that takes longer than a transaction may be idle.
    import_module("alembic.command")
    with store.write() as connection:
        if not store.is_sqlite:
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        return migrate(connection, revision)


def migrate(connection: sa.Connection, revision: str = LATEST) -> str:
    """The same, in the transaction of the caller."""
    from alembic import command  # noqa: PLC0415

    config = _config()
    config.attributes["connection"] = connection
    _refuse_newer(connection)
    command.upgrade(config, revision)
    return current_revision(connection) or ""


def require_latest(store: Store) -> None:
    """Refuse a database of another version, for what is done beside a server."""
    latest = latest_revision()
    with store.read() as connection:
        revision = current_revision(connection)
    if revision != latest:
        raise Conflict(
            f"The database has revision {revision}, and this program needs {latest}.",
            hint="start the server of this version first, or run `bough db upgrade`",
        )


def latest_revision() -> str:
    """The revision that this program needs."""
    return max(known_revisions())


def current_revision(connection: sa.Connection) -> str | None:
    """The revision of a database; `None`: it is empty."""
    if not connection.dialect.has_table(connection, _TABLE):
        return None
    found = sa.select(sa.column("version_num")).select_from(sa.table(_TABLE))
    return connection.execute(found).scalar_one_or_none()


def _config() -> Config:
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def known_revisions() -> frozenset[str]:
    """All revisions that this program can migrate from, by the names of their files."""
    files = (_FOLDER / "versions").glob("revision_*.py")
    return frozenset(each.name.split("_")[1] for each in files)


def _refuse_newer(connection: sa.Connection) -> None:
    revision = current_revision(connection)
    if revision is not None and revision not in known_revisions():
        raise Unavailable(
            f"The database is of revision {revision}, which is newer than this program; "
            "start a newer one."
        )
