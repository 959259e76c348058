"""Tests of nodes on a real apiserver: the CronJobs that run them, and what their results close."""

from __future__ import annotations

from typing import Any

from bough.kube.client import Patch
from bough.kube.objects import NODES
from tests.kubernetes.served import Clustered
from tests.kubernetes.test_templates import put

CONDITION = "osmo.nvidia.com/gpu"
NIGHTLY: dict[str, Any] = {
    "cron_schedule": "0 2 * * *",
    "test_timeout": "10m",
    "node_conditions": ["gpu"],
    "common_pod_template": ["probe"],
}


def send(server: Clustered, method: str, path: str, **body: Any) -> None:
    server.client._transport.send_json(method, f"/api/configs/{path}", body)


def cron_jobs(server: Clustered) -> dict[str, dict[str, Any]]:
    path = f"/apis/batch/v1/namespaces/{server.namespace}/cronjobs"
    return {each["metadata"]["name"]: each["spec"] for each in server.bed.ask("GET", path)["items"]}


def say(server: Clustered, node: str, status: str) -> None:
    """Set the condition of a node, as a pod of a test would."""
    fact = {"type": CONDITION, "status": status, "reason": "Tested", "message": "2 of 8 GPUs"}
    body = {"status": {"conditions": [fact]}}
    server.admin.patch(NODES, node, body, how=Patch.STRATEGIC, below="status")


def offline(server: Clustered) -> list[str]:
    found = server.client.nodes.list().nodes
    return sorted(each.name for each in found if each.status == "OFFLINE")


def test_a_test_is_a_cron_job_with_a_pod_for_each_node_and_follows_what_is_configured(
    server: Clustered,
):
    container = {"name": "task", "image": "probe", "command": ["probe"]}
    put(server, probe={"serviceAccountName": "prober", "containers": [container]})
    send(server, "PUT", "backend_test/nightly", configs=NIGHTLY)
    send(server, "POST", "backend/default", configs={"tests": ["nightly"]})
    server.until(lambda: ["test-nightly"] == list(cron_jobs(server)), lambda: cron_jobs(server))

    made = cron_jobs(server)["test-nightly"]
    job = made["jobTemplate"]["spec"]
    pod = job["template"]["spec"]
    assert ("0 2 * * *", "Forbid") == (made["schedule"], made["concurrencyPolicy"])
    assert (8, 8, 600) == (job["completions"], job["parallelism"], job["activeDeadlineSeconds"])
    assert ("prober", "probe") == (pod["serviceAccountName"], pod["containers"][0]["image"])

    send(server, "PATCH", "backend_test/nightly", configs_dict={"cron_schedule": "30 4 * * 6"})
    server.until(
        lambda: "30 4 * * 6" == cron_jobs(server)["test-nightly"]["schedule"],
        lambda: cron_jobs(server),
    )
    send(server, "POST", "backend/default", configs={"tests": []})
    server.until(lambda: not cron_jobs(server), lambda: cron_jobs(server))


def test_a_node_that_did_not_pass_takes_nothing_until_it_does(server: Clustered):
    put(server, probe={"containers": [{"name": "task", "image": "probe"}]})
    send(server, "PUT", "backend_test/nightly", configs=NIGHTLY)
    try:
        say(server, "node-3", "False")
        # No test asked for this condition yet.
        assert [] == offline(server)
        send(server, "POST", "backend/default", configs={"tests": ["nightly"]})
        server.until(lambda: ["node-3"] == offline(server), lambda: offline(server))
        say(server, "node-4", "Unknown")
        say(server, "node-3", "True")
        server.until(lambda: ["node-4"] == offline(server), lambda: offline(server))
    finally:
        for node in ("node-3", "node-4"):
            say(server, node, "True")
    server.until(lambda: [] == offline(server), lambda: offline(server))
