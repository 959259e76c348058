"""The chart in deploy/ makes the objects that the tests apply, and an apiserver takes them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bough.kube.client import KubeClient, Patch
from bough.kube.kubeconfig import find_access
from bough.kube.objects import untyped
from bough.kube_webhook.install import webhook_objects
from bough.pod_scheduler.install import IMAGE, install_objects
from bough.version import VERSION
from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.conftest import make_bed
from tests.kubernetes.helm import CHART, helm, template
from tests.kubernetes.rights import KAI_MANIFEST, MANIFEST
from tests.kubernetes.waiting import wait_for

Object = dict[str, Any]
NONE = ("scheduler.enabled=false",)
PEM = "-----BEGIN CERTIFICATE-----"


@pytest.fixture(scope="module", autouse=True)
def program() -> None:
    """Helm; without Go that is said loudly, and fails in CI."""
    try:
        helm()
    except NoGo as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


def by_name(objects: list[Object]) -> dict[tuple[str, str, str], Object]:
    found = {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): each
        for each in objects
    }
    assert len(found) == len(objects)
    return found


def without_namespace(objects: list[Object]) -> list[Object]:
    """Helm makes the namespace of a release itself (`--create-namespace`)."""
    return [each for each in objects if each["kind"] != "Namespace"]


@pytest.mark.parametrize("group", [True, False])
@pytest.mark.parametrize("quota", ["kai", "kueue"])
def test_the_scheduler_of_the_chart_is_that_of_kube_install(group: bool, quota: str) -> None:
    chosen = template(
        "scheduler.name=other", f"scheduler.group={str(group).lower()}", f"scheduler.quota={quota}"
    )
    expected = install_objects("bough-system", "other", IMAGE, group=group, quota=quota)
    assert by_name(without_namespace(expected)) == by_name(chosen)


def test_the_webhook_of_the_chart_is_that_of_kube_install() -> None:
    chosen = template(*NONE, "webhook.enabled=true", f"webhook.ca={PEM}", "image=x:1")
    definitions = [each for each in install_objects() if each["kind"].startswith("Custom")]
    expected = [*definitions, *webhook_objects("bough-system", "x:1", PEM.encode())]
    assert by_name(expected) == by_name(chosen)
    with pytest.raises(AssertionError, match=r"webhook\.ca: the certificate that signed"):
        template(*NONE, "webhook.enabled=true")


@pytest.mark.parametrize("decider", ["bough", "kai"])
def test_the_server_of_the_chart_has_the_rights_that_are_tested(decider: str) -> None:
    chosen = by_name(
        template(*NONE, "server.enabled=true", "server.namespace=lab", f"server.decider={decider}")
    )
    manifests = [MANIFEST] if decider == "bough" else [MANIFEST, KAI_MANIFEST]
    expected = by_name([each for path in manifests for each in read(path, "lab")])
    kinds = {"Namespace", "ServiceAccount"} | {
        f"{scope}Role{more}" for scope in ("", "Cluster") for more in ("", "Binding")
    }
    assert expected == {key: each for key, each in chosen.items() if key[0] in kinds}
    claim = chosen["PersistentVolumeClaim", "lab", "bough-server"]
    assert "keep" == claim["metadata"]["annotations"]["helm.sh/resource-policy"]
    deployment = chosen["Deployment", "lab", "bough-server"]["spec"]["template"]["spec"]
    assert "lab" == deployment["serviceAccountName"]
    assert f"--kube-decider={decider}" in deployment["containers"][0]["args"]


def read(path: Path, namespace: str) -> list[Object]:
    return list(yaml.safe_load_all(re.sub(r"\bbough\b", namespace, path.read_text())))


def test_nothing_is_made_of_what_is_switched_off() -> None:
    assert {"CustomResourceDefinition"} == {each["kind"] for each in template(*NONE)}


def test_the_chart_has_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (VERSION, VERSION) == (chart["version"], chart["appVersion"])


@pytest.fixture(scope="module")
def admin() -> Iterator[KubeClient]:
    for bed in make_bed():
        client = KubeClient(find_access(str(bed.kubeconfig), None))
        yield client
        client.close()


PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Service": "services",
    "Deployment": "deployments",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "CustomResourceDefinition": "customresourcedefinitions",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
}


def test_an_apiserver_takes_all_of_it_twice_and_an_upgrade_changes_nothing(
    admin: KubeClient,
) -> None:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bough-system"}}
    everything = template(
        "server.enabled=true", "webhook.enabled=true", f"webhook.ca={PEM}", "server.decider=kai"
    )
    for each in (system, *everything):
        wait_for(lambda each=each: apply(admin, each), each["kind"])
    generations = [generation(admin, each) for each in everything]
    for each in everything:
        apply(admin, each)
    assert generations == [generation(admin, each) for each in everything]


def _kind(each: Object) -> Any:
    version = each["apiVersion"]
    api = f"apis/{version}" if "/" in version else f"api/{version}"
    return untyped(api, PLURALS[each["kind"]])


def apply(admin: KubeClient, each: Object) -> bool:
    meta = each["metadata"]
    where = meta.get("namespace", "")
    admin.patch(_kind(each), meta["name"], each, where, Patch.APPLY, manager="helm")
    return True


def generation(admin: KubeClient, each: Object) -> int:
    meta = each["metadata"]
    return admin.get(_kind(each), meta["name"], meta.get("namespace", ""))["metadata"].get(
        "generation", 0
    )
