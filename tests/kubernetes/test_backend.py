"""What becomes of tasks on a real apiserver: started, seen, ended, refused, lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bough.errors import Invalid
from bough.kube.objects import NODES, PODS, SECRETS, SERVICES
from tests.e2e.local import Attempt, gang, resources
from tests.kubernetes.bed.audit import read_audit
from tests.kubernetes.bed.objects import pod
from tests.kubernetes.served import Clustered, add_nodes, attempt_of


def job(name: str = "job", gpus: int = 1, **said: str) -> dict[str, Any]:
    """A workflow of one task, whose end the kubelets of the bed are told by its environment."""
    environment = {f"BED_{key.upper()}": value for key, value in said.items()}
    only = {"name": "main", "image": "bed", "environment": environment}
    return {"name": name, "resources": resources(gpus), "tasks": [only]}


@pytest.mark.parametrize(
    ("said", "status", "attempt"),
    [
        ({}, "COMPLETED", Attempt(0, "COMPLETED", 0)),
        ({"exit_code": "3"}, "FAILED", Attempt(0, "FAILED", 3)),
        ({"signal": "9"}, "FAILED", Attempt(0, "FAILED", 137)),
        ({"exit_code": "137", "reason": "OOMKilled"}, "FAILED", Attempt(0, "FAILED", 137)),
    ],
)
def test_a_task_ends_as_its_container_did(server: Clustered, said, status, attempt):
    name = server.send("team", "NORMAL", job(run_for="100ms", **said))
    server.over(name)

    assert status == server.status(name)
    assert [attempt] == server.attempts(name)
    assert ("OOMKilled" in server.message(name)) == ("reason" in said)


def test_what_a_pod_waits_for_is_read_while_it_waits(server: Clustered):
    name = server.send("team", "NORMAL", job(waiting="ImagePullBackOff", message="no such image"))

    def said() -> str:
        ((only,),) = [group["tasks"] for group in server.workflow(name)["groups"]]
        return only["failure_message"] or ""

    server.until(lambda: "ImagePullBackOff: no such image" == said(), lambda: server.shown(name))
    assert "INITIALIZING" == server.attempts(name)[0].status


def test_an_image_that_will_never_be_there_fails_the_workflow(server: Clustered):
    name = server.send("team", "NORMAL", job(waiting="InvalidImageName", message="no:name"))
    server.over(name)

    assert "FAILED_IMAGE_PULL" == server.status(name)
    assert "InvalidImageName: no:name" in server.message(name)


@pytest.mark.parametrize(
    "said",
    [
        {"refused": "OutOfcpu", "message": "not enough"},
        {"run_for": "100ms", "pod_reason": "Evicted", "message": "low on memory"},
    ],
)
def test_what_its_node_does_not_keep_is_lost_and_comes_again(server: Clustered, said):
    server.done("config", "set", "WORKFLOW", "max_lost_retries=1")
    name = server.send("team", "NORMAL", job(**said))
    server.over(name)

    lost = [(each.status, each.code) for each in server.attempts(name)]
    assert [("FAILED_BACKEND_ERROR", 3001)] * 2 == lost


def test_what_others_delete_is_lost_and_comes_again(server: Clustered):
    name = server.send("team", "NORMAL", job())
    server.settle(RUNNING=[name])
    (first,) = server.pods()
    server.admin.delete(PODS, first["metadata"]["name"], server.namespace, grace_s=1)
    server.until(lambda: 2 == len(server.attempts(name)), lambda: server.shown(name))
    server.settle(RUNNING=[name])

    assert Attempt(0, "FAILED_BACKEND_ERROR", 3001) == server.attempts(name)[0]


def test_what_ran_on_a_node_that_is_gone_comes_again_elsewhere(server: Clustered):
    name = server.send("team", "NORMAL", job())
    server.settle(RUNNING=[name])
    (first,) = server.pods()
    gone = first["spec"]["nodeName"]
    try:
        server.admin.delete(NODES, gone)
        server.until(lambda: 2 == len(server.attempts(name)), lambda: server.shown(name))
        server.settle(RUNNING=[name])
        assert Attempt(0, "FAILED_EVICTED", 3004) == server.attempts(name)[0]
        nodes = {
            each["metadata"]["labels"]["osmo.retry_id"]: each["spec"]["nodeName"]
            for each in server.pods()
        }
        assert gone != nodes["1"]
    finally:
        add_nodes(server.bed, 8, start=int(gone.rpartition("-")[2]))


def test_a_cancelled_workflow_leaves_neither_pods_nor_services(server: Clustered):
    members = [{"name": each, "image": "bed"} for each in ("one", "two")]
    name = server.send("team", "NORMAL", gang(members))
    server.settle(RUNNING=[name])
    hosts = {each["spec"]["hostname"] for each in server.pods()}
    (service,) = server.admin.list(SERVICES, server.namespace).items
    assert {"one", "two"} == hosts
    assert {service.metadata.name} == {each["spec"]["subdomain"] for each in server.pods()}

    server.done("workflow", "cancel", name)
    server.over(name)

    assert "FAILED_CANCELED" == server.status(name)
    server.until(lambda: not server.admin.list(SERVICES, server.namespace).items)


def test_files_and_credentials_are_secrets_owned_by_the_pod(server: Clustered):
    server.done("credential", "set", "hub", "--type", "GENERIC", "--payload", "token=s3cret")
    spec = job()
    spec["tasks"][0] |= {
        "files": [{"path": "/job/run.sh", "contents": "echo {{workflow_id}}"}],
        "credentials": {"hub": {"TOKEN": "token"}},
    }
    name = server.send("team", "NORMAL", spec)
    server.settle(RUNNING=[name])
    (found,) = server.pods()
    server.until(lambda: 2 == len(server.admin.list(SECRETS, server.namespace).items))

    for secret in server.admin.list(SECRETS, server.namespace).items:
        assert [found["metadata"]["uid"]] == [each.uid for each in secret.metadata.owner_references]
    assert "s3cret" not in str(found)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"image": None}, "Task main: image: is missing"),
        ({"inputs": [{"url": "s3://a/b"}]}, "Task main: inputs[0]: s3://a/b cannot be read"),
        ({"args": ["{{output}}/x"]}, "Task main: args: {{output}} cannot be used"),
        (
            {"files": [{"path": f"/{n}", "contents": "x" * 700_000} for n in range(2)]},
            "Task main: files: they have 1,400,000 bytes together",
        ),
        ({"files": [{"path": "f", "contents": ""}]}, "Task main: files[0].path: 'f' must begin"),
    ],
)
def test_what_cannot_run_there_is_refused_at_submission(server: Clustered, changed, message):
    spec = job()
    spec["tasks"][0] |= changed
    if changed.get("image", "") is None:
        spec["tasks"][0] |= {"command": ["true"]}
        del spec["tasks"][0]["image"]
    text = server.write(spec)

    with pytest.raises(Invalid) as refused:
        server.client.workflows.submit("team", Path(text).read_text())
    assert refused.value.message.startswith(message)
    assert [] == server.alive()


def test_pods_of_others_count_as_used_and_are_left_alone(server: Clustered):
    others = [
        server.bed.ask(
            "POST", "/api/v1/namespaces/default/pods", pod(f"other-{number}", f"node-{number}", 8)
        )["metadata"]["name"]
        for number in range(7)
    ]
    try:
        first = server.send("team", "NORMAL", job(gpus=8))
        server.settle(RUNNING=[first])
        second = server.send("team", "NORMAL", job(gpus=8))
        server.left_waiting(second)
        assert ["node-7"] == [each["spec"]["nodeName"] for each in server.pods()]
    finally:
        for each in others:
            server.admin.delete(PODS, each, "default", grace_s=0)
    server.settle(RUNNING=[second])


def test_a_node_that_takes_no_pods_gets_none(server: Clustered):
    for number in range(7):
        server.admin.patch(NODES, f"node-{number}", {"spec": {"unschedulable": True}})
    try:
        first = server.send("team", "NORMAL", job(gpus=8))
        server.settle(RUNNING=[first])
        second = server.send("team", "NORMAL", job(gpus=8))
        server.left_waiting(second)
        assert ["node-7"] == [each["spec"]["nodeName"] for each in server.pods()]
    finally:
        for number in range(7):
            server.admin.patch(NODES, f"node-{number}", {"spec": {"unschedulable": None}})
    server.settle(RUNNING=[second])


def test_the_log_of_a_task_outlives_its_pod(server: Clustered):
    name = server.send("team", "NORMAL", job(run_for="1s"))
    server.over(name)

    assert [] == server.pods()
    assert ["[main] a line of the bed"] == server.log(name)


def test_pods_of_the_site_that_no_attempt_holds_are_ended_and_others_are_not(server: Clustered):
    name = server.send("team", "NORMAL", job())
    server.settle(RUNNING=[name])
    (running,) = server.pods()
    labels = running["metadata"]["labels"]
    own, task = labels["bough.site"], labels["osmo.task_uuid"]
    for stray, site, uuid in (
        ("stray", own, "x" * 32),
        # As if it were the pod of what runs.
        ("imposter", own, task),
        (f"other-{'y' * 32}-none", own, "y" * 32),
        ("stranger", "another-site", task),
    ):
        body = pod(stray, "node-0")
        body["metadata"]["labels"] = {**labels, "bough.site": site, "osmo.task_uuid": uuid}
        if stray.endswith("none"):
            body["metadata"]["labels"]["osmo.retry_id"] = "none"
        server.bed.ask("POST", f"/api/v1/namespaces/{server.namespace}/pods", body)

    def names() -> set[str]:
        return {each["metadata"]["name"] for each in server.pods()}

    server.until(lambda: names() == {"stranger", running["metadata"]["name"]}, names)
    assert [Attempt(0, "RUNNING", None)] == server.attempts(name)
    server.admin.delete(PODS, "stranger", server.namespace, grace_s=0)


def test_every_attempt_has_one_pod_by_the_log_of_the_apiserver(server: Clustered):
    names = [server.send("team", "NORMAL", job(run_for="200ms")) for _ in range(5)]
    server.over(*names)

    made = [
        attempt_of(each.answered)
        for each in read_audit(server.bed.audit_log)
        if (each.verb, each.resource, each.namespace) == ("create", "pods", server.namespace)
        and each.succeeded
    ]
    assert 5 == len(made) == len(set(made))
