"""Pod templates on a real apiserver: where they let tasks run, and what is put into their pods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bough.errors import Invalid
from bough.kube.objects import NODES
from tests.kubernetes.served import Clustered
from tests.kubernetes.test_backend import job

TOLERANT = {"tolerations": [{"key": "team", "operator": "Exists", "effect": "NoSchedule"}]}


@contextmanager
def tainted(server: Clustered, *numbers: int) -> Iterator[None]:
    """Nodes with a taint for a while."""
    taints = [{"key": "team", "value": "blue", "effect": "NoSchedule"}]
    try:
        for number in numbers:
            server.admin.patch(NODES, f"node-{number}", {"spec": {"taints": taints}})
        yield
    finally:
        for number in numbers:
            server.admin.patch(NODES, f"node-{number}", {"spec": {"taints": None}})


def put(server: Clustered, **specs: dict[str, Any]) -> None:
    """Configure templates, by name."""
    configs = {name: {"spec": spec} for name, spec in specs.items()}
    server.client._transport.send_json("PUT", "/api/configs/pod_template", {"configs": configs})


def use(server: Clustered, **fields: Any) -> None:
    """Configure the pool."""
    server.client._transport.send_json("PATCH", "/api/configs/pool/team", {"configs_dict": fields})


def test_a_tainted_node_is_closed_until_templates_of_a_pool_tolerate_it(server: Clustered):
    with tainted(server, *range(8)):
        name = server.send("team", "NORMAL", job())
        server.left_waiting(name)
        assert [] == server.pods()
        assert {"OFFLINE"} == {each.status for each in server.client.nodes.list().nodes}

        put(server, tolerant=TOLERANT)
        use(server, common_pod_template=["tolerant"])
        server.settle(RUNNING=[name])
        (pod,) = server.pods()
        assert TOLERANT["tolerations"][0] in pod["spec"]["tolerations"]


def test_tasks_run_where_the_templates_of_their_platform_let_them(server: Clustered):
    put(server, tolerant=TOLERANT)
    platforms = {"plain": {}, "blue": {"override_pod_template": ["tolerant"]}}
    use(server, platforms=platforms, default_platform="plain")
    with tainted(server, *range(7)):
        names = []
        for platform in ("plain", "blue", "plain"):
            spec = job(gpus=8)
            spec["resources"]["default"]["platform"] = platform
            names.append(server.send("team", "NORMAL", spec))
        first, second, third = names
        server.settle(RUNNING=[first, second])
        server.left_waiting(third)
        placed = {
            each["metadata"]["labels"]["osmo.workflow_id"]: each["spec"]["nodeName"]
            for each in server.pods()
        }
        assert "node-7" == placed[first] != placed[second]


def test_a_template_chooses_nodes_by_their_labels(server: Clustered):
    server.admin.patch(NODES, "node-5", {"metadata": {"labels": {"disk": "ssd"}}})
    put(server, fast={"nodeSelector": {"disk": "ssd"}})
    use(server, common_pod_template=["fast"])
    try:
        names = [server.send("team", "NORMAL", job(gpus=4)) for _ in range(3)]
        server.settle(RUNNING=names[:2])
        server.left_waiting(names[2])
        assert ["node-5"] * 2 == [each["spec"]["nodeName"] for each in server.pods()]
    finally:
        server.admin.patch(NODES, "node-5", {"metadata": {"labels": {"disk": None}}})


def test_variables_in_templates_are_those_of_the_task(server: Clustered):
    container = {
        "name": "{{USER_CONTAINER_NAME}}",
        "env": [
            {"name": "ABOUT", "value": "{{WF_ID}} {{WF_TASK_NAME}} {{WF_POOL}} {{USER_GPU}}"},
            {"name": "DISK", "value": "{{USER_STORAGE_VAL}} {{USER_STORAGE_UNIT}}"},
        ],
        "resources": {"limits": {"cpu": "{% if USER_CPU > 2 %}2{% else %}{{USER_CPU}}{% endif %}"}},
    }
    control = {"name": "osmo-ctrl", "resources": {"limits": {"cpu": "{{USER_CPU}}"}}}
    put(server, user={"containers": [control, container]})
    variables = {"USER_CPU": 3, "USER_STORAGE": "5Gi"}
    use(server, common_pod_template=["user"], common_default_variables=variables)
    name = server.send("team", "NORMAL", job(gpus=2))
    server.settle(RUNNING=[name])

    (pod,) = server.pods()
    (only,) = pod["spec"]["containers"]
    assert {"name": "ABOUT", "value": f"{name} main team 2"} in only["env"]
    assert {"name": "DISK", "value": "5 Gi"} in only["env"]
    assert "2" == only["resources"]["limits"]["cpu"]


def test_a_variable_that_there_is_not_fails_the_task_with_a_sentence(server: Clustered):
    put(server, user={"nodeSelector": {"a": "{{USER_COLOUR}}"}})
    use(server, common_pod_template=["user"])
    name = server.send("team", "NORMAL", job())
    server.over(name)

    assert "Pod template user: there is no variable USER_COLOUR." in server.message(name)


def test_a_template_that_is_not_understood_is_refused(server: Clustered):
    with pytest.raises(Invalid) as refused:
        put(server, bad={"nodeSelector": {"a": "{{ 1 + 1 }}"}})
    expected = "Pod template bad.spec.nodeSelector.a: '{{ 1 + 1 }}' is not understood"
    assert refused.value.message.startswith(expected)
