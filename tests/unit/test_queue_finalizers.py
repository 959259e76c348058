"""Objects of KAI that were told to go, and are held by finalizers of others."""

from __future__ import annotations

import msgspec
import pytest

from bough.backends.kubernetes.kai.object_changes import FoundObjects, Verb, plan_changes
from bough.backends.kubernetes.kai.wanted_objects import wanted_objects
from bough.model.queue_tree import QueueTree
from tests.queue_trees import OWNER, Cluster, pool_queue, tree

TREE = tree(pool_queue("team", 8, ("zone",), a=3))


def made(of: QueueTree) -> Cluster:
    """A cluster that has a tree."""
    cluster = Cluster()
    for change in plan_changes(wanted_objects(of, OWNER), cluster.found, OWNER).changes:
        cluster.play(change)
    return cluster


def hold(cluster: Cluster, kind: str, name: str) -> FoundObjects:
    """Others put a finalizer on an object, and it is told to go."""
    item = cluster.kinds[kind][name]
    metadata = msgspec.structs.replace(
        item.metadata,  # type: ignore[attr-defined]
        deletion_timestamp="2026-01-31T23:59:59Z",
        finalizers=("example.org/hold",),
    )
    cluster.kinds[kind][name] = msgspec.structs.replace(item, metadata=metadata)  # type: ignore[type-var]
    return cluster.found


@pytest.mark.parametrize("kind", ["Queue", "Topology"])
def test_what_is_held_is_told_to_go_once_and_named(kind: str):
    cluster = made(TREE)
    name = "osmo-pool-ns-team--a" if kind == "Queue" else "osmo-pool-ns-team-topology"
    found = hold(cluster, kind, name)

    planned = plan_changes(wanted_objects(tree(pool_queue("team", 8)), OWNER), found, OWNER)

    said = f"{kind} {name} is being deleted, and waits for its finalizers: example.org/hold."
    assert said in planned.troubles
    assert f"{kind}/{name}" not in {
        each.subject for each in planned.changes if each.verb is Verb.DELETE
    }


def test_a_queue_that_is_held_has_no_quota_and_its_pool_stays_above_it():
    cluster = made(TREE)
    found = hold(cluster, "Queue", "osmo-pool-ns-team--a")

    planned = plan_changes(wanted_objects(tree(), OWNER), found, OWNER)

    changes = {each.subject: each.verb for each in planned.changes}
    assert Verb.UPDATE is changes["Queue/osmo-pool-ns-team--a"]
    assert Verb.UPDATE is changes["Queue/osmo-pool-ns-team"]
    assert "Queue osmo-pool-ns-team is not removed yet: there are queues below it." in (
        planned.troubles
    )


def test_a_topology_that_is_held_is_made_again_when_it_is_gone():
    cluster = made(TREE)
    name = "osmo-pool-ns-team-topology"
    found = hold(cluster, "Topology", name)
    other = wanted_objects(tree(pool_queue("team", 8, ("rack",), a=3)), OWNER)

    held = plan_changes(other, found, OWNER)
    del cluster.kinds["Topology"][name]
    free = plan_changes(other, cluster.found, OWNER)

    assert ((), 1) == (held.changes, len(held.troubles))
    assert [(Verb.CREATE, f"Topology/{name}")] == [(e.verb, e.subject) for e in free.changes]
