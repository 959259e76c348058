"""How long the loop of `bough kube schedule` pauses: pods of a gang come one by one."""

from __future__ import annotations

from bough.model.plan import Plan, PodShortage, Wait
from bough.model.reason import WaitReason
from bough.pod_scheduler.pace import (
    ARRIVING_PAUSE_S,
    BINDING_PAUSE_S,
    LONGEST_BINDING_PAUSE_S,
    LONGEST_PAUSE_S,
    SHORTEST_PAUSE_S,
    Pace,
)


def lacks(available: int, gang: str = "g", reason: WaitReason = WaitReason.PODS) -> Plan:
    shortages = (PodShortage(gang, needed=8, available=available),)
    return Plan(waits=(Wait(gang, reason, shortages=shortages),))


def test_while_the_pods_of_a_gang_come_it_pauses_and_once_they_stay_away_no_longer() -> None:
    pace = Pace()
    found: list[float] = []
    for decided in (Plan(), lacks(1), lacks(4), lacks(4), lacks(4, "h"), Plan(), lacks(4)):
        pace.planned(decided)
        found.append(pace.pause_s(0.0, waiting=0))
    short, longer = SHORTEST_PAUSE_S, ARRIVING_PAUSE_S
    assert [short, longer, longer, short, longer, short, longer] == found


def test_what_waits_for_anything_but_pods_is_planned_at_once() -> None:
    pace = Pace()
    pace.planned(lacks(1, reason=WaitReason.PLACE))
    assert pace.pause_s(0.0, waiting=0) == SHORTEST_PAUSE_S


def test_it_pauses_as_long_as_it_worked_and_longer_the_more_is_being_bound() -> None:
    pace = Pace()
    pauses = [pace.pause_s(used_s, 0) for used_s in (0.02, 9.0)]
    assert [0.02, LONGEST_PAUSE_S] == pauses
    pauses = [pace.pause_s(0.0, waiting) for waiting in (1, 200, 9_000)]
    assert [BINDING_PAUSE_S, 0.1, LONGEST_BINDING_PAUSE_S] == pauses
