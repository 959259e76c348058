"""The webhook asked by a real apiserver, under exactly the rights that are printed."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bough.errors import BoughError
from bough.kube.client import Patch
from bough.kube.objects import Kind, untyped
from bough.kube_webhook.install import NAME, configuration
from tests.kubernetes.bed.process import Process, free_port
from tests.kubernetes.scheduler.scheduled import (
    SYSTEM,
    Scheduled,
    bough,
    member,
    pod_group,
    queue,
)
from tests.kubernetes.scheduler.test_schedule import condition_of
from tests.kubernetes.waiting import wait_for

HOOKS: Kind[dict[str, Any]] = untyped(
    "apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", namespaced=False
)
LEAVES = [{"name": "decode", "minMember": 1}, {"name": "prefill", "minMember": 1}]


class Hooked:
    """A cluster whose apiserver asks the webhook."""

    def __init__(self, cluster: Scheduled, process: Process, team: str) -> None:
        self.cluster = cluster
        self.process = process
        self.team = team

    def refused(self, document: dict[str, Any]) -> str:
        """Why an object is not kept; empty: it is."""
        try:
            self.cluster.create(document, self.team if document["kind"] in NAMESPACED else "")
        except BoughError as error:
            return error.message
        return ""


NAMESPACED = ("PodGroup", "Pod")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    crt, key = folder / "tls.crt", folder / "tls.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-nodes", "-days", "2", "-subj", "/CN=webhook"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(crt)]
    subprocess.run(command, check=True, capture_output=True)
    return crt, key


@pytest.fixture
def hooked(cluster: Scheduled, certificate: tuple[Path, Path]) -> Iterator[Hooked]:
    crt, key = certificate
    printed = bough("kube", "install", "--no-definitions", f"--webhook-ca={crt}")
    mine = [each for each in yaml.safe_load_all(printed) if each["metadata"]["name"] == NAME]
    cluster.apply(*(each for each in mine if each["kind"] in RIGHTS))
    target = f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/{NAME}/token"
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = cluster.admin.ask("POST", target, asked)["status"]["token"]
    kubeconfig = cluster.bed.write_kubeconfig(NAME, token=token)
    port = free_port()
    command = [sys.executable, "-m", "bough", "kube", "webhook", f"--kubeconfig={kubeconfig}"]
    command += [f"--tls-cert={crt}", f"--tls-key={key}", f"--listen=127.0.0.1:{port}"]
    process = Process(command, cluster.bed.folder / f"webhook-{port}.log")
    process.start()
    wait_for(lambda: b"answering" in process.log.read_bytes(), "the webhook")
    # As printed, but for the address: no Service leads anywhere on a bed.
    where = {"url": f"https://127.0.0.1:{port}/validate"}
    body = configuration(where, crt.read_bytes())
    cluster.admin.patch(HOOKS, NAME, body, "", Patch.APPLY, manager="test")
    made = Hooked(cluster, process, cluster.namespace())
    probe = pod_group("probe", minSubGroup=0)
    wait_for(lambda: made.refused(probe) and not _drop(made, "probe"), "the first review")
    yield made
    with contextlib.suppress(BoughError):
        cluster.admin.delete(HOOKS, NAME)
    process.stop()


RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding")


def _drop(made: Hooked, name: str) -> bool:
    """Remove what was kept because nothing was asked yet; whether it was there."""
    try:
        made.cluster.delete("PodGroup", name, made.team)
    except BoughError:
        return False
    return True


def test_the_webhook_judges_what_an_apiserver_is_given(hooked: Hooked):
    assert "spec.minSubGroup: is 3, but there are only 2 child subgroups" in hooked.refused(
        pod_group("bad", minSubGroup=3, subGroups=LEAVES)
    )
    assert "" == hooked.refused(pod_group("good", minSubGroup=1, subGroups=LEAVES))
    assert "has no subgroup 'x'; its leaves are decode, prefill" in hooked.refused(
        member("one", "good", subgroup="x")
    )
    assert "" == hooked.refused(member("two", "good", subgroup="decode"))
    assert "" == hooked.refused(member("early", "later"))

    with pytest.raises(BoughError, match="minSubGroup: is 9"):
        hooked.cluster.patch("PodGroup", "good", {"spec": {"minSubGroup": 9}}, hooked.team)
    hooked.cluster.patch(
        "PodGroup",
        "good",
        {"spec": {"subGroups": [*LEAVES, {"name": "x", "minMember": 1}]}},
        hooked.team,
    )
    assert "" == hooked.refused(member("one", "good", subgroup="x"))


def test_a_hostile_object_is_refused_before_the_apiserver_gives_up(hooked: Hooked):
    deep = [{"name": "s0", "minSubGroup": 1}]
    deep += [{"name": f"s{n}", "minSubGroup": 1, "parent": f"s{n - 1}"} for n in range(1, 1_000)]
    deep.append({"name": "leaf", "minMember": 1, "parent": deep[-1]["name"]})

    told = hooked.refused(pod_group("deep", minSubGroup=1, subGroups=deep))

    assert "is nested too deep; at most 64 levels are allowed" in told


def test_a_queue_below_itself_is_not_kept(hooked: Hooked):
    assert "" == hooked.refused(queue("above", parent="below"))

    assert "spec.parentQueue" in hooked.refused(queue("below", parent="above"))


def test_a_webhook_that_is_down_blocks_nothing_and_what_slips_through_waits(hooked: Hooked):
    hooked.process.kill()

    assert "" == hooked.refused(pod_group("bad", minSubGroup=3, subGroups=LEAVES))
    assert "" == hooked.refused(member("one", "bad", subgroup="decode"))
    hooked.cluster.start()
    told = wait_for(lambda: condition_of(hooked.cluster, hooked.team, "one"), "a reason")
    assert "spec.minSubGroup: is 3, but there are only 2 child subgroups" in told["message"]
