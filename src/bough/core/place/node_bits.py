"""Sets of nodes as the bits of integers: bit `i` is node `i`.

An integer is immutable, so a what-if keeps the old set for nothing, and `x & -x` is its first node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def positions(mask: int) -> Iterator[int]:
    """The nodes of a set, in order. Reads digits, which beats arithmetic on a long integer."""
    digits = f"{mask:b}"[::-1] if mask else ""
    found = digits.find("1")
    while found >= 0:
        yield found
        found = digits.find("1", found + 1)


def mask_of(members: Iterable[int]) -> int:
    """The set of these nodes."""
    mask = 0
    for position in members:
        mask |= 1 << position
    return mask
