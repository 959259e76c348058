"""Beds with a few nodes, and servers on them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.bed.build import NoGo
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.served import Clustered, add_nodes, clustered


def make_bed(*sizes: int, native_groups: bool = True) -> Iterator[Bed]:
    """A bed with nodes of so many GPUs; without Go that is said loudly, and fails in CI."""
    try:
        with Bed(native_groups=native_groups) as bed:
            add_nodes(bed, *sizes)
            yield bed
    except NoGo as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def small_bed() -> Iterator[Bed]:
    """One node of 4 GPUs."""
    yield from make_bed(4)


@pytest.fixture(scope="module")
def small_server(small_bed: Bed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clustered]:
    with clustered(tmp_path_factory.mktemp("small"), small_bed, "small") as host:
        yield host.start()


@pytest.fixture
def small(small_server: Clustered) -> Iterator[Clustered]:
    """Four GPUs and nothing else; tasks are pods."""
    yield small_server
    small_server.clear()


@pytest.fixture(scope="module")
def eight_bed() -> Iterator[Bed]:
    """Eight nodes of 8 GPUs."""
    yield from make_bed(*[8] * 8)


@pytest.fixture
def server(eight_bed: Bed, tmp_path: Path) -> Iterator[Clustered]:
    """A server of one test alone, with pool `team` of all 64 GPUs."""
    with clustered(tmp_path, eight_bed, fresh_namespace()) as host:
        made = host.start()
        made.pool("team", 64)
        yield made


_namespaces = iter(range(1_000_000))


def fresh_namespace() -> str:
    """kwok deletes pods by name: no two tests share one."""
    return f"bough-{next(_namespaces)}"
