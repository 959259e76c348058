"""The long form of `test_queue_kills`; run by `make soak`."""

from __future__ import annotations

import pytest

from bough.kube.client import KubeClient
from tests.kubernetes.kai.queue_kills import kill_and_judge
from tests.kubernetes.served import ClusterHosting

#: Two hundred kills in all; `-k seed3` has those of one seed.
SEEDS, KILLS = 5, 40


@pytest.mark.parametrize("seed", range(SEEDS), ids="seed{}".format)
def test_no_kill_of_the_server_leaves_a_pool_with_too_much_or_another_tree(
    seed: int, host: ClusterHosting, admin: KubeClient, capsys: pytest.CaptureFixture[str]
):
    figures = kill_and_judge(host, admin, KILLS, seed)
    with capsys.disabled():
        print(f"\n{figures}")  # noqa: T201
