"""All rows of a submission, in as few statements as the database has.

PostgreSQL adds rows to several tables in one statement. SQLite does so by a trigger of a view,
which each connection has for itself: the tables themselves know nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from bough.model.record import AuditEntry, StoredEvent
from bough.model.workflow import Workflow
from bough.store.records import unnumbered
from bough.store.schema import AUDIT, EVENTS, SPECS, WORKFLOWS

#: What has one row for each submission, in the order in which it is added.
_TABLES: Mapping[str, sa.Table] = {
    "workflow": WORKFLOWS,
    "spec": SPECS,
    "audit": AUDIT,
    "event": EVENTS,
}
#: What the database fills in.
_GIVEN = ("number", "written_in")
_VIEW = "new_submission"


def add(
    connection: sa.Connection,
    workflow: Workflow,
    text: str,
    template: str | None,
    entry: AuditEntry,
    event: StoredEvent,
) -> None:
    """Add a workflow with its spec as it was written, and the records of its submission."""
    rows: dict[str, dict[str, Any]] = {
        "workflow": msgspec.to_builtins(workflow),
        "spec": {"workflow_uuid": workflow.uuid, "text": text, "template": template},
        "audit": unnumbered(entry),
        "event": unnumbered(event),
    }
    values = {f"{kind}_{name}": each for kind, row in rows.items() for name, each in row.items()}
    if connection.dialect.name != "sqlite":
        connection.execute(_TOGETHER, values)
        return
    try:
        connection.execute(_INTO_VIEW, values)
    except OperationalError as error:
        if f"no such table: {_VIEW}" not in str(error.orig):
            raise
        # The first on this connection, or the first after one that was undone.
        for statement in _MAKE_VIEW:
            connection.exec_driver_sql(statement)
        connection.execute(_INTO_VIEW, values)


def _columns(kind: str) -> list[sa.Column[Any]]:
    table = _TABLES[kind]
    given = () if table is WORKFLOWS else _GIVEN
    return [column for column in table.c if column.name not in given]


def _insert(kind: str) -> sa.Insert:
    values = {
        each.name: sa.bindparam(f"{kind}_{each.name}", type_=each.type) for each in _columns(kind)
    }
    return sa.insert(_TABLES[kind]).values(values).inline()


def _make_view() -> tuple[str, str]:
    """A view with all columns and no rows, and a trigger that adds to each of the tables."""
    names = {kind: [each.name for each in _columns(kind)] for kind in _TABLES}
    columns = ", ".join(f"NULL AS {kind}_{name}" for kind, each in names.items() for name in each)
    adding: list[str] = []
    for kind, each in names.items():
        into = ", ".join(f'"{name}"' for name in each)
        new = ", ".join(f"NEW.{kind}_{name}" for name in each)
        adding.append(f"INSERT INTO {_TABLES[kind].name} ({into}) VALUES ({new});")  # noqa: S608
    body = " ".join(adding)
    return (
        f"CREATE TEMP VIEW {_VIEW} AS SELECT {columns}",
        f"CREATE TEMP TRIGGER {_VIEW}_rows INSTEAD OF INSERT ON {_VIEW} BEGIN {body} END",
    )


_MAKE_VIEW = _make_view()
_INTO_VIEW = sa.insert(
    sa.Table(
        _VIEW,
        sa.MetaData(),
        *(
            sa.Column(f"{kind}_{each.name}", each.type)
            for kind in _TABLES
            for each in _columns(kind)
        ),
    )
).inline()
_TOGETHER = _insert("workflow").add_cte(
    *(_insert(kind).cte(f"new_{kind}") for kind in _TABLES if kind != "workflow")
)
