"""One end in one long line: what the loop takes until the next start is decided and written.

On SQLite, with all GPUs in use and everything else of one user waiting in one line, which is where
a cost for each that waits shows. The growth is from a tenth of the line.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import msgspec

from bough.backends.virtual import VirtualBackend, make_nodes
from bough.control.pools import pools
from bough.control.scheduling.loop import Scheduler
from bough.control.site import Site
from bough.control.startup import start
from bough.store import Store
from bough.store import tasks as task_store
from bough.store import workflows as workflow_store
from tests.bench import crowd
from tests.bench.report import Report

WAITING = (1_000, 10_000)
GPUS = 100
ENDS = 7
#: Processor time of the loop.
GOAL_MS = 20.0


def run(report: Report) -> None:
    found = {waiting: _measure(waiting) for waiting in WAITING}
    small, large = WAITING
    report.goal(
        f"one end with {large} in one line, until the next start is decided and written",
        f"{found[large] * 1e3:.1f} ms of CPU (with {small}: {found[small] * 1e3:.1f} ms)",
        f"at most {GOAL_MS:.0f} ms",
        met=found[large] * 1e3 <= GOAL_MS,
    )


def _measure(waiting: int) -> float:
    """The median of some ends, each alone."""
    with tempfile.TemporaryDirectory(prefix="bough-bench-") as folder:
        store = Store.open(Path(folder) / "bough.db")
        site = Site(store, namespace=crowd.NAMESPACE)
        start(site, default_pool=False)
        gpu = {"guarantee": GPUS, "maximum": -1, "weight": 1}
        pools.put_pools(site, crowd.ADMIN, {crowd.WHOLE: {"resources": {"gpu": gpu}}})
        _fill(site, waiting + GPUS)
        backend = VirtualBackend(make_nodes(GPUS), site.clock.now_ms)
        scheduler = Scheduler(site, (backend,))
        _rest(scheduler)
        taken: list[float] = []
        for _ in range(ENDS):
            running = next(each for each in backend._attempts.values() if each.ended_ms is None)
            running.ended_ms, running.exit_code = site.clock.now_ms(), 0
            begun = time.thread_time()
            while not scheduler.cycle().applied.started:
                pass
            taken.append(time.thread_time() - begun)
            _rest(scheduler)
        scheduler.release()
        store.close()
        return median(taken)


def _rest(scheduler: Scheduler) -> None:
    while (done := scheduler.cycle()).applied.changed or done.told:
        pass


def _fill(site: Site, number: int) -> None:
    workflows = [
        msgspec.structs.replace(crowd.make_workflow(site, each, crowd.WHOLE), submitted_by="user")
        for each in range(number)
    ]
    groups = [crowd.make_group(site, each) for each in workflows]
    with site.store.write() as connection:
        for workflow in workflows:
            workflow_store.insert(connection, workflow, crowd.TEXT, None)
        task_store.insert_groups(connection, groups)
        task_store.insert_tasks(connection, [crowd.make_task(site, each) for each in groups])
