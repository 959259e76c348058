"""The credentials of users, which are stored encrypted.

The database holds the identity of the key that encrypts, never the key: a server with another key
says so, and neither reads nor writes credentials.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.people.access import authorise
from bough.control.recording import SYSTEM_ACTOR, audit
from bough.control.site import Site
from bough.errors import Invalid, NotFound, Unavailable
from bough.model.access import Action, Actor, Credential, CredentialType
from bough.model.names import plain_name_fault
from bough.model.pool import Json
from bough.store import credentials as credential_store
from bough.store import settings as setting_store
from bough.store.rows import convert

#: The setting with the identity of the key.
KEY = "credential_key"
_NOT_WIPED = (
    "The credentials are encrypted now, but free space in the database's files may still have "
    "them as they were stored before; run VACUUM FULL credentials on PostgreSQL, VACUUM on SQLite"
)


class Rotation(msgspec.Struct, frozen=True):
    """What a rotation of the key did."""

    #: The identity of the new key.
    key: str
    credentials: int


def list_credentials(site: Site, actor: Actor) -> list[Credential]:
    """One's credentials, without what is secret."""
    authorise(actor, Action.CREDENTIAL_READ, names=site.role_names)
    with site.store.read() as connection:
        return credential_store.of_user(connection, actor.name)


def set_credential(
    site: Site, actor: Actor, name: str, kind: CredentialType, payload: Json
) -> Credential:
    """Store a credential for one's workflows. It is never shown again, nor in the audit."""
    authorise(actor, Action.CREDENTIAL_UPDATE, names=site.role_names)
    fault = plain_name_fault("Credential", name)
    if fault is not None:
        raise Invalid(fault)
    if not isinstance(payload, Mapping) or not payload:
        raise Invalid(f"Credential {name} needs a payload of keys and values.")
    try:
        secret = convert(dict(payload), dict[str, str])
    except msgspec.ValidationError:
        raise Invalid(f"Credential {name}: every key and every value must be text.") from None
    credential = describe(actor.name, name, kind, secret, site.clock.now_ms())
    with site.store.write() as connection:
        _use_key(connection, site)
        credential_store.put(connection, credential, site.credential_keys.seal(credential, secret))
        subject = f"credential/{actor.name}/{name}"
        audit(connection, site, actor, Action.CREDENTIAL_UPDATE, subject, None, credential)
    return credential


def delete_credential(site: Site, actor: Actor, name: str) -> Credential:
    """Forget a secret; what it was, without what was secret."""
    authorise(actor, Action.CREDENTIAL_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        before = _credential(connection, actor, name)
        credential_store.delete(connection, actor.name, (name,))
        subject = f"credential/{actor.name}/{name}"
        audit(connection, site, actor, "credentials:Delete", subject, before, None)
    return before


def read_secret(
    connection: sa.Connection, site: Site, user: str, name: str
) -> dict[str, str] | None:
    """The secret itself, for the backend alone; `None`: there is no such credential."""
    found = credential_store.find(connection, user, name)
    if found is None:
        return None
    if found.sealed is None:
        return found.clear
    return site.credential_keys.open(found.credential, found.sealed)


def describe(
    user: str, name: str, kind: CredentialType, secret: dict[str, str], now_ms: int
) -> Credential:
    """What is shown of a credential."""
    opens = secret.get(credential_store.OPENS.get(kind, ""))
    return Credential(user, name, kind, tuple(sorted(secret)), now_ms, opens)


def encrypt_stored(site: Site) -> tuple[str, ...]:
    """At the start: have a key, and encrypt with it what is stored otherwise; warnings.

    That is what an earlier version stored in clear, and what a rotation left undone.
    """
    keys = site.credential_keys
    with site.store.read() as connection:
        known = setting_store.get(connection, KEY)
    keys.ensure(needed=known is not None)
    if known is not None and not keys.knows(known):
        raise _wrong_key(site, known)
    with site.store.write() as connection:
        clear = credential_store.any_clear(connection)
        if not clear and known in {None, keys.current}:
            return ()
        _seal_all(connection, site)
    if clear:
        try:
            credential_store.wipe(site.store)
        except Unavailable as error:
            return (f"{_NOT_WIPED} ({error.message})",)
    return ()


def rotate(site: Site) -> Rotation:
    """Encrypt everything with a new key, and forget the one before.

    Servers may run meanwhile: they read the key file again. It has both keys until the database
    has what the new one encrypts, so it can be interrupted at any moment, and done again.
    """
    keys = site.credential_keys
    keys.ensure(needed=True)
    with keys.alone():
        return _rotate(site)


def _rotate(site: Site) -> Rotation:
    keys = site.credential_keys
    keys.load()
    with site.store.read() as connection:
        known = setting_store.get(connection, KEY)
    if known is not None and not keys.knows(known):
        raise _wrong_key(site, known)
    keys.add()
    with site.store.write() as connection:
        count = _seal_all(connection, site)
        subject = f"credential-key/{keys.current}"
        audit(connection, site, SYSTEM_ACTOR, "credentials:RotateKey", subject, None, None)
    keys.drop_older()
    return Rotation(keys.current, count)


def _seal_all(connection: sa.Connection, site: Site) -> int:
    """Encrypt every credential with the current key; how many there are."""
    keys = site.credential_keys
    # First, so that nothing is written with another key meanwhile.
    setting_store.put(connection, KEY, keys.current)
    found = credential_store.all_stored(connection)
    for each in found:
        secret = each.clear if each.sealed is None else keys.open(each.credential, each.sealed)
        credential_store.put(connection, each.credential, keys.seal(each.credential, secret))
    return len(found)


def _use_key(connection: sa.Connection, site: Site) -> None:
    """Before something is encrypted: the database names this server's key, and is locked for it."""
    keys = site.credential_keys
    known = setting_store.claim(connection, KEY, keys.current)
    if known != keys.current:
        # A rotation may have changed the file.
        keys.load()
    if known != keys.current:
        raise _wrong_key(site, known)


def _wrong_key(site: Site, known: str) -> Unavailable:
    path = site.credential_keys.path
    return Unavailable(
        f"The credentials in the database are encrypted with the key {known}, which is not in "
        f"the key file {path}.",
        hint="all servers on one database need the same key file (--key-file); copy it from "
        "where it is, readable by its owner alone",
    )


def _credential(connection: sa.Connection, actor: Actor, name: str) -> Credential:
    for each in credential_store.of_user(connection, actor.name):
        if each.name == name:
            return each
    raise NotFound(f"Credential {name} not found.")
