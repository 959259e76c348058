"""What each of several nodes may have of one resource, when they ask for more than there is.

First every node gets what it deserves, as far as it asks for it; where more is deserved than there
is, nothing is scaled down. What is left is poured out by weight, from the highest priority down:
each round divides what there was at its beginning among those that still ask, a node that asks for
less than its part leaves the rest for another round, and the others get whole units. Units that
rounding left over go, one each, to those that lost most by it.

Exact: the result depends on no order in which nodes are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

Amount = int | Fraction


class Taker(NamedTuple):
    """A node that shares with its siblings."""

    name: str
    #: `None`: all that there is.
    deserved: Amount | None
    #: What it may have at most.
    limit: Amount | None
    #: What it has and waits for.
    asked: Amount
    weight: Fraction = Fraction(1)
    priority: int = 0
    #: Among equals the older goes first.
    created_ms: int = 0
    #: Which part of everything there is it has used recently; counts against its weight.
    used: Fraction = Fraction(0)

    @property
    def wanted(self) -> Amount:
        """What it asks for and may have."""
        return self.asked if self.limit is None else min(self.limit, self.asked)


class Division(NamedTuple):
    """The result."""

    shares: dict[str, Amount]
    left: Amount


def divide(total: Amount, takers: Iterable[Taker], memory: Fraction = Fraction(0)) -> Division:
    """The share of each; `memory`: how much recent use counts against a weight."""
    by_priority: dict[int, list[Taker]] = {}
    shares: dict[str, Amount] = {}
    left = total
    for taker in takers:
        deserved = total if taker.deserved is None else taker.deserved
        shares[taker.name] = min(deserved, taker.wanted)
        left -= shares[taker.name]
        by_priority.setdefault(taker.priority, []).append(taker)
    if left <= 0:
        return Division(shares, 0)
    rounded: list[list[tuple[Fraction, int, str]]] = []
    for priority in sorted(by_priority, reverse=True):
        left, losses = _pour(left, by_priority[priority], shares, memory)
        rounded.append(losses)
    for losses in rounded:
        for _, _, name in sorted(losses):
            unit = min(1, left)
            shares[name] += unit
            left -= unit
    return Division(shares, left)


def _pour(
    left: Amount, takers: Sequence[Taker], shares: dict[str, Amount], memory: Fraction
) -> tuple[Amount, list[tuple[Fraction, int, str]]]:
    """What is left after those of one priority, and what each of them lost by rounding."""
    losses: dict[str, tuple[Fraction, int, str]] = {}
    again = True
    while again and left:
        again = False
        asking = [each for each in takers if shares[each.name] < each.wanted]
        parts = _parts(asking, memory)
        whole = sum(parts)
        if not whole:
            break
        poured = left
        for taker, part in zip(asking, parts, strict=True):
            if not taker.weight:
                continue
            share = poured * part / whole
            asked = taker.wanted - shares[taker.name]
            given: Amount = asked
            if asked <= share:
                losses.pop(taker.name, None)
            else:
                given = share.numerator // share.denominator
                if share > given:
                    losses[taker.name] = (given - share, taker.created_ms, taker.name)
            shares[taker.name] += given
            left -= given
            again = again or (given > 0 and asked < share)
    return left, list(losses.values())


def _parts(takers: Sequence[Taker], memory: Fraction) -> list[Fraction]:
    """Weights of those that still ask, less what they used recently."""
    whole = sum((taker.weight for taker in takers), Fraction(0))
    if not whole:
        return [Fraction(0)] * len(takers)
    parts = (taker.weight / whole for taker in takers)
    return [
        max(Fraction(0), part + memory * (part - taker.used))
        for part, taker in zip(parts, takers, strict=True)
    ]
