"""What starting a command costs, against what starting Python costs.

Whole processes on this machine, one after the other in turns, so that both see the same load.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from tests.answering import answering
from tests.bench.report import Report

#: `osmo pool list` may cost this many times `python -c pass`.
LIMIT = 8.0
ROUNDS = 15
USAGE = {
    "quota_used": "5",
    "quota_limit": "30",
    "quota_free": "25",
    "total_usage": "5",
    "total_capacity": "100",
    "total_free": "95",
}


def run(report: Report) -> None:
    osmo = str(Path(sys.executable).with_name("osmo"))
    with answering() as server:
        server.answer("GET", "/api/pool_quota", _pools())
        environment = {**os.environ, "BOUGH_SERVER": server.address, "BOUGH_TOKEN": "x"}
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "osmo --version": [osmo, "--version"],
            "osmo pool list": [osmo, "pool", "list"],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
                taken[name].append(time.perf_counter() - start)
    for name, seconds in taken.items():
        report.line(
            f"{name}: {min(seconds) * 1e3:.0f} ms at best, {median(seconds) * 1e3:.0f} median"
        )
    bare, full = taken["python -c pass"], taken["osmo pool list"]
    ratio = median(full) / median(bare)
    report.target(
        f"osmo pool list costs {ratio:.1f} times python -c pass (median; at best "
        f"{min(full) / min(bare):.1f}); at most {LIMIT:.0f}",
        met=ratio <= LIMIT,
    )


def _pools() -> object:
    def pool(name: str, parent: str | None = None) -> object:
        state = None if parent is None else "ACTIVE"
        more = {"parent_pool": parent, "subpool_state": state}
        return {"name": name, "status": "ONLINE", "resource_usage": USAGE, **more}

    pools = [pool("team"), *(pool(f"team--{letter}", "team") for letter in "abc")]
    return {"node_sets": [{"pools": pools}], "resource_sum": USAGE}
