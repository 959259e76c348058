"""Two servers on one PostgreSQL: the one that decides is frozen, thawed and killed under load.

Tasks run on the machine of the first; whichever of the two decides, none of them runs twice.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle
from pathlib import Path
from random import Random
from typing import NamedTuple

import httpx
import sqlalchemy as sa

from bough.client import Client
from bough.store import Store
from bough.store.schema import LEADERSHIP
from tests.crash.crashes import GPUS, Scene, make_pool, say, serving
from tests.crash.load import Load
from tests.crash.server import Server, until
from tests.crash.witness import Witness

#: A server that is frozen does not answer; its clients do not wait for long.
ANSWER_S = 5.0


class Lead(NamedTuple):
    """Which server decides, and how many did before it."""

    number: int
    server: Server | None


class Pair:
    """Two servers with folders of their own."""

    def __init__(self, scene: Scene, other: Server) -> None:
        self.scene = scene
        self._servers = (scene.server, other)
        self._store = Store.open(scene.server.database)
        #: How long it took until another one decided, after a freeze and after a kill.
        self.frozen_s: list[float] = []
        self.killed_s: list[float] = []

    def close(self) -> None:
        self._store.close()

    def lead(self) -> Lead:
        with self._store.read() as connection:
            number, holder = connection.execute(
                sa.select(LEADERSHIP.c.number, LEADERSHIP.c.holder)
            ).one()
        pid = int(holder.rpartition("/")[2] or 0)
        found = (each for each in self._servers if each.running and each.loop == pid)
        return Lead(number, next(found, None))

    def take_over(self) -> None:
        """Freeze or kill the server that decides until the other one does."""
        until(lambda: self.lead().server is not None, "one of the servers decides")
        before = self.lead()
        assert before.server is not None
        if self.scene.random.random() < 0.6:
            self._freeze(before, before.server)
        else:
            self._kill(before, before.server)

    def blink(self) -> None:
        """Freeze a server for a moment that may be too short for anything to follow."""
        server = self.scene.random.choice(self._servers)
        with frozen(server.pid, server.loop):
            time.sleep(self.scene.random.uniform(0.0, 3.0))

    def _freeze(self, before: Lead, server: Server) -> None:
        # Its machine stands still; or only what decides does, which the server then replaces.
        whole = self.scene.random.random() < 0.5
        with frozen(*([server.pid] if whole else []), server.loop):
            since = time.monotonic()
            self._await_other(before)
            self.frozen_s.append(time.monotonic() - since)
            time.sleep(self.scene.random.uniform(0.0, 3.0))

    def _kill(self, before: Lead, server: Server) -> None:
        server.kill()
        since = time.monotonic()
        self._await_other(before)
        self.killed_s.append(time.monotonic() - since)
        server.start()
        # Its address is kept meanwhile; it watches the lease once it answers.
        until(lambda: _answers(server), "the server that was killed is there again")

    def _await_other(self, before: Lead) -> None:
        until(lambda: self.lead().number > before.number, f"another decides after {before.number}")

    def summary(self) -> str:
        """How often, and how long it took."""
        return (
            f"{len(self.frozen_s)} takeovers of a frozen server, after "
            f"{min(self.frozen_s, default=0):.1f} to {max(self.frozen_s, default=0):.1f} s; "
            f"{len(self.killed_s)} of a killed one, after {min(self.killed_s, default=0):.1f} to "
            f"{max(self.killed_s, default=0):.1f} s"
        )


@contextmanager
def frozen(*pids: int) -> Iterator[None]:
    """Let processes stand still; what was killed meanwhile stays so."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def _answers(server: Server) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{server.port}/health", timeout=2).is_success
    except httpx.HTTPError:
        return False


@contextmanager
def pair(folder: Path, seed: int, database: str) -> Iterator[Pair]:
    """Two servers that are ready, a pool on the machine of the first, and a load that waits."""
    server = Server(folder / "one", database=database, gpus=GPUS)
    other = Server(folder / "two", database=database, gpus=GPUS)
    for each in (server, other):
        each.data.parent.mkdir()
    with Witness() as witness, serving(server):
        make_pool(server)
        with serving(other):
            clients = cycle((server, other))

            def make_client() -> Client:
                token = (server.data / "admin-token").read_text().strip()
                address = f"http://127.0.0.1:{next(clients).port}"
                return Client(address, token, timeout_s=ANSWER_S)

            load = Load(make_client, witness.port, seed, GPUS)
            made = Pair(Scene(server, witness, load, Random(seed), seed), other)
            try:
                yield made
            finally:
                made.close()


def exchange(servers: Pair, takeovers: int, budget_s: float) -> int:
    """Let the servers take over from each other under load; how often they did."""
    deadline = time.monotonic() + budget_s
    done = 0
    with servers.scene.load.running():
        while done < takeovers and time.monotonic() < deadline:
            time.sleep(servers.scene.random.uniform(0.0, 2.0))
            if servers.scene.random.random() < 0.2:
                servers.blink()
            servers.take_over()
            done += 1
    say(servers.summary())
    return done
