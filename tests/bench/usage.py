"""GPU-hours of a week: 50,000 workflows of four tasks, in pools that borrow."""

from __future__ import annotations

import random
import tempfile
from functools import partial
from pathlib import Path

import msgspec

from bough.control.pools import pools, subpools
from bough.control.records.usage import By, get_usage
from bough.control.site import Site
from bough.control.startup import start
from bough.model.workflow import Priority, TaskStatus, WorkflowStatus
from bough.store import Store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from tests.bench.crowd import ADMIN, TEXT, databases, make_group, make_task, make_workflow
from tests.bench.report import Report, cpu_seconds

WORKFLOWS = 50_000
TASKS = 4
#: Written at once.
PART = 1_000
POOLS = 4
#: What the pools have, much less than is used at most times.
QUOTA = 200
HOUR_MS = 3_600_000
WEEK_MS = 7 * 24 * HOUR_MS
SEED = 13
#: What it may cost, in seconds of the processor.
MOST_S = 1.0


def run(report: Report) -> None:
    """Fill both databases, and ask for everything, by pool and by user."""
    with tempfile.TemporaryDirectory() as folder, databases(Path(folder)) as kinds:
        for kind, made in kinds.items():
            store = Store.open(made.make())
            site = Site(store, namespace="default")
            fill(site)
            since_ms = site.clock.now_ms() - WEEK_MS
            for by in By:
                seconds = cpu_seconds(partial(get_usage, site, ADMIN, since_ms, None, by))
                text = f"{kind}: a week of {WORKFLOWS:,} workflows by {by}: {seconds:.2f} s"
                report.target(f"{text} (target {MOST_S:g} s)", met=seconds < MOST_S)
            store.close()


def fill(site: Site, number: int = WORKFLOWS) -> None:
    """Workflows that were submitted through the week, ran for some hours, and ended."""
    start(site, default_pool=False)
    gpu = {"guarantee": QUOTA, "maximum": -1, "weight": 1}
    names = [f"pool-{each}" for each in range(POOLS)]
    pools.put_pools(site, ADMIN, {name: {"resources": {"gpu": gpu}} for name in names})
    subpools.create_subpool(site, ADMIN, names[0], "half", QUOTA // 2)
    names.append(f"{names[0]}--half")
    chosen = random.Random(SEED)
    now_ms = site.clock.now_ms()
    workflows, groups, tasks = [], [], []
    for each in range(number):
        begun_ms = now_ms - chosen.randrange(WEEK_MS)
        ended_ms = min(now_ms, begun_ms + chosen.randrange(12 * HOUR_MS))
        workflow = msgspec.structs.replace(
            make_workflow(site, each, chosen.choice(names)),
            priority=chosen.choice(tuple(Priority)),
            status=WorkflowStatus.COMPLETED,
            submitted_ms=begun_ms - chosen.randrange(HOUR_MS),
            ended_ms=ended_ms,
        )
        done = TaskStatus.COMPLETED
        group = msgspec.structs.replace(make_group(site, workflow), status=done)
        workflows.append(workflow)
        groups.append(group)
        for task in range(TASKS):
            done_task = msgspec.structs.replace(
                make_task(site, group),
                name=f"task-{task}",
                status=done,
                gpus=chosen.choice((1, 1, 2, 4, 8)),
                scheduled_ms=begun_ms,
                started_ms=begun_ms,
                ended_ms=ended_ms,
            )
            tasks.append(done_task)
    # Part by part: a database ends a transaction in which nothing happens for long.
    for begin in range(0, number, PART):
        with site.store.write() as connection:
            for workflow in workflows[begin : begin + PART]:
                workflow_store.insert(connection, workflow, TEXT, None)
            task_store.insert_groups(connection, groups[begin : begin + PART])
            task_store.insert_tasks(connection, tasks[begin * TASKS : (begin + PART) * TASKS])
