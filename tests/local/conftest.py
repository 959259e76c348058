"""A local backend in a folder of its own, and nothing left of it afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bough.backends.local.supervisor import fork_server_client
from tests.local.bench import Bench
from tests.warm import SUBPROCESS


@pytest.fixture(autouse=True)
def quick_fork_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork servers are forks themselves: a new interpreter would be most of what a test costs.

    Tests of how they start have a fixture of this name that does nothing.
    """
    monkeypatch.setattr(fork_server_client, "subprocess", SUBPROCESS)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    try:
        yield bench
    finally:
        bench.end()
