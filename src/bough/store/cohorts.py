"""Cohorts above the pools, as they were declared. Must not know the tree that they form."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.model.pool import PoolCohort
from bough.store.schema import COHORTS


def find(connection: sa.Connection, name: str) -> PoolCohort | None:
    """The cohort of a name."""
    query = sa.select(COHORTS).where(COHORTS.c.name == name)
    row = connection.execute(query).mappings().first()
    return None if row is None else _cohort(row)


def lock(connection: sa.Connection, name: str) -> PoolCohort | None:
    """The same; nobody else changes it until the transaction ends."""
    query = sa.select(COHORTS).where(COHORTS.c.name == name).with_for_update()
    row = connection.execute(query).mappings().first()
    return None if row is None else _cohort(row)


def list_all(connection: sa.Connection) -> list[PoolCohort]:
    """All cohorts, by name."""
    rows = connection.execute(sa.select(COHORTS).order_by(COHORTS.c.name)).mappings()
    return [_cohort(row) for row in rows]


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


def _cohort(row: sa.RowMapping) -> PoolCohort:
    return msgspec.convert(dict(row), PoolCohort)
