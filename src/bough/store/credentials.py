"""Credentials of users, as ciphertexts. What names and describes one is stored beside it.

A row of an earlier version has its secret in `payload` instead, until the next start encrypts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec
import sqlalchemy as sa

from bough.model.access import Credential, CredentialType
from bough.store.database import Store
from bough.store.schema import CREDENTIALS

#: Which part of a credential says what it opens.
OPENS = {CredentialType.DATA.value: "endpoint", CredentialType.REGISTRY.value: "registry"}


class StoredCredential(msgspec.Struct, frozen=True):
    """A credential with its secret."""

    credential: Credential
    #: `None`: it is stored in clear.
    sealed: str | None
    clear: dict[str, str]


def of_user(connection: sa.Connection, user: str) -> list[Credential]:
    """The credentials of a user, by name, without their secrets."""
    query = sa.select(CREDENTIALS).where(CREDENTIALS.c.user == user).order_by(CREDENTIALS.c.name)
    return [_stored(row).credential for row in connection.execute(query)]


def find(connection: sa.Connection, user: str, name: str) -> StoredCredential | None:
    """A credential with its secret."""
    query = sa.select(CREDENTIALS).where(CREDENTIALS.c.user == user, CREDENTIALS.c.name == name)
    row = connection.execute(query).one_or_none()
    return None if row is None else _stored(row)


def all_stored(connection: sa.Connection) -> list[StoredCredential]:
    """All credentials of all users."""
    query = sa.select(CREDENTIALS).order_by(CREDENTIALS.c.user, CREDENTIALS.c.name)
    return [_stored(row) for row in connection.execute(query)]


def any_clear(connection: sa.Connection) -> bool:
    """Whether some are stored in clear."""
    query = sa.select(CREDENTIALS.c.name).where(CREDENTIALS.c.sealed.is_(None)).limit(1)
    return connection.execute(query).first() is not None


def put(connection: sa.Connection, credential: Credential, sealed: str) -> None:
    """Write a credential, new or changed."""
    delete(connection, credential.user, (credential.name,))
    connection.execute(
        sa.insert(CREDENTIALS).values(
            user=credential.user,
            name=credential.name,
            type=credential.type.value,
            payload={},
            created_ms=credential.created_ms,
            sealed=sealed,
            key_names=list(credential.keys),
            opens=credential.profile,
        )
    )


def delete(connection: sa.Connection, user: str, names: Iterable[str]) -> bool:
    """Remove credentials of a user, and say whether there were any."""
    query = sa.delete(CREDENTIALS).where(
        CREDENTIALS.c.user == user, CREDENTIALS.c.name.in_(tuple(names))
    )
    return bool(connection.execute(query).rowcount)


def wipe(store: Store) -> None:
    """Overwrite what deleted rows have left in the files of the database."""
    if store.is_sqlite:
        store.run_outside_transactions("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)")
    else:
        store.run_outside_transactions(f"VACUUM FULL {CREDENTIALS.name}")


def _stored(row: sa.Row[Any]) -> StoredCredential:
    clear = {} if row.sealed is not None else dict(row.payload)
    names = row.key_names if row.sealed is not None else sorted(clear)
    opens = row.opens if row.sealed is not None else clear.get(OPENS.get(row.type, ""))
    kind = CredentialType(row.type)
    credential = Credential(row.user, row.name, kind, tuple(names), row.created_ms, opens)
    return StoredCredential(credential, row.sealed, clear)
