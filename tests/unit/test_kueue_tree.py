"""Objects of Kueue, as an apiserver sends them, as quota."""

from __future__ import annotations

from typing import Any

import msgspec

from bough.formats.live.objects import LiveKueue, LiveNamespace
from bough.model.cluster import Node, Resources
from bough.pod_scheduler.kueue_tree import KueueTree


def put(tree: KueueTree, kind: str, name: str, namespace: str | None = None, **spec: Any) -> bool:
    metadata = {"name": name, "namespace": namespace}
    return tree.put(msgspec.convert({"metadata": metadata, "spec": spec}, LiveKueue), kind)


def quota(gpus: object) -> list[dict[str, Any]]:
    flavor = {"name": "h100", "resources": [{"name": "gpu", "nominalQuota": gpus}]}
    return [{"coveredResources": ["gpu"], "flavors": [flavor]}]


def test_doors_lead_to_queues_and_what_has_none_to_no_queue():
    tree = KueueTree(list)
    put(tree, "LocalQueue", "door", "ml", clusterQueue="team")
    tree.refresh({})
    assert "team" == tree.queue_of("ml", "door")
    assert "lab/door" == tree.queue_of("lab", "door")
    assert tree.remove("ml/door", "LocalQueue")
    tree.refresh({})
    assert "ml/door" == tree.queue_of("ml", "door")


def test_what_is_wrong_with_a_cohort_stops_the_queues_below_it_alone():
    tree = KueueTree(list)
    put(tree, "ResourceFlavor", "h100")
    put(tree, "Cohort", "bad", resourceGroups=quota("many"))
    put(tree, "ClusterQueue", "below", cohortName="bad", resourceGroups=quota(2))
    put(tree, "ClusterQueue", "other", cohortName="implicit", resourceGroups=quota(2))
    put(tree, "ClusterQueue", "wrong", resourceGroups=quota(-1))
    tree.refresh({})
    assert {"below", "wrong"} == tree.closed.keys()
    assert "queue 'below' is stopped: Cohort bad: spec.resourceGroups" in tree.closed["below"]
    assert ["other"] == [each.name for each in tree.tree.queues]


def test_a_cycle_is_kept_and_told_of_each_cohort_that_hangs_on_it():
    tree = KueueTree(list)
    put(tree, "Cohort", "a", parentName="b")
    put(tree, "Cohort", "b", parentName="a")
    put(tree, "Cohort", "c", parentName="a")
    put(tree, "Cohort", "d")
    put(tree, "ClusterQueue", "q", cohortName="c", resourceGroups=quota(2))
    tree.refresh({})
    assert {"a": False, "b": False, "c": False, "d": True} == {
        name: each.status for name, each in tree.conditions.items()
    }
    assert {} == tree.closed
    put(tree, "Cohort", "b")
    tree.refresh({})
    assert all(each.status for each in tree.conditions.values())


def test_what_did_not_change_stays_the_same_objects():
    tree = KueueTree(list)
    assert put(tree, "ResourceFlavor", "h100", nodeLabels={"gpu": "h100"})
    tree.put_namespace(msgspec.convert({"metadata": {"name": "ml"}}, LiveNamespace))
    tree.refresh({})
    nodes = (Node("n1", Resources(), labels={"gpu": "h100"}), Node("n2", Resources()))
    first, tree_before = tree.on_nodes(nodes), tree.tree
    assert ["h100", None] == [each.flavor for each in first]
    assert not put(tree, "ResourceFlavor", "h100", nodeLabels={"gpu": "h100"})
    tree.refresh({})
    assert first is tree.on_nodes(nodes)
    assert tree_before is tree.tree
    assert {"ml": {"kubernetes.io/metadata.name": "ml"}} == tree.namespaces
