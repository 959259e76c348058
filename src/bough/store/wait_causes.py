"""Why groups wait: rows of causes, each for all groups that wait for the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bough.store.schema import GROUPS, WAIT_CAUSES

_PUT = {
    dialect: statement.on_conflict_do_update(
        index_elements=[WAIT_CAUSES.c.cause],
        set_={"reason": statement.excluded.reason, "message": statement.excluded.message},
    )
    for dialect, statement in (
        ("sqlite", sqlite.insert(WAIT_CAUSES)),
        ("postgresql", postgresql.insert(WAIT_CAUSES)),
    )
}
# What has ended meanwhile waits for nothing.
_SET = (
    sa.update(GROUPS)
    .where(GROUPS.c.uuid == sa.bindparam("key_uuid"), GROUPS.c.ended_ms.is_(None))
    .values(wait_cause=sa.bindparam("cause"))
)
_UNUSED = sa.delete(WAIT_CAUSES).where(
    WAIT_CAUSES.c.cause.not_in(
        sa.select(GROUPS.c.wait_cause).where(GROUPS.c.wait_cause.is_not(None))
    )
)


def put_causes(connection: sa.Connection, causes: Mapping[str, tuple[str, str]]) -> None:
    """Write the reason and the sentence of causes, new or not."""
    rows = [
        {"cause": cause, "reason": reason, "message": message}
        for cause, (reason, message) in sorted(causes.items())
    ]
    if rows:
        connection.execute(_PUT[connection.dialect.name], rows)


def set_causes(connection: sa.Connection, groups: Iterable[tuple[str, str]]) -> None:
    """Say for which cause groups wait, by uuid."""
    rows = [{"key_uuid": uuid, "cause": cause} for uuid, cause in groups]
    if rows:
        connection.execute(_SET, rows)


def remove_causes(connection: sa.Connection, causes: Sequence[str]) -> None:
    """Forget causes for which nothing waits any more."""
    for start in range(0, len(causes), 500):
        part = causes[start : start + 500]
        connection.execute(sa.delete(WAIT_CAUSES).where(WAIT_CAUSES.c.cause.in_(part)))


def remove_unused(connection: sa.Connection) -> None:
    """Forget all causes for which nothing waits."""
    connection.execute(_UNUSED)
