"""Two clusters of one server: while one is away, the other does not notice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.local import Attempt, Hosting
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.bed.objects import namespace
from tests.kubernetes.conftest import make_bed
from tests.kubernetes.served import Clustered
from tests.kubernetes.test_backend import job


@pytest.fixture
def west() -> Iterator[Bed]:
    """One node of 4 GPUs."""
    yield from make_bed(4)


def test_while_one_cluster_is_away_the_other_goes_on(small_bed: Bed, west: Bed, tmp_path: Path):
    beds = {"east": small_bed, "west": west}
    for bed in beds.values():
        bed.ask("POST", "/api/v1/namespaces", namespace("two"))
    entries = [
        {
            "name": name,
            "kind": "kubernetes",
            "options": {"kubeconfig": str(bed.kubeconfig), "namespace": "two"},
        }
        for name, bed in beds.items()
    ]
    file = tmp_path / "backends.yaml"
    file.write_text(yaml.safe_dump({"backends": entries}))
    host = Hosting(tmp_path, None, "--backends", str(file))  # type: ignore[arg-type]
    try:
        local = host.start()
        server = Clustered(local.address, local.token, tmp_path)
        server.bed, server.namespace = small_bed, "two"
        for name in beds:
            server.done("pool", "create", name, "--quota", "4", "--backend", name)
        there = server.send("west", "NORMAL", job())
        server.settle(RUNNING=[there])

        west.apiserver.kill()
        server.until(lambda: "OFFLINE" == pool_status(server, "west"))
        here = server.send("east", "NORMAL", job(run_for="100ms"))
        server.over(here)
        assert ("COMPLETED", "ONLINE") == (server.status(here), pool_status(server, "east"))
        waits = server.send("west", "NORMAL", job(run_for="100ms"))
        assert ["RUNNING", "PENDING"] == server.statuses(there, waits)

        west.apiserver.start()
        west.wait_until_ready()
        server.settle(COMPLETED=[waits])
        assert [Attempt(0, "RUNNING", None)] == server.attempts(there)
        assert "ONLINE" == pool_status(server, "west")
    finally:
        host.stop()


def pool_status(server: Clustered, pool: str) -> str:
    """Whether a pool is ONLINE."""
    return server.client.pools.list()[pool].status
