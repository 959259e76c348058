"""Roots of Debian for tests, made by mmdebstrap, and OCI archives of made-up layers."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

#: Where Debian's packages come from on this machine.
_SOURCES = (Path("/etc/apt/sources.list"), Path("/etc/apt/sources.list.d/debian.sources"))


def make_root(path: Path) -> Path:
    """A small root folder: busybox, and the links by which a shell is called."""
    sources = [each for each in _SOURCES if each.is_file()]
    if os.environ.get("CI") != "true" and (shutil.which("mmdebstrap") is None or not sources):
        pytest.skip("MMDEBSTRAP IS NOT INSTALLED: IMAGES ARE NOT TESTED (scripts/packages.sh)")
    codename = next(
        line.partition("=")[2]
        for line in Path("/etc/os-release").read_text().splitlines()
        if line.startswith("VERSION_CODENAME=")
    )
    subprocess.run(
        [
            *("mmdebstrap", "--quiet", "--variant=extract", "--include=busybox-static"),
            *(codename, str(path), str(sources[-1])),
        ],
        check=True,
        timeout=300,
    )
    for name in ("sh", "cat", "ls", "sleep", "touch", "id"):
        (path / "bin" / name).symlink_to("busybox")
    (path / "etc" / "marked").write_text("by the image\n")
    path.chmod(0o755)
    return path


class Layer:
    """A layer of an archive, file by file."""

    def __init__(self) -> None:
        self._bytes = io.BytesIO()
        self._tar = tarfile.open(fileobj=self._bytes, mode="w")  # noqa: SIM115

    def file(self, name: str, text: str = "", mode: int = 0o644) -> Layer:
        member = tarfile.TarInfo(name)
        member.size, member.mode = len(text.encode()), mode
        self._tar.addfile(member, io.BytesIO(text.encode()))
        return self

    def link(self, name: str, leads: str, kind: bytes = tarfile.SYMTYPE) -> Layer:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, leads
        self._tar.addfile(member)
        return self

    def folder(self, name: str, mode: int = 0o755) -> Layer:
        member = tarfile.TarInfo(name)
        member.type, member.mode = tarfile.DIRTYPE, mode
        self._tar.addfile(member)
        return self

    def tree(self, path: Path) -> Layer:
        self._tar.add(path, ".")
        return self

    def content(self) -> bytes:
        self._tar.close()
        return self._bytes.getvalue()


def write_archive(path: Path, *layers: Layer, **manifest: Any) -> Path:
    """An OCI archive of layers, every second one compressed."""
    blobs: dict[str, bytes] = {}

    def add(content: bytes) -> dict[str, str]:
        digest = hashlib.sha256(content).hexdigest()
        blobs[digest] = content
        return {"digest": f"sha256:{digest}"}

    config = {
        "config": {"Env": ["PATH=/opt/own:/bin", "FROM_IMAGE=yes"], "WorkingDir": "/opt/start"}
    }
    contents = [each.content() for each in layers]
    described = {
        "config": add(json.dumps(config).encode()),
        "layers": [
            add(gzip.compress(each) if number % 2 else each) for number, each in enumerate(contents)
        ],
        **manifest,
    }
    index = {"manifests": [add(json.dumps(described).encode())]}
    with tarfile.open(path, "w") as tar:
        files = {f"blobs/sha256/{name}": content for name, content in blobs.items()}
        for name, content in (files | {"index.json": json.dumps(index).encode()}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path
