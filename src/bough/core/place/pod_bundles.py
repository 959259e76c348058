"""Pods that share one set of nodes: which of a leaf's pods are chosen, and what is chosen together.

A bundle collects what was chosen inside one domain; it is filled when everything with a narrower
constraint has its place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bough.core.place.demand_parts import Part, Run
from bough.core.place.pod_shapes import Shape

#: With more shapes than this in one leaf, not every selection of its pods is tried.
MAXIMUM_SELECTED_SHAPES = 6


class Wanted(NamedTuple):
    """How many of the first pods of a run are wanted."""

    run: Run
    pods: int


class PodBundle(NamedTuple):
    """The latest choice, and those before it."""

    wanted: tuple[Wanted, ...]
    before: PodBundle | None
    #: Of all choices together.
    pods: int
    gpus: int
    #: The shape of all pods; `None` where there are several.
    shape: Shape | None

    @classmethod
    def of(cls, wanted: tuple[Wanted, ...], before: PodBundle | None) -> PodBundle:
        """Add a choice to a bundle."""
        pods = sum(want.pods for want in wanted)
        gpus = sum(want.pods * want.run.shape.gpus for want in wanted)
        shape = wanted[0].run.shape if len(wanted) == 1 else None
        if before is not None:
            pods += before.pods
            gpus += before.gpus
            shape = shape if shape is before.shape else None
        return cls(wanted, before, pods, gpus, shape)


def contents(bundle: PodBundle | None) -> list[Wanted]:
    """All choices, the first one first."""
    choices: list[tuple[Wanted, ...]] = []
    while bundle is not None:
        choices.append(bundle.wanted)
        bundle = bundle.before
    return [want for wanted in reversed(choices) for want in wanted]


def in_order(part: Part, left_out: frozenset[int] = frozenset()) -> tuple[Wanted, ...] | None:
    """The first pods of a leaf, in pod order, without some runs; `None` if they are too few."""
    if len(part.runs) == 1:
        return (Wanted(part.runs[0], part.count),)
    counts = [0] * len(part.runs)
    missing = part.count
    for run in part.run_of_pod:
        if missing and run not in left_out:
            counts[run] += 1
            missing -= 1
    return None if missing else _wanted(part, counts)


def selections(part: Part) -> Iterator[tuple[Wanted, ...]]:
    """Every choice of pods of a leaf, as far as their shapes tell them apart."""
    first = in_order(part)
    if first is not None:
        yield first
    if 1 < len(part.runs) <= MAXIMUM_SELECTED_SHAPES:
        for counts in _splits([len(run.pods) for run in part.runs], part.count):
            wanted = _wanted(part, counts)
            if wanted != first:
                yield wanted


def _wanted(part: Part, counts: Sequence[int]) -> tuple[Wanted, ...]:
    return tuple(Wanted(run, count) for run, count in zip(part.runs, counts, strict=True) if count)


def _splits(available: list[int], count: int) -> Iterator[tuple[int, ...]]:
    if not available:
        if not count:
            yield ()
        return
    for taken in range(min(available[0], count), -1, -1):
        for rest in _splits(available[1:], count - taken):
            yield (taken, *rest)
