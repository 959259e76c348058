"""CPU time by user: the scheduler, its server, the supervisors and the tasks themselves.

The kernel counts for a group of processes, so that short-lived ones are counted, too.
Where it does not, only the server is told of.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from bough.backends.local.sandbox.cgroup_mounts import controlling, find_hierarchies
from tests.crash.server import Server

_TICKS = os.sysconf("SC_CLK_TCK")
_COUNTED = re.compile(r"^(bough_\w+_total) ([0-9.]+)$", re.MULTILINE)


class Spent(NamedTuple):
    """Seconds of the processor up to now, and what the scheduler counted."""

    server_s: float
    #: Of the server and everything below it; `None`: not counted.
    all_s: float | None
    counted: dict[str, float]


class Shares:
    """A server in a group of its own, from its start to its end."""

    def __init__(self, server: Server) -> None:
        self._server = server
        found = controlling(find_hierarchies(), "cpuacct")
        self._group = None if found is None else found.own / f"bough-bench-{os.getpid()}"

    def __enter__(self) -> Self:
        self._server.start()
        try:
            if self._group is not None:
                self._group.mkdir()
                (self._group / "cgroup.procs").write_text(str(self._server.pid))
        except OSError:
            self._group = None
        return self

    def __exit__(self, *_: object) -> None:
        if self._server.running:
            self._server.kill()
        self._server.clear_away()
        if self._group is not None:
            with suppress(OSError):
                _remove(self._group)

    def look(self) -> Spent:
        """CPU time used so far."""
        text = self._server.client().metrics()
        counted = {name: float(value) for name, value in _COUNTED.findall(text)}
        # What answers, and what decides.
        server_s = _process_s(self._server.pid) + _process_s(self._server.loop)
        return Spent(server_s, self._all_s(), counted)

    def tell(self, before: Spent, elapsed_s: float) -> Iterator[str]:
        """What was used since then, in lines; each of those that started."""
        now = self.look()
        server_s = now.server_s - before.server_s
        counted = {name: now.counted[name] - value for name, value in before.counted.items()}
        workflows = max(1.0, counted["bough_gangs_started_total"])
        cycle_s = counted["bough_cycle_seconds_total"]
        planning_s = counted["bough_planning_seconds_total"]
        yield (
            f"the scheduler: {counted['bough_cycles_total']:.0f} cycles, {cycle_s:.1f} s of "
            f"{elapsed_s:.1f} s ({cycle_s / elapsed_s:.0%}), planning {planning_s:.2f} s of it "
            f"({planning_s / workflows * 1e3:.2f} ms for each workflow)"
        )
        text = f"processor: server {server_s:.1f} s ({server_s / workflows * 1e3:.1f} ms each)"
        if now.all_s is not None and before.all_s is not None:
            others_s = now.all_s - before.all_s - server_s
            text += (
                f", supervisors and tasks {others_s:.1f} s "
                f"({others_s / workflows * 1e3:.1f} ms each)"
            )
        yield text

    def _all_s(self) -> float | None:
        if self._group is None:
            return None
        for name, unit in (("cpuacct.usage", 1e9), ("cpu.stat", 1e6)):
            with suppress(OSError):
                text = (self._group / name).read_text()
                return int(text.split()[-1 if name == "cpuacct.usage" else 1]) / unit
        return None


def _process_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _remove(group: Path) -> None:
    """A group and those below it; those who were in it may need a moment to go."""
    for folder, *_ in os.walk(group, topdown=False):
        for _ in range(20):
            try:
                Path(folder).rmdir()
                break
            except OSError:
                time.sleep(0.1)
