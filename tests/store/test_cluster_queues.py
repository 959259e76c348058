"""Clusters that follow the pools: what they are told, and what is recorded of their drift."""

from __future__ import annotations

import pytest

from bough.control.scheduling.cluster_queues import QueueWatch
from bough.model.change_record import EventKind
from bough.model.queue_tree import QueueReport, QueueTree, Repair
from bough.store import change_records as record_store
from tests.store.world import World


class Cluster:
    """A backend that reports what a test says, and forgets as backends do."""

    name = "default"

    def __init__(self) -> None:
        self.trees: list[QueueTree] = []
        self.report = QueueReport()

    def keep_queues(self, tree: QueueTree) -> None:
        self.trees.append(tree)

    def queue_report(self) -> QueueReport:
        return self.report

    def forget_repairs(self, count: int) -> None:
        self.report = QueueReport(self.report.repairs[count:], self.report.troubles)


def told(world: World, kind: EventKind) -> list[str]:
    with world.site.store.read() as connection:
        return [each.message for each in record_store.events_of(connection, "default", kind)]


def audited(world: World, subject: str) -> list[str]:
    with world.site.store.read() as connection:
        return [each.action for each in record_store.list_audit(connection, subject=subject)]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_scenario_011_a_cluster_gets_the_tree_once_and_again_when_pools_change(
    team: World, cluster: Cluster
):
    watch = QueueWatch(team.site, cluster)
    watch.attend()
    watch.attend()
    team.split(a=30)
    watch.attend()

    quotas = [[leaf.quota for leaf in tree.pools[0].leaves] for tree in cluster.trees]
    assert [[100], [70, 30]] == quotas


def test_a_repair_of_any_kind_is_one_event_and_one_entry_of_the_audit(
    team: World, cluster: Cluster
):
    watch = QueueWatch(team.site, cluster)
    kinds = ("Queue", "Topology", "PriorityClass", "PodGroup")
    cluster.report = QueueReport(tuple(Repair(1, f"{kind}/x", "It was lost.") for kind in kinds))
    for _ in range(3):
        watch.attend()

    assert [f"{kind}/x: It was lost." for kind in kinds] == told(team, EventKind.CLUSTER_REPAIRED)
    assert [["kube:Repair"]] * 4 == [audited(team, f"{kind}/x") for kind in kinds]
    assert () == cluster.report.repairs


def test_a_trouble_is_told_when_it_comes_and_when_it_comes_again(team: World, cluster: Cluster):
    watch = QueueWatch(team.site, cluster)
    for troubles in (("first",), ("first",), ("first", "second"), (), ("first",)):
        cluster.report = QueueReport(troubles=troubles)
        watch.attend()
        # A server that was started again knows what was told before it.
        watch = QueueWatch(team.site, cluster)
        watch.attend()

    assert ["first", "second", "first"] == told(team, EventKind.CLUSTER_TROUBLE)
