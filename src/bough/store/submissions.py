"""All rows of a submission, in as few statements as the database has.

PostgreSQL adds rows to several tables in one statement. SQLite does so by a trigger of a view,
which each connection has for itself: the tables themselves know nothing of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from bough.model.change_record import AuditEntry, StoredEvent
from bough.model.workflow import Group, Task, Workflow
from bough.store import tasks as task_store
from bough.store.change_records import unnumbered
from bough.store.prepared_statements import Prepared
from bough.store.schema import AUDIT, EVENTS, SPECS, WORKFLOWS

#: What has one row for each submission, in the order in which it is added.
_TABLES: Mapping[str, sa.Table] = {
    "workflow": WORKFLOWS,
    "spec": SPECS,
    "audit": AUDIT,
    "event": EVENTS,
}
#: What the database fills in.
_GIVEN = ("number", "written_in", "begun_after")
_VIEW = "new_submission"


class NewSubmission(msgspec.Struct, frozen=True):
    """A workflow with its spec as it was written, and the records of its submission."""

    workflow: Workflow
    text: str
    template: str | None
    entry: AuditEntry
    event: StoredEvent
    groups: Sequence[Group] = ()
    #: The first attempts of the tasks of all groups.
    tasks: Sequence[Task] = ()


def add(connection: sa.Connection, new: Sequence[NewSubmission]) -> None:
    """Add submissions; as many statements for several as for one."""
    rows = [_values(each) for each in new]
    if connection.dialect.name != "sqlite":
        _TOGETHER.add(connection, rows)
    else:
        _add_by_view(connection, rows)
    task_store.insert_groups(connection, [group for each in new for group in each.groups])
    task_store.insert_tasks(connection, [task for each in new for task in each.tasks])


def _values(new: NewSubmission) -> dict[str, Any]:
    uuid = new.workflow.uuid
    rows: dict[str, dict[str, Any]] = {
        "workflow": msgspec.to_builtins(new.workflow),
        "spec": {"workflow_uuid": uuid, "text": new.text, "template": new.template},
        "audit": unnumbered(new.entry),
        "event": unnumbered(new.event),
    }
    return {f"{kind}_{name}": each for kind, row in rows.items() for name, each in row.items()}


def _add_by_view(connection: sa.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    try:
        _INTO_VIEW.add(connection, rows)
    except OperationalError as error:
        if f"no such table: {_VIEW}" not in str(error.orig):
            raise
        # The first on this connection, or the first after one that was undone.
        for statement in _MAKE_VIEW:
            connection.exec_driver_sql(statement)
        _INTO_VIEW.add(connection, rows)


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
_INTO_VIEW = Prepared(
    sa.insert(
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
)
_TOGETHER = Prepared(
    _insert("workflow").add_cte(
        *(_insert(kind).cte(f"new_{kind}") for kind in _TABLES if kind != "workflow")
    )
)
