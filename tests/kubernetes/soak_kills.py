"""A server that is killed again and again loses nothing and makes nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.kills import Load, judge, live_through
from tests.kubernetes.served import clustered

LOAD = Load(groups=12, kills=4, restarts=1)


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_nothing_is_lost_made_twice_or_left_in_part_whatever_is_killed(
    eight_bed: Bed, tmp_path: Path, database: str, request: pytest.FixtureRequest
):
    address = None
    if database == "postgresql":
        address = request.getfixturevalue("postgres").make(migrated=False)
    namespace = f"kills-{database}"
    with clustered(tmp_path, eight_bed, namespace, database=address) as host:
        names = live_through(host, eight_bed, LOAD)
        server = host.start()

        assert LOAD.groups == len(names) == len(set(names))
        assert {"COMPLETED"} == set(server.statuses(*names)), server.shown(*names)
        lost = {
            each.status
            for name in names
            for attempts in server.tasks(name).values()
            for each in attempts
        } - {"COMPLETED", "FAILED_PREEMPTED", "RESCHEDULED"}
        assert set() == lost
        server.until(lambda: not server.pods(), server.pods)
    capacity = {f"node-{number}": 8 for number in range(8)}
    assert [] == judge(eight_bed, namespace, capacity)
