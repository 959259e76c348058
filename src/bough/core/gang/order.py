"""Which of a gang's subgroups comes first, and which of a subgroup's pods.

What is below its minimum comes before what has it; of two that have it, the one that is nearer to
its minimum. An order is a value: what remains equal is decided by position in the spec, or by name.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bough.model.gang import Pod

#: Sorts ascending: what comes first is smaller.
Precedence = tuple[bool, bool, bool, Fraction]

_NOTHING = Fraction(0)
_JUST_ENOUGH = Fraction(1)


class Order(msgspec.Struct, frozen=True):
    """How the children of one node are ordered."""

    #: Ties are broken by name; otherwise by position in the spec.
    by_name: bool = False
    #: Among those below their minimum, what already holds pods is completed first.
    started_first: bool = True


#: The order of the designs.
SPEC_ORDER = Order()
#: The order of the recorded KAI cases: those below their minimum are equal, and names break ties.
NAME_ORDER = Order(by_name=True, started_first=False)


def precedence(reached: int, minimum: int, *, started: bool, order: Order) -> Precedence:
    """Rank a child that has `reached` of its `minimum` pods or children; ties are left equal."""
    if reached < minimum:
        return (False, order.started_first and not started, False, _NOTHING)
    if minimum == 0:
        # Validation refuses it, but the order is total all the same: what needs nothing comes last.
        return (True, False, True, Fraction(reached))
    # The usual case first: a Fraction is costly to make.
    ratio = _JUST_ENOUGH if reached == minimum else Fraction(reached, minimum)
    return (True, False, False, ratio)


def sort_pods(pods: Iterable[Pod]) -> tuple[Pod, ...]:
    """Ranked pods before others, a higher rank first; then as they came."""
    pods = tuple(pods)
    if len(pods) < 2 or not [pod for pod in pods if pod.rank is not None]:
        return pods
    return tuple(sorted(pods, key=_rank))


def _rank(pod: Pod) -> tuple[bool, int]:
    return (pod.rank is None, -(pod.rank or 0))
