"""Pools, cohorts, backends and nodes: what is shared, and what it runs on."""

from __future__ import annotations

from uuid import uuid4

import sqlalchemy as sa

from bough.store.schema.columns import BIG, JSON, METADATA

POOLS = sa.Table(
    "pools",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    #: Never given again, also where a name is; the pool's data on a machine is kept by it.
    sa.Column("uuid", sa.Text, nullable=False, default=lambda: uuid4().hex, server_default=""),
    #: The last event of before it got its name: earlier ones are of another pool of that name.
    sa.Column("named_after", BIG, nullable=False, server_default="0"),
    sa.Column("gpu_guarantee", BIG),
    sa.Column("gpu_maximum", BIG),
    sa.Column("gpu_weight", sa.Integer, nullable=False, server_default="1"),
    sa.Column("cohort", sa.Text),
    sa.Column("borrowing_limit", BIG),
    sa.Column("lending_limit", BIG),
    sa.Column("user_gpu_limit", BIG),
    #: Everything else that is configured; a subpool has none of its own.
    sa.Column("config", JSON),
    sa.Column("created_ms", BIG, nullable=False),
    sa.Column("parent_pool", sa.Text, sa.ForeignKey("pools.name")),
    sa.Column("subpool_name", sa.Text),
    sa.Column("subpool_state", sa.Text),
    sa.Index("pools_parent_subpool", "parent_pool", "subpool_name", unique=True),
)

#: One for each subpool that is being deleted: when to look at it next.
DRAIN_MONITORS = sa.Table(
    "drain_monitors",
    METADATA,
    sa.Column("pool", sa.Text, sa.ForeignKey("pools.name"), primary_key=True),
    sa.Column("due_ms", BIG, nullable=False),
)

#: Parents may be missing, and may form a cycle: the quota tree says what that means.
COHORTS = sa.Table(
    "cohorts",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("parent", sa.Text),
    sa.Column("quota", BIG, nullable=False),
    sa.Column("borrowing_limit", BIG),
    sa.Column("lending_limit", BIG),
    sa.Column("weight", sa.Integer, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
)

BACKENDS = sa.Table(
    "backends",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("last_heartbeat_ms", BIG),
    #: Why nothing can be started there now.
    sa.Column("fault", sa.Text),
    #: The machine and folder that it belongs to, where that is; and the server that speaks for it.
    sa.Column("machine", sa.Text),
    sa.Column("place", sa.Text),
    sa.Column("speaker", sa.Text),
    sa.Column("address", sa.Text),
)

NODES = sa.Table(
    "nodes",
    METADATA,
    sa.Column("backend", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("gpus", BIG, nullable=False),
    sa.Column("cpu_milli", BIG, nullable=False),
    sa.Column("memory_bytes", BIG, nullable=False),
    sa.Column("storage_bytes", BIG, nullable=False),
    sa.Column("task_slots", BIG, nullable=False),
    sa.Column("labels", JSON, nullable=False),
    sa.Column("pools", JSON),
    sa.Column("platform", sa.Text),
    sa.Column("cordoned", sa.Boolean, nullable=False),
    sa.Column("closed", sa.Text, nullable=False, server_default=""),
    sa.Column("taints", JSON, nullable=False, server_default="[]"),
)
