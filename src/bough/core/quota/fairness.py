"""The rules of fair shares, for one node or two beside each other.

A node deserves its quota, may have as much as its limit, and has a fair share of what is there
(`division`). Here is what follows: which of two nodes goes first, whether one may reclaim from the
other, and where that stops. What is used is read when a rule is asked.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

from bough.core.quota.division import Amount
from bough.core.quota.taken_share import Share
from bough.model.quota import FlavorResource

#: Ratios are compared in this many parts of a whole: as integers, which is fast.
PARTS = 10**12
#: Where a node may have nothing, the part that it uses counts as this many times its use.
WITHOUT_SHARE = 1000
Requests = Mapping[FlavorResource, Amount]
NOTHING: Requests = {}


class Used(Protocol):
    """Where the use of a node is counted."""

    @property
    def usage(self) -> Amount:
        """What it uses now."""
        ...


class Fixed(NamedTuple):
    """A use that does not change."""

    usage: Amount


class Entitlement(NamedTuple):
    """What a node has a right to of one resource; made by `entitlement`."""

    what: FlavorResource
    counted: Used
    #: `None`: no bound.
    deserved: Amount | None
    fair: Amount
    #: What no other may reclaim for the sake of fairness: the larger of deserved and fair, up to
    #: the limit; `None`: no bound.
    allocatable: Amount | None
    #: The same where there is a bound, else all that there is.
    most: Amount


def entitlement(
    what: FlavorResource,
    counted: Used,
    deserved: Amount | None,
    limit: Amount | None,
    fair: Amount,
    total: Amount,
) -> Entitlement:
    """What a node has a right to; `total`: all that there is."""
    allocatable = limit
    if deserved is not None:
        allocatable = max(deserved, fair)
        if limit is not None:
            allocatable = min(limit, allocatable)
    most = total if allocatable is None else allocatable
    return Entitlement(what, counted, deserved, fair, allocatable, most)


#: One for each resource.
Entitlements = Sequence[Entitlement]


class FairRank(NamedTuple):
    """What nodes beside each other are compared by; the smaller goes first."""

    over: bool
    above_deserved: bool
    negative_priority: int
    without_share: bool
    dominant: Amount
    dominant_before: Amount
    allocatable: tuple[Amount, ...]
    created_ms: int

    @property
    def backwards(self) -> tuple[object, ...]:
        """The same for the opposite order."""
        return (
            not self.over,
            not self.above_deserved,
            -self.negative_priority,
            not self.without_share,
            -self.dominant,
            -self.dominant_before,
            tuple(-amount for amount in self.allocatable),
            -self.created_ms,
        )


def rank(
    node: Entitlements,
    request: Requests = NOTHING,
    given: Requests = NOTHING,
    *,
    priority: int = 0,
    created_ms: int = 0,
) -> FairRank:
    """How far a node is from its turn with a request; `given`: what it would have given back."""
    over, above, without = bool(node), False, False
    dominant: Amount = 0
    dominant_before: Amount = 0
    for what, counted, deserved, fair, allocatable, most in node:
        used = counted.usage
        asked = used + request.get(what, 0)
        over = over and fair < used
        above = above or (deserved is not None and asked > deserved)
        without = without or (allocatable == 0 and asked > 0)
        dominant = max(dominant, _part(asked - given.get(what, 0), most))
        dominant_before = max(dominant_before, _part(used, most))
    return FairRank(
        over,
        above,
        -priority,
        without,
        dominant,
        dominant_before,
        tuple([each.most for each in node]),
        created_ms,
    )


def used_part(node: Entitlements) -> Share:
    """Which part it uses of what it may have, of the resource of which that is most.

    For people; `rank` compares the same in whole parts. Weights have counted when all was divided.
    """
    most, resource, undue = Fraction(0), "", False
    for each in node:
        used = Fraction(each.counted.usage)
        part = used / Fraction(each.most) if each.most else used * WITHOUT_SHARE
        if part > most:
            most, resource, undue = part, each.what.resource, not each.most
    return Share(resource, most * 1000, borrowing=not is_within_deserved(node), undue=undue)


def frozen(node: Entitlements) -> Entitlements:
    """The same with what it uses now, whatever it uses later."""
    return tuple(each._replace(counted=Fixed(each.counted.usage)) for each in node)


def is_within_deserved(node: Entitlements, request: Requests = NOTHING) -> bool:
    """Whether it would use no more than it deserves of anything."""
    return not any(_exceeds(each, each.deserved, request) for each in node)


def is_within_share(node: Entitlements, request: Requests = NOTHING) -> bool:
    """Whether it would use no more than its fair share of anything."""
    return not any(_exceeds(each, each.fair, request) for each in node)


def is_above_allocatable(node: Entitlements) -> bool:
    """Whether it uses more of anything than its fair share and what it deserves."""
    return any(_exceeds(each, each.allocatable, NOTHING) for each in node)


def stays_behind(
    own: Entitlements,
    request: Requests,
    other: Entitlements,
    involved: Container[FlavorResource],
    factor: Fraction = Fraction(1),
) -> bool:
    """Whether a node that reclaims stays within its share, or further below it than the other.

    Asked when the other has given back; `factor`: by how much further.
    """
    for mine, theirs in zip(own, other, strict=True):
        if mine.what not in involved or theirs.fair <= 0:
            continue
        used = mine.counted.usage + request.get(mine.what, 0)
        if used <= mine.fair:
            continue
        # A node without any share is further above it than every other.
        if mine.fair <= 0 or used * factor * theirs.fair >= theirs.counted.usage * mine.fair:
            return False
    return True


def _exceeds(each: Entitlement, bound: Amount | None, request: Requests) -> bool:
    return bound is not None and each.counted.usage + request.get(each.what, 0) > bound


def _part(used: Amount, most: Amount) -> Amount:
    """Which part of what it may have a node uses."""
    return PARTS * used // most if most else PARTS * WITHOUT_SHARE * used
