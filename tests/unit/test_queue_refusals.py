"""Objects of KAI that a cluster refuses, or that others have: a matter of what is meant alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bough.backends.kubernetes.kai.kai_types import PRIORITY_CLASSES, QUEUES, TOPOLOGIES
from bough.backends.kubernetes.kai.queue_keeper import QueueKeeper
from bough.kube.decoding import Listing
from bough.kube.failures import KubeNotFound, KubeRefused
from bough.kube.objects import Kind
from bough.model.queue_tree import QueueTree
from tests.queue_trees import OWNER, excess, pool_queue, tree


class Refusing:
    """An apiserver in memory that does not accept what names a word."""

    def __init__(self) -> None:
        self.there: dict[str, dict[str, Any]] = {}
        #: Objects with this in their names are not accepted, or are gone when they are changed.
        self.refused = self.vanished = ""
        self.excess = 0.0

    def list(self, kind: Kind[Any], **_asked: Any) -> Listing[Any]:
        found = self.there.get(kind.plural, {}).values()
        return Listing([msgspec.convert(each, kind.type) for each in found], "1")

    def create(self, kind: Kind[Any], body: dict[str, Any]) -> None:
        self._judge(body["metadata"]["name"])
        self.there.setdefault(kind.plural, {})[body["metadata"]["name"]] = body
        self._look()

    def patch(self, kind: Kind[Any], name: str, body: dict[str, Any]) -> None:
        self._judge(name)
        there = self.there[kind.plural][name]
        metadata = {**there["metadata"], **body["metadata"]}
        self.there[kind.plural][name] = {**there, **body, "metadata": metadata}
        self._look()

    def delete(self, kind: Kind[Any], name: str, **_asked: str) -> None:
        self._judge(name)
        del self.there[kind.plural][name]
        self._look()

    def _judge(self, name: str) -> None:
        if self.refused and self.refused in name:
            raise KubeRefused("denied by a rule of others", 403, "Forbidden")
        if self.vanished and self.vanished in name:
            self.vanished = ""
            raise KubeNotFound(f"{name} not found", 404)

    def _look(self) -> None:
        self.excess = max(self.excess, excess(self.queues))

    @property
    def queues(self) -> dict[str, Any]:
        return {each.metadata.name: each for each in self.list(QUEUES).items}

    def quotas(self, pool: str) -> dict[str, float | None]:
        """What the queues of a pool have, by the ends of their names."""
        start = f"osmo-pool-ns-{pool}"
        return {
            name.removeprefix(start): each.spec.resources.gpu.quota
            for name, each in self.queues.items()
            if name.startswith(start)
        }


@pytest.fixture
def cluster() -> Refusing:
    return Refusing()


def keep(cluster: Refusing, wanted: QueueTree, keeper: QueueKeeper | None = None) -> QueueKeeper:
    """One round."""
    made = keeper or QueueKeeper(cluster, OWNER, lambda: 7, lambda: True, lambda: None)  # type: ignore[arg-type]
    made.want(wanted)
    made.work()
    return made


def test_a_refusal_stops_its_own_pool_and_no_other(cluster: Refusing):
    keeper = keep(cluster, tree(pool_queue("one", 8, a=6), pool_queue("two", 8, a=6)))
    cluster.refused = "one--a"

    keep(cluster, tree(pool_queue("one", 8, a=1, b=7), pool_queue("two", 8, a=1, b=7)), keeper)

    assert {"": 8, "---shared": 0, "--a": 1, "--b": 7} == cluster.quotas("two")
    # What would have been given back is not there to be given.
    assert {"": 8, "---shared": 0, "--a": 6} == cluster.quotas("one")
    assert 0 == cluster.excess
    said = "Queue osmo-pool-ns-one--a is refused: denied by a rule of others"
    assert (said,) == keeper.report().troubles


def test_what_is_accepted_later_is_no_repair(cluster: Refusing):
    cluster.refused = "-one"
    keeper = keep(cluster, tree(pool_queue("one", 8, a=3), pool_queue("two", 2)))
    assert {} == cluster.quotas("one")
    assert keeper.report().in_step_ms is None
    cluster.refused = ""

    keeper.work()

    assert {"": 8, "---shared": 5, "--a": 3} == cluster.quotas("one")
    assert ((), ()) == (keeper.report().troubles, keeper.report().repairs)
    assert 7 == keeper.report().in_step_ms


def test_a_topology_that_is_refused_keeps_no_quota_from_its_pool(cluster: Refusing):
    cluster.refused = "-topology"

    keeper = keep(cluster, tree(pool_queue("team", 8, ("zone",), a=3)))

    assert {"": 8, "---shared": 5, "--a": 3} == cluster.quotas("team")
    assert [] == cluster.list(TOPOLOGIES).items
    assert 1 == len(keeper.report().troubles)


def test_without_the_queue_above_all_nothing_is_made(cluster: Refusing):
    cluster.refused = "osmo-default"

    keeper = keep(cluster, tree(pool_queue("team", 8)))

    assert {} == cluster.queues
    (trouble,) = keeper.report().troubles
    assert trouble.startswith("The queues of the cluster cannot be kept in step: ")


def test_what_goes_between_a_look_and_a_write_is_looked_at_again(cluster: Refusing):
    keeper = keep(cluster, tree(pool_queue("team", 8)))
    cluster.vanished = "osmo-pool-ns-team"

    keeper.want(tree(pool_queue("team", 9)))

    assert 1 > (keeper.work() or 0)
    assert () == keeper.report().troubles
    keeper.work()
    assert {"": 9, "---shared": 9} == cluster.quotas("team")


def test_a_topology_and_a_class_of_others_with_our_names_are_left_alone_and_named(
    cluster: Refusing,
):
    for kind, body in (
        (TOPOLOGIES, {"metadata": {"name": "osmo-pool-ns-team-topology"}, "spec": {"levels": []}}),
        (PRIORITY_CLASSES, {"metadata": {"name": "osmo-high"}, "value": 7}),
        (PRIORITY_CLASSES, {"metadata": {"name": "osmo-low"}, "value": 50}),
    ):
        cluster.create(kind, body)
    theirs = {kind: dict(found) for kind, found in cluster.there.items()}

    keeper = keep(cluster, tree(pool_queue("team", 8, ("zone",), a=3)))

    for kind, found in theirs.items():
        assert found == {name: cluster.there[kind][name] for name in found}
    assert {"": 8, "---shared": 5, "--a": 3} == cluster.quotas("team")
    # One of the same value is as good as ours.
    told = [each.partition(" is not of this site")[0] for each in keeper.report().troubles]
    assert ["PriorityClass osmo-high", "Topology osmo-pool-ns-team-topology"] == told
