"""Unpacks an OCI archive: a tar file with an index, a manifest, a configuration and layers.

Layers are applied in order; a later one can mark files of earlier ones as removed. Whatever paths
and links are in an archive, nothing is written outside of its root folder. Contents that do not
match their digest are refused; devices and pipes are left out.
"""

from __future__ import annotations

import errno
import hashlib
import lzma
import os
import re
import shutil
import tarfile
import zlib
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

import msgspec

from bough.backends.local.data.paths import shown, split_path
from bough.backends.local.errors import Unstartable, lacks_room

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_GONE = ".wh."
_ALL_GONE = ".wh..wh..opq"
#: How deep an index may name other indexes, and how many links a path may have.
_DEEPEST = 3
_MOST_LINKS = 40
_LARGEST_JSON = 4 << 20
#: What the files of an image leave of the disk: a twentieth, but no more than this.
_LEFT_BYTES = 1 << 30
#: What damaged layers raise.
_UNREADABLE = (
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    ValueError,
    AttributeError,
    TypeError,
)
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


class OciArchive:
    """One archive, open for reading."""

    def __init__(self, path: Path) -> None:
        self._name = path.name
        self._tar = self._opened(path)
        try:
            self._manifest, self.digest = self._find_manifest()
            chosen = self._json(self._manifest.get("config") or {}).get("config") or {}
            given = [each.split("=", 1) for each in chosen.get("Env") or () if "=" in each]
            parts, fault = split_path(str(chosen.get("WorkingDir") or ""))
        except (AttributeError, TypeError) as error:
            self._tar.close()
            raise self._broken(f"its description is not in order: {error}") from error
        except BaseException:
            self._tar.close()
            raise
        #: The folder in which its programs start.
        self.working_folder = "/" if fault else "/" + "/".join(parts)
        #: The variables that the image sets.
        self.environment: dict[str, str] = dict(given)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tar.close()

    def unpack(self, target: Path) -> None:
        """Write its files to a new folder, which appears complete or not at all."""
        part = target.with_name(f"{target.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(mode=0o755)
        try:
            self._unpack(part)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise
        part.rename(target)

    def _unpack(self, root: Path) -> None:
        folders: list[tarfile.TarInfo] = []
        try:
            for layer in self._manifest.get("layers", ()):
                folders += self._lay(layer, root)
            _set_modes(root, folders)
        except _UNREADABLE as error:
            raise self._broken(f"a layer cannot be read: {error}") from error
        except OSError as error:
            if lacks_room(error):
                raise
            raise self._broken(f"a layer cannot be unpacked: {error.strerror}") from error

    def _opened(self, path: Path) -> tarfile.TarFile:
        try:
            return tarfile.open(path, "r:")
        except (tarfile.TarError, OSError) as error:
            raise self._broken(f"it is not a tar file: {error}") from error

    def _broken(self, why: str) -> Unstartable:
        return Unstartable(f"image: {shown(self._name)} is no OCI archive that can be used: {why}")

    # Its parts

    def _find_manifest(self) -> tuple[dict[str, Any], str]:
        """The manifest for this machine, and its digest."""
        index: dict[str, Any] = self._read_json("index.json")
        for _ in range(_DEEPEST):
            found = [each for each in index.get("manifests", ()) if _is_for_here(each)]
            if not found:
                break
            index = self._json(found[0])
            if "layers" in index:
                return index, self._digest(found[0])
        raise self._broken("it has no manifest for this machine")

    def _json(self, descriptor: dict[str, Any]) -> dict[str, Any]:
        digest = self._digest(descriptor)
        return self._read_json(f"blobs/sha256/{digest}", digest)

    def _digest(self, descriptor: dict[str, Any]) -> str:
        found = _DIGEST.fullmatch(str(descriptor.get("digest")))
        if found is None:
            raise self._broken(f"{descriptor.get('digest')!r} is not a sha256 digest")
        return found[1]

    def _read_json(self, name: str, digest: str | None = None) -> dict[str, Any]:
        with self._blob(name) as file:
            content = file.read(_LARGEST_JSON)
        if digest is not None and hashlib.sha256(content).hexdigest() != digest:
            raise self._broken(f"{name} has other contents than its name says")
        try:
            return msgspec.json.decode(content, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise self._broken(f"{name} cannot be read: {error}") from error

    def _blob(self, name: str) -> BufferedReader:
        for each in (name, f"./{name}"):
            try:
                found = self._tar.extractfile(each)
            except KeyError:
                continue
            if found is not None:
                return cast("BufferedReader", found)
        raise self._broken(f"it has no {name}")

    # Its layers

    def _lay(self, layer: dict[str, Any], root: Path) -> list[tarfile.TarInfo]:
        """Add the files of one layer; returns its folders."""
        if str(layer.get("mediaType")).endswith("zstd"):
            raise self._broken("its layers are compressed by zstd; gzip and none are possible")
        digest = self._digest(layer)
        name = f"blobs/sha256/{digest}"
        with self._blob(name) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise self._broken(f"{name} has other contents than its name says")
        with self._blob(name) as file, tarfile.open(fileobj=file, mode="r:*") as tar:
            return [member for member in tar if _Laying(tar, root).add(member)]


class _Laying:
    """Applies one layer on top of those before it."""

    def __init__(self, tar: tarfile.TarFile, root: Path) -> None:
        self._tar = tar
        self._root = root

    def add(self, member: tarfile.TarInfo) -> bool:
        """Add one entry; returns whether it is a folder."""
        path = _below(self._root, member.name)
        if path is None:
            return False
        if path.name.startswith(_GONE):
            self._remove(path)
            return False
        path.parent.mkdir(parents=True, exist_ok=True)
        if member.isdir():
            if path.is_symlink() or not path.is_dir():
                _drop(path)
                path.mkdir(mode=0o755)
        else:
            self._add_file(member, path)
        if os.geteuid() == 0 and os.path.lexists(path):
            os.chown(path, member.uid, member.gid, follow_symlinks=False)
        return member.isdir()

    def _add_file(self, member: tarfile.TarInfo, path: Path) -> None:
        if member.issym():
            _drop(path)
            path.symlink_to(member.linkname)
        elif member.islnk():
            source = _below(self._root, member.linkname)
            if source is not None and source.is_file() and not source.is_symlink():
                _drop(path)
                os.link(source, path)
        elif member.isfile():
            _drop(path)
            _check_room(self._root, member.size)
            content = self._tar.extractfile(member)
            with path.open("xb") as file:
                shutil.copyfileobj(cast("BufferedReader", content), file)
            path.chmod(member.mode & 0o777)

    def _remove(self, path: Path) -> None:
        """Remove what a layer marks as removed."""
        if path.name == _ALL_GONE:
            if path.parent.is_dir():
                for each in path.parent.iterdir():
                    _drop(each)
            return
        name = path.name.removeprefix(_GONE)
        if name not in {"", ".", ".."}:
            _drop(path.with_name(name))


def _is_for_here(descriptor: dict[str, Any]) -> bool:
    platform = descriptor.get("platform")
    here = _MACHINES.get(os.uname().machine, os.uname().machine)
    return platform is None or platform.get("architecture") in {None, here}


def _set_modes(root: Path, folders: list[tarfile.TarInfo]) -> None:
    """Set the modes of folders as the last layer that has them says.

    Only when all layers are there, since files must get into read-only folders, too.
    """
    modes = {_below(root, member.name): member.mode & 0o777 for member in folders}
    # The deepest first: a folder that is closed hides those in it.
    for path in sorted(filter(None, modes), key=lambda each: -len(each.parts)):
        if path.is_dir() and not path.is_symlink():
            path.chmod(modes[path])


def _check_room(root: Path, more: int) -> None:
    """Refuse to fill the disk, which others need, too: a small archive can have large files."""
    disk = shutil.disk_usage(root)
    if disk.free - more < min(_LEFT_BYTES, disk.total // 20):
        raise OSError(errno.ENOSPC, "the disk has too little room for the files of an image")


def _drop(path: Path) -> None:
    """Remove what is there, without following a link."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _below(root: Path, name: str) -> Path | None:
    """Resolve a path of an archive; links on the way are followed as if the root were `/`."""
    left = [each for each in reversed(name.split("/")) if each not in {"", "."}]
    if not left:
        return None
    parts: list[str] = []
    links = 0
    while left:
        part = left.pop()
        if part == "..":
            del parts[-1:]
            continue
        path = root.joinpath(*parts, part)
        if left and path.is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise ValueError(f"{shown(name)} has too many links on its way")
            leads = os.readlink(path)
            if leads.startswith("/"):
                parts = []
            left += [each for each in reversed(leads.split("/")) if each not in {"", "."}]
            continue
        parts.append(part)
    return root.joinpath(*parts) if parts else None
