"""Schedulers that are killed and stopped again and again leave no gang in part."""

from __future__ import annotations

from tests.kubernetes.scheduler.kills import Load, live_and_judge
from tests.kubernetes.scheduler.scheduled import Scheduled


def test_no_pod_is_bound_twice_no_node_has_too_much_and_no_gang_is_left_in_part(
    cluster: Scheduled,
) -> None:
    assert [] == live_and_judge(cluster, Load())
