"""The webhook: what an apiserver is told about objects, with the sentences of the file commands."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bough.errors import Invalid
from bough.kube_webhook.checks import check
from bough.kube_webhook.install import configuration, webhook_objects
from bough.kube_webhook.reviews import LONGEST_ERROR, MOST_NAMED, answer_review
from bough.kube_webhook.serving import MOST_BYTES, Certificates, Options, Webhook
from bough.model.cluster import Topology, TopologyLevel
from bough.model.fairqueue import FairQueue
from bough.model.podgroup import PodGroup, SubGroupSpec
from bough.model.quota import Cohort
from bough.tools.gang import check as check_files

LEAVES = ("decode", "prefill")


class Cluster:
    """What a cluster has; counts how often it was asked anew."""

    def __init__(self) -> None:
        self.pod_groups: dict[str, PodGroup] = {}
        self.earlier: dict[str, PodGroup] = {}
        self.queues: dict[str, FairQueue] = {}
        self.cohorts: dict[str, Cohort] = {}
        self.known_topologies: tuple[Topology, ...] = ()

    def pod_group(self, namespace: str, name: str, *, anew: bool = False) -> PodGroup | None:
        known = self.pod_groups if anew else {**self.pod_groups, **self.earlier}
        return known.get(f"{namespace}/{name}")

    def topologies(self) -> tuple[Topology, ...]:
        return self.known_topologies

    def queue(self, name: str) -> FairQueue | None:
        return self.queues.get(name)

    def cohort(self, name: str) -> Cohort | None:
        return self.cohorts.get(name)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def pod_group(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "ns"},
        "spec": {"queue": "q", **spec},
    }


def pod(group: str | None = "g", subgroup: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "annotations": {"pod-group-name": group} if group else {},
            "labels": {"kai.scheduler/subgroup-name": subgroup} if subgroup else {},
        },
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }


def queue(name: str, parent: str | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.run.ai/v2",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {"parentQueue": parent or "", "resources": {"gpu": {"quota": 1, "limit": -1}}},
    }


def cohort(name: str, parent: str | None = None, **spec: Any) -> dict[str, Any]:
    named = {"parentName": parent} if parent else {}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": name},
        "spec": {**named, **spec},
    }


def review(written: Any, before: Any = None, **more: Any) -> bytes:
    request = {"uid": "u", "operation": "CREATE", "object": written, "oldObject": before, **more}
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return json.dumps(body).encode()


def answered(body: bytes, cluster: Cluster) -> dict[str, Any]:
    return json.loads(answer_review(body, cluster))["response"]


# PodGroups


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (
            {"minMember": 1, "minSubGroup": 1, "subGroups": [{"name": "a", "minMember": 1}]},
            "spec.minMember: minMember (1) and minSubGroup (1) exclude each other",
        ),
        (
            {"minSubGroup": 2, "subGroups": [{"name": "a", "minMember": 1}]},
            "spec.minSubGroup: is 2, but there is only 1 child subgroup",
        ),
        ({"minSubGroup": 0}, "spec.minSubGroup: is 0, but must be greater than 0"),
        (
            {"minSubGroup": 1, "subGroups": [{"name": "a"}]},
            "spec.subGroups[0].minMember: is missing",
        ),
        (
            {"minMember": 1, "subGroups": [{"name": "a", "parent": "a", "minMember": 1}]},
            "spec.subGroups[0].parent: is in a cycle: a → a",
        ),
        (
            {"subGroups": [{"name": "a", "minMember": 1}, {"name": "a", "minMember": 1}]},
            "spec.subGroups[1].name: 'a' is the name of subGroups[0], too",
        ),
        ({"minMember": "two"}, "spec.minMember: expected a whole number, not the text 'two'"),
    ],
)
def test_a_pod_group_that_breaks_a_rule_is_refused(cluster, spec, error):
    response = answered(review(pod_group(**spec)), cluster)

    assert not response["allowed"]
    assert error in response["status"]["message"]


def test_the_sentences_are_those_of_the_command_on_files(cluster, tmp_path):
    written = pod_group(minSubGroup=3, subGroups=[{"name": "a", "minMember": 0}, {"name": "B!"}])
    file = tmp_path / "group.json"
    file.write_text(json.dumps(written))

    found = check(written, cluster)

    told = check_files([str(file)])
    expected = [f"{each.field}: {each.message}" for each in told.problems]
    assert sorted(expected) == sorted([*found.errors, *found.warnings])


def test_what_is_right_is_kept_and_what_is_odd_is_told(cluster):
    right = pod_group(minSubGroup=1, subGroups=[{"name": each, "minMember": 1} for each in LEAVES])
    older = pod_group(minMember=1, subGroups=[{"name": each, "minMember": 1} for each in LEAVES])

    assert {"uid": "u", "allowed": True} == answered(review(right), cluster)
    response = answered(review(older), cluster)
    assert response["allowed"]
    assert ["spec.minMember: counts the 2 child subgroups, an older form;"] == [
        text.partition(" write")[0] for text in response["warnings"]
    ]


def test_a_field_that_a_newer_apiserver_adds_is_told_and_does_not_refuse(cluster):
    response = answered(review(pod_group(minMember=1, newest=1)), cluster)

    assert response["allowed"]
    assert ["spec.newest: unknown field"] == response["warnings"]


def test_levels_are_those_of_the_clusters_topology(cluster):
    constraint = {"topologyConstraint": {"topology": "t", "requiredTopologyLevel": "rock"}}
    levels = (TopologyLevel("example.com/rack", "rack"),)
    assert () == check(pod_group(minMember=1, **constraint), cluster).errors
    cluster.known_topologies = (Topology("t", levels),)

    (error,) = check(pod_group(minMember=1, **constraint), cluster).errors

    assert "rock" in error


# Pods


def test_a_pod_names_a_leaf_of_its_gang(cluster):
    subgroups = tuple(SubGroupSpec(name=each, min_member=1) for each in LEAVES)
    cluster.pod_groups["ns/g"] = PodGroup("g", "ns", min_sub_group=1, subgroups=subgroups)

    assert () == check(pod(subgroup="decode"), cluster).errors
    label = 'metadata.labels["kai.scheduler/subgroup-name"]'
    sentence = "PodGroup ns/g has no subgroup 'x'; its leaves are decode, prefill"
    assert (f"{label}: {sentence}",) == check(pod(subgroup="x"), cluster).errors


def test_a_gang_that_was_changed_a_moment_ago_counts_as_it_is(cluster):
    cluster.earlier["ns/g"] = PodGroup("g", "ns", min_member=1)
    subgroups = (SubGroupSpec(name="new", min_member=1),)
    cluster.pod_groups["ns/g"] = PodGroup("g", "ns", min_sub_group=1, subgroups=subgroups)

    assert () == check(pod(subgroup="new"), cluster).errors


def test_a_pod_may_come_before_its_gang_and_is_told_so(cluster):
    response = answered(review(pod()), cluster)

    assert response["allowed"]
    assert "there is no PodGroup 'ns/g'; the pod waits for it" in response["warnings"][0]
    assert {"uid": "u", "allowed": True} == answered(review(pod(group=None)), cluster)


# Queues and cohorts


def test_a_queue_below_itself_is_refused(cluster):
    cluster.queues["b"] = FairQueue("b", parent="a")

    response = answered(review(queue("a", "b")), cluster)

    assert not response["allowed"]
    assert response["status"]["message"].startswith("spec.parentQueue: ")


def test_a_queue_may_come_before_its_parent(cluster):
    response = answered(review(queue("a", "later")), cluster)

    assert response["allowed"]
    assert "later" in response["warnings"][0]


def test_a_cycle_of_cohorts_is_kept_and_told_as_the_design_has_it(cluster):
    cluster.cohorts["b"] = Cohort("b", parent="a")

    response = answered(review(cohort("a", "b")), cluster)

    assert response["allowed"]
    (warning,) = response["warnings"]
    assert warning.startswith("spec.parentName: ")
    assert warning.endswith("; nothing new is admitted below them")


def test_limits_of_a_cohort_without_a_parent_are_refused_as_the_command_does(cluster):
    quota = {"name": "nvidia.com/gpu", "nominalQuota": 1, "borrowingLimit": 1}
    groups = [
        {
            "coveredResources": ["nvidia.com/gpu"],
            "flavors": [{"name": "f", "resources": [quota]}],
        }
    ]

    response = answered(review(cohort("a", resourceGroups=groups)), cluster)

    assert not response["allowed"]
    assert "borrowingLimit" in response["status"]["message"]


# Reviews


def test_what_ends_and_what_stays_as_it_is_is_not_judged(cluster):
    bad = pod_group(minSubGroup=0)
    with_status = {**bad, "status": {"phase": "Running"}}

    assert answered(review(None, bad, operation="DELETE"), cluster)["allowed"]
    assert answered(review(with_status, bad, operation="UPDATE"), cluster)["allowed"]
    assert not answered(review(bad, pod_group(minMember=1), operation="UPDATE"), cluster)["allowed"]


def test_other_objects_are_as_they_should_be(cluster):
    other = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"}}

    assert {"uid": "u", "allowed": True} == answered(review(other), cluster)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "v1", "kind": "AdmissionReview", "request": {"uid": ""}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_review_is_refused(cluster, body):
    with pytest.raises(Invalid, match="the body is"):
        answer_review(body, cluster)


def below_each_other(count: int) -> list[dict[str, Any]]:
    """Subgroups, each the parent of the next; in order but for the depth."""
    above = [
        {"name": f"s{i}", "minSubGroup": 1, **({"parent": f"s{i - 1}"} if i else {})}
        for i in range(count)
    ]
    return [*above, {"name": "leaf", "parent": f"s{count - 1}", "minMember": 1}]


@pytest.mark.parametrize(
    "written",
    [
        pod_group(
            minMember=1, subGroups=[{"name": f"s{i}", "minMember": 0} for i in range(10_000)]
        ),
        pod_group(minSubGroup=1, subGroups=below_each_other(10_000)),
        pod_group(minSubGroup=1, subGroups=below_each_other(10_000)[::-1]),
        pod_group(
            minSubGroup=1,
            subGroups=[{"name": f"s{i}", "parent": f"s{(i + 1) % 10_000}"} for i in range(10_000)],
        ),
        pod_group(
            minSubGroup=1,
            subGroups=[{"name": f"s{i}", "parent": f"s{i ^ 1}"} for i in range(10_000)],
        ),
        pod_group(minSubGroup=1, subGroups=[{"name": "same", "minMember": 1}] * 10_000),
        pod_group(minMember=1, subGroups=[{"name": "x" * 100_000}] * 100),
        pod_group(minMember="4"),
        pod_group(minMember=1.5),
        pod_group(minMember=True),
        pod_group(subGroups={"a": 1}),
        pod_group(subGroups=["a", 1, None]),
        {**pod_group(), "spec": []},
        {**pod_group(), "metadata": 7},
        {**pod_group(), "metadata": {"name": "x", "labels": [1], "annotations": "x"}},
    ],
    ids=[
        "many",
        "deep",
        "deep, leaf first",
        "one long cycle",
        "many short cycles",
        "one name",
        "long",
        "text for a number",
        "half a pod",
        "true for a number",
        "mapping for a list",
        "list of anything",
        "no spec",
        "no metadata",
        "no labels",
    ],
)
def test_hostile_objects_are_refused_in_few_words(cluster, written):
    response = answered(review(written), cluster)

    assert not response["allowed"]
    message = response["status"]["message"]
    assert len(message.split("; ")) <= 3 * MOST_NAMED
    assert len(message) <= (MOST_NAMED + 1) * (LONGEST_ERROR + len("; "))


def test_huge_labels_are_no_reason_to_refuse(cluster):
    labels = {f"label-{number}": "x" * 63 for number in range(10_000)}
    written = {**pod_group(), "metadata": {"name": "x", "labels": labels}}

    assert answered(review(written), cluster)["allowed"]


@pytest.mark.parametrize(
    "written",
    [
        pod_group(minMember=8),
        pod_group(minSubGroup=20, subGroups=[{"name": f"s{i}", "minMember": 4} for i in range(40)]),
        pod(subgroup="decode"),
        queue("team", "org"),
        cohort("team", "org"),
    ],
    ids=["PodGroup", "PodGroup with 40 subgroups", "Pod", "Queue", "Cohort"],
)
def test_an_ordinary_object_costs_less_than_five_milliseconds_of_the_processor(cluster, written):
    body = review(written)

    def cost_s() -> float:
        began_s = time.thread_time()
        answer_review(body, cluster)
        return time.thread_time() - began_s

    # The least of some: caches that other processes emptied are no cost of ours.
    assert min(cost_s() for _ in range(10)) < 0.005


def test_an_object_nested_deeper_than_files_may_be_is_refused(cluster):
    deep: Any = 1
    for _ in range(200):
        deep = [deep]

    response = answered(review(pod_group(minMember=1, deep=deep)), cluster)

    assert "the object is nested deeper than 64 levels, the limit" == response["status"]["message"]


# Over TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return make_certificate(tmp_path_factory.mktemp("tls"), "first")


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    crt, key = folder / f"{name}.crt", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)]
    subprocess.run(command, check=True, capture_output=True)
    return crt, key


@pytest.fixture
def served(certificate, cluster, tmp_path) -> Iterator[tuple[Webhook, Path, Path]]:
    crt, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    crt.write_bytes(certificate[0].read_bytes())
    key.write_bytes(certificate[1].read_bytes())
    webhook = Webhook(Options(str(crt), str(key), "127.0.0.1:0"), cluster)
    webhook.start()
    yield webhook, crt, key
    webhook.stop()


def ask(port: int, ca: Path, method: str, path: str, body: bytes | None = None, **headers: str):
    context = ssl.create_default_context(cafile=str(ca))
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_reviews_are_answered_over_tls(served):
    webhook, crt, _ = served

    status, body = ask(webhook.port, crt, "POST", "/validate?timeout=3s", review(pod_group()))

    assert (200, True) == (status, json.loads(body)["response"]["allowed"])
    assert (200, b"ok\n") == ask(webhook.port, crt, "GET", "/healthz")


def test_what_was_answered_is_counted(served):
    webhook, crt, _ = served
    for written in (pod_group(), pod(), pod_group(minMember=-1), queue("a", "later")):
        ask(webhook.port, crt, "POST", "/validate", review(written))

    status, text = ask(webhook.port, crt, "GET", "/metrics")

    assert 200 == status
    values = dict(line.split() for line in text.decode().splitlines() if line[0] != "#")
    assert 0 < float(values.pop("bough_webhook_cpu_seconds_total"))
    counted = {"allowed": "3", "refused": "1", "warned": "2"}
    assert {f"bough_webhook_{name}_total": value for name, value in counted.items()} == values


def test_bad_requests_get_a_sentence(served):
    webhook, crt, _ = served
    lengths = (str(MOST_BYTES + 1), "9" * 5_000)

    assert 404 == ask(webhook.port, crt, "GET", "/")[0]
    assert 404 == ask(webhook.port, crt, "POST", "/", b"{}")[0]
    status, text = ask(webhook.port, crt, "POST", "/validate", b"{}")
    assert (400, True) == (status, text.startswith(b"the body is no AdmissionReview"))
    for length in lengths:
        wrong = {"Content-Length": length}
        assert 413 == ask(webhook.port, crt, "POST", "/validate", None, **wrong)[0]


def test_a_client_that_says_nothing_keeps_no_other_waiting(served):
    webhook, crt, _ = served
    silent = [socket.create_connection(("127.0.0.1", webhook.port)) for _ in range(20)]
    try:
        assert 200 == ask(webhook.port, crt, "GET", "/healthz")[0]
    finally:
        for each in silent:
            each.close()


def test_a_certificate_that_changes_is_read_again(served, tmp_path):
    webhook, crt, key = served
    new_crt, new_key = make_certificate(tmp_path, "second")
    crt.write_text("half written")
    assert 200 == ask_unverified(webhook.port)
    os.replace(new_crt, crt)
    os.replace(new_key, key)

    assert 200 == ask(webhook.port, crt, "GET", "/healthz")[0]


def ask_unverified(port: int) -> int:
    """With any certificate: the earlier one stays while the new one cannot be read."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)
    connection.request("GET", "/healthz")
    status = connection.getresponse().status
    connection.close()
    return status


def test_files_that_are_no_certificate_are_named(tmp_path, certificate):
    text = tmp_path / "text"
    text.write_text("nothing")

    with pytest.raises(Invalid, match=r"--tls-key: .* cannot be read"):
        Certificates(str(certificate[0]), str(tmp_path / "none"))
    with pytest.raises(Invalid, match="are no certificate and its key"):
        Certificates(str(text), str(certificate[1]))


# What a cluster needs


def test_an_apiserver_goes_on_where_the_webhook_does_not_answer():
    hooks = configuration({"url": "https://127.0.0.1:1/validate"}, b"ca")["webhooks"]

    assert {("Ignore", "None")} == {(each["failurePolicy"], each["sideEffects"]) for each in hooks}


def test_the_webhook_only_reads():
    roles = [each for each in webhook_objects("ns", "i", b"ca") if each["kind"] == "ClusterRole"]

    verbs = {verb for role in roles for rule in role["rules"] for verb in rule["verbs"]}
    assert {"get", "list"} == verbs
