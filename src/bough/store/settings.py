"""Settings by name, and counters.

Raising a counter locks it. `VERSION` is the version of what a plan depends on and does not itself
check when it is applied: quotas, nodes, and the plans before it. `SETUP` counts the same without
plans, and changes of the workflow configuration: all that a submission is checked against. `ACCESS`
counts the changes of users, tokens, roles and the names of pools.
"""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bough.model.node_test import BackendTest
from bough.model.pool import BackendNotes, Json, ResourceAssertion
from bough.model.settings import ServiceSettings, WorkflowSettings
from bough.store.change_detection import ACCESS, SETUP
from bough.store.rows import convert
from bough.store.schema import COUNTERS, SETTINGS

VERSION = "version"
#: The workflow configuration.
WORKFLOW = "workflow"
#: Versions of clients, and how long tokens may be valid.
SERVICE = "service"
#: What administrators say about backends, by name.
BACKEND_NOTES = "backend_notes"
#: Tests of nodes, by name.
BACKEND_TESTS = "backend_tests"
#: Rules for what tasks may ask for, by name.
RESOURCE_VALIDATIONS = "resource_validations"
#: The key that signs passes, encrypted; and as earlier versions stored it.
PASS_KEY = "pass-key"  # noqa: S105 - a name
CLEAR_PASS_KEY = "signing-key"  # noqa: S105 - a name

# What every submission asks is written once: making a statement costs more than running it.
_NAME = sa.bindparam("name")
_VALUE = sa.select(SETTINGS.c.value).where(SETTINGS.c.name == _NAME)
_COUNTER = sa.select(COUNTERS.c.value).where(COUNTERS.c.name == _NAME)
_RAISE_ANY = {
    dialect: insert(COUNTERS).on_conflict_do_update(
        index_elements=[COUNTERS.c.name], set_={"value": COUNTERS.c.value + 1}
    )
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
_RAISE_NAMED = {
    dialect: statement.values(name=_NAME, value=1) for dialect, statement in _RAISE_ANY.items()
}
_RAISE = {
    dialect: statement.returning(COUNTERS.c.value) for dialect, statement in _RAISE_NAMED.items()
}
_OTHER = COUNTERS.alias()
_SETUP = sa.select(_OTHER.c.value).where(_OTHER.c.name == SETUP).scalar_subquery()
_RAISE_SEEING = {
    dialect: (raised := insert(COUNTERS).values(name=_NAME, value=sa.bindparam("by")))
    .on_conflict_do_update(
        index_elements=[COUNTERS.c.name],
        set_={"value": COUNTERS.c.value + raised.excluded.value},
    )
    .returning(COUNTERS.c.value, sa.func.coalesce(_SETUP, 0))
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}
_RAISE_VERSION = {
    dialect: statement.values([{"name": SETUP, "value": 1}, {"name": VERSION, "value": 1}]).inline()
    for dialect, statement in _RAISE_ANY.items()
}
_COUNTED = sa.select(COUNTERS.c.name, COUNTERS.c.value).where(COUNTERS.c.name.in_((ACCESS, SETUP)))


_CLAIM = {
    dialect: insert(SETTINGS)
    .values(name=_NAME, value=sa.bindparam("value", type_=SETTINGS.c.value.type))
    .on_conflict_do_update(index_elements=[SETTINGS.c.name], set_={"value": SETTINGS.c.value})
    .returning(SETTINGS.c.value)
    for dialect, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert))
}


class Counted(NamedTuple):
    """How often something has changed so far."""

    #: The rights of users.
    access: int
    #: What submissions are checked against.
    setup: int


def get(connection: sa.Connection, name: str) -> Json:
    """A setting; `None`: it was never set."""
    return connection.execute(_VALUE, {"name": name}).scalar_one_or_none()


def put(connection: sa.Connection, name: str, value: Json) -> None:
    """Set a setting."""
    updated = connection.execute(
        sa.update(SETTINGS).where(SETTINGS.c.name == name).values(value=value)
    )
    if not updated.rowcount:
        connection.execute(sa.insert(SETTINGS).values(name=name, value=value))


def remove(connection: sa.Connection, *names: str) -> None:
    """Remove settings, as if they had never been set."""
    connection.execute(sa.delete(SETTINGS).where(SETTINGS.c.name.in_(names)))


def claim(connection: sa.Connection, name: str, value: Json) -> Json:
    """Set a setting unless it is set; its value, locked until the transaction ends."""
    values = {"name": name, "value": value}
    return connection.execute(_CLAIM[connection.dialect.name], values).scalar_one()


def counter(connection: sa.Connection, name: str) -> int:
    """A counter as it is; 0 before it was first raised."""
    return connection.execute(_COUNTER, {"name": name}).scalar_one_or_none() or 0


def raise_counter(connection: sa.Connection, name: str) -> int:
    """Count one up and return the new value; two callers at the same time get different values."""
    return connection.execute(_RAISE[connection.dialect.name], {"name": name}).scalar_one()


def raise_seeing_setup(connection: sa.Connection, name: str, by: int = 1) -> tuple[int, int]:
    """Count up by some and return the new value, and `SETUP` as it is when this begins."""
    values = {"name": name, "by": by}
    found = connection.execute(_RAISE_SEEING[connection.dialect.name], values).one()
    return found[0], found[1]


def raise_version(connection: sa.Connection) -> None:
    """Count a change of what plans depend on and submissions are checked against."""
    connection.execute(_RAISE_VERSION[connection.dialect.name])


def counted(connection: sa.Connection) -> Counted:
    """How often rights, and what submissions are checked against, have changed so far."""
    found = {row.name: row.value for row in connection.execute(_COUNTED)}
    return Counted(found.get(ACCESS, 0), found.get(SETUP, 0))


def resource_validations(connection: sa.Connection) -> dict[str, tuple[ResourceAssertion, ...]]:
    """The rules for what tasks may ask for, by name."""
    stored = get(connection, RESOURCE_VALIDATIONS) or {}
    return convert(stored, dict[str, tuple[ResourceAssertion, ...]])


def workflow_settings(connection: sa.Connection) -> WorkflowSettings:
    """The workflow configuration as it is."""
    return convert(get(connection, WORKFLOW) or {}, WorkflowSettings)


def service_settings(connection: sa.Connection) -> ServiceSettings:
    """What holds for all requests: which clients are too old, how long tokens may be valid."""
    return convert(get(connection, SERVICE) or {}, ServiceSettings)


def backend_notes(connection: sa.Connection) -> dict[str, BackendNotes]:
    """What administrators say about backends, by name."""
    return convert(get(connection, BACKEND_NOTES) or {}, dict[str, BackendNotes])


def backend_tests(connection: sa.Connection) -> dict[str, BackendTest]:
    """Tests of nodes, by name."""
    return convert(get(connection, BACKEND_TESTS) or {}, dict[str, BackendTest])


def raise_if(connection: sa.Connection, name: str, expected: int) -> bool:
    """Count one up if the counter is as expected, and say whether it was."""
    raised = raise_counter(connection, name)
    if raised == expected + 1:
        return True
    connection.execute(sa.update(COUNTERS).where(COUNTERS.c.name == name).values(value=raised - 1))
    return False


def raise_counter_to(connection: sa.Connection, name: str, least: int) -> None:
    """Count up to a number at least."""
    if raise_counter(connection, name) < least:
        connection.execute(sa.update(COUNTERS).where(COUNTERS.c.name == name).values(value=least))
