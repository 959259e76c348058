"""`python -m tests.crash.full KIND FOLDER [SEED]`: a server on a small disk that becomes full.

Run in a mount namespace of its own (`unshare --mount`). The disk is small.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bough.client import Client
from bough.client.data import DataAddress
from bough.client.uploads import Upload, find_files
from bough.errors import Unavailable
from tests.crash.crashes import Scene, make_pool, scene, serving
from tests.crash.jobs import GroupPlan, Job, TaskPlan
from tests.crash.laws import FOLLOWED_OR_LOST
from tests.crash.load import POOL, Answer
from tests.crash.power import Disk, make_images
from tests.crash.server import Server, until

#: More than can run, so that some wait.
JOBS = 40
#: How long the load goes on before the disk is full, while it is, and after that.
PART_S = 4.0


@contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[Path]:
    """A disk that a server has for itself."""
    with make_images(path.parent) as images:
        yield Disk(images, path, size_mib).path


@contextmanager
def serving_pool(server: Server) -> Iterator[Client]:
    """A server that is ready and has a pool; it ends well, and its log has no traceback."""
    with serving(server):
        make_pool(server)
        yield server.client()
        assert 0 == server.stop()
        assert "Traceback" not in server.log.read_text(), server.log.read_text()


def fill(path: Path) -> None:
    """Leave nothing, down to the last byte."""
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue


def submit(client: Client, name: str, script: str = "sleep 1000") -> str:
    """Submit a workflow with one task that runs a shell script; its ID."""
    text = f"""\
workflow:
  name: {name}
  resources: {{default: {{gpu: 1, cpu: 0, memory: 64Mi, storage: 0Gi}}}}
  tasks: [{{name: main, image: any, command: [sh, -c], args: ["{script}"]}}]
"""
    return client.workflows.submit(POOL, text, priority="NORMAL").name


def refusal(client: Client, name: str) -> str:
    """Why a workflow is not accepted; empty: it is."""
    try:
        submit(client, name)
    except Unavailable as error:
        return error.message
    return ""


def full_database(folder: Path) -> None:
    """All that is on the disk goes on, ends and can be deleted; nothing new is accepted."""
    with small_disk(folder / "data", 160) as disk:
        server = Server(folder, gpus=16)
        with serving_pool(server) as client:
            names = [submit(client, f"job-{number}") for number in range(JOBS)]
            until(lambda: client.workflows.get(names[0]).status == "RUNNING", "one runs")
            until((disk / "reserve").exists, "there is a reserve")
            assert "ok" == client.health().status
            fill(disk / "filler")
            for _ in range(3):
                assert "no new work is accepted" in refusal(client, "new")
                health = server.client().health()
                assert "degraded" == health.status, health
                assert "The disk of the database" in health.reasons[0]
            _end_and_delete(server, names)
            # A server that ends gives its log's room back, which something else takes.
            assert 0 == server.stop()
            fill(disk / "more")
            server.start()
            server.await_ready()
            again = server.client()
            _end_and_delete(server, names[JOBS // 2 :])
            for each in ("filler", "more"):
                (disk / each).unlink()
            until(lambda: again.health().status == "ok", "there is room again")
            name = submit(again, "after", "exit 0")
            until(lambda: again.workflows.get(name).status == "COMPLETED", "it runs")


def _end_and_delete(server: Server, names: list[str]) -> None:
    """Log in, cancel, delete: each many times."""
    client = server.client()
    for name in names[: JOBS // 2]:
        client.workflows.cancel(name)
    for number in range(20):
        secret = client.tokens.create(f"token-{number}", expires_at="2036-01-01")
        again = Client(f"http://127.0.0.1:{server.port}", secret)
        assert f"token-{number}" in [each.token_name for each in again.tokens.list()]
        client.tokens.delete(f"token-{number}")
    for name in names[: JOBS // 2]:
        until(
            lambda name=name: client.workflows.get(name).status == "FAILED_CANCELED",
            f"{name} ends",
        )


def full_tasks(folder: Path) -> None:
    """A task fills the disk of the tasks; the database is elsewhere, and everything goes on."""
    with small_disk(folder / "tasks", 64) as disk:
        server = Server(folder, gpus=16, options=("--task-folder", str(disk / "files")))
        with serving_pool(server) as client:
            hog = submit(client, "hog", "cat /dev/zero > fill 2>/dev/null; sleep 1000")
            until(lambda: client.health().status == "degraded", "the disk is full")
            (reason,) = client.health().reasons
            assert "The disk of the tasks' files" in reason, reason
            waits = submit(client, "waits", "echo done")
            client.workflows.cancel(hog)
            until(lambda: client.workflows.get(hog).status == "FAILED_CANCELED", "it ends")
            until(lambda: client.workflows.get(waits).status == "COMPLETED", "there is room again")
            until(lambda: client.health().status == "ok", "that is said")
            assert not (server.data / "local").exists()


def full_of_data(folder: Path) -> None:
    """What users keep with their pool fills the disk; they list it, read it and delete it."""
    with small_disk(folder / "data", 300) as disk:
        server = Server(folder, gpus=1)
        with serving_pool(server) as client:
            contents = {f"some/{number}": os.urandom(1 << 20) for number in range(20)}
            for path, content in contents.items():
                (folder / "up" / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / "up" / path).write_bytes(content)
            Upload(client.data, find_files(folder / "up")).send(DataAddress(POOL, ""))
            until((disk / "reserve").exists, "there is a reserve of the database")
            fill(disk / "filler")
            for number in range(3):
                found = {each.path: each for each in client.data.files(DataAddress(POOL, ""))}
                assert 20 - number == len(found)
                for path in list(found)[:3]:
                    part = client.data.part(DataAddress(POOL, path), offset=0)
                    assert contents[path][: len(part.content)] == part.content
                assert 1 == client.data.delete(DataAddress(POOL, f"some/{number}")).files
                fill(disk / f"more-{number}")
            assert 17 == client.data.delete(DataAddress(POOL, "some")).files
            assert 0 == client.data.usage(POOL).used_bytes


def full_under_load(folder: Path, seed: int) -> None:
    """Nothing is accepted that cannot be kept, and with more room everything goes on."""
    disk = folder / "data"
    disk.mkdir()
    # Where a folder needs no room: a task that prints and makes nothing must end well.
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    with scene(folder, seed) as now:
        with now.load.running():
            time.sleep(PART_S)
            fill(disk / "filler")
            # A little can still be written where something else was before.
            until(lambda: _submit_alone(now, "full").status == 503, "it is refused")
            time.sleep(PART_S)
            (disk / "filler").unlink()
            until(lambda: _submit_alone(now, "room").kind == "done", "there is room again")
            time.sleep(PART_S)
        now.settle(FOLLOWED_OR_LOST, lines_may_be_lost=True)


def _submit_alone(now: Scene, name: str) -> Answer:
    job = Job(name, POOL, "NORMAL", (GroupPlan("one", (TaskPlan("main"),)),))
    number = sum(each.startswith(name) for each in now.load.jobs)
    job = job._replace(name=f"{name}-{number}")
    return now.load.submit(now.server.client(), job)


if __name__ == "__main__":
    main = {
        "database": full_database,
        "tasks": full_tasks,
        "data": full_of_data,
        "load": full_under_load,
    }
    main[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
