"""One bed for all tests of a file; each test has namespaces and names of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bough.kube.client import KubeClient
from bough.kube.kubeconfig import find_access
from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace, node

_number = itertools.count()


def open_bed() -> Bed:
    """A bed that is not started yet; without Go the tests are skipped, in CI they fail."""
    try:
        return Bed()
    except NoGo as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def bed() -> Iterator[Bed]:
    """A bed with four nodes of 8 GPUs."""
    with open_bed() as bed:
        for number in range(4):
            bed.ask("POST", "/api/v1/nodes", node(f"node-{number}"))
        yield bed


@pytest.fixture
def connect(bed: Bed) -> Iterator[Callable[..., KubeClient]]:
    """Makes clients, the administrator's unless a kubeconfig is named; all are closed."""
    opened: list[KubeClient] = []

    def connect(kubeconfig: Path | None = None, **options: float) -> KubeClient:
        access = find_access(str(kubeconfig or bed.kubeconfig), None, {})
        opened.append(KubeClient(access, **{"timeout_s": 120.0, **options}))  # type: ignore[arg-type]
        return opened[-1]

    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def client(connect: Callable[..., KubeClient]) -> KubeClient:
    """A client of the administrator."""
    return connect()


@pytest.fixture
def fresh(bed: Bed) -> str:
    """A namespace that no other test has."""
    name = f"test-{next(_number)}"
    bed.ask("POST", "/api/v1/namespaces", namespace(name))
    return name
