"""Which attempts held GPUs in a stretch of time. Must not know what that is counted as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import sqlalchemy as sa

from bough.model.workflow import HOLDING, Priority
from bough.store.schema import TASKS, WORKFLOWS


class HeldRow(NamedTuple):
    """GPUs that one attempt has, or had."""

    #: As it was submitted to: a pool, or a subpool by its canonical name.
    pool: str
    user: str
    priority: Priority
    #: Beyond the minimum of its gang.
    growth: bool
    gpus: int
    submitted_ms: int
    scheduled_ms: int
    #: `None`: it still has them.
    ended_ms: int | None
    #: The identity of the attempt.
    attempt: str


def list_held(connection: sa.Connection, since_ms: int, until_ms: int) -> Iterator[HeldRow]:
    """Every attempt that had GPUs for a part of this time, and no other."""
    columns = (
        WORKFLOWS.c.pool,
        WORKFLOWS.c.submitted_by,
        WORKFLOWS.c.priority,
        TASKS.c.growth,
        TASKS.c.gpus,
        WORKFLOWS.c.submitted_ms,
        TASKS.c.scheduled_ms,
        TASKS.c.ended_ms,
        TASKS.c.uuid,
        TASKS.c.retry_id,
    )
    query = (
        sa.select(*columns)
        .join(WORKFLOWS, WORKFLOWS.c.uuid == TASKS.c.workflow_uuid)
        .where(TASKS.c.gpus > 0, TASKS.c.scheduled_ms < until_ms)
    )
    priorities = {priority.value: priority for priority in Priority}
    # Two questions, as each has its index.
    for condition in (
        TASKS.c.ended_ms > since_ms,
        TASKS.c.status.in_([status.value for status in HOLDING]),
    ):
        for row in connection.execute(query.where(condition)):
            pool, user, priority, growth, gpus, submitted, scheduled, ended, uuid, retry = row
            yield HeldRow(
                pool,
                user,
                priorities[priority],
                growth,
                gpus,
                submitted,
                scheduled,
                ended,
                f"{uuid}/{retry}",
            )
