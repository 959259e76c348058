"""A site's database as a file, and back, while servers run.

The files of tasks, their logs and their data, are no part of it. Neither is the key that encrypts
credentials, unless that is asked for: a backup then opens them to anyone who can read it.
"""

from __future__ import annotations

import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import sqlalchemy as sa

from bough.control.credential_keys import CredentialKeys
from bough.durable_files import whole_file
from bough.errors import Invalid, Unavailable
from bough.server.data_folder import existing_store, make_folder
from bough.server.settings import Settings
from bough.store import Store
from bough.store.dump import DumpHead, MakeHead, Progress, check_dump, load_dump, write_dump
from bough.store.schema import CREDENTIALS
from bough.version import VERSION

_MODE = 0o600


class Backup(msgspec.Struct, frozen=True):
    """What was written to a file, or read from one."""

    file: str
    rows: int
    bytes: int
    #: Of the program that made it, and of the tables.
    version: str
    revision: str
    created: str
    #: Whether the key that encrypts credentials is in it.
    with_key: bool
    warnings: tuple[str, ...] = ()


def back_up(settings: Settings, path: Path, *, with_key: bool, tell: Progress) -> Backup:
    """Write all that the database has at this moment to a new file, whole or not at all."""
    with existing_store(settings) as store:
        key = _read_key(settings) if with_key else None
        created = datetime.now(UTC).isoformat(timespec="seconds")

        def head(revision: str, numbers: dict[str, int]) -> DumpHead:
            return DumpHead(VERSION, created, revision, numbers, key=key)

        return _describe(path, _write(store, path, head, tell))


def restore(settings: Settings, path: Path, *, replace: bool, tell: Progress) -> Backup:
    """Have what a file has in the database, and nothing else; running servers notice it."""
    head, rows = check_dump(path)
    make_folder(settings.data)
    store = Store.open(settings.address)
    try:
        load_dump(store, path, secrets.token_hex(8), replace=replace, tell=tell)
        warnings = _take_key(settings, store, head)
    finally:
        store.close()
    return msgspec.structs.replace(_describe(path, rows), warnings=warnings)


def _write(store: Store, path: Path, head: MakeHead, tell: Progress) -> int:
    """Write beside the file, and give it its name when all of it is on the disk."""
    try:
        if os.path.lexists(path):
            raise FileExistsError
        with whole_file(path, replace=False) as file:
            return write_dump(store, file, head, tell)
    except FileExistsError:
        raise Invalid(f"{path} exists; name another file, or remove it.") from None
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror or error}.") from None


def _describe(path: Path, rows: int) -> Backup:
    head, _ = check_dump(path)
    return Backup(
        file=str(path),
        rows=rows,
        bytes=path.stat().st_size,
        version=head.version,
        revision=head.revision,
        created=head.created,
        with_key=head.key is not None,
    )


def _read_key(settings: Settings) -> str:
    keys = CredentialKeys(settings.credential_key_file)
    keys.load()
    return settings.credential_key_file.read_text()


def _take_key(settings: Settings, store: Store, head: DumpHead) -> tuple[str, ...]:
    """Add the keys of a backup to the key file; say so where credentials cannot be read."""
    path = settings.credential_key_file
    if head.key is not None:
        CredentialKeys(path).take_in(head.key)
    with store.read() as connection:
        sealed = connection.execute(
            sa.select(CREDENTIALS.c.sealed).where(CREDENTIALS.c.sealed.is_not(None))
        ).scalars()
        identities = {each.split(":")[1] for each in sealed}
    keys = CredentialKeys(path)
    known = path.exists() and all(map(keys.knows, identities))
    if not identities or known:
        return ()
    text = (
        f"credentials are encrypted with a key that is neither in the backup nor in {path}: "
        "copy the key file of the site that was backed up there, or set these credentials again"
    )
    return (text,)
