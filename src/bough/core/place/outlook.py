"""Whether a search is worth continuing: what is missing, at the very least, and what is free.

Never gives up what could be placed.
"""

from __future__ import annotations

from bough.core.place.index import Index
from bough.core.place.parts import Part
from bough.core.place.pod_bundles import PodBundle


def hopeful(
    index: Index, part: Part, first: int, missing: int, nodes: int, bundle: PodBundle | None
) -> bool:
    """Whether so many of the children from `first` on may fit, beside what is in the bundle."""
    left = part.children[first:]
    if len(left) < missing:
        return False
    if first and (len(left) == missing or part.uniform):
        # Nothing has changed since the first one was chosen.
        return True
    smallest = sorted(child.least.gpus for child in left)[:missing]
    gpus = sum(smallest) + (bundle.gpus if bundle else 0)
    if gpus > free_gpus(index, nodes, gpus):
        return False
    return _fits_by_count(index, part, first, missing, nodes, bundle) and (
        first > 0 or _fits_by_domains(index, part, missing, nodes)
    )


def free_gpus(index: Index, nodes: int, enough: int) -> int:
    """How many GPUs are free on some nodes; stops counting at `enough`."""
    free = 0
    for gpus in range(len(index.by_gpus) - 1, 0, -1):
        free += gpus * (index.by_gpus[gpus] & nodes).bit_count()
        if free >= enough:
            break
    return free


def _fits_by_count(
    index: Index, part: Part, first: int, missing: int, nodes: int, bundle: PodBundle | None
) -> bool:
    """Pods of one shape can be counted."""
    left = part.children[first:]
    shape = left[0].least.shape
    if shape is None or any(child.least.shape is not shape for child in left):
        return True
    pods = sum(sorted(child.least.pods for child in left)[:missing])
    if bundle is not None and bundle.shape is shape:
        pods += bundle.pods
    return index.has_room(shape, nodes, pods)


def _fits_by_domains(index: Index, part: Part, missing: int, nodes: int) -> bool:
    """Replicas of one shape that each need a domain: count how many each domain holds."""
    zone = part.children[0].zone
    if zone is None or zone.scope.required is None or zone.least.shape is None:
        return True
    shape = zone.least.shape
    smallest = zone.least.pods
    for child in part.children:
        other = child.zone
        if other is None or other.scope != zone.scope or other.least.shape is not shape:
            return True
        smallest = min(smallest, other.least.pods)
    if not shape.gpus or not smallest:
        return True
    found = 0
    for mask in zone.scope.domains.levels[zone.scope.required].masks:
        found += index.room(shape, mask & nodes, missing * smallest) // smallest
        if found >= missing:
            return True
    return False
