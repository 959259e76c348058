"""A bed with the definitions of KAI, and servers on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.kube.client import KubeClient
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.conftest import make_bed
from tests.kubernetes.kai.clusters import admin_of, define, kai_server
from tests.kubernetes.kai.story import Story
from tests.kubernetes.served import ClusterHosting


@pytest.fixture(scope="module")
def kai_bed() -> Iterator[Bed]:
    """Thirteen nodes of 8 GPUs."""
    for bed in make_bed(*[8] * 13):
        admin = admin_of(bed)
        define(admin)
        admin.close()
        yield bed


@pytest.fixture
def admin(kai_bed: Bed) -> Iterator[KubeClient]:
    made = admin_of(kai_bed)
    yield made
    made.close()


@pytest.fixture
def host(kai_bed: Bed, tmp_path: Path) -> Iterator[ClusterHosting]:
    """A server that lets KAI decide, not started yet."""
    with kai_server(tmp_path, kai_bed) as made:
        yield made


@pytest.fixture
def story(host: ClusterHosting, admin: KubeClient) -> Story:
    """The same, started, with a stand-in for KAI."""
    return Story(host, admin)
