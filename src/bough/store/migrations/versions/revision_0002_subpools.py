"""Pools can be divided: an edge to the parent, a short name, a state, and monitors of drains.

Every pool becomes an inner node whose leaf `--_shared` takes what is submitted to the pool itself.
So what waits in the queue of a pool moves there, as an inner node takes no work; what runs stays
where it is until it ends, and counts as the pool's own use. Existing pools have no parent.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

#: What has no node yet; a group that runs is left alone.
WAITING = "('SUBMITTING', 'WAITING', 'PROCESSING', 'SCHEDULING')"

STATES = "('ACTIVE', 'DELETING', 'ARCHIVED')"


def upgrade() -> None:
    """Add the columns, their constraints and the monitors; move what waits."""
    op.execute("ALTER TABLE pools ADD COLUMN parent_pool TEXT REFERENCES pools(name)")
    op.execute(
        "ALTER TABLE pools ADD COLUMN subpool_name TEXT"
        " CONSTRAINT subpool_has_parent CHECK ((parent_pool IS NULL) = (subpool_name IS NULL))"
        " CONSTRAINT subpool_name_has_no_delimiter CHECK (subpool_name NOT LIKE '%--%')"
        " CONSTRAINT subpool_name_is_not_reserved CHECK (substr(subpool_name, 1, 1) <> '_')"
        " CONSTRAINT subpool_name_is_part_of_name"
        " CHECK (parent_pool IS NULL OR name = parent_pool || '--' || subpool_name)"
    )
    op.execute(
        "ALTER TABLE pools ADD COLUMN subpool_state TEXT"
        " CONSTRAINT subpool_has_state CHECK ((parent_pool IS NULL) = (subpool_state IS NULL))"
        f" CONSTRAINT subpool_state_is_known CHECK (subpool_state IN {STATES})"
        " CONSTRAINT subpool_has_quota"
        " CHECK (parent_pool IS NULL OR (gpu_guarantee IS NOT NULL AND gpu_guarantee >= 0))"
    )
    op.create_index("pools_parent_subpool", "pools", ["parent_pool", "subpool_name"], unique=True)
    op.create_table(
        "drain_monitors",
        sa.Column("pool", sa.Text, sa.ForeignKey("pools.name"), primary_key=True),
        sa.Column("due_ms", sa.BigInteger, nullable=False),
    )
    op.execute(
        f"UPDATE task_groups SET queue = queue || '--_shared' WHERE status IN {WAITING}"  # noqa: S608
    )
    if op.get_bind().dialect.name == "sqlite":
        _keep_sum_sqlite()
    else:
        _keep_sum_postgresql()


#: What the ACTIVE subpools of a pool have together, and what the pool has.
_SUM = (
    "(SELECT COALESCE(SUM(gpu_guarantee), 0) FROM pools"
    " WHERE parent_pool = {pool} AND subpool_state = 'ACTIVE')"
)
_TOTAL = "COALESCE((SELECT gpu_guarantee FROM pools WHERE name = {pool}), -1)"
_MESSAGE = "the ACTIVE subpools have more GPUs than their pool"


def _keep_sum_sqlite() -> None:
    for event in ("INSERT", "UPDATE OF gpu_guarantee, subpool_state, parent_pool"):
        name = event.split()[0].lower()
        _sqlite_trigger(
            f"pools_sum_{name}", event, "NEW.subpool_state = 'ACTIVE'", "NEW.parent_pool"
        )
    _sqlite_trigger(
        "pools_sum_parent",
        "UPDATE OF gpu_guarantee",
        "NEW.parent_pool IS NULL AND EXISTS (SELECT 1 FROM pools"
        " WHERE parent_pool = NEW.name AND subpool_state = 'ACTIVE')",
        "NEW.name",
    )


def _sqlite_trigger(name: str, event: str, condition: str, pool: str) -> None:
    op.execute(
        f"CREATE TRIGGER {name} AFTER {event} ON pools WHEN {condition} BEGIN "
        f"SELECT RAISE(ABORT, '{_MESSAGE}') "
        f"WHERE {_SUM.format(pool=pool)} > {_TOTAL.format(pool=pool)}; END"
    )


def _keep_sum_postgresql() -> None:
    # The pool's row is locked, so that two changes of its subpools cannot pass each other by.
    op.execute(
        "CREATE FUNCTION bough_keep_sum() RETURNS trigger LANGUAGE plpgsql AS $$ "  # noqa: S608
        "DECLARE pool text := COALESCE(NEW.parent_pool, NEW.name); BEGIN "
        "PERFORM 1 FROM pools WHERE name = pool FOR UPDATE; "
        "IF EXISTS (SELECT 1 FROM pools WHERE parent_pool = pool AND subpool_state = 'ACTIVE') "
        f"AND {_SUM.format(pool='pool')} > {_TOTAL.format(pool='pool')} THEN "
        f"RAISE EXCEPTION '{_MESSAGE}' USING ERRCODE = 'check_violation'; END IF; "
        "RETURN NULL; END $$"
    )
    op.execute(
        "CREATE TRIGGER pools_keep_sum AFTER INSERT OR UPDATE OF gpu_guarantee, subpool_state, "
        "parent_pool ON pools FOR EACH ROW EXECUTE FUNCTION bough_keep_sum()"
    )
