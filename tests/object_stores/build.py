"""Makes versitygw and fake-gcs-server by Go, and azurite by npm, once for each version of them."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.go_build import GoModule, MissingTool, cache_folder, report

FOLDER = Path(__file__).parent
CACHE = "bough-object-stores"
PROGRAMS = {
    "versitygw": ("github.com/versity/versitygw/cmd/versitygw", {}),
    "fake-gcs-server": ("github.com/fsouza/fake-gcs-server", {}),
}
STORES = GoModule(FOLDER, CACHE, PROGRAMS, "the tests on real object stores")
_LOCKED = ("package.json", "package-lock.json")


class NoNpm(MissingTool):
    """There is no npm on this machine, so azurite cannot be installed."""

    def __init__(self) -> None:
        super().__init__("the tests on a store of Azure's kind need npm and node on the PATH")


def programs() -> Path:
    """The folder with what Go builds; what is missing is built, which takes minutes."""
    return STORES.build()


def azurite() -> Path:
    """The program that speaks the protocol of Azure; it is installed if it is missing."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        raise NoNpm
    key = hashlib.sha256(b"".join((FOLDER / name).read_bytes() for name in _LOCKED))
    above = cache_folder() / CACHE
    folder = above / f"npm-{key.hexdigest()[:16]}"
    above.mkdir(parents=True, exist_ok=True)
    with open(above / ".npm-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _install(npm, above, folder)
    return folder / "node_modules" / ".bin" / "azurite-blob"


def _install(npm: str, above: Path, folder: Path) -> None:
    """Install what the lock file names, without scripts; it appears whole, or not at all."""
    with tempfile.TemporaryDirectory(dir=above) as made:
        for name in _LOCKED:
            shutil.copy(FOLDER / name, made)
        print(f"installing azurite into {folder}, once", file=sys.stderr)
        quiet = ("--ignore-scripts", "--omit=dev", "--no-audit", "--no-fund", "--silent")
        subprocess.run([npm, "ci", *quiet], cwd=made, check=True)
        os.mkdir(f"{made}/kept")
        for name in (*_LOCKED, "node_modules"):
            os.rename(f"{made}/{name}", f"{made}/kept/{name}")
        os.rename(f"{made}/kept", folder)


if __name__ == "__main__":
    sys.exit(max(report(programs), report(azurite)))
