"""Queues while the server is killed; for longer in `soak_queue_kills`."""

from __future__ import annotations

import pytest

from bough.kube.client import KubeClient
from tests.kubernetes.kai.queue_kills import kill_and_judge
from tests.kubernetes.served import ClusterHosting


def test_scenario_065_no_kill_of_the_server_leaves_a_pool_with_too_much_or_another_tree(
    host: ClusterHosting, admin: KubeClient, capsys: pytest.CaptureFixture[str]
):
    figures = kill_and_judge(host, admin, kills=30, seed=3)
    with capsys.disabled():
        print(f"\n{figures}")  # noqa: T201
