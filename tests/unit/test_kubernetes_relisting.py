"""What the backend kubernetes makes of old lists, and of nodes that are silent or gone."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from bough.backends.kubernetes.backend import KubernetesBackend
from bough.backends.kubernetes.options import KubernetesOptions
from bough.kube.access import Access, FixedCredential
from bough.kube.client import KubeClient
from bough.kube.objects import KubeNode
from bough.kube.watching import Relisted
from bough.model.backend import Sight
from tests.kubernetes.pods import SITE, pod


@pytest.fixture
def backend(tmp_path: Path) -> KubernetesBackend:
    """A backend that hears only what a test lets it hear."""
    client = KubeClient(Access("http://127.0.0.1:1", FixedCredential()))
    return KubernetesBackend(KubernetesOptions(tmp_path, SITE), client, lambda: 1_000)


@pytest.mark.parametrize(("listed", "expected"), [("19", Sight.RUNNING), ("20", Sight.LOST)])
def test_a_pod_that_was_made_after_the_list_is_not_gone(backend, listed, expected):
    backend._hear_pod(Relisted([pod("Running", version="20")], "20"))

    backend._hear_pod(Relisted([], listed))

    assert [expected] == [each.sight for each in backend.observe()]


def node(ready: str) -> KubeNode:
    """The node of the pods of `tests.kubernetes.pods`."""
    status = {"conditions": [{"type": "Ready", "status": ready}]}
    return msgspec.convert({"metadata": {"name": "n"}, "spec": {}, "status": status}, KubeNode)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [([node("True")], Sight.RUNNING), ([node("Unknown")], Sight.LOST), ([], Sight.LOST)],
    ids=["ready", "silent", "gone"],
)
def test_a_pod_that_should_have_been_gone_for_a_minute_is_lost_with_its_node(
    tmp_path: Path, nodes, expected
):
    clock = [1_000]
    client = KubeClient(Access("http://127.0.0.1:1", FixedCredential()))
    backend = KubernetesBackend(KubernetesOptions(tmp_path, SITE), client, lambda: clock[0])
    backend._hear_node(Relisted(nodes, "1"))
    backend._hear_pod(Relisted([pod("Running", state={"running": {}}, deleted=True)], "1"))

    seen = [backend.observe()[0].sight]
    clock[0] += 59_000
    seen.append(backend.observe()[0].sight)
    clock[0] += 3_000
    seen.append(backend.observe()[0].sight)

    assert [Sight.RUNNING, Sight.RUNNING, expected] == seen
