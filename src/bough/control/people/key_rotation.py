"""Encrypts everything with the current key: at the start, and with a new key in a rotation."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import SYSTEM_ACTOR, audit
from bough.control.people import pass_key
from bough.control.people.credentials import KEY, wrong_key
from bough.control.site import Site
from bough.errors import Unavailable
from bough.store import credentials as credential_store
from bough.store import settings as setting_store

_NOT_WIPED = (
    "The credentials are encrypted now, but free space in the database's files may still have "
    "them as they were stored before; run VACUUM FULL credentials on PostgreSQL, VACUUM on SQLite"
)


class Rotation(msgspec.Struct, frozen=True):
    """What a rotation of the key did."""

    #: The identity of the new key.
    key: str
    credentials: int


def encrypt_stored(site: Site) -> tuple[str, ...]:
    """At the start: ensure a key, and encrypt with it what is stored otherwise; returns warnings.

    That is what an earlier version stored in clear, and what an interrupted rotation left.
    """
    keys = site.credential_keys
    with site.store.read() as connection:
        known = setting_store.get(connection, KEY)
    keys.ensure(needed=known is not None)
    if known is not None and not keys.knows(known):
        raise wrong_key(site, known)
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
    """Encrypt everything with a new key, and forget the one before. Passes are signed anew, too.

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
        raise wrong_key(site, known)
    keys.add()
    with site.store.write() as connection:
        count = _seal_all(connection, site)
        subject = f"credential-key/{keys.current}"
        audit(connection, site, SYSTEM_ACTOR, "credentials:RotateKey", subject, None, None)
    keys.drop_older()
    return Rotation(keys.current, count)


def _seal_all(connection: sa.Connection, site: Site) -> int:
    """Encrypt every credential with the current key; how many there are. Passes end."""
    keys = site.credential_keys
    # Before all else, so that nothing is written with another key meanwhile.
    setting_store.put(connection, KEY, keys.current)
    pass_key.renew(connection, site)
    found = credential_store.all_stored(connection)
    for each in found:
        secret = each.clear if each.sealed is None else keys.open(each.credential, each.sealed)
        credential_store.put(connection, each.credential, keys.seal(each.credential, secret))
    return len(found)
