"""Two backends beside each other: nodes of one name, and one that fails without the other."""

from __future__ import annotations

import errno

import pytest

from bough.backends.virtual import VirtualBackend
from bough.errors import Invalid, Unavailable
from tests.api.house import House, spec
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


# One fails, and the other does not


def fail(backend, call: str, error: Exception):
    """Let a call of a backend raise; the function that makes it work again."""

    def raising(*_args):
        raise error

    setattr(backend, call, raising)
    return lambda: delattr(backend, call)


@pytest.mark.parametrize("call", ["nodes", "observe"])
@pytest.mark.parametrize("error", [ValueError("a bug"), OSError("no route"), Unavailable("away")])
def test_a_backend_that_raises_stops_nothing_on_another_and_its_pools_say_so(
    both, cloud, call, error, caplog
):
    running = both.run(1, "there")
    heal = fail(cloud, call, error)
    here, there = both.submit(2, "here"), both.submit(2, "there")
    both.settle()

    assert ("RUNNING", "PENDING") == (both.status(here), both.status(there))
    assert "RUNNING" == both.status(running)
    reason = f"Backend cloud does not answer: {error}"
    assert 1 == sum(reason in record.message for record in caplog.records)
    pools = {
        row["name"]: (row["status"], row["offline"])
        for each in both.get("/api/pool_quota?all_pools=True")["node_sets"]
        for row in each["pools"]
    }
    assert {"here": ("ONLINE", None), "there": ("OFFLINE", reason)} == pools
    assert "OFFLINE" == both.get("/api/configs/pool/there")["status"]
    (group,) = both.get(f"/api/workflow/{there}/why")["groups"]
    assert ("backend", reason) == (group["reason"], group["message"])
    (run,) = both.get(f"/api/workflow/{running}/why")["running"]
    assert run["message"].endswith(f". {reason}")
    assert ["cloud"] == both.get("/health")["offline"]
    backends = {each["name"]: each for each in both.get("/api/configs/backend")["backends"]}
    assert (True, False) == (backends["default"]["online"], backends["cloud"]["online"])
    assert reason == backends["cloud"]["offline"]
    assert "OFFLINE" == nodes(both)[f"cloud/{NODE}"]["status"]

    heal()
    both.settle()
    assert ("RUNNING", []) == (both.status(there), both.get("/health")["offline"])
    (task,) = both.get(f"/api/workflow/{running}")["groups"][0]["tasks"]
    assert (0, "RUNNING") == (task["retry_id"], task["status"])


def test_not_known_yet_is_not_none(both, cloud):
    running = both.run(1, "there")
    cloud.nodes = lambda: None
    both.settle()
    assert "RUNNING" == both.status(running)
    assert f"cloud/{NODE}" in nodes(both)
    (each,) = both.get("/api/pool_quota?pools=there")["node_sets"]
    (row,) = each["pools"]
    assert ("OFFLINE", "Backend cloud does not know its nodes yet.") == (
        row["status"],
        row["offline"],
    )
    del cloud.nodes
    both.settle()
    (task,) = both.get(f"/api/workflow/{running}")["groups"][0]["tasks"]
    assert (0, "RUNNING") == (task["retry_id"], task["status"])
    assert [] == both.get("/health")["offline"]

    cloud.offer(())
    both.settle()
    assert "RUNNING" != both.status(running)


# One is gone


def test_a_backend_that_is_gone_is_removed_with_its_nodes_once_nothing_needs_it(both, cloud):
    path = "/api/configs/backend/cloud"
    running = both.run(1, "there")

    def refused() -> str:
        status, message = both.refused("DELETE", path)
        assert 409 == status
        return message

    assert "Backend cloud cannot be removed: it answers." in refused()
    fail(cloud, "nodes", OSError("no route"))
    both.settle()
    assert "Backend cloud cannot be removed: pool there uses it." in refused()
    both.send("PATCH", "/api/configs/pool/there", {"configs_dict": {"backend": "default"}})
    assert (
        "Backend cloud cannot be removed: a task is on its node node-0, of 1 in all." in refused()
    )
    assert "RUNNING" == both.status(running)
    assert f"cloud/{NODE}" in nodes(both)

    both.send("POST", f"/api/node/{NODE}/declare_lost?backend=cloud")
    both.site.wake()
    before = both.get("/api/configs/backend")["backends"]
    both.send("DELETE", path, {"description": "sold", "tags": ["old"]})

    after = both.get("/api/configs/backend")["backends"]
    assert (["cloud", "default"], ["default"]) == (
        [each["name"] for each in before],
        [each["name"] for each in after],
    )
    assert (404, "Backend cloud not found.") == both.refused("GET", path)
    assert (404, "Backend cloud not found.") == both.refused("DELETE", path)
    (entry,) = both.get("/api/audit?subject=config/backend/cloud")["entries"]
    assert {"removed": {"description": "sold", "tags": ["old"]}} == entry["after"]


def test_nodes_of_a_backend_that_is_gone_go_with_it(both, cloud):
    both.send("DELETE", "/api/configs/pool/there")
    both.send("POST", f"/api/node/{NODE}/cordon?backend=cloud")
    heal = fail(cloud, "nodes", OSError("no route"))
    both.settle()
    assert f"cloud/{NODE}" in nodes(both)

    both.send("DELETE", "/api/configs/backend/cloud")

    assert [f"default/{NODE}"] == list(nodes(both))
    assert "RUNNING" == both.status(both.run(8, "here"))

    heal()
    both.settle()
    # It answers again, so it is there again, as an administrator left it.
    assert nodes(both)[f"cloud/{NODE}"]["cordoned"]


class Choosy(VirtualBackend):
    """Does not start tasks of one name."""

    refused = ""
    error: Exception = Invalid("no such image")
    calls = 0

    def start(self, start) -> None:
        if any(each.name == self.refused for each in start.launches):
            self.calls += 1
            raise self.error
        super().start(start)


def choosy(both, error: Exception):
    backend = both.backend
    backend.__class__ = Choosy
    backend.refused, backend.error = "task-0-0", error
    return backend


def other(both, gpus: int = 1) -> str:
    return both.submit(gpus, "here", text=spec(gpus, "other").replace("task-0-0", "fine"))


def test_a_start_that_is_refused_is_the_matter_of_its_group_alone(both):
    backend = choosy(both, Invalid("there is no such image"))
    first, second = both.submit(1, "here"), other(both)
    both.settle()

    assert ("FAILED_START_ERROR", "RUNNING") == (both.status(first), both.status(second))
    (task,) = both.get(f"/api/workflow/{first}")["groups"][0]["tasks"]
    assert "The start was refused: there is no such image" in task["failure_message"]
    assert 1 == backend.calls


@pytest.mark.parametrize("error", [ValueError("a bug"), OSError("busy"), Unavailable("not now")])
def test_a_start_that_fails_while_others_are_taken_is_given_up_after_some_tries(both, error):
    backend = choosy(both, error)
    first = both.submit(1, "here")
    for _ in range(5):
        second = other(both)
        both.engine._scheduler.cycle()
        both.settle()
        assert "RUNNING" == both.status(second)
    assert "FAILED_START_ERROR" == both.status(first)
    calls = backend.calls
    both.engine._scheduler.cycle()
    assert (True, calls) == (calls >= 3, backend.calls)


def test_a_start_that_cannot_be_made_by_any_waits_and_says_why(both):
    backend = choosy(both, OSError("No space left on device"))
    name = both.submit(1, "here")
    for _ in range(10):
        both.engine._scheduler.cycle()
    assert "PENDING" == both.status(name)
    (run,) = both.get(f"/api/workflow/{name}/why")["running"]
    assert run["message"].endswith("It could not be started so far: No space left on device")
    backend.refused = ""
    both.settle()
    assert "RUNNING" == both.status(name)
    both.finish(name)
    events = both.ask("GET", f"/api/workflow/{name}/events").text
    assert 1 == events.count("and is tried again: No space left on device")


def test_a_start_on_a_full_disk_waits_also_while_others_end(both):
    backend = choosy(both, OSError(errno.ENOSPC, "No space left on device"))
    name = both.submit(1, "here")
    for _ in range(5):
        second = other(both)
        both.engine._scheduler.cycle()
        both.settle()
        assert "RUNNING" == both.status(second)
    assert "PENDING" == both.status(name)
    backend.refused = ""
    both.settle()
    assert "RUNNING" == both.status(name)
