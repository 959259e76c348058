"""Run by alembic: it uses the connection, and so the transaction, of the one who upgrades."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], transactional_ddl=True, target_metadata=None
)
context.run_migrations()
