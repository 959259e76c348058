"""Tags of workflows. Must not know what they mean."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.store.schema import WORKFLOWS


def list_tags(connection: sa.Connection) -> list[str]:
    """All tags that workflows have, by name."""
    text = sa.cast(WORKFLOWS.c.tags, sa.Text)
    query = sa.select(text).where(text != "[]").distinct()
    found = map(msgspec.json.decode, connection.scalars(query))
    return sorted({tag for tags in found for tag in tags})
