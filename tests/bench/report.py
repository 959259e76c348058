"""Measuring and printing for the benchmarks, and all figures that have a goal as a table."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import msgspec


class Goal(msgspec.Struct, frozen=True):
    """A figure that has a goal."""

    benchmark: str
    what: str
    figure: str
    goal: str
    met: bool


class Report:
    """Prints one benchmark's lines as they are measured, and keeps the figures with a goal."""

    def __init__(self, name: str, *, quick: bool = False) -> None:
        self.name = name
        #: Measure less, so that all benchmarks together take some minutes.
        self.quick = quick
        self.goals: list[Goal] = []
        print(f"\n== {name} ==", flush=True)

    def line(self, text: str) -> None:
        print(f"  {text}", flush=True)

    def target(self, text: str, *, met: bool) -> None:
        """A sentence with a figure and its goal; the run itself never fails by it."""
        self._keep(Goal(self.name, text.strip(), "", "", met), text)

    def goal(self, what: str, figure: str, goal: str, *, met: bool) -> None:
        """A figure and its goal, told apart."""
        found = Goal(self.name, what.strip(), figure, goal, met)
        self._keep(found, f"{what}: {figure} ({goal})")

    def _keep(self, goal: Goal, text: str) -> None:
        self.goals.append(goal)
        print(f"  {text}  [{'met' if goal.met else 'MISSED'}]", flush=True)


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
