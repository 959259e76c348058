"""Partial admission: the most pods for which a workload can be admitted, between count and minimum.

All pod sets shrink together, in proportion to what each may lose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from bough.model.workload import PodSet

Found = TypeVar("Found")


def can_shrink(pod_sets: Sequence[PodSet]) -> bool:
    """Whether fewer pods than all would do."""
    return any(_spare(pod_set) > 0 for pod_set in pod_sets)


def largest_that_fits(
    pod_sets: Sequence[PodSet], attempt: Callable[[tuple[int, ...]], Found | None]
) -> Found | None:
    """The result of the attempt for the largest counts for which it has one.

    Found by halving, which assumes that what fits for more pods fits for fewer.
    """
    total = sum(_spare(pod_set) for pod_set in pod_sets)
    if not total:
        return None
    best: Found | None = None
    lowest, highest = 0, total + 1
    while lowest < highest:
        middle = (lowest + highest) // 2
        counts = tuple(each.count - _spare(each) * middle // total for each in pod_sets)
        found = attempt(counts)
        if found is None:
            lowest = middle + 1
        else:
            best, highest = found, middle
    return best


def _spare(pod_set: PodSet) -> int:
    return 0 if pod_set.min_count is None else pod_set.count - pod_set.min_count
