"""Which gang goes first: of those that wait in a queue, and of those that may be evicted.

Every order is total: it ends with uid and name.
"""

from __future__ import annotations

import re

import msgspec

from bough.model.gang import LONG_AGO, Gang
from bough.model.gang_rules import VictimAge
from bough.model.policy import Policy, RequeuingTimestamp
from bough.model.workload import WorkloadCondition

#: Raises or lowers the priority of a gang, where the policy lets it.
BOOST_ANNOTATION = "kueue.x-k8s.io/priority-boost"
#: The annotation's values: 32 bits, in decimal.
_BOOST = re.compile(r"[+-]?[0-9]{1,10}")
_BOOST_LIMIT = 2**31


class Standing(msgspec.Struct, frozen=True, order=True, gc=False):
    """What gangs that wait are compared by; the smaller goes first in line."""

    #: The higher priority is the smaller.
    negative_priority: int
    since_ms: int
    uid: str
    name: str

    @property
    def priority(self) -> int:
        """The priority itself."""
        return -self.negative_priority


#: How long a gang has held what it has.
_NEW, _AGED, _OF_UNKNOWN_AGE = range(3)


class VictimOrder(msgspec.Struct, frozen=True, order=True, gc=False):
    """What gangs that may be evicted are compared by; the smaller goes first."""

    priority: int
    #: Gangs that got their quota only just now first; those that have had it since an unknown time
    #: last.
    age: int
    #: Of the others the newest first.
    negative_since_ms: int
    uid: str
    name: str


class _LastFirst(str):
    """A name that sorts backwards."""

    __slots__ = ()

    def __lt__(self, other: str) -> bool:
        return str.__gt__(self, other)

    def __gt__(self, other: str) -> bool:
        return str.__lt__(self, other)


def standing_of(gang: Gang, policy: Policy) -> Standing:
    """The gang's place in the line of its queue."""
    return Standing(-priority_of(gang, policy), waits_since(gang, policy), gang.uid, gang.name)


def priority_of(gang: Gang, policy: Policy) -> int:
    """The priority that counts; a boost that is not a number of 32 bits is no boost."""
    if policy.priority_boost and gang.annotations:
        text = gang.annotations.get(BOOST_ANNOTATION, "")
        if _BOOST.fullmatch(text) and -_BOOST_LIMIT <= int(text) < _BOOST_LIMIT:
            return gang.priority + int(text)
    return gang.priority


def waits_since(gang: Gang, policy: Policy) -> int:
    """Since when the gang counts as waiting: its submission, unless it must queue up anew."""
    if not gang.conditions:
        return gang.submitted_ms
    evicted = _true_condition(gang, "Evicted")
    if evicted is not None:
        if evicted.reason == "AdmissionCheck":
            return _moment(evicted)
        by_eviction = policy.requeuing_timestamp is RequeuingTimestamp.EVICTION
        if evicted.reason == "PodsReadyTimeout" and by_eviction:
            return _moment(evicted)
    if policy.reclaimed_waits_anew:
        preempted = _true_condition(gang, "Preempted")
        if preempted is not None and preempted.reason == "InCohortReclaimWhileBorrowing":
            # One more, so that it comes after the one for which it was evicted at that moment.
            return _moment(preempted) + 1
    return gang.submitted_ms


def victim_order(gang: Gang, policy: Policy, priority: int) -> VictimOrder:
    """Lower priority first, then the newest."""
    if policy.gangs.victim_age is VictimAge.SUBMITTED:
        # Of the same moment, the one that came last: the last group of a workflow goes before its
        # first.
        uid, name = _LastFirst(gang.uid), _LastFirst(gang.name)
        return VictimOrder(priority, _NEW, -gang.submitted_ms, uid, name)
    age, since_ms = _AGED, gang.started_ms
    if not gang.pods or since_ms is None:
        reserved = _true_condition(gang, "QuotaReserved")
        since_ms = None if reserved is None else reserved.since_ms
        if since_ms is None:
            age, since_ms = _NEW if reserved is None else _OF_UNKNOWN_AGE, 0
    return VictimOrder(priority, age, -since_ms, gang.uid, gang.name)


def _true_condition(gang: Gang, kind: str) -> WorkloadCondition | None:
    for condition in gang.conditions:
        if condition.type == kind and condition.status:
            return condition
    return None


def _moment(condition: WorkloadCondition) -> int:
    return LONG_AGO if condition.since_ms is None else condition.since_ms
