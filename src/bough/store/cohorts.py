"""Cohorts above the pools, as they were declared. Must not know the tree that they form."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.model.pool import PoolCohort
from bough.store.rows import read_all, read_first
from bough.store.schema import COHORTS


def find(connection: sa.Connection, name: str) -> PoolCohort | None:
    """The cohort of a name."""
    query = sa.select(COHORTS).where(COHORTS.c.name == name)
    return read_first(connection, query, PoolCohort)


def lock(connection: sa.Connection, name: str) -> PoolCohort | None:
    """The same; nobody else changes it until the transaction ends."""
    query = sa.select(COHORTS).where(COHORTS.c.name == name).with_for_update()
    return read_first(connection, query, PoolCohort)


def list_all(connection: sa.Connection) -> list[PoolCohort]:
    """All cohorts, by name."""
    return read_all(connection, sa.select(COHORTS).order_by(COHORTS.c.name), PoolCohort)


def insert(connection: sa.Connection, cohort: PoolCohort) -> None:
    """Add a cohort."""
    connection.execute(sa.insert(COHORTS).values(**msgspec.to_builtins(cohort)))


def update(connection: sa.Connection, cohort: PoolCohort) -> None:
    """Replace the declaration of a cohort."""
    values = msgspec.to_builtins(cohort)
    connection.execute(sa.update(COHORTS).where(COHORTS.c.name == cohort.name).values(**values))


def delete(connection: sa.Connection, name: str) -> None:
    """Take the declaration of a cohort back, whoever names it."""
    connection.execute(sa.delete(COHORTS).where(COHORTS.c.name == name))
