"""Makes etcd, kube-apiserver and kwok from the module in this folder, once for each version."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent
#: What is built, and what the linker is told about each. An apiserver that was not told its
#: version reports v0.0.0, and refuses to start with settings of any other.
KUBERNETES, KWOK = "v1.36.3", "v0.8.0"
_VERSION = "k8s.io/component-base/version"
PROGRAMS = {
    "etcd": ("go.etcd.io/etcd/server/v3", {}),
    "kube-apiserver": (
        "k8s.io/kubernetes/cmd/kube-apiserver",
        {
            f"{_VERSION}.gitVersion": KUBERNETES,
            f"{_VERSION}.gitMajor": KUBERNETES[1:].split(".", maxsplit=1)[0],
            f"{_VERSION}.gitMinor": KUBERNETES.split(".")[1],
        },
    ),
    "kwok": ("sigs.k8s.io/kwok/cmd/kwok", {"sigs.k8s.io/kwok/pkg/consts.Version": KWOK}),
}
FLAGS = ("-trimpath", "-mod=readonly", "-buildvcs=false")


class NoGo(Exception):
    """There is no Go on this machine, so there is no bed either."""

    def __init__(self) -> None:
        super().__init__("the tests on a real apiserver need Go 1.26 or newer on the PATH")


def programs() -> Path:
    """The folder with the three programs; those that are missing are built, which takes minutes."""
    folder = _kept_in()
    if _missing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for name in _missing(folder):
                _build(name, folder)
    return folder


def _kept_in() -> Path:
    """Where the programs of this go.sum and this Go are kept."""
    go = shutil.which("go")
    if go is None:
        raise NoGo
    version = subprocess.run([go, "version"], capture_output=True, check=True).stdout
    key = hashlib.sha256((FOLDER / "go.sum").read_bytes() + version + repr(PROGRAMS).encode())
    home = os.environ.get("HOME")
    cache = os.environ.get("XDG_CACHE_HOME") or (f"{home}/.cache" if home else "/tmp")  # noqa: S108
    return Path(cache) / "bough-bed" / key.hexdigest()[:16]


def _missing(folder: Path) -> list[str]:
    return [name for name in PROGRAMS if not (folder / name).is_file()]


def _build(name: str, folder: Path) -> None:
    """Build one program; it appears whole under its name, or not at all."""
    package, variables = PROGRAMS[name]
    told = " ".join(["-s", "-w", *(f"-X {key}={value}" for key, value in variables.items())])
    with tempfile.TemporaryDirectory(dir=folder) as made:
        command = ["go", "build", *FLAGS, "-ldflags", told, "-o", f"{made}/{name}", package]
        print(f"building {name} into {folder}, once: this takes minutes", file=sys.stderr)
        # Without C: the programs then run wherever this kernel does.
        subprocess.run(command, cwd=FOLDER, env={**os.environ, "CGO_ENABLED": "0"}, check=True)
        os.replace(f"{made}/{name}", folder / name)


def main() -> int:
    """Build what is missing, and say where it is; without Go that is a failure only in CI."""
    try:
        print(programs())
    except NoGo as missing:
        in_ci = os.environ.get("CI") == "true"
        print(f"{'FAILED' if in_ci else 'SKIPPED'}: {missing}", file=sys.stderr)
        return 1 if in_ci else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
