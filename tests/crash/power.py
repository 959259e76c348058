"""`python -m tests.crash.power KIND FOLDER SEED LOSSES`: the power fails, again and again.

Run in a mount namespace of its own (`unshare --mount`). The data is on an ext4 image that writes
nothing by itself for five minutes. When the power fails, all that runs is stopped where it is, the
image is copied, and everything is killed; then the copy takes the place of the disk. So what was
brought to the disk is there, and all else is gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

import sqlalchemy as sa

from bough.backends.local.attempt_folder import Folders, folder_name
from bough.backends.local.attempt_state import read_state
from bough.backends.logs.log_reader import AttemptLogReader
from bough.client import Client
from bough.durable_files import write_whole
from bough.model.task_template import CheckpointSpec, OutputSpec
from tests.crash.crashes import Scene, say, scene
from tests.crash.laws import FOLLOWED_OR_LOST
from tests.crash.postgres import Postgres
from tests.crash.record import read_record
from tests.crash.server import parent_of, until
from tests.local.bench import Bench
from tests.store.databases import SCRIPT

_MIB = 2**20
#: The longest time between two losses.
_POWER_S = 2.0
#: Tasks of one round whose ends must be on the disk.
_TASKS = 4
_LINES = 30


class Disk:
    """An ext4 image that is mounted; nothing reaches it but what is synced."""

    def __init__(self, images: Path, path: Path, size_mib: int) -> None:
        self.path = path
        self._image = images / f"{path.name}.img"
        self._copy = images / f"{path.name}.copy"
        with self._image.open("wb") as file:
            file.truncate(size_mib * _MIB)
        _run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self.mount(self._image, path)

    def mount(self, image: Path, path: Path) -> None:
        """Mount an image that writes by itself only after five minutes."""
        path.mkdir(exist_ok=True)
        _run("mount", "-o", "loop,commit=300", str(image), str(path))

    def sync(self) -> None:
        """Bring everything to the disk, as a machine does that has had power for long."""
        _run("sync", "--file-system", str(self.path))

    def copy(self) -> None:
        """Keep the image as it is at one moment: the kernel may write to it meanwhile."""
        while True:
            _run("cp", "--sparse=always", str(self._image), str(self._copy))
            compare = ["cmp", "--silent", str(self._image), str(self._copy)]
            if subprocess.run(compare, check=False).returncode == 0:
                return

    def replace(self) -> None:
        """Mount the copy in place of the disk, once nothing uses that any more."""
        until(lambda: not self._unmount(self.path), f"{self.path} is used by nothing")
        self._copy.replace(self._image)
        self.mount(self._image, self.path)

    @contextmanager
    def copied(self, path: Path) -> Iterator[Path]:
        """What a machine would find on the disk if the power failed now."""
        self.copy()
        self.mount(self._copy, path)
        try:
            yield path
        finally:
            until(lambda: not self._unmount(path), f"{path} is used by nothing")

    def _unmount(self, path: Path) -> int:
        command = ["umount", path]
        return subprocess.run(command, capture_output=True, check=False).returncode


def lose_power(find: Callable[[], Iterable[int]], disks: Iterable[Disk]) -> None:
    """Kill all processes at once; the disks stay as they were at that moment."""
    stopped: set[int] = set()
    while found := set(find()) - stopped:
        stopped |= found
        _signal(found, signal.SIGSTOP)
        # What waits for the disk is stopped when that is done.
        while not all(map(_is_stopped, stopped)):
            time.sleep(0.001)
    for disk in disks:
        disk.copy()
    _signal(_children_first(stopped), signal.SIGKILL)


def lose_often(
    now: Scene, losses: int, disks: list[Disk], postgres: Postgres | None
) -> Iterator[str]:
    """Let the power fail under load, at random moments; the attempts whose end was not known."""

    def everything() -> Iterator[int]:
        yield from now.server.processes()
        if postgres is not None:
            yield from postgres.processes()

    with now.load.running():
        for _ in range(losses):
            now.server.await_ready()
            time.sleep(now.random.uniform(0.0, _POWER_S))
            lose_power(everything, disks)
            now.server.kill()
            until(lambda: not any(everything()), "all processes have ended")
            for disk in disks:
                disk.replace()
            _assert_begun(now)
            if postgres is not None:
                postgres.resume(rebooted=True)
            for attempt, (_, task) in read_record(now.server.database).attempts.items():
                if not task.status.finished:
                    yield attempt
            now.server.start()
        now.server.await_ready()


def _assert_begun(now: Scene) -> None:
    """What has run is known as begun on the disk, so that it never runs again."""
    folders = Folders(now.server.data / "local")
    for run in list(now.witness.runs):
        state = read_state(folders.of(folder_name(run.attempt)).state)
        known = state is not None and state.begun is not None
        assert known, f"{run} ran, and the disk does not know it [seed {now.seed}]"


def serve(folder: Path, seed: int, losses: int, *, on_postgres: bool) -> None:
    """A server under load, with its tasks; nothing that it has answered is lost."""
    with make_images(folder) as images:
        disks = [Disk(images, folder / "data", 96)]
        with _postgres(images, disks) if on_postgres else _nothing() as postgres:
            url = None if postgres is None else postgres.url
            with scene(folder, seed, url) as now:
                _lose_without_end(now.server.client())
                cut = frozenset(lose_often(now, losses, disks, postgres))
                now.settle(FOLLOWED_OR_LOST, cut=cut)


def supervise(folder: Path, seed: int, losses: int) -> None:
    """Tasks end while no server is there to ask; how they ended, and what they made, is kept."""
    random = Random(seed)
    with make_images(folder) as images:
        disk = Disk(images, folder / "disk", 48)
        _assert_whole_files_are_kept(disk, folder)
        bench = Bench(disk.path, keep_days=1)
        with disk.copied(folder / "found") as found:
            # The database knows the machine by it as soon as the folder is open.
            kept = found / bench.options.folder.name / "machine"
            assert kept.exists(), "the identity of the machine is lost"
            assert [bench.backend.machine.id] == kept.read_text().split()
        for turn in range(losses):
            disk.sync()
            # Those that make nothing are alone: bringing results to the disk takes logs along.
            makes = turn % 2 == 0
            codes = {f"{turn}-{number}": random.choice((0, 0, 3)) for number in range(_TASKS)}
            attempts = {name: _run_task(bench, name, codes[name], makes=makes) for name in codes}
            for attempt in attempts.values():
                until(partial(bench.is_over, attempt), "its supervisor leaves")
            with disk.copied(folder / "found") as found:
                for name, attempt in attempts.items():
                    _assert_end(bench, found, attempt, codes[name])
                    if makes:
                        _assert_made(bench, found, name, codes[name])
            bench.backend.forget(tuple(attempts.values()))
        bench.end()
    say(f"{losses} losses, {losses * _TASKS} ends of tasks")


def _assert_whole_files_are_kept(disk: Disk, folder: Path) -> None:
    """A secret or a key is on the disk, under its name, as soon as it was written."""
    for content, replace in ((b"first", False), (b"second", True)):
        disk.sync()
        write_whole(disk.path / "key", content, replace=replace)
        with disk.copied(folder / "found") as found:
            kept = found / "key"
            assert content == (kept.read_bytes() if kept.exists() else b""), "a key is lost"


def _run_task(bench: Bench, name: str, code: int, *, makes: bool) -> str:
    """Start a task that prints, makes files, and ends; its attempt."""
    made = "echo $0 > {{output}}/made; echo $0 > checkpoint; " if makes else ""
    saved = CheckpointSpec("checkpoint", f"s3://saved/{name}", 3_600)
    return bench.run(
        *("/bin/sh", "-c", f"seq {_LINES}; {made}exit $0", str(code)),
        name=name,
        outputs=(OutputSpec(url=f"s3://made/{name}"),) if makes else (),
        checkpoints=(saved,) if makes else (),
    )


def _assert_end(bench: Bench, found: Path, attempt: str, code: int) -> None:
    """The end and the log of a task are in a copy of the disk."""
    folder = Folders(found / bench.options.folder.name).of(folder_name(attempt))
    state = read_state(folder.state)
    assert state is not None, f"{attempt} is not known"
    assert state.end is not None, f"{attempt} has no end"
    assert ("ended", code) == (state.end.sight, state.end.exit_code), state.end
    lines = AttemptLogReader(folder.path, finished=True).read(0).lines
    assert list(map(str, range(1, _LINES + 1))) == [each.text for each in lines], attempt


def _assert_made(bench: Bench, found: Path, name: str, code: int) -> None:
    """The checkpoint and, after a good end, the results of a task are in a copy of the disk."""
    kept = [f"saved/{name}/checkpoint"]
    if code == 0:
        kept += [f"made/{name}/made", f"results/flow-1/{name}/made"]
    for each in kept:
        # Where the data of a URL is need not be known here.
        paths = list((found / bench.options.folder.name).rglob(each))
        assert [f"{code}\n"] == [path.read_text() for path in paths], (each, paths)


def _lose_without_end(client: Client) -> None:
    """Attempts are lost far more often than a site allows by default."""
    client.configs.update("WORKFLOW", {"max_lost_retries": 1_000})


@contextmanager
def make_images(folder: Path) -> Iterator[Path]:
    """A folder in memory for images, so that nothing waits for the disk of this machine."""
    images = folder / "images"
    images.mkdir()
    _run("mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", str(images))
    yield images


@contextmanager
def _nothing() -> Iterator[None]:
    yield None


@contextmanager
def _postgres(images: Path, disks: list[Disk]) -> Iterator[Postgres]:
    """A cluster on a disk of its own, configured not to wait for it."""
    folder = Path(tempfile.mkdtemp(prefix="bough-postgres-"))
    try:
        disk = Disk(images, folder, 400)
        folder.chmod(0o755)
        command = [SCRIPT, "start", folder, "durable"]
        url = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        postgres = Postgres(folder, url)
        engine = sa.create_engine(
            sa.make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT"
        )
        with engine.connect() as connection:
            connection.exec_driver_sql("ALTER SYSTEM SET synchronous_commit = off")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
        engine.dispose()
        disk.sync()
        disks.append(disk)
        try:
            yield postgres
        finally:
            postgres.crash()
            _run("umount", "--lazy", str(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _is_stopped(pid: int) -> bool:
    """Whether no thread of a process runs, or it is gone."""
    with suppress(OSError):
        for each in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                state = (each / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in b"TtZX":
                    return False
    return True


def _children_first(pids: Iterable[int]) -> list[int]:
    """So that none goes on for a moment, and starts a task after the power has failed.

    The kernel continues a stopped process group when the last parent outside of it dies, if that is
    of the same session: as a supervisor when its fork server is killed.
    """
    parents = {pid: parent_of(pid) for pid in pids}

    def depth(pid: int) -> int:
        above = parents.get(pid)
        return 0 if above is None else 1 + depth(above)

    return sorted(parents, key=depth, reverse=True)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def main(kind: str, folder: Path, seed: int, losses: int) -> None:
    """Lose the power so often."""
    if kind == "supervisor":
        supervise(folder, seed, losses)
    else:
        serve(folder, seed, losses, on_postgres=kind == "postgresql")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *map(int, sys.argv[3:]))
