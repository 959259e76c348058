"""What the backend kubernetes makes of a list that is older than what it knows."""

from __future__ import annotations

from pathlib import Path

import pytest

from bough.backends.kubernetes.backend import KubernetesBackend
from bough.backends.kubernetes.options import KubernetesOptions
from bough.kube.access import Access, FixedCredential
from bough.kube.client import KubeClient
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
