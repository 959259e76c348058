"""Two backends beside each other: nodes of one name, and one that fails without the other."""

from __future__ import annotations

import pytest

from bough.backends.virtual import VirtualBackend
from tests.api.house import House
from tests.store.world import big_node

#: Both backends have a node of this name.
NODE = "node-0"


@pytest.fixture
def cloud():
    """The second backend, with 4 GPUs."""
    return VirtualBackend((big_node(4, NODE),), lambda: 0, "cloud")


@pytest.fixture
def both(sqlite_files, cloud):
    """Pool `here` on the first backend, pool `there` on the second, which have one node each."""

    def others(now_ms):
        cloud._now_ms = now_ms
        return (cloud,)

    address = sqlite_files.make()
    with House(sqlite_files.open(address), gpus=8, others=others) as made:
        made.backend.offer((big_node(8, NODE),))
        made.pool("here", 8)
        made.pool("there", 4, backend="cloud")
        made.settle()
        yield made
    sqlite_files.give_back(address)


def nodes(house: House) -> dict[str, dict]:
    return {f"{each['backend']}/{each['name']}": each for each in house.get("/api/node")["nodes"]}


def test_nodes_of_one_name_belong_to_their_backends(both):
    found = nodes(both)
    assert {f"default/{NODE}": 8, f"cloud/{NODE}": 4} == {
        name: each["gpu"] for name, each in found.items()
    }
    assert [["here"], ["there"]] == [
        found[f"{each}/{NODE}"]["pools"] for each in ("default", "cloud")
    ]


def test_work_on_nodes_of_one_name_is_counted_where_it_runs(both):
    first, second = both.run(8, "here"), both.run(3, "there")
    found = nodes(both)
    assert (8, 3) == (found[f"default/{NODE}"]["used_gpu"], found[f"cloud/{NODE}"]["used_gpu"])
    tasks = {
        each["workflow_id"]: each
        for each in both.get("/api/task?all_users=true&all_pools=true")["tasks"]
    }
    assert ("default", NODE) == (tasks[first]["backend"], tasks[first]["node"])
    assert ("cloud", NODE) == (tasks[second]["backend"], tasks[second]["node"])
    only = both.get(f"/api/task?all_users=true&all_pools=true&nodes=cloud/{NODE}")["tasks"]
    assert [second] == [each["workflow_id"] for each in only]


def test_a_node_is_named_with_its_backend_where_its_name_alone_could_be_two(both):
    expected = f"Several backends have a node {NODE}: say cloud/{NODE} or default/{NODE}."
    for deed in ("cordon", "uncordon", "drain"):
        assert (409, expected) == both.refused("POST", f"/api/node/{NODE}/{deed}")
    assert (409, expected) == both.refused("PATCH", f"/api/resources/{NODE}", {"cordoned": True})
    assert (409, expected) == both.refused("GET", f"/api/resources/{NODE}")
    assert (404, f"Node {NODE} of backend moon not found.") == both.refused(
        "POST", f"/api/node/{NODE}/cordon?backend=moon"
    )
    assert not any(each["cordoned"] for each in nodes(both).values())

    both.send("POST", f"/api/node/{NODE}/cordon?backend=cloud")
    cordoned = {name: each["cordoned"] for name, each in nodes(both).items()}
    assert {f"default/{NODE}": False, f"cloud/{NODE}": True} == cordoned
    (entry, *_) = both.get(f"/api/audit?subject=node/cloud/{NODE}")["entries"]
    assert f"node/cloud/{NODE}" == entry["subject"]


def test_draining_a_node_leaves_the_one_of_the_same_name_alone(both):
    first, second = both.run(2, "here"), both.run(2, "there")
    drained = both.send("POST", f"/api/node/{NODE}/drain?backend=cloud")
    assert ("cloud", 1) == (drained["node"]["backend"], drained["told"])
    both.settle()
    assert ("RUNNING", "PENDING") == (both.status(first), both.status(second))
    why = both.get(f"/api/workflow/{second}/why")["groups"][0]
    assert "place" == why["reason"]


def test_a_node_that_vanishes_takes_only_its_own_work_along(both, cloud):
    first, second = both.run(2, "here"), both.run(2, "there")
    cloud.offer((big_node(4, "other"),))
    both.settle()
    assert "RUNNING" == both.status(first)
    (task,) = both.get(f"/api/workflow/{second}")["groups"][0]["tasks"]
    assert (1, "other", "cloud") == (task["retry_id"], task["node_name"], task["backend"])


def test_what_waits_when_its_pool_changes_its_backend_starts_on_the_new_one(both, cloud):
    both.send("POST", f"/api/node/{NODE}/cordon?backend=default")
    name = both.submit(2, "here")
    both.settle()
    assert "PENDING" == both.status(name)
    both.send("PATCH", "/api/configs/pool/here", {"configs_dict": {"backend": "cloud"}})
    both.settle()
    assert ("RUNNING", 1) == (both.status(name), len(cloud._attempts))
    (task,) = both.get(f"/api/workflow/{name}")["groups"][0]["tasks"]
    assert ("cloud", NODE) == (task["backend"], task["node_name"])

    both.send("POST", f"/api/workflow/{name}/cancel")
    both.settle()
    assert "FAILED_CANCELED" == both.status(name)
