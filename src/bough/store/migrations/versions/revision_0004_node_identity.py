"""Nodes are known by their backend and their name, since two backends can have one of each name.

Attempts say which backend has the node that they were given; so far it was that of their workflow.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Give the table of nodes another key, which SQLite can only do in a new table."""
    op.create_table(
        "nodes_by_backend",
        sa.Column("backend", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("gpus", sa.BigInteger, nullable=False),
        sa.Column("cpu_milli", sa.BigInteger, nullable=False),
        sa.Column("memory_bytes", sa.BigInteger, nullable=False),
        sa.Column("storage_bytes", sa.BigInteger, nullable=False),
        sa.Column("task_slots", sa.BigInteger, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("pools", sa.JSON),
        sa.Column("platform", sa.Text),
        sa.Column("cordoned", sa.Boolean, nullable=False),
    )
    columns = (
        "backend, name, gpus, cpu_milli, memory_bytes, storage_bytes, task_slots, labels, pools, "
        "platform, cordoned"
    )
    op.execute(f"INSERT INTO nodes_by_backend ({columns}) SELECT {columns} FROM nodes")  # noqa: S608
    op.drop_table("nodes")
    op.rename_table("nodes_by_backend", "nodes")
    op.add_column("tasks", sa.Column("backend", sa.Text))
    op.execute(
        "UPDATE tasks SET backend = "
        "(SELECT backend FROM workflows WHERE workflows.uuid = tasks.workflow_uuid) "
        "WHERE node IS NOT NULL"
    )
