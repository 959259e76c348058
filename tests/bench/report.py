"""Measuring and printing for the benchmarks."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable


class Report:
    """Prints one benchmark's lines as they are measured."""

    def __init__(self, name: str) -> None:
        print(f"\n== {name} ==", flush=True)

    def line(self, text: str) -> None:
        print(f"  {text}", flush=True)

    def target(self, text: str, *, met: bool) -> None:
        """A figure that has a target; the run itself never fails by it."""
        print(f"  {text}  [{'met' if met else 'MISSED'}]", flush=True)


def cpu_seconds(work: Callable[[], object], *, repeat: int = 3) -> float:
    """The least CPU time of several runs, without the garbage collector's."""
    best = float("inf")
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeat):
            start = time.process_time()
            work()
            best = min(best, time.process_time() - start)
    finally:
        if enabled:
            gc.enable()
    return best
