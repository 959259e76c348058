"""An older version of the program, as the history of this repository has it.

Its sources run with the libraries of today. Its own command asks its server, because what goes
between the two may have changed since.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.crash.postgres import cannot
from tests.e2e.local import Hosting
from tests.e2e.served import Served

ROOT = Path(__file__).parents[2]


class OldVersion(NamedTuple):
    """A commit from which people may come, and where its tasks keep what outlives them."""

    commit: str
    #: The beginning of URLs of the pool of the test.
    data: str


VERSIONS = {
    # Before nodes were known by their backend, the lease had an end, and credentials were
    # encrypted. URLs stood for folders then.
    "the-first": OldVersion("f924e592f935c7dc6f32e5ce47540d4d84de7afc", "s3://team"),
    # What was landed last, before the changes that are on their way.
    "the-last": OldVersion("46ea7ccc138d9d67df16cd545008f50d94d84911", "bough://team"),
}

_RUN = (sys.executable, "-m", "bough")


def unpack(folder: Path, commit: str) -> Path:
    """The sources of a commit; where git does not have it the test is skipped, but not in CI."""
    command = ["git", "-C", str(ROOT), "archive", commit, "src"]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        why = done.stderr.decode().strip()
        cannot(f"NOT TESTED: the upgrade from {commit[:7]}, which git does not have: {why}")
    # Python 3.11.2, as Debian has it, cannot be told what may be in an archive.
    command = ["tar", "--extract", "--directory", str(folder)]
    subprocess.run(command, input=done.stdout, check=True)
    return folder / "src"


class OldHosting(Hosting):
    """A server that is first started by old sources, and after `upgrade` by those of today."""

    def __init__(self, sources: Path, folder: Path, gpus: int, *, database: str | None) -> None:
        super().__init__(folder, gpus, database=database)
        self._sources = sources
        self._program = _RUN
        self._environment = {**os.environ, "PYTHONPATH": str(sources)}

    def start_old(self) -> OldServed:
        """Start it, and have its own command to ask it."""
        local = self.start()
        return OldServed(local.address, local.token, self.folder, self._sources)

    def upgrade(self) -> None:
        """From now on the program of today is started."""
        self._program = self.PROGRAM
        self._environment = None


class OldServed(Served):
    """A running server of an old version, asked by its own command."""

    def __init__(self, address: str, token: str, folder: Path, sources: Path) -> None:
        super().__init__(address, token, folder)
        self._sources = sources
        self._program = _RUN
        self._environment["PYTHONPATH"] = str(sources)

    def as_user(self, token: str) -> OldServed:
        """The same server, asked with another token."""
        return OldServed(self.address, token, self._folder, self._sources)
