"""deploy/rights.yaml allows what Bough needs, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from bough.kube.client import KubeClient
from bough.kube.failures import KubeRefused
from bough.kube.objects import EVENTS, NODES, PODS, SECRETS, SERVICES
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import node, pod
from tests.kubernetes.rights import MANIFEST, NAMESPACE, kubeconfig_of_bough
from tests.kubernetes.waiting import wait_for

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
EVERYTHING = {
    (group, resource, verb)
    for group, resources in (
        ("", "pods pods/log pods/exec pods/binding pods/eviction pods/status"),
        ("", "services secrets events configmaps nodes nodes/status nodes/proxy namespaces"),
        ("", "serviceaccounts serviceaccounts/token persistentvolumeclaims replicationcontrollers"),
        ("apps", "deployments daemonsets statefulsets"),
        ("batch", "jobs cronjobs"),
        ("rbac.authorization.k8s.io", "roles rolebindings clusterroles clusterrolebindings"),
        ("apiextensions.k8s.io", "customresourcedefinitions"),
        ("coordination.k8s.io", "leases"),
    )
    for resource in resources.split()
    for verb in VERBS
}
READING = {"get", "list", "watch"}


@pytest.fixture
def bough(bed: Bed, client: KubeClient, connect: Callable[..., KubeClient]) -> KubeClient:
    return connect(kubeconfig_of_bough(bed, client))


def may(bough: KubeClient, namespace: str) -> set[tuple[str, str, str]]:
    """What the apiserver says that we may do in a namespace, or (none) in all."""
    allowed = set()
    for group, resource, verb in sorted(EVERYTHING):
        name, _, below = resource.partition("/")
        asked: dict[str, Any] = {"group": group, "resource": name, "verb": verb}
        asked |= {"subresource": below, "namespace": namespace}
        body = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        if bough.ask("POST", path, body)["status"]["allowed"]:
            allowed.add((group, resource, verb))
    return allowed


def test_in_its_namespace_bough_may_do_this_and_nothing_else(bough: KubeClient) -> None:
    expected = {("", "pods", verb) for verb in READING | {"create", "delete"}}
    expected |= {("", "pods/log", "get"), ("", "secrets", "create")}
    expected |= {("", "services", verb) for verb in ("list", "create", "delete")}
    expected |= {("", "events", "create"), ("", "events", "patch")}
    expected |= {("", "nodes", verb) for verb in READING}
    kept = ("get", "list", "create", "delete")
    expected |= {("", "configmaps", verb) for verb in (*kept, "patch")}
    expected |= {("batch", "cronjobs", verb) for verb in (*kept, "update")}

    assert expected == may(bough, NAMESPACE)


@pytest.mark.parametrize("namespace", ["", "default", "kube-system"])
def test_beyond_it_bough_reads_nodes_and_pods_and_nothing_else(
    bough: KubeClient, namespace: str
) -> None:
    expected = {("", kind, verb) for kind in ("nodes", "pods") for verb in READING}

    assert expected == may(bough, namespace)


def test_what_bough_does_with_pods_works_with_these_rights(bough: KubeClient) -> None:
    made = bough.create(PODS, pod("rights", "node-0"), NAMESPACE)
    wait_for(lambda: bough.get(PODS, "rights", NAMESPACE).status.phase == "Running", "running")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "rights", "uid": made.metadata.uid}
    meta = {"name": "rights", "ownerReferences": [owner]}

    bough.create(SECRETS, {"metadata": meta, "stringData": {"a": "b"}}, NAMESPACE)
    service = {"metadata": meta, "spec": {"clusterIP": "None", "selector": {"a": "b"}}}
    bough.create(SERVICES, service, NAMESPACE)
    involved = {"kind": "Pod", "name": "rights", "namespace": NAMESPACE}
    bough.create(
        EVENTS,
        {"metadata": {"name": "rights"}, "involvedObject": involved, "reason": "Bough"},
        NAMESPACE,
    )
    lines = list(bough.log("rights", NAMESPACE))

    assert 1 == len(lines)
    assert 4 == len(bough.list(NODES).items)
    assert ["rights"] == [each.metadata.name for each in bough.list(SERVICES, NAMESPACE).items]
    bough.delete(SERVICES, "rights", NAMESPACE)
    bough.delete(PODS, "rights", NAMESPACE, uid=made.metadata.uid)


def test_what_bough_must_not_do_is_refused(bough: KubeClient, fresh: str) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: bough.create(PODS, pod("a", "node-0"), fresh),
        lambda: bough.list(SECRETS, NAMESPACE),
        lambda: bough.get(SECRETS, "a", NAMESPACE),
        lambda: bough.list(SECRETS),
        lambda: bough.create(NODES, node("mine")),
        lambda: bough.patch(NODES, "node-0", {"spec": {"unschedulable": True}}),
        lambda: bough.delete(NODES, "node-0"),
        lambda: bough.bind("a", fresh, "node-0"),
        lambda: bough.evict("a", fresh),
    ]
    for attempt in attempts:
        with pytest.raises(KubeRefused, match="cannot") as raised:
            attempt()
        assert 403 == raised.value.status


def test_no_rule_has_a_star() -> None:
    text = "\n".join(
        yaml.safe_dump(document.get("rules"))
        for document in yaml.safe_load_all(Path(MANIFEST).read_text())
    )

    assert "*" not in text
