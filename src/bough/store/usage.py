"""Which attempts held GPUs in a stretch of time. Must not know what that is counted as."""

from __future__ import annotations

import sqlalchemy as sa

from bough.model.usage import Stretch
from bough.model.workflow import HOLDING, Priority
from bough.store.schema import TASKS, WORKFLOWS


def list_stretches(connection: sa.Connection, since_ms: int, until_ms: int) -> list[Stretch]:
    """Every attempt that had GPUs for a part of this time, and no other.

    What still has them counts up to the end of the time.
    """
    guaranteed = sa.and_(WORKFLOWS.c.priority != Priority.LOW.value, TASKS.c.growth.is_(False))
    query = (
        sa.select(
            WORKFLOWS.c.pool,
            WORKFLOWS.c.submitted_by,
            TASKS.c.gpus,
            guaranteed,
            WORKFLOWS.c.submitted_ms,
            TASKS.c.scheduled_ms,
            sa.func.coalesce(TASKS.c.ended_ms, until_ms),
            TASKS.c.uuid + "/" + sa.cast(TASKS.c.retry_id, sa.Text),
        )
        .join(WORKFLOWS, WORKFLOWS.c.uuid == TASKS.c.workflow_uuid)
        .where(TASKS.c.gpus > 0, TASKS.c.scheduled_ms < until_ms)
    )
    # Two questions, as each has its index.
    over = TASKS.c.ended_ms > since_ms
    still = TASKS.c.status.in_([status.value for status in HOLDING])
    return [
        Stretch._make(row)
        for condition in (over, still)
        for row in connection.execute(query.where(condition)).all()
    ]
