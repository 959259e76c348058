"""There is always an administrator who can get in: the first one, the last one, and the way back.

What counts is a token with the administrators' role: a user without one cannot log in. Tokens are
changed after `change_access`, so that two requests cannot each leave the other's token as the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import count

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import SYSTEM_ACTOR, audit
from bough.control.people.access import DAY_MS, change_access, hash_secret, new_secret
from bough.control.site import Site
from bough.errors import Conflict
from bough.model.access import RoleAssignment, Token, User
from bough.store import people as people_store

ADMIN = "admin"
#: How long one of the remaining tokens must be valid after a change.
LEAST_DAYS = 7
#: How long before the last token expires each start warns of it.
WARNED_DAYS = 30
_VALID_DAYS = 3650


@contextmanager
def keeping_administrators(site: Site, connection: sa.Connection) -> Iterator[None]:
    """Refuse a change that leaves no administrator's token, or none that lasts a week."""
    role, now_ms = site.role_names.admin, site.clock.now_ms()
    before = people_store.last_expiry(connection, role)
    yield
    if before is None or before <= now_ms:
        return
    after = people_store.last_expiry(connection, role)
    if after is None or after <= now_ms:
        raise Conflict(
            "This would take away the last valid token of an administrator, so no one could "
            "administer the site any more; make another one first."
        )
    if after < before and after < now_ms + LEAST_DAYS * DAY_MS:
        raise Conflict(
            f"This would leave no administrator's token that is valid for {LEAST_DAYS} days: the "
            f"last one expires at {_date(after)}; make another one first."
        )


def expiry_faults(site: Site) -> tuple[str, ...]:
    """Warnings where no administrator can log in, or soon none can."""
    with site.store.read() as connection:
        last_ms = people_store.last_expiry(connection, site.role_names.admin)
    now_ms = site.clock.now_ms()
    if last_ms is None or last_ms <= now_ms:
        return ("No administrator has a valid token; `bough admin recover` makes one.",)
    if last_ms < now_ms + WARNED_DAYS * DAY_MS:
        date = _date(last_ms)
        return (f"The last token of an administrator expires at {date}; make another one.",)
    return ()


def ensure_admin(site: Site, keep: Callable[[str], None] | None = None) -> str | None:
    """Create the first administrator, unless there is one; the secret of the token.

    The secret is kept before it is valid: a server that dies in between makes another one, instead
    of leaving a token whose secret is lost.
    """
    with site.store.write() as connection:
        change_access(connection)
        if people_store.users_with(connection, site.role_names.admin):
            return None
        _make_administrator(site, connection, ADMIN)
        people_store.delete_token(connection, ADMIN, "first")
        token, secret = _new_token(site, ADMIN, "first", "made at the first start")
        people_store.insert_token(connection, token, hash_secret(secret))
        audit(connection, site, SYSTEM_ACTOR, "token:Create", f"token/{ADMIN}/first", None, token)
        if keep is not None:
            keep(secret)
    return secret


def recover(site: Site, keep: Callable[[str, str], None], origin: str) -> Token:
    """Make an administrator's token for anyone who can write the database.

    `keep` also gets its name.

    As at the first start, the secret is kept before it is valid.
    """
    actor = msgspec.structs.replace(SYSTEM_ACTOR, origin=origin)
    with site.store.write() as connection:
        change_access(connection)
        user = _administrator(site, connection)
        name = _free_name(site, connection, user)
        token, secret = _new_token(site, user, name, "made by `bough admin recover`")
        people_store.insert_token(connection, token, hash_secret(secret))
        audit(connection, site, actor, "token:Recover", f"token/{user}/{name}", None, token)
        keep(name, secret)
    return token


def _administrator(site: Site, connection: sa.Connection) -> str:
    """A user with the administrators' role; a user who only has the usual name is not promoted."""
    having = people_store.users_with(connection, site.role_names.admin)
    for number in count(1):
        name = ADMIN if number == 1 else f"{ADMIN}-{number}"
        if name in having:
            return name
        if people_store.find_user(connection, name) is None:
            _make_administrator(site, connection, name)
            return name
    raise AssertionError("numbers do not end")


def _make_administrator(site: Site, connection: sa.Connection, name: str) -> None:
    now_ms = site.clock.now_ms()
    if people_store.find_user(connection, name) is None:
        user = User(name, now_ms, SYSTEM_ACTOR.name, site.ids.uuid())
        people_store.insert_user(connection, user)
    assignment = RoleAssignment(site.role_names.admin, SYSTEM_ACTOR.name, now_ms)
    people_store.assign(connection, name, assignment)


def _free_name(site: Site, connection: sa.Connection, user: str) -> str:
    had = {each.name for each in people_store.list_tokens(connection, user)}
    day = datetime.fromtimestamp(site.clock.now_ms() // 1_000, UTC).strftime("%Y%m%d")
    names = (f"recovered-{day}" + (f"-{number}" if number > 1 else "") for number in count(1))
    return next(name for name in names if name not in had)


def _new_token(site: Site, user: str, name: str, description: str) -> tuple[Token, str]:
    now_ms = site.clock.now_ms()
    expires_ms = now_ms + _VALID_DAYS * DAY_MS
    roles = (site.role_names.admin,)
    token = Token(user, name, description, expires_ms, now_ms, roles, site.ids.uuid())
    return token, new_secret(site)


def _date(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms // 1_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
