"""A site under load for the benchmark of the server: many wait, one pool is divided finely.

Everything is filled in bulk and then brought to rest by the scheduler itself, so that what runs and
what waits is as it would be after a long day.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bough.backends.virtual import VirtualBackend, make_nodes
from bough.control.pools import pools
from bough.control.pools.subpools import create_subpool
from bough.control.scheduling.loop import Scheduler
from bough.control.site import Site
from bough.control.startup import start
from bough.model.access import Actor
from bough.model.cluster import Resources
from bough.model.workflow import (
    Group,
    GroupSpec,
    Priority,
    Task,
    TaskSpec,
    TaskStatus,
    Workflow,
    WorkflowSpec,
    WorkflowStatus,
)
from bough.store import Store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from tests.store.databases import PostgresServer, SqliteFiles, postgres_server

ADMIN = Actor("admin", ("osmo-admin", "osmo-default"), origin="127.0.0.1")
NAMESPACE = "default"
#: The pool that is divided, and the one that is not.
DIVIDED, WHOLE = "team", "plain"
SUBPOOLS = 200
SUBPOOL_GPUS = 4
WAITING = 10_000
#: Both pools have as many; all of them are in use.
GPUS = 2 * SUBPOOLS * SUBPOOL_GPUS

TEXT = """\
workflow:
  name: job
  resources:
    default: {gpu: 1, cpu: 1, memory: 1Gi, storage: 1Gi}
  tasks:
  - {name: main, image: ubuntu, command: [sleep, infinity]}
"""


def spec(name: str = "job") -> WorkflowSpec:
    """One task of one GPU, as it is after reading `TEXT`."""
    requests = Resources(gpus=1, cpu_milli=1_000, memory_bytes=2**30)
    return WorkflowSpec(
        name, (GroupSpec("main", (TaskSpec("main", requests, lead=True),)),), text=TEXT
    )


def doors(subpools: int = SUBPOOLS) -> list[str]:
    """Every subpool by its name."""
    return [f"{DIVIDED}--s{number:03}" for number in range(subpools)]


@contextmanager
def databases(
    folder: Path, *, sqlite_only: bool = False
) -> Iterator[dict[str, SqliteFiles | PostgresServer]]:
    """Both kinds, with everything switched on that makes them durable."""
    if sqlite_only:
        yield {"SQLite": SqliteFiles(folder)}
        return
    with postgres_server(durable=True) as postgres:
        yield {"SQLite": SqliteFiles(folder), "PostgreSQL": postgres}


def fill(url: str, waiting: int = WAITING, subpools: int = SUBPOOLS) -> str:
    """Make the site in a database, at rest; the secret of its administrator."""
    store = Store.open(url)
    site = Site(store, namespace=NAMESPACE)
    started = start(site, default_pool=False)
    gpu = {"guarantee": subpools * SUBPOOL_GPUS, "maximum": -1, "weight": 1}
    pools.put_pools(site, ADMIN, {name: {"resources": {"gpu": gpu}} for name in (DIVIDED, WHOLE)})
    for name in doors(subpools):
        create_subpool(site, ADMIN, DIVIDED, name.partition("--")[2], SUBPOOL_GPUS)
    _submit_all(site, waiting, doors(subpools))
    scheduler = Scheduler(site, (backend(site, subpools),))
    while scheduler.cycle().applied.changed:
        pass
    scheduler.release()
    store.close()
    assert started.admin_token is not None
    return started.admin_token


def backend(site: Site, subpools: int = SUBPOOLS) -> VirtualBackend:
    """Nodes of eight GPUs."""
    return VirtualBackend(make_nodes(2 * subpools * SUBPOOL_GPUS), site.clock.now_ms)


def _submit_all(site: Site, waiting: int, places: list[str]) -> None:
    """As many as run, and those that wait, nine of ten in subpools."""
    running = [*places * SUBPOOL_GPUS, *[WHOLE] * (len(places) * SUBPOOL_GPUS)]
    later = [places[number % len(places)] if number % 10 else WHOLE for number in range(waiting)]
    workflows = [
        make_workflow(site, number, pool) for number, pool in enumerate([*running, *later])
    ]
    groups = [make_group(site, workflow) for workflow in workflows]
    tasks = [make_task(site, group) for group in groups]
    with site.store.write() as connection:
        for workflow in workflows:
            workflow_store.insert(connection, workflow, TEXT, None)
        task_store.insert_groups(connection, groups)
        task_store.insert_tasks(connection, tasks)


def make_workflow(site: Site, number: int, pool: str) -> Workflow:
    return Workflow(
        uuid=site.ids.uuid(),
        workflow_id=f"filled-{number}",
        name="filled",
        number=number,
        submitted_by=f"user-{number % 50}",
        pool=pool,
        backend="default",
        priority=Priority.NORMAL,
        status=WorkflowStatus.PENDING,
        submitted_ms=site.clock.now_ms() - 1_000_000 + number,
        exec_timeout_s=7 * 86_400,
        queue_timeout_s=7 * 86_400,
    )


def make_group(site: Site, workflow: Workflow) -> Group:
    (asked,) = spec().groups
    pool, _, subpool = workflow.pool.partition("--")
    return Group(
        uuid=site.ids.uuid(),
        workflow_uuid=workflow.uuid,
        name=asked.name,
        position=0,
        queue=site.leaf_queue(pool, subpool or None),
        status=TaskStatus.SCHEDULING,
        spec=asked,
        gpus=asked.gpus,
        queued_ms=workflow.submitted_ms,
    )


def make_task(site: Site, group: Group) -> Task:
    return Task(
        uuid=site.ids.uuid(),
        workflow_uuid=group.workflow_uuid,
        group_uuid=group.uuid,
        name="main",
        retry_id=0,
        status=TaskStatus.SCHEDULING,
        gpus=1,
        lead=True,
        queued_ms=group.queued_ms,
    )


class Latencies(msgspec.Struct, frozen=True):
    """How long each of many calls took, and all of them together."""

    seconds: tuple[float, ...]
    elapsed_s: float

    @property
    def per_second(self) -> float:
        return len(self.seconds) / self.elapsed_s if self.elapsed_s else 0.0

    def percentile_ms(self, percent: float) -> float:
        """The latency that so many of a hundred calls do not exceed."""
        ordered = sorted(self.seconds)
        index = min(len(ordered) - 1, int(len(ordered) * percent / 100))
        return ordered[index] * 1_000 if ordered else 0.0

    def text(self) -> str:
        return (
            f"{self.per_second:6.0f}/s, p50 {self.percentile_ms(50):6.1f} ms, "
            f"p99 {self.percentile_ms(99):6.1f} ms"
        )
