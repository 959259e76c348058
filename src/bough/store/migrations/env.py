"""Run by alembic, in the connection and transaction of the caller of `upgrade`."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"], transactional_ddl=True, target_metadata=None
)
context.run_migrations()
