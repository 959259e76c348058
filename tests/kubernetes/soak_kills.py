"""As tests/kubernetes/test_kills.py, for far longer."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.kills import Load, live_and_judge

LOAD = Load(groups=800, kills=200, restarts=10)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_nothing_is_lost_made_twice_or_left_in_part_whatever_is_killed_how_often(
    eight_bed: Bed,
    tmp_path: Path,
    database: str,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
):
    figures = live_and_judge(eight_bed, tmp_path, database, LOAD, request)
    with capsys.disabled():
        print(f"\n{figures}")  # noqa: T201
