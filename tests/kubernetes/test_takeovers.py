"""Two servers on one PostgreSQL and one cluster: the one that decides is frozen, and thawed."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import sqlalchemy as sa

from bough.store import Store
from bough.store.schema import LEADERSHIP
from tests.crash.server import loop_of
from tests.kubernetes.bed.cluster import Bed
from tests.kubernetes.conftest import fresh_namespace
from tests.kubernetes.kills import SIZE, judge, spec
from tests.kubernetes.served import Clustered, ClusterHosting, clustered
from tests.store.databases import PostgresServer

FREEZES = 4
GROUPS = 24


def leader(store: Store) -> tuple[int, int]:
    """The number of the lease, and the process that has it."""
    with store.read() as connection:
        row = connection.execute(sa.select(LEADERSHIP.c.number, LEADERSHIP.c.holder)).one()
    return row.number, int(row.holder.rpartition("/")[2] or 0)


def freeze(server: Clustered, store: Store, pids: set[int]) -> None:
    """Freeze the server that decides, with its loop, until the other one does; let it go on."""

    def deciding() -> list[int]:
        holder = leader(store)[1]
        return [each for each in pids if loop_of(each) == holder]

    server.until(lambda: bool(deciding()), lambda: leader(store))
    number, loop = leader(store)
    frozen = [*deciding(), loop]
    for each in frozen:
        os.kill(each, signal.SIGSTOP)
    try:
        server.until(lambda: leader(store)[0] > number, lambda: leader(store))
    finally:
        for each in reversed(frozen):
            os.kill(each, signal.SIGCONT)


def pid_of(host: ClusterHosting) -> int:
    assert host._process is not None
    return host._process.pid


def test_a_frozen_server_that_goes_on_makes_no_pod_twice(
    eight_bed: Bed, tmp_path: Path, postgres: PostgresServer
):
    chance = random.Random(0)
    address = postgres.make(migrated=False)
    space = fresh_namespace()
    folders = [tmp_path / name for name in ("one", "two")]
    for each in folders:
        (each / "data").mkdir(parents=True)
    store = Store.open(address)
    with clustered(folders[0], eight_bed, space, database=address) as first:
        server = first.start()
        server.pool("team", 64)
        # The first server of a site has the token of its administrator, and no other.
        token = (first.data / "admin-token").read_bytes()
        (folders[1] / "data" / "admin-token").write_bytes(token)
        second = ClusterHosting(folders[1], eight_bed, space, database=address)
        try:
            second.start()
            pids = {pid_of(first), pid_of(second)}
            names = []
            for number in range(GROUPS):
                text = Path(server.write(spec(number, chance.randint(300, 2_000)))).read_text()
                names.append(server.client.workflows.submit("team", text, priority="NORMAL").name)
            for _ in range(FREEZES):
                time.sleep(chance.uniform(0.0, 2.0))
                freeze(server, store, pids)
            server.over(*names)

            assert {"COMPLETED"} == set(server.statuses(*names))
            runs = [len(each) for name in names for each in server.tasks(name).values()]
            assert [1] * GROUPS * SIZE == runs
        finally:
            second.stop()
            second.close()
            store.close()
    assert "Traceback" not in second.errors(), second.errors()
    assert [] == judge(eight_bed, space, {f"node-{number}": 8 for number in range(8)})
