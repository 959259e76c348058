"""A PostgreSQL that keeps what is committed, and that can crash and come back."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crash.server import children, is_alive
from tests.store.databases import SCRIPT


class Postgres:
    """One database in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        self._folder = folder
        self.url = url

    def crash(self) -> None:
        """Kill it, without a word to its clients."""
        subprocess.run([SCRIPT, "stop", self._folder], capture_output=True, check=True)

    def processes(self) -> list[int]:
        """Its living processes."""
        try:
            main = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        except (OSError, IndexError):
            return []
        return [pid for pid in (main, *children(main)) if is_alive(pid)]

    def resume(self, *, rebooted: bool = False) -> None:
        """Start it again, with what was committed."""
        if rebooted:
            # After that no process has the number in these; here one that has ended may have it.
            for each in ("data/postmaster.pid", ".s.PGSQL.5432.lock"):
                (self._folder / each).unlink(missing_ok=True)
        # Not captured: the database inherits the pipes, and keeps them open.
        subprocess.run([SCRIPT, "resume", self._folder], check=True)


@contextmanager
def durable_postgres() -> Iterator[Postgres]:
    """Start one for a test. Without the program the test is skipped, but not in CI."""
    folder = Path(tempfile.mkdtemp(prefix="bough-postgres-"))
    folder.chmod(0o755)
    command = [SCRIPT, "start", folder, "durable"]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        if started.returncode:
            cannot(f"PostgreSQL cannot be had: {started.stderr.strip()}")
        yield Postgres(folder, started.stdout.strip())
    finally:
        if started.returncode == 0:
            subprocess.run([SCRIPT, "stop", folder], capture_output=True, check=False)
        shutil.rmtree(folder, ignore_errors=True)


def cannot(message: str) -> None:
    """This machine is not fit for a test: it is skipped, and said aloud; in CI it fails."""
    if os.environ.get("CI") == "true":
        pytest.fail(message)
    pytest.skip(message)
