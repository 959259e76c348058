"""Queues of a cluster, brought in step with random trees: exactly the tree, and never too much."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.kubernetes.kai.object_changes import Used, candidates_to_go, plan_changes
from bough.backends.kubernetes.kai.wanted_objects import wanted_objects
from bough.kube.objects import Meta
from tests.queue_trees import OWNER, Cluster, pool_queue, tree, trees, written


def reconcile(cluster: Cluster, wanted, used=None, stop=None) -> tuple[str, ...]:
    """One round, or the first of its changes; what could not be done."""
    going = candidates_to_go(wanted, cluster.found, OWNER)
    busy = Used() if used is None else Used(going.queues & used, frozenset())
    planned = plan_changes(wanted, cluster.found, OWNER, busy)
    for change in planned.changes[:stop]:
        cluster.play(change)
    return planned.troubles


def contents(cluster: Cluster) -> dict[str, dict[str, object]]:
    return {kind: dict(of) for kind, of in cluster.kinds.items()}


def expected(wanted) -> dict[str, dict[str, object]]:
    of = {"Queue": wanted.queues, "Topology": wanted.topologies, "PriorityClass": wanted.classes}
    return {kind: {name: written(each) for name, each in all_.items()} for kind, all_ in of.items()}


def test_a_leaf_shrinks_before_its_siblings_grow():
    # Whichever of two leaves is written first otherwise, by its name or its place.
    first = tree(pool_queue("team", 40, a=30, b=10))
    second = tree(pool_queue("team", 40, a=10, b=30))
    for before, after in ((first, second), (second, first)):
        cluster = Cluster()
        reconcile(cluster, wanted_objects(before, OWNER))
        reconcile(cluster, wanted_objects(after, OWNER))

        assert expected(wanted_objects(after, OWNER)) == contents(cluster)
        assert 0 == cluster.excess


@given(st.lists(trees(), min_size=1, max_size=5), st.data())
def test_scenarios_011_065_and_108_after_any_history_the_cluster_has_exactly_the_newest_tree(
    history, data
):
    cluster = Cluster()
    for each in history:
        wanted = wanted_objects(each, OWNER)
        # A server is killed after some writes, and the next one takes over, perhaps another tree.
        if data.draw(st.booleans()):
            reconcile(cluster, wanted, stop=data.draw(st.integers(0, 12)))
            continue
        assert () == reconcile(cluster, wanted)
        assert expected(wanted) == contents(cluster)
    wanted = wanted_objects(history[-1], OWNER)
    reconcile(cluster, wanted)
    assert expected(wanted) == contents(cluster)
    assert 0 == cluster.excess

    writes = cluster.writes
    assert () == reconcile(cluster, wanted)
    assert writes == cluster.writes


@given(trees(), trees(), st.data())
def test_what_pods_name_stays_without_quota_and_goes_when_they_are_gone(before, after, data):
    cluster = Cluster()
    reconcile(cluster, wanted_objects(before, OWNER))
    wanted = wanted_objects(after, OWNER)
    left = sorted(set(cluster.queues) - set(wanted.queues))
    used = (
        frozenset(data.draw(st.lists(st.sampled_from(left), unique=True))) if left else frozenset()
    )

    reconcile(cluster, wanted, used=used)

    assert used <= set(cluster.queues)
    assert {0} >= {cluster.queues[name].spec.resources.gpu.quota for name in used}
    assert 0 == cluster.excess
    reconcile(cluster, wanted)
    assert expected(wanted) == contents(cluster)


@given(trees(), st.data())
def test_what_is_not_ours_is_never_touched_and_what_is_above_it_is_reported(made, data):
    cluster = Cluster()
    wanted = wanted_objects(made, OWNER)
    names = data.draw(st.lists(st.sampled_from(sorted(wanted.queues)), unique=True))
    foreign = {
        name: msgspec.structs.replace(wanted.queues[name], metadata=Meta(name, labels={"a": "b"}))
        for name in names
    }
    foreign["other"] = msgspec.structs.replace(wanted.root, metadata=Meta("other"))
    cluster.queues.update(foreign)

    troubles = reconcile(cluster, wanted)

    assert foreign == {name: cluster.queues[name] for name in foreign}
    assert 0 == cluster.excess
    top = [name for name in names if name in (wanted.root.metadata.name, *wanted.pools)]
    for name in top[:1] if wanted.root.metadata.name not in names else [wanted.root.metadata.name]:
        assert any(f"Queue {name} is not of this site" in each for each in troubles)


@given(trees())
def test_nothing_is_left_out_that_kai_would_read_as_none(made):
    wanted = wanted_objects(made, OWNER)
    for each in wanted.queues.values():
        amounts = msgspec.to_builtins(each.spec.resources)
        assert {"gpu", "cpu", "memory"} == set(amounts)
        for of in amounts.values():
            assert {"quota", "limit", "overQuotaWeight"} == set(of)
            assert None not in of.values()


@given(trees())
def test_names_are_unique_and_the_original_is_in_a_label(made):
    wanted = wanted_objects(made, OWNER)
    said = [(each.metadata.labels or {})["bough.queue"] for each in wanted.queues.values()]
    names = [str(pool.name) for pool in made.pools]
    names += [str(leaf.name) for pool in made.pools for leaf in pool.leaves]

    assert sorted([str(made.root), *names]) == sorted(said)
