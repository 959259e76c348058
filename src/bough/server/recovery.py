"""The way back in for one who can write the data folder: `bough admin recover`.

It needs no server, and it disturbs none that runs: tokens are looked up with every request.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bough.control.people.administrators import recover
from bough.control.site import Site
from bough.errors import Invalid
from bough.server.settings import ADMIN_TOKEN_FILE, DATABASE_FILE, Settings
from bough.store import Store
from bough.store.migration import require_latest


class Recovered(msgspec.Struct, frozen=True):
    """A token that was made, without its secret."""

    user: str
    token: str
    #: Where the secret is, readable by its owner alone.
    file: str
    expires_ms: int


def recover_administrator(settings: Settings) -> Recovered:
    """Make a token for an administrator, and write it to a file in the data folder."""
    files: list[Path] = []

    def keep(name: str, secret: str) -> None:
        files.append(settings.data / f"{ADMIN_TOKEN_FILE}-{name}")
        write_secret(files[-1], secret)

    with existing_store(settings) as store:
        made = recover(Site(store, namespace=settings.namespace), keep, _origin())
    return Recovered(made.user, made.name, str(files[-1]), made.expires_ms)


@contextmanager
def existing_store(settings: Settings) -> Iterator[Store]:
    """The database of a server, for what is done beside it; none is made, and none is changed."""
    path = settings.data / DATABASE_FILE
    if settings.database is None and not path.is_file():
        raise Invalid(
            f"{path} does not exist: {settings.data} is not a server's data folder.",
            hint="give the --data and --database that the server is started with",
        )
    store = Store.open(settings.address)
    try:
        require_latest(store)
        yield store
    finally:
        store.close()


def write_secret(path: Path, secret: str) -> None:
    """Write a secret so that only its owner can read it, from the first moment on.

    It is on the disk before the database knows of it: it is shown nowhere else.
    """
    try:
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secret + "\n")
            file.flush()
            os.fsync(descriptor)
        sync_folder(path.parent)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror}.") from None


def sync_folder(path: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _origin() -> str:
    """The account of this machine, for the audit."""
    try:
        return f"the account {getpass.getuser()} on the server's machine"
    except (KeyError, OSError):
        return f"the account {os.getuid()} on the server's machine"
