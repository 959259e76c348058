"""The images of a folder: an image is a root folder or an OCI archive of that name.

Names come from users and stay below the folder; what is in the folder comes from administrators,
who may put links there.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bough.backends.local.data.paths import shown
from bough.backends.local.errors import Unstartable

_PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@+-]{0,199}")
_LONGEST = 500
#: Every root folder has at least one of these.
_OF_ROOTS = ("usr", "bin")
_NAMED = 5


class Image(msgspec.Struct, frozen=True):
    """An image that is ready to run."""

    root: Path
    #: The variables that it sets.
    environment: dict[str, str] = {}
    #: The folder in which its programs start.
    working_folder: str = "/"


class ImageFolder:
    """Finds images by name. Any thread or process can use it."""

    def __init__(self, folder: Path, unpacked: Path) -> None:
        self._folder = folder
        #: Where archives are unpacked, by the digest of their contents.
        self._unpacked = unpacked

    def fault(self, name: str) -> str | None:
        """Why there is no image of this name; `None`: there is one."""
        try:
            self._find(name)
        except Unstartable as error:
            return error.message
        return None

    def open(self, name: str) -> Image:
        """The root folder of an image; unpacks an archive if that was not done before."""
        path = self._find(name)
        if path.is_dir():
            return Image(path)
        # Loaded by those that use it, because supervisors, which seldom do, are forked often.
        from bough.backends.local.images.oci_archive import OciArchive  # noqa: PLC0415

        with OciArchive(path) as archive:
            target = self._unpacked / archive.digest
            self._unpacked.mkdir(mode=0o755, parents=True, exist_ok=True)
            with _locked(self._unpacked / f"{archive.digest}.lock"):
                if not target.exists():
                    archive.unpack(target)
            folder = archive.working_folder
            there = target.joinpath(*Path(folder).parts[1:]).is_dir()
            return Image(target, archive.environment, folder if there else "/")

    def _find(self, name: str) -> Path:
        parts = name.split("/")
        if len(name) > _LONGEST or not all(map(_PART.fullmatch, parts)):
            raise Unstartable(f"image: {shown(name)} is not the name of an image")
        path = self._folder
        for part in parts:
            # A folder within an image is not an image itself.
            if path != self._folder and _is_root(path):
                raise self._missing(name)
            path /= part
        if not path.is_file() and not _is_root(path):
            raise self._missing(name)
        return path.resolve()

    def _missing(self, name: str) -> Unstartable:
        try:
            there = sorted(each for each in os.listdir(self._folder) if _PART.fullmatch(each))
        except OSError:
            there = []
        more = f" and {len(there) - _NAMED} more" if len(there) > _NAMED else ""
        known = f"{', '.join(there[:_NAMED])}{more}" if there else "none"
        return Unstartable(f"image: this server has no image {shown(name)}; it has: {known}")


def _is_root(path: Path) -> bool:
    return path.is_dir() and any(os.path.lexists(path / each) for each in _OF_ROOTS)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """A lock that one process holds at a time, and that is released however it ends."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
