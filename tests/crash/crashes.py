"""Histories with crashes: a server under load that is killed, and what is checked at the end."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from bough.api.pools import PoolDocument
from bough.client import Client
from bough.model.workflow import TaskStatus
from tests.crash import laws
from tests.crash.load import POOL, Load
from tests.crash.postgres import cannot
from tests.crash.record import read_record
from tests.crash.server import PATIENCE_S, Server, until
from tests.crash.witness import Witness

GPUS = 16
_ROOT = Path(__file__).parents[2]
#: Wrong things that are shown at most.
_SHOWN = 20
#: What keeps tasks may take as long to leave after the last of them.
_LEAVE_S = 20
_ALIVE = {"statuses": ["PENDING", "RUNNING", "WAITING"]}


class Scene(NamedTuple):
    """A server, who watches its tasks, and what it is asked."""

    server: Server
    witness: Witness
    load: Load
    random: Random
    seed: int

    def settle(
        self,
        followed: frozenset[TaskStatus] = laws.FOLLOWED,
        *,
        lines_may_be_lost: bool = False,
        cut: frozenset[str] = frozenset(),
    ) -> None:
        """Wait until everything has come to rest, check every law, and say what there was.

        Attempts that were cut have no end that was written down.
        """
        client = self.server.client()
        self._make_room(client)
        rest_s = PATIENCE_S + len(self.load.jobs) / 2
        until(
            lambda: not client.workflows.list(limit=1, query=_ALIVE).workflows,
            f"all workflows end [seed {self.seed}]",
            rest_s,
        )
        until(
            lambda: "DELETING" not in _states(client.subpools.list(POOL, include_archived=True)),
            f"all subpools that are deleted are archived [seed {self.seed}]",
        )
        record = read_record(self.server.database)
        wrongs = [
            *laws.nothing_accepted_is_lost(record, self.load),
            *laws.nothing_is_half(record, self.load),
            *laws.each_attempt_runs_once(record, self.witness, followed),
            *laws.no_gpu_has_two_holders(self.witness),
            *laws.nothing_is_left(record, self.witness),
            *laws.quotas_are_whole(record, self.load),
            *laws.events_tell_a_legal_story(record),
            *laws.logs_are_complete(
                record, self.witness, self._read_log, may_be_lost=lines_may_be_lost, cut=cut
            ),
            *self._leave(),
        ]
        text = "\n".join(wrongs[:_SHOWN])
        assert not wrongs, f"{len(wrongs)} wrongs, seed {self.seed}:\n{text}"
        say(self._summary(sum(map(len, record.tasks.values()))))

    def _make_room(self, client: Client) -> None:
        """Give every subpool what its largest gang needs: a quota may be less than what waits."""
        for each in client.subpools.list(POOL):
            if each.subpool_state == "ACTIVE":
                client.subpools.update(POOL, str(each.subpool_name), GPUS // 4)

    def _read_log(self, workflow: str, task: str, retry: int) -> list[str]:
        return list(self.server.client().workflows.logs(workflow, task=task, retry=retry))

    def _leave(self) -> Iterator[str]:
        """The server ends when it is asked to, with all that it started."""
        code = self.server.stop()
        if code:
            yield f"the server ended with {code} when it was asked to"
        deadline = time.monotonic() + _LEAVE_S
        while (left := self.server.processes()) and time.monotonic() < deadline:
            time.sleep(0.2)
        yield from (f"process {pid} is left: {command}" for pid, command in left.items())
        yield from (f"the control group {each} is left" for each in self.server.groups())
        log = self.server.log.read_text()
        if "Traceback" in log:
            at = log.index("Traceback")
            yield f"the server's log has a traceback: {log[max(0, at - 500) : at + 9_000]}"

    def _summary(self, attempts: int) -> str:
        told = sum(run.farewell == "told" for run in self.witness.runs)
        unknown = sum(each.kind == "unknown" for each in self.load.submissions.values())
        return (
            f"{len(self.load.accepted)} workflows accepted, {unknown} without an answer, "
            f"{attempts} attempts, {len(self.witness.runs)} processes of which {told} were told "
            f"to end, {self.load.changes} changes of subpools, {self.load.looks} looks at quotas"
        )


def say(text: str) -> None:
    """Shown with the output of a test."""
    sys.stdout.write(f"{text}\n")


def seed_of_this_run() -> int:
    """A new one, or that of a run that is to be repeated; shown with the output of the test."""
    seed = int(os.environ.get("BOUGH_CRASH_SEED") or secrets.randbelow(2**32))
    say(f"BOUGH_CRASH_SEED={seed}")
    return seed


def run_with_disks(module: str, *arguments: object) -> None:
    """Run `python -m MODULE` where it can mount disks of its own; nothing of them is left."""
    alone = ["unshare", "--mount", "--propagation", "private"]
    if shutil.which("unshare") is None or subprocess.run([*alone, "true"], check=False).returncode:
        cannot("NOT TESTED: no disk can be mounted: that needs root, and namespaces of mounts.")
    command = [*alone, sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    say(done.stdout)
    assert 0 == done.returncode, done.stderr


@contextmanager
def scene(
    folder: Path,
    seed: int,
    database: str | None = None,
    *,
    most_jobs: int | None = None,
    options: Sequence[str] = (),
) -> Iterator[Scene]:
    """A server that is ready and has a pool, and a load that has not begun."""
    server = Server(folder, database=database, gpus=GPUS, options=options)
    with Witness() as witness, serving(server):
        make_pool(server)
        load = Load(server.client, witness.port, seed, GPUS, most_jobs)
        yield Scene(server, witness, load, Random(seed), seed)


@contextmanager
def serving(server: Server) -> Iterator[None]:
    """Start a server; whatever happens, nothing of it is left afterwards."""
    server.start()
    try:
        server.await_ready()
        yield
    finally:
        if server.running:
            server.kill()
        server.clear_away()


def make_pool(server: Server) -> None:
    """One pool with everything, and tasks that are not given long to end."""
    client = server.client()
    gpu = {"guarantee": GPUS, "maximum": -1, "weight": 1}
    client.pools.create(POOL, {"resources": {"gpu": gpu}})


def crash(scene: Scene, kills: int, budget_s: float) -> int:
    """Kill the server at random moments under load, again and again; how often it was.

    One time in five it is killed before it is ready. There are fewer kills where the machine is so
    slow that they would take longer than is allowed.
    """
    deadline = time.monotonic() + budget_s
    done = 0
    with scene.load.running():
        while done < kills and time.monotonic() < deadline:
            if not scene.server.running:
                scene.server.start()
            if scene.random.random() < 0.2:
                time.sleep(scene.random.uniform(0.0, 1.0))
            else:
                scene.server.await_ready()
                time.sleep(scene.random.uniform(0.0, 2.5))
            scene.server.kill()
            done += 1
        scene.server.start()
        scene.server.await_ready()
    return done


def _states(subpools: Iterable[PoolDocument]) -> set[str | None]:
    return {each.subpool_state for each in subpools}
