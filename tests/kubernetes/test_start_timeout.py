"""Pods that do not start in time on a real apiserver: the attempt ends, and says what kept it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
import yaml

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from tests.e2e.local import Attempt, Hosting
from tests.kubernetes.bed.audit import read_audit
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace
from tests.kubernetes.rights import kubeconfig_of_bough
from tests.kubernetes.served import Clustered
from tests.kubernetes.test_backend import job

SPACE = "impatient"
TIMEOUT_S = 3


@pytest.fixture(scope="module")
def impatient(small_bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clustered]:
    """A server that waits three seconds for a pod to start."""
    folder = tmp_path_factory.mktemp(SPACE)
    small_bed.ask("POST", "/api/v1/namespaces", namespace(SPACE))
    with closing(KubeClient(find_access(str(small_bed.kubeconfig)))) as admin:
        kubeconfig = kubeconfig_of_bough(small_bed, admin, SPACE)
    options = {
        "kubeconfig": str(kubeconfig),
        "namespace": SPACE,
        "start_timeout": TIMEOUT_S,
    }
    entry = {"name": "default", "kind": "kubernetes", "options": options}
    file = folder / "backends.yaml"
    file.write_text(yaml.safe_dump({"backends": [entry]}))
    host = Hosting(folder, None, "--backends", str(file))  # type: ignore[arg-type]
    try:
        local = host.start()
        server = Clustered(local.address, local.token, folder, 4)
        server.bed, server.namespace = small_bed, SPACE
        server.pool("team", 4)
        yield server
    finally:
        host.stop()


@pytest.mark.parametrize(
    ("said", "status", "code", "message"),
    [
        (
            {"waiting": "ImagePullBackOff", "message": "no such image"},
            *("FAILED_IMAGE_PULL", 3003, "ImagePullBackOff: no such image"),
        ),
        (
            {"waiting": "CreateContainerConfigError", "message": "no such secret"},
            *("FAILED_START_TIMEOUT", 3005, "CreateContainerConfigError: no such secret"),
        ),
        ({"start_after": "600s"}, "FAILED_START_TIMEOUT", 3005, ""),
    ],
    ids=["image", "configuration", "silent"],
)
def test_what_does_not_start_in_time_ends_for_what_kept_it(
    impatient: Clustered, said, status, code, message
):
    name = impatient.send("team", "NORMAL", job(gpus=4, **said))
    # It holds all GPUs, so the next one starts only when its pod is gone.
    after = impatient.send("team", "NORMAL", job(gpus=4, run_for="10ms"))
    impatient.over(name, after)

    assert [status, "COMPLETED"] == impatient.statuses(name, after)
    assert [Attempt(0, status, code)] == impatient.attempts(name)
    said_of_it = impatient.message(name)
    assert f"It did not start within {TIMEOUT_S} seconds. {message}".strip() in said_of_it
    made = [
        each
        for each in read_audit(impatient.bed.audit_log)
        if (each.verb, each.resource, each.namespace) == ("create", "pods", SPACE)
        and each.answered["metadata"]["labels"]["osmo.workflow_id"] == name
    ]
    assert 1 == len(made), "it is not tried again"


def test_what_starts_in_time_runs_as_long_as_it_likes(impatient: Clustered):
    slow = job(start_after="1s", run_for=f"{TIMEOUT_S + 2}s")
    name = impatient.send("team", "NORMAL", slow)
    impatient.over(name)

    assert [Attempt(0, "COMPLETED", 0)] == impatient.attempts(name)
