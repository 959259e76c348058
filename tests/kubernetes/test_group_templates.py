"""Group templates on a real apiserver: made before the pods of a group, gone with the last."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from tests.e2e.local import resources
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.conftest import fresh_namespace
from tests.kubernetes.served import Clustered, clustered
from tests.kubernetes.test_backend import job
from tests.kubernetes.test_templates import use

SHARED = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "shared-{{WF_GROUP_UUID}}", "labels": {"team": "blue"}},
    "data": {"workflow": "{{WF_ID}}", "pool": "{{WF_POOL}}"},
}


def put(server: Clustered, **templates: dict[str, Any]) -> None:
    """Configure templates, and have the pool name all of them."""
    path = "/api/configs/group_template"
    server.client._transport.send_json("PUT", path, {"configs": templates})
    use(server, common_group_templates=sorted(templates))


def config_maps(server: Clustered) -> dict[str, dict[str, Any]]:
    """All ConfigMaps that Bough made, by name."""
    path = f"/api/v1/namespaces/{server.namespace}/configmaps?labelSelector=bough.site"
    return {each["metadata"]["name"]: each for each in server.bed.ask("GET", path)["items"]}


def shared(server: Clustered) -> list[dict[str, Any]]:
    return [each for name, each in config_maps(server).items() if name.startswith("shared-")]


def test_the_objects_of_a_group_are_there_before_its_pods_and_go_with_the_last(server: Clustered):
    more = {**SHARED, "metadata": {"name": SHARED["metadata"]["name"]}, "data": {"pool": "x"}}
    put(server, a=SHARED, b=more)
    tasks = [{"name": f"t{number}", "image": "bed", "lead": not number} for number in range(2)]
    groups = [{"name": "pair", "tasks": tasks}]
    name = server.send(
        "team", "NORMAL", {"name": "two", "resources": resources(1), "groups": groups}
    )
    server.settle(RUNNING=[name])

    (made,) = shared(server)
    labels = made["metadata"]["labels"]
    group = labels["osmo.group_uuid"]
    assert f"shared-{group}" == made["metadata"]["name"]
    assert {group} == {each["metadata"]["labels"]["osmo.group_uuid"] for each in server.pods()}
    # The later template is on top of the earlier one.
    assert {"workflow": name, "pool": "x"} == made["data"]
    assert ("blue", name) == (labels["team"], labels["osmo.workflow_id"])
    first = min(each["metadata"]["creationTimestamp"] for each in server.pods())
    assert made["metadata"]["creationTimestamp"] <= first

    for each in server.ready(name):
        server.tell(each)
    server.over(name)
    assert "COMPLETED" == server.status(name)
    server.until(lambda: not config_maps(server), lambda: config_maps(server))


def test_a_new_server_deletes_what_an_earlier_one_made(eight_bed: Bed, tmp_path: Path):
    with clustered(tmp_path, eight_bed, fresh_namespace()) as host:
        server = host.start()
        server.pool("team", 64)
        put(server, a=SHARED)
        names = [server.send("team", "NORMAL", job(f"job{number}")) for number in range(2)]
        server.settle(RUNNING=names)
        assert 4 == len(config_maps(server))

        (first,) = server.ready(names[0])
        host.stop(signal.SIGKILL)
        # One ends while no server runs.
        server.tell(first)
        server = host.start()

        server.over(names[0])
        server.until(lambda: 1 == len(shared(server)), lambda: config_maps(server))
        server.client.workflows.cancel(names[1])
        server.over(names[1])
        server.until(lambda: not config_maps(server), lambda: config_maps(server))


def test_an_object_that_bough_may_not_make_fails_the_task_in_words(server: Clustered):
    claim = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "not-ours-{{WF_GROUP_UUID}}"},
    }
    put(server, a=SHARED, b=claim)

    name = server.send("team", "NORMAL", job())
    server.over(name)

    assert server.status(name).startswith("FAILED")
    assert "An object that its group needs was refused" in server.message(name)
    assert "forbidden" in server.message(name)
    assert [] == server.pods()
    # What was made before it does not stay.
    server.until(lambda: not config_maps(server), lambda: config_maps(server))
