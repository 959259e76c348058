"""As tests/kubernetes/scheduler/test_kills.py, for far longer."""

from __future__ import annotations

from tests.kubernetes.scheduler.kills import Load, live_and_judge
from tests.kubernetes.scheduler.scheduled import Scheduled


def test_whatever_is_killed_how_often_no_gang_is_left_in_part(cluster: Scheduled) -> None:
    assert [] == live_and_judge(cluster, Load(kills=200))
