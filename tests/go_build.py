"""Makes programs from a Go module of the tests, once for each version of them and of Go."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")


class MissingTool(Exception):
    """Something that programs are made with is not on this machine."""


class NoGo(MissingTool):
    """There is no Go on this machine, so the programs cannot be made."""


class GoModule(NamedTuple):
    """A folder with a go.mod and a go.sum, and the programs that are built from it."""

    folder: Path
    #: The folder in the user's cache.
    cache: str
    #: By name: the package, and the variables that the linker is told.
    programs: Mapping[str, tuple[str, Mapping[str, str]]]
    #: What cannot be done without Go.
    needs: str

    def build(self) -> Path:
        """The folder with the programs; those that are missing are built, which takes minutes."""
        folder = self._kept_in()
        if self._missing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / ".lock", "w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                for name in self._missing(folder):
                    self._build(name, folder)
        return folder

    def _kept_in(self) -> Path:
        """Where the programs of this go.sum and this Go are kept."""
        go = shutil.which("go")
        if go is None:
            raise NoGo(f"{self.needs} need Go 1.26 or newer on the PATH")
        version = subprocess.run([go, "version"], capture_output=True, check=True).stdout
        told = repr(self.programs).encode()
        key = hashlib.sha256((self.folder / "go.sum").read_bytes() + version + told)
        return cache_folder() / self.cache / key.hexdigest()[:16]

    def _missing(self, folder: Path) -> list[str]:
        return [name for name in self.programs if not (folder / name).is_file()]

    def _build(self, name: str, folder: Path) -> None:
        """Build one program; it appears whole under its name, or not at all."""
        package, variables = self.programs[name]
        told = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in variables.items())])
        with tempfile.TemporaryDirectory(dir=folder) as made:
            command = ["go", "build", *FLAGS, "-ldflags", told, "-o", f"{made}/{name}", package]
            print(f"building {name} into {folder}, once: this takes minutes", file=sys.stderr)
            # Without C: the programs then run wherever this kernel does.
            environment = {**os.environ, "CGO_ENABLED": "0"}
            subprocess.run(command, cwd=self.folder, env=environment, check=True)
            os.replace(f"{made}/{name}", folder / name)


def cache_folder() -> Path:
    """The folder of the user's cache."""
    home = os.environ.get("HOME")
    return Path(
        os.environ.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "/tmp")  # noqa: S108
    )


def report(build: Callable[[], Path]) -> int:
    """Build, and say where it is; without the tools that is a failure only in CI."""
    try:
        print(build())
    except MissingTool as missing:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAILED' if in_ci else 'SKIPPED'}: {missing}", file=sys.stderr)
        return 1 if in_ci else 0
    return 0
