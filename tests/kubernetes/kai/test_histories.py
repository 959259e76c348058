"""Random histories of queues, and what a round costs; many more of them in `soak_histories`."""

from __future__ import annotations

import contextlib
import time

import pytest

from bough.kube.client import KubeClient
from bough.model.names import SHARED, QueueName
from bough.model.queue_tree import LeafQueue, PoolQueue, QueueTree
from tests.kubernetes.kai.histories import Histories

#: Pools, and subpools of each.
POOLS, SUBPOOLS = 200, 10


def play(admin: KubeClient, namespace: str, seed: int, histories: int) -> str:
    """So many histories on one cluster; what happened."""
    with contextlib.closing(Histories(admin, namespace, seed)) as site:
        for _ in range(histories):
            site.live(3)
        # Every kind of object was damaged by hand.
        assert {"Queue", "Topology", "PriorityClass"} == set(site.damages)
        return (
            f"seed {seed}: {histories} histories, {site.client.writes} writes, {site.kills} kills "
            f"in the middle of a round, repaired: {dict(site.damages)}"
        )


def test_random_histories_end_with_the_tree_and_never_have_too_much(
    admin: KubeClient, capsys: pytest.CaptureFixture[str]
):
    figures = play(admin, "histories", 7, 120)
    with capsys.disabled():
        print(f"\n{figures}")  # noqa: T201


def test_of_two_servers_only_the_one_that_leads_writes(admin: KubeClient):
    with contextlib.closing(Histories(admin, "two", 5)) as site:
        lead = iter([True, True, True, False])
        first = site.keeper(lambda: next(lead, False))
        second = site.keeper(lambda: False)
        trees = [PoolQueue(QueueName("two", name), 8) for name in ("one", "other", "third")]
        tree = QueueTree(QueueName("two"), tuple(trees))
        for each in (first, second):
            each.want(tree)
        assert (1.0, 0) == (second.work(), site.client.writes)
        # Its lease ends in the middle of a round: once to begin with, and once before each write.
        first.work()
        assert 2 == site.client.writes
        first.work()
        assert 2 == site.client.writes

        third = site.keeper()
        third.want(tree)
        third.work()
        assert site.wanted(tree) == site.found()
        assert () == third.report().repairs
        assert [] == site.judge.faults()


def large(changed: int = 0) -> QueueTree:
    """A large site; one pool has a subpool with another quota."""

    def pool(number: int) -> PoolQueue:
        name = f"pool-{number}"
        quotas = [5 + changed if number == each == 0 else 5 for each in range(SUBPOOLS)]
        leaves = [
            LeafQueue(QueueName("large", name, f"s{each}"), quota)
            for each, quota in enumerate(quotas)
        ]
        shared = LeafQueue(QueueName("large", name, SHARED), 100 - sum(quotas))
        return PoolQueue(QueueName("large", name), 100, leaves=(shared, *leaves))

    return QueueTree(QueueName("large"), tuple(map(pool, range(POOLS))))


def test_scenario_011_a_round_with_nothing_to_do_reads_each_kind_once_and_writes_nothing(
    admin: KubeClient, capsys: pytest.CaptureFixture[str]
):
    with contextlib.closing(Histories(admin, "large", 0)) as site:
        keeper = site.keeper()
        keeper.want(large())
        keeper.work()
        assert POOLS * (SUBPOOLS + 2) + 1 <= site.client.writes

        reads, writes, began_s = site.client.reads, site.client.writes, time.thread_time()
        keeper.work()
        spent_s = time.thread_time() - began_s
        assert (3, 0) == (site.client.reads - reads, site.client.writes - writes)
        # CPU time, so other processes do not count.
        assert spent_s < 1, spent_s

        writes = site.client.writes
        keeper.want(large(changed=2))
        keeper.work()
        assert 2 == site.client.writes - writes
        assert () == keeper.report().repairs
        with capsys.disabled():
            print(f"\n{POOLS} pools of {SUBPOOLS} subpools: {spent_s:.3f} s")  # noqa: T201
