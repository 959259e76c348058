"""The one search for victims: take candidates in order until it fits, put back what is not needed.

Every preset uses this loop; a preset differs in which gangs are candidates, in what order, and in
what `fits` asks. Quota, gangs and nodes are seen only through the functions that it is given.

`fits` must be monotone: what fits with some victims taken, fits with more of them taken. Then the
result is a set of which no member is superfluous.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Candidate = TypeVar("Candidate")


def search(
    candidates: Iterable[Candidate],
    *,
    allowed: Callable[[Candidate], bool],
    take: Callable[[Candidate], None],
    put_back: Callable[[Candidate], None],
    fits: Callable[[], bool],
) -> list[Candidate] | None:
    """The victims, in the order they were taken; `None`, and all is as before, if none suffice.

    `allowed` is asked when a candidate's turn comes, so it may depend on what was taken before it.
    """
    taken: list[Candidate] = []
    for candidate in candidates:
        if allowed(candidate):
            take(candidate)
            taken.append(candidate)
            if fits():
                return _needed(taken, take, put_back, fits)
    for candidate in reversed(taken):
        put_back(candidate)
    return None


def _needed(
    taken: list[Candidate],
    take: Callable[[Candidate], None],
    put_back: Callable[[Candidate], None],
    fits: Callable[[], bool],
) -> list[Candidate]:
    """Put back, latest first, what is not needed. The last one made it fit, so it stays.

    Runs of candidates are tried at once, longer ones while that goes well: as `fits` is monotone,
    this puts back exactly those that one after the other would, with fewer questions.
    """
    kept = [taken.pop()]
    length = 1
    while taken:
        run = taken[-length:]
        for candidate in reversed(run):
            put_back(candidate)
        if fits():
            del taken[-length:]
            length *= 2
            continue
        for candidate in run:
            take(candidate)
        if len(run) == 1:
            kept.append(taken.pop())
        length = max(1, len(run) // 2)
    kept.reverse()
    return kept
