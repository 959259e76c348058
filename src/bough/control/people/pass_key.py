"""The key that signs passes: one for the site, in the database, encrypted with the key of a file.

A copy of the database does not let anyone sign. Passes last for an hour, so the key is never
carried over: a new one is made where one was stored in clear, by a rotation, and after a restore.
"""

from __future__ import annotations

import sqlalchemy as sa

from bough.control.people.credentials import KEY, use_key
from bough.control.site import Site
from bough.errors import Unavailable
from bough.store import settings as setting_store
from bough.store.database import again_if_given_up

_WHAT = "The key that signs passes"


@again_if_given_up
def sealed_key(site: Site) -> str:
    """The key as it is stored; made when it is first needed."""
    with site.store.read() as connection:
        found: str | None = setting_store.get(connection, setting_store.PASS_KEY)
    if found is not None:
        return found
    with site.store.write() as connection:
        if setting_store.get(connection, KEY) is not None:
            # A rotation may be under way.
            use_key(connection, site)
        # Another server may have been faster; then its key counts.
        return setting_store.claim(connection, setting_store.PASS_KEY, _new(site))


def open_key(site: Site, sealed: str) -> bytes:
    """The key itself."""
    return site.credential_keys.open_setting(setting_store.PASS_KEY, _WHAT, sealed).encode()


def renew(connection: sa.Connection, site: Site) -> None:
    """Make a new key, encrypted with the current one of the file: earlier passes end."""
    setting_store.claim(connection, setting_store.PASS_KEY, "")
    setting_store.put(connection, setting_store.PASS_KEY, _new(site))


def check(site: Site) -> tuple[str, ...]:
    """At the start: forget a key that was stored in clear; warn if this server cannot sign."""
    with site.store.write() as connection:
        setting_store.remove(connection, setting_store.CLEAR_PASS_KEY)
        sealed: str | None = setting_store.get(connection, setting_store.PASS_KEY)
    if sealed is None:
        return ()
    try:
        open_key(site, sealed)
    except Unavailable as error:
        if not site.store.is_sqlite:
            return (f"Passes are neither made nor accepted here. {error.message} ({error.hint})",)
        # No other server can have it.
        with site.store.write() as connection:
            renew(connection, site)
    return ()


def _new(site: Site) -> str:
    return site.credential_keys.seal_setting(setting_store.PASS_KEY, site.ids.secret())
