"""A restart of a large site: from opening the database until the first plan is written.

On SQLite, with a hundred thousand workflows alive and a million finished ones, and with a tenth of
both. CPU time of this process, which is all of it. Quickly, a twentieth of that.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bough.control.scheduling.loop import Scheduler
from bough.control.site import Site
from bough.control.startup import start
from bough.store import Store
from tests.bench import crowd, history
from tests.bench.report import Report

ALIVE, FINISHED = 100_000, 1_000_000
GOAL_S = 20.0
AT_MOST = 13.0


def run(report: Report) -> None:
    alive, finished = (ALIVE // 20, FINISHED // 20) if report.quick else (ALIVE, FINISHED)
    found: dict[int, float] = {}
    for part in (10, 1):
        found[alive // part] = _measure(alive // part, finished // part)
    report.growth("restart, up to the first plan", "alive, with ten times finished", found, AT_MOST)
    report.goal(
        f"restart with {alive:,} alive and {finished:,} finished, the first plan included",
        f"{found[alive]:.1f} s of CPU",
        f"at most {GOAL_S:.0f} s with {ALIVE:,} and {FINISHED:,}",
        met=found[alive] <= GOAL_S,
    )


def _measure(alive: int, finished: int) -> float:
    with tempfile.TemporaryDirectory(prefix="bough-bench-") as folder:
        path = Path(folder) / "bough.db"
        crowd.fill(f"sqlite:///{path}", alive)
        store = Store.open(path)
        history.fill(Site(store, namespace=crowd.NAMESPACE), finished)
        store.close()
        begun = time.process_time()
        store = Store.open(path)
        site = Site(store, namespace=crowd.NAMESPACE)
        start(site, default_pool=False)
        scheduler = Scheduler(site, (crowd.backend(site),))
        scheduler.cycle()
        taken = time.process_time() - begun
        scheduler.release()
        store.close()
        return taken
