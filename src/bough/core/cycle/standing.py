"""Where a workload stands among others: its priority, since when it waits, who goes first in line.

Must not know quota or queues. Every order is total: it ends with uid and key.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from bough.model.policy import Policy, RequeuingTimestamp
from bough.model.workload import Workload, WorkloadCondition

#: Raises or lowers the priority of a workload, where the policy lets it.
BOOST_ANNOTATION = "kueue.x-k8s.io/priority-boost"
#: The annotation's values: 32 bits, in decimal.
_BOOST = re.compile(r"[+-]?[0-9]{1,10}")
_BOOST_LIMIT = 2**31

#: A moment that may be unknown; what is unknown comes before all others.
Moment = tuple[bool, int]


class Standing(NamedTuple):
    """What a workload is compared by; smaller goes first in line."""

    #: The higher priority is the smaller.
    negative_priority: int
    since: Moment
    uid: str
    key: str

    @property
    def priority(self) -> int:
        """The priority itself."""
        return -self.negative_priority


def standing_of(workload: Workload, policy: Policy) -> Standing:
    """The workload's place in the line of its queue."""
    return Standing(
        -priority_of(workload, policy),
        waits_since(workload, policy),
        workload.uid or "",
        workload.key,
    )


def priority_of(workload: Workload, policy: Policy) -> int:
    """The priority that counts; a boost that is not a number of 32 bits is no boost."""
    priority = workload.priority or 0
    if policy.priority_boost:
        text = workload.annotations.get(BOOST_ANNOTATION, "")
        if _BOOST.fullmatch(text) and -_BOOST_LIMIT <= int(text) < _BOOST_LIMIT:
            priority += int(text)
    return priority


def waits_since(workload: Workload, policy: Policy) -> Moment:
    """Since when the workload counts as waiting: its creation, unless it must queue up anew."""
    if not workload.conditions:
        return _moment(workload.created_ms)
    evicted = _true_condition(workload, "Evicted")
    if evicted is not None:
        if evicted.reason == "AdmissionCheck":
            return _moment(evicted.since_ms)
        by_eviction = policy.requeuing_timestamp is RequeuingTimestamp.EVICTION
        if evicted.reason == "PodsReadyTimeout" and by_eviction:
            return _moment(evicted.since_ms)
    if policy.reclaimed_waits_anew:
        preempted = _true_condition(workload, "Preempted")
        if preempted is not None and preempted.reason == "InCohortReclaimWhileBorrowing":
            # One more, so that it comes after the one for whom it was evicted at that moment.
            known, since = _moment(preempted.since_ms)
            return known, since + 1
    return _moment(workload.created_ms)


def holds_since(workload: Workload) -> Moment | None:
    """Since when the workload holds quota; `None`: only just now."""
    reserved = _true_condition(workload, "QuotaReserved")
    return None if reserved is None else _moment(reserved.since_ms)


def _true_condition(workload: Workload, kind: str) -> WorkloadCondition | None:
    for condition in workload.conditions:
        if condition.type == kind and condition.status:
            return condition
    return None


def _moment(milliseconds: int | None) -> Moment:
    return (False, 0) if milliseconds is None else (True, milliseconds)
