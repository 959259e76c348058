"""`python -m tests.crash.full KIND FOLDER`: a server on a small disk that is full.

Run in a mount namespace of its own (`unshare --mount`). The disk is a small ext4 image.
"""

from __future__ import annotations

import sys
from pathlib import Path

from bough.client import Client
from bough.errors import Unavailable
from tests.crash.crashes import make_pool, serving
from tests.crash.load import POOL
from tests.crash.power import Disk, make_images
from tests.crash.server import Server, until

#: More than can run, so that some wait.
JOBS = 40


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
    with make_images(folder) as images:
        disk = Disk(images, folder / "data", 160)
        server = Server(folder, gpus=16)
        with serving(server):
            make_pool(server)
            client = server.client()
            names = [submit(client, f"job-{number}") for number in range(JOBS)]
            until(lambda: client.workflows.get(names[0]).status == "RUNNING", "one runs")
            until((disk.path / "reserve").exists, "there is a reserve")
            assert "ok" == client.health().status
            fill(disk.path / "filler")
            for _ in range(3):
                assert "no new work is accepted" in refusal(client, "new")
                health = server.client().health()
                assert "degraded" == health.status, health
                assert "The disk of the database" in health.reasons[0]
            _end_and_delete(server, names)
            # A server that ends gives its log's room back, which something else takes.
            assert 0 == server.stop()
            fill(disk.path / "more")
            server.start()
            server.await_ready()
            client = server.client()
            _end_and_delete(server, names[JOBS // 2 :])
            for each in ("filler", "more"):
                (disk.path / each).unlink()
            until(lambda: client.health().status == "ok", "there is room again")
            name = submit(client, "after", "exit 0")
            until(lambda: client.workflows.get(name).status == "COMPLETED", "it runs")
            assert 0 == server.stop()
            assert "Traceback" not in server.log.read_text(), server.log.read_text()


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
    with make_images(folder) as images:
        disk = Disk(images, folder / "tasks", 64)
        server = Server(folder, gpus=16, options=("--task-folder", str(disk.path / "files")))
        with serving(server):
            make_pool(server)
            client = server.client()
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
            assert 0 == server.stop()
            assert "Traceback" not in server.log.read_text(), server.log.read_text()


if __name__ == "__main__":
    {"database": full_database, "tasks": full_tasks}[sys.argv[1]](Path(sys.argv[2]))
