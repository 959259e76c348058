"""The objects that the backend kubernetes makes, and what it reads of nodes."""

from __future__ import annotations

import base64

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.backends.kubernetes.names import attempt_of, dns_name, label_value, pod_name
from bough.backends.kubernetes.node_view import offered, used
from bough.backends.kubernetes.pod_manifest import UnstartablePod, make_objects
from bough.kube.objects import KubeNode, KubePod
from bough.model.cluster import Resources, Taint, TaintEffect
from bough.model.task_template import CredentialUse, FileSpec, TaskTemplate
from tests.kubernetes.pods import ATTEMPT, SITE, UUID, launch, start


def made(*launches, **fields):
    return make_objects(SITE, "bough", start(*launches, **fields), launches[0])


def test_a_pod_is_what_its_task_asks_for_on_the_node_of_the_plan():
    spec = TaskTemplate("ubuntu:22.04", ("bash", "-c"), ("train",), {"A": "$(B) {{workflow_id}}"})
    asked = launch(spec=spec, gpus=2, cpu_milli=1500, memory_bytes=2**30, grace_s=45)
    pod = made(asked).pod

    assert "n" == pod["spec"]["nodeName"]
    assert ("Never", 45) == (
        pod["spec"]["restartPolicy"],
        pod["spec"]["terminationGracePeriodSeconds"],
    )
    (container,) = pod["spec"]["containers"]
    assert ("ubuntu:22.04", ["bash", "-c"], ["train"]) == (
        container["image"],
        container["command"],
        container["args"],
    )
    assert {"name": "A", "value": "$$(B) wf-1"} in container["env"]
    requests, limits = (container["resources"][each] for each in ("requests", "limits"))
    assert {"cpu": "1500m", "memory": str(2**30), "nvidia.com/gpu": "2"} == requests
    assert requests["nvidia.com/gpu"] == limits["nvidia.com/gpu"]


def test_a_pod_says_by_labels_of_which_site_attempt_and_workflow_it_is():
    pod = msgspec.convert(made(launch(labels={"team": "blue"})).pod, KubePod)

    assert ATTEMPT == attempt_of(pod, SITE)
    assert attempt_of(pod, "another") is None
    labels = pod.metadata.labels or {}
    assert {
        "team": "blue",
        "bough.site": SITE,
        "osmo.workflow_id": "wf-1",
        "osmo.group_name": "group",
        "osmo.group_uuid": "g1",
        "osmo.submitted_by": "ann_example.org",
        "osmo.task_name": "train",
        "osmo.task_uuid": UUID,
        "osmo.retry_id": "2",
        "osmo.pool": "team",
        "osmo.priority": "LOW",
    } == labels


def test_labels_of_a_workflow_make_its_pod_that_of_no_other_attempt():
    forged = {"bough.site": "another", "osmo.task_uuid": "0" * 32, "osmo.retry_id": "9"}
    body = made(launch(labels=forged)).pod
    assert ATTEMPT == attempt_of(msgspec.convert(body, KubePod), SITE)

    for name in ("imposter", f"x{body['metadata']['name'][5:]}x", f"{body['metadata']['name']}-0"):
        other = {**body, "metadata": {**body["metadata"], "name": name, "uid": "u"}}
        assert f"{name}/u" == attempt_of(msgspec.convert(other, KubePod), SITE)


def test_a_task_gets_no_token_of_the_cluster():
    assert made(launch()).pod["spec"]["automountServiceAccountToken"] is False


@given(st.text(max_size=80), st.integers(0, 10_000))
def test_names_are_made_of_the_attempt_alone_and_are_allowed(task, retry):
    name = pod_name(task, f"{UUID}/{retry}")

    assert len(name) <= 63
    assert name == dns_name(name)
    assert name.endswith(f"{UUID}-{retry}")


@given(st.text(max_size=100))
def test_any_text_can_be_the_value_of_a_label(text):
    value = label_value(text)

    assert len(value) <= 63
    assert not value or (value[0].isalnum() and value[-1].isalnum() and value.isascii())


def test_tasks_of_a_group_find_each_other_by_a_service():
    spec = TaskTemplate("ubuntu", ("connect", "{{host:Work_er}}:80"))
    objects = made(launch("lead", spec=spec), launch("Work_er"))

    assert objects.service is not None
    assert "g-g1" == objects.service["metadata"]["name"]
    assert {"osmo.group_uuid": "g1", "bough.site": SITE} == objects.service["spec"]["selector"]
    assert ("lead", "g-g1") == (objects.pod["spec"]["hostname"], objects.pod["spec"]["subdomain"])
    command = objects.pod["spec"]["containers"][0]["command"]
    assert ["connect", "work-er.g-g1.bough.svc:80"] == command


def test_a_lone_task_needs_no_service():
    assert made(launch()).service is None


def test_files_and_credentials_are_in_secrets_that_the_pod_owns():
    spec = TaskTemplate(
        "ubuntu",
        files=(FileSpec("/run.sh", "echo {{workflow_id}}"), FileSpec("/b", "AAE=", base64=True)),
        credentials=(
            CredentialUse("hub", mount="/keys"),
            CredentialUse("hub", variables={"TOKEN": "token"}),
        ),
    )
    objects = made(launch(spec=spec, secrets={"hub": {"token": "s3cret", "user": "ann"}}))
    name = objects.name
    owner = msgspec.convert({"metadata": {"name": name, "uid": "u1"}}, KubePod)

    files = objects.secret(f"{name}-files", owner, SITE)
    assert [b"echo wf-1", b"\0\1"] == [base64.b64decode(each) for each in files["data"].values()]
    owners = files["metadata"]["ownerReferences"]
    assert [{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "u1"}] == owners
    container = objects.pod["spec"]["containers"][0]
    assert ["/run.sh", "/b", "/keys"] == [each["mountPath"] for each in container["volumeMounts"]]
    (token,) = [each for each in container["env"] if each["name"] == "TOKEN"]
    key = token["valueFrom"]["secretKeyRef"]
    assert "s3cret" == base64.b64decode(objects.secrets[key["name"]][key["key"]]).decode()
    assert "s3cret" not in str(objects.pod)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (TaskTemplate(), "image: is missing, and tasks on Kubernetes run in images."),
        (
            TaskTemplate("u", files=(FileSpec("run.sh", ""),)),
            "files[0].path: run.sh must begin with a slash.",
        ),
        (
            TaskTemplate("u", credentials=(CredentialUse("hub", variables={"A": "b"}),)),
            "credentials: hub has no key b.",
        ),
    ],
)
def test_what_cannot_be_a_pod_says_which_field(spec, message):
    with pytest.raises(UnstartablePod) as refused:
        made(launch(spec=spec))

    assert message == str(refused.value)


def test_templates_are_merged_by_field_and_by_name_and_decide_nothing_of_ours():
    pool = {
        "spec": {
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
            "containers": [{"name": "task", "image": "theirs", "env": [{"name": "A"}]}],
            "nodeSelector": {"a": "1"},
        }
    }
    platform = {
        "spec": {
            "tolerations": [{"key": "gpu", "operator": "Exists"}, {"key": "rack"}],
            "containers": [{"name": "sidecar", "image": "proxy"}],
            "nodeSelector": {"b": "2"},
        }
    }
    pod = made(launch(pod_templates=(pool, platform))).pod

    assert [{"key": "gpu", "operator": "Exists"}, {"key": "rack"}] == pod["spec"]["tolerations"]
    assert {"a": "1", "b": "2"} == pod["spec"]["nodeSelector"]
    ours, sidecar = pod["spec"]["containers"]
    assert ("task", "ubuntu", "sidecar") == (ours["name"], ours["image"], sidecar["name"])
    assert {"name": "A"} in ours["env"]
    assert "theirs" in str(pool), "templates are not changed"


# Nodes


def node(**fields):
    status = {
        "allocatable": {"cpu": "7910m", "memory": "1Gi", "nvidia.com/gpu": "8", "pods": "110"},
        "conditions": [{"type": "Ready", "status": fields.pop("ready", "True")}],
    }
    return msgspec.convert(
        {"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": fields, "status": status},
        KubeNode,
    )


def test_a_node_offers_what_pods_can_use():
    found = offered(node(), "east")

    assert ("n", "east", 8, 7_910, 2**30, 110, {"a": "b"}, "") == (
        found.name,
        found.backend,
        found.gpus,
        found.cpu_milli,
        found.memory_bytes,
        found.task_slots,
        found.labels,
        found.closed,
    )


@pytest.mark.parametrize(
    "closed",
    [
        node(unschedulable=True),
        node(ready="False"),
        node(ready="Unknown"),
    ],
)
def test_a_node_that_takes_no_pods_is_closed(closed):
    assert offered(closed, "east").closed


def test_a_node_is_offered_with_its_taints_and_is_not_closed_by_them():
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule", "Another")
    seen = offered(
        node(taints=[{"key": "a", "value": "b", "effect": each} for each in effects]), "east"
    )

    wanted = ("NoSchedule", "NoExecute", "PreferNoSchedule", "NoSchedule")
    assert tuple(Taint("a", "b", TaintEffect(each)) for each in wanted) == seen.taints
    assert "" == seen.closed


def test_what_a_pod_of_others_holds_is_its_peak():
    def asks(cpu, **more):
        return {"resources": {"requests": {"cpu": cpu, "nvidia.com/gpu": "1"}}, **more}

    spec = {
        "containers": [asks("100m"), asks("0.2")],
        "initContainers": [asks("1"), asks("50m", restartPolicy="Always")],
        "overhead": {"memory": "1k"},
    }
    pod = msgspec.convert({"metadata": {"name": "p"}, "spec": spec}, KubePod)

    assert Resources(3, 1_000, 1_000, pods=1) == used(pod)
