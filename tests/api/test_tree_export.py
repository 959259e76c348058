"""The tree of the pools as objects of Kueue and KAI, over HTTP."""

from __future__ import annotations

from bough.backends.kubernetes.kai.object_changes import digest_of
from bough.backends.kubernetes.kai.wanted_objects import Owner, wanted_objects
from bough.control.pools.pool_setup import read_pool_setup
from bough.control.scheduling.cluster_queues import queue_tree
from bough.control.site import site_identity
from bough.model.names import QueueName


def export(house, system, query=""):
    answer = house.get(f"/api/kube/export/{system}{query}")
    found = {(each["kind"], each["metadata"]["name"]): each for each in answer["objects"]}
    assert len(found) == len(answer["objects"])
    return found, answer["warnings"]


def gpus(manifest):
    ((quota,),) = (
        each["resources"]
        for group in manifest["spec"]["resourceGroups"]
        for each in group["flavors"]
    )
    return {key: value for key, value in quota.items() if key != "name"}


def test_pools_and_subpools_are_cohorts_and_cluster_queues_with_doors(divided):
    found, _ = export(divided, "kueue", "?namespace=ml")
    root, pool = "osmo-default-ns", "osmo-pool-ns-team"

    assert {"default"} == {name for kind, name in found if kind == "ResourceFlavor"}
    assert {root, pool} == {name for kind, name in found if kind == "Cohort"}
    assert root == found["Cohort", pool]["spec"]["parentName"]
    assert {"nominalQuota": 0} == gpus(found["Cohort", root])
    leaves = {"---shared": 10, "--a": 30, "--b": 40, "--c": 20}
    assert {f"{pool}{leaf}": quota for leaf, quota in leaves.items()} == {
        name: gpus(each)["nominalQuota"]
        for (kind, name), each in found.items()
        if kind == "ClusterQueue"
    }
    assert {"team": "---shared", "team--a": "--a", "team--b": "--b", "team--c": "--c"} == {
        name: each["spec"]["clusterQueue"].removeprefix(pool)
        for (kind, name), each in found.items()
        if kind == "LocalQueue" and each["metadata"]["namespace"] == "ml"
    }
    assert {"withinClusterQueue": "LowerPriority", "reclaimWithinCohort": "Any"}.items() <= found[
        "ClusterQueue", f"{pool}--a"
    ]["spec"]["preemption"].items()


def test_limits_weights_and_cohorts_are_written(house):
    house.send(
        "POST",
        "/api/configs/cohort",
        {"name": "Org_1", "quota": 8, "borrowing_limit": 2, "lending_limit": 0, "weight": 3},
    )
    limits = {"borrowing_limit": 7, "lending_limit": 5, "cohort": "Org_1"}
    house.pool("team", 20, **limits, user_gpu_limit=4)

    found, warnings = export(house, "kueue")
    ((org, cohort),) = ((n, e) for (k, n), e in found.items() if k == "Cohort" and "org" in n)
    assert "Org_1" == cohort["metadata"]["labels"]["bough.queue"]
    assert {"weight": 3} == cohort["spec"]["fairSharing"]
    assert {"nominalQuota": 8, "borrowingLimit": 2, "lendingLimit": 0} == gpus(cohort)
    pool = found["Cohort", "osmo-pool-ns-team"]
    assert org == pool["spec"]["parentName"]
    assert {"nominalQuota": 0, "borrowingLimit": 7, "lendingLimit": 5} == gpus(pool)
    assert "Pool team: user_gpu_limit 4 is not written; queues know no users." in warnings

    _, warnings = export(house, "kai")
    assert {
        "Cohort Org_1 is not written: in KAI pools stand side by side.",
        "Pool team: cohort Org_1 is not written; KAI has no such field.",
        "Pool team: borrowing_limit 7 is not written; KAI has no such field.",
        "Pool team: lending_limit 5 is not written; KAI has no such field.",
        "Pool team: user_gpu_limit 4 is not written; queues know no users.",
    } == set(warnings)


def test_a_subpool_that_is_being_deleted_has_no_quota_and_its_work_is_in_the_shared_part(divided):
    divided.run(5, "team--a")
    divided.send("DELETE", "/api/configs/pool/team/subpool/a")
    leaf = "osmo-pool-ns-team--a"

    kueue, warnings = export(divided, "kueue")
    kai, _ = export(divided, "kai")

    assert 0 == gpus(kueue["ClusterQueue", leaf])["nominalQuota"]
    shared = "osmo-pool-ns-team---shared"
    assert 40 == gpus(kueue["ClusterQueue", shared])["nominalQuota"]
    assert shared == kueue["LocalQueue", "team--a"]["spec"]["clusterQueue"]
    assert any(each.startswith("Subpool team--a is being deleted:") for each in warnings)
    assert 0 == kai["Queue", leaf]["spec"]["resources"]["gpu"]["quota"]
    assert 40 == kai["Queue", shared]["spec"]["resources"]["gpu"]["quota"]


def test_the_export_for_kai_is_what_a_backend_keeps_in_its_cluster(divided):
    with divided.site.store.read() as connection:
        setup = read_pool_setup(connection)
    tree = queue_tree(setup, QueueName("ns"), "default")
    wanted = wanted_objects(tree, Owner(site_identity(divided.site), "default"))

    found, warnings = export(divided, "kai")

    assert [] == warnings
    kinds = {"Queue": wanted.queues, "Topology": wanted.topologies, "PriorityClass": wanted.classes}
    expected = {(kind, name): each for kind, of in kinds.items() for name, each in of.items()}
    assert {key: digest_of(each) for key, each in expected.items()} == {
        key: each["metadata"]["annotations"]["bough.written"] for key, each in found.items()
    }


def test_more_guaranteed_than_there_is_is_named(house):
    house.pool("team", 130)

    found, warnings = export(house, "kueue")

    assert {"nominalQuota": 0} == gpus(found["Cohort", "osmo-default-ns"])
    assert any("osmo-default-ns has -30 GPUs of default" in each for each in warnings)


def test_a_cycle_of_cohorts_is_written_and_named(house):
    house.send("POST", "/api/configs/cohort", {"name": "x"})
    house.send("POST", "/api/configs/cohort", {"name": "y", "parent": "x"})
    house.send("PATCH", "/api/configs/cohort/x", {"parent": "y"})
    house.pool("team", 4, cohort="x")

    found, warnings = export(house, "kueue")

    assert ["y", "x"] == [found["Cohort", name]["spec"]["parentName"] for name in ("x", "y")]
    assert any("cycle" in each for each in warnings)


def test_an_empty_site_has_a_root(house):
    assert {("Cohort", "osmo-default-ns")} == set(export(house, "kueue")[0])
    assert ["osmo-default-ns"] == [n for k, n in export(house, "kai")[0] if k == "Queue"]


def test_what_is_asked_for_wrongly_is_refused(house):
    assert (404, "There is no export for 'slurm'; there is kueue and kai.") == house.refused(
        "GET", "/api/kube/export/slurm"
    )
    status, message = house.refused("GET", "/api/kube/export/kueue?namespace=A_b")
    assert status in (400, 422)
    assert message.startswith("namespace: 'A_b' is not a valid name")
