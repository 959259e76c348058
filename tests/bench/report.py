"""Measuring and printing for the benchmarks, with what is kept of them: goals and growths."""

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


class Growth(msgspec.Struct, frozen=True):
    """What something costs at several sizes, in CPU seconds."""

    benchmark: str
    what: str
    #: What there is more and more of.
    of: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """From the smallest size to the largest."""
        return self.seconds[-1] / self.seconds[0]


class Run(msgspec.Struct, frozen=True):
    """A run as it is kept in a file: its figures, and on which machine they were measured."""

    machine: str
    at: str
    quick: bool
    figures: list[Goal]
    growths: list[Growth] = []


class Report:
    """Prints one benchmark's lines as they are measured, and keeps the figures with a goal."""

    def __init__(self, name: str, *, quick: bool = False) -> None:
        self.name = name
        #: Measure less, so that all benchmarks together take some minutes.
        self.quick = quick
        self.goals: list[Goal] = []
        self.growths: list[Growth] = []
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

    def growth(self, what: str, of: str, seconds: dict[int, float], at_most: float) -> None:
        """What it costs at several sizes; and how often more at the largest than at the first."""
        found = Growth(self.name, what, of, tuple(seconds), tuple(seconds.values()))
        self.growths.append(found)
        costs = ", ".join(f"{size:,}: {_time(cost)}" for size, cost in seconds.items())
        self.goal(
            f"{what}, by {of}",
            f"{costs}; ×{found.ratio:.1f}",
            f"at most ×{at_most:g}",
            met=found.ratio <= at_most,
        )

    def _keep(self, goal: Goal, text: str) -> None:
        self.goals.append(goal)
        print(f"  {text}  [{'met' if goal.met else 'MISSED'}]", flush=True)


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1e3:.1f} ms"


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
