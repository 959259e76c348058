"""What a scheduler counts about itself, for its metrics."""

from __future__ import annotations

import resource
from pathlib import Path

from bough.model.plan import Plan


class Counters:
    """Numbers that only rise, and the figures of the last plan."""

    def __init__(self) -> None:
        self.cycles = 0
        self.planned_s = 0.0
        self.bound = 0
        self.not_bound = 0
        self.evicted = 0
        self.written = 0
        self.waits = 0
        self.nominations = 0

    def planned(self, took_s: float, decided: Plan) -> None:
        """Count one more cycle."""
        self.cycles += 1
        self.planned_s += took_s
        self.waits = len(decided.waits)
        self.nominations = len(decided.nominations)

    def text(self, *, leads: bool) -> str:
        """All numbers in the text format of Prometheus."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        lines = (
            ("leads", "gauge", "Whether this scheduler decides.", int(leads)),
            ("cycles_total", "counter", "Plans that were made.", self.cycles),
            ("plan_seconds_total", "counter", "Time that plans took.", self.planned_s),
            ("pods_bound_total", "counter", "Pods that were bound.", self.bound),
            ("pods_not_bound_total", "counter", "Bindings that were refused.", self.not_bound),
            ("pods_evicted_total", "counter", "Pods that were told to end.", self.evicted),
            ("status_writes_total", "counter", "Statuses and events written.", self.written),
            ("reasons", "gauge", "Different reasons of gangs that wait.", self.waits),
            ("nominations", "gauge", "Gangs for which room is being freed.", self.nominations),
            ("cpu_seconds_total", "counter", "CPU used.", used.ru_utime + used.ru_stime),
            ("resident_bytes", "gauge", "Memory used.", _resident_bytes()),
        )
        return "".join(
            f"# HELP bough_scheduler_{name} {text}\n"
            f"# TYPE bough_scheduler_{name} {kind}\n"
            f"bough_scheduler_{name} {value}\n"
            for name, kind, text, value in lines
        )


def _resident_bytes() -> int:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * resource.getpagesize()
