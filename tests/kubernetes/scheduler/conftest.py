"""Beds with the scheduler's definitions and rights."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.conftest import make_bed
from tests.kubernetes.scheduler.scheduled import Scheduled


@pytest.fixture(scope="module")
def installed() -> Iterator[Scheduled]:
    for bed in make_bed():
        made = Scheduled(bed)
        yield made
        made.admin.close()


@pytest.fixture
def cluster(installed: Scheduled) -> Iterator[Scheduled]:
    """A cluster without nodes and queues, on which no scheduler runs."""
    yield installed
    installed.clear()
