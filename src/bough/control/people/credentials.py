"""The credentials of users, which are stored encrypted.

The database holds the identity of the key that encrypts, never the key: a server with another key
says so, and neither reads nor writes credentials.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.people.access import authorise
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


def list_credentials(site: Site, actor: Actor) -> list[Credential]:
    """The actor's credentials, without their secrets."""
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
        use_key(connection, site)
        credential_store.put(connection, credential, site.credential_keys.seal(credential, secret))
        subject = f"credential/{actor.name}/{name}"
        audit(connection, site, actor, Action.CREDENTIAL_UPDATE, subject, None, credential)
    return credential


def delete_credential(site: Site, actor: Actor, name: str) -> Credential:
    """Delete a credential; returns it without its secret."""
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


def use_key(connection: sa.Connection, site: Site) -> None:
    """Before something is encrypted: the database names this server's key, and is locked for it."""
    keys = site.credential_keys
    known = setting_store.claim(connection, KEY, keys.current)
    if known != keys.current:
        # A rotation may have changed the file.
        keys.load()
    if known != keys.current:
        raise wrong_key(site, known)


def wrong_key(site: Site, known: str) -> Unavailable:
    """The refusal where the database names a key that is not in the file."""
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
