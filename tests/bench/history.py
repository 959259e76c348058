"""What a year of finished workflows costs: none, all of them in the lists' tables, all archived.

The databases are filled by the database itself, from one workflow that is made. Figures are CPU
time of this process, which on SQLite is all of it; PostgreSQL's own time is not in them.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from bough.control.config import settings
from bough.control.pools import quotas
from bough.control.records.usage import get_usage
from bough.control.scheduling.snapshot import SnapshotBuilder
from bough.control.site import Site
from bough.control.workflows import archive, query, task_list
from bough.model.workflow import TaskStatus, WorkflowStatus
from bough.store import Store
from bough.store import archive as archive_store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from bough.store.schema import ARCHIVE, ARCHIVED_STRETCHES, GROUPS, SPECS, TASKS, WORKFLOWS
from bough.store.task_search import TaskFilter
from bough.store.workflows import Filter
from tests.bench import crowd
from tests.bench.report import Report, cpu_seconds

FINISHED = 1_000_000
#: So many wait, and the pools have 200 subpools.
WAITING = 1_000
DAY_MS = 24 * 3_600 * 1_000
YEAR_MS = 365 * DAY_MS
#: How much more anything may cost with all of them than with none.
RATIO = 1.5
#: Costs below this are compared as if they were this: a tenth of a millisecond more means nothing.
LEAST_S = 0.001
PARTS = 20


class _Kind(NamedTuple):
    """How a database counts and writes hexadecimal numbers."""

    numbers: str
    uuid: str


_KINDS = {
    "sqlite": _Kind(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :many) ",
        "printf('{letter}%031x', n.i)",
    ),
    "postgresql": _Kind(
        "WITH n(i) AS (SELECT generate_series(1, :many)) ",
        "'{letter}' || lpad(to_hex(n.i), 31, '0')",
    ),
}


def run(report: Report) -> None:
    many = FINISHED // 20 if report.quick else FINISHED
    with (
        tempfile.TemporaryDirectory(prefix="bough-bench-") as folder,
        crowd.databases(Path(folder), sqlite_only=report.quick) as kinds,
    ):
        for name, made in kinds.items():
            _measure(report, name, made.make(migrated=False), many)


def _measure(report: Report, name: str, url: str, many: int) -> None:
    crowd.fill(url, WAITING)
    store = Store.open(url)
    site = Site(store, namespace=crowd.NAMESPACE)
    none = _costs(site)
    begun = time.perf_counter()
    seed = fill(site, many)
    took_s = time.perf_counter() - begun
    report.line(f"{name}: {many:,} finished workflows (filled in {took_s:.0f} s)")
    here = _costs(site)
    part_s = _archive_some(site)
    archive_all(site, seed)
    there = _costs(site)
    for what, least in none.items():
        report.line(
            f"  {what}: {least * 1e3:.2f} ms of CPU with none, {here[what] * 1e3:.2f} ms with all "
            f"of them, {there[what] * 1e3:.2f} ms with all archived"
        )
        for where, found in (("in the tables of lists", here), ("archived", there)):
            ratio = max(found[what], LEAST_S) / max(least, LEAST_S)
            report.goal(
                f"{name}: {what}, {many:,} finished {where}",
                f"{ratio:.2f} of none",
                f"at most {RATIO}",
                met=ratio <= RATIO,
            )
    report.line(f"  archiving {archive.AT_ONCE} workflows: {part_s * 1e3:.1f} ms of CPU")
    store.close()


def _costs(site: Site) -> dict[str, float]:
    """The CPU seconds of what people and the loop ask for."""
    if site.store.is_sqlite:
        # What was written in one large transaction is not read through its log.
        site.store.run_outside_transactions("PRAGMA wal_checkpoint(TRUNCATE)")
    admin = crowd.ADMIN
    week_ms = site.clock.now_ms() - 7 * DAY_MS
    asked: dict[str, Callable[[], object]] = {
        "start-up, up to the first snapshot": lambda: SnapshotBuilder(site).take(),
        "workflow list": lambda: query.list_workflows(site, admin, Filter()),
        "workflow list of a user": lambda: query.list_workflows(
            site, admin, Filter(users=("user-1",))
        ),
        "task list": lambda: task_list.list_tasks(
            site, admin, TaskFilter(statuses=(TaskStatus.RUNNING, TaskStatus.SCHEDULING))
        ),
        "pool list": lambda: quotas.pool_quotas(site, admin),
        "queue list": lambda: quotas.list_queues(site, admin),
        "usage of the last week": lambda: get_usage(site, admin, week_ms),
    }
    return {what: cpu_seconds(work, repeat=10) for what, work in asked.items()}


def fill(site: Site, many: int) -> archive_store.PastWorkflow:
    """Add finished workflows that ended through the year; the one that all are copies of."""
    now_ms = site.clock.now_ms()
    workflow = msgspec.structs.replace(
        crowd.make_workflow(site, 0, crowd.WHOLE),
        workflow_id="past-0",
        name="past",
        status=WorkflowStatus.COMPLETED,
        submitted_ms=now_ms - YEAR_MS,
        started_ms=now_ms - YEAR_MS,
        ended_ms=now_ms - YEAR_MS,
    )
    done = TaskStatus.COMPLETED
    group = msgspec.structs.replace(crowd.make_group(site, workflow), status=done)
    task = msgspec.structs.replace(
        crowd.make_task(site, group),
        status=done,
        scheduled_ms=workflow.started_ms,
        ended_ms=workflow.ended_ms,
    )
    with site.store.write() as connection:
        workflow_store.insert(connection, workflow, crowd.TEXT, None)
        task_store.insert_groups(connection, (group,))
        task_store.insert_tasks(connection, (task,))
        (seed,) = archive_store.collect(connection, [workflow])
        kind = _KINDS[connection.dialect.name]
        # From a year ago until eight days ago.
        later = f"{now_ms - YEAR_MS} + n.i * {(YEAR_MS - 8 * DAY_MS) // many}"
        of = {letter: kind.uuid.format(letter=letter) for letter in "wgt"}
        values = {
            WORKFLOWS: {
                "uuid": of["w"],
                "workflow_id": "'past-' || n.i",
                "number": "n.i",
                "submitted_by": "'user-' || (n.i % 50)",
                "submitted_ms": later,
                "started_ms": later,
                "ended_ms": f"{later} + 60000",
            },
            SPECS: {"workflow_uuid": of["w"]},
            GROUPS: {"uuid": of["g"], "workflow_uuid": of["w"]},
            TASKS: {
                "uuid": of["t"],
                "workflow_uuid": of["w"],
                "group_uuid": of["g"],
                "scheduled_ms": later,
                "ended_ms": f"{later} + 60000",
            },
        }
        for table, changed in values.items():
            key = "uuid" if table is WORKFLOWS else "workflow_uuid"
            _copy(connection, table, f"{key} = '{workflow.uuid}'", changed, many)
    return seed


def archive_all(site: Site, seed: archive_store.PastWorkflow) -> None:
    """Have the rest in the archive, as `archive_due` would have it in the end."""
    old = seed.workflow.uuid
    with site.store.write() as connection:
        left = f"SELECT uuid FROM workflows WHERE name = 'past' AND uuid <> '{old}'"  # noqa: S608
        document = msgspec.json.encode(seed).decode().replace("'", "''").replace(":", "\\:")
        connection.execute(
            sa.text(
                f"INSERT INTO {ARCHIVE.name} SELECT uuid, workflow_id, pool, submitted_by, "  # noqa: S608
                "priority, submitted_ms, ended_ms, ended_ms, "
                f"replace('{document}', '{old}', uuid) FROM workflows WHERE uuid IN ({left})"
            )
        )
        connection.execute(
            sa.text(
                f"INSERT INTO {ARCHIVED_STRETCHES.name} SELECT workflow_uuid, scheduled_ms, "  # noqa: S608
                f"ended_ms, growth, gpus FROM tasks WHERE workflow_uuid IN ({left})"
            )
        )
        for table, column in (
            (TASKS, "workflow_uuid"),
            (GROUPS, "workflow_uuid"),
            (SPECS, "workflow_uuid"),
            (WORKFLOWS, "uuid"),
        ):
            connection.execute(sa.text(f"DELETE FROM {table.name} WHERE {column} IN ({left})"))  # noqa: S608


def _copy(
    connection: sa.Connection, table: sa.Table, seed: str, changed: Mapping[str, str], many: int
) -> None:
    names = [str(each.name) for each in table.columns]
    columns = ", ".join(changed.get(name, f'old."{name}"') for name in names)
    into = ", ".join(f'"{name}"' for name in names)
    numbers = _KINDS[connection.dialect.name].numbers
    connection.execute(
        sa.text(
            f"{numbers} INSERT INTO {table.name} ({into}) SELECT {columns} FROM n, "  # noqa: S608
            f"{table.name} AS old WHERE old.{seed}"
        )
        if connection.dialect.name == "postgresql"
        else sa.text(
            f"INSERT INTO {table.name} ({into}) {numbers} SELECT {columns} FROM n, "  # noqa: S608
            f"{table.name} AS old WHERE old.{seed}"
        ),
        {"many": many},
    )


def _archive_some(site: Site) -> float:
    """The CPU seconds of a part that the loop moves."""
    settings.patch_workflow_settings(site, crowd.ADMIN, {"archive_after": "30d"})
    begun = time.thread_time()
    for _ in range(PARTS):
        assert archive.AT_ONCE == archive.archive_due(site)
    taken = (time.thread_time() - begun) / PARTS
    settings.patch_workflow_settings(site, crowd.ADMIN, {"archive_after": None})
    return taken
