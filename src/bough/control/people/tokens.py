"""Personal access tokens: shown once, kept as a hash, expiring, with at most the user's roles."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.fields import duration_text
from bough.control.people.access import (
    DAY_MS,
    authorise,
    authorise_granting,
    change_access,
    hash_secret,
    new_secret,
)
from bough.control.people.administrators import keeping_administrators
from bough.control.people.role_bindings import PresentNames
from bough.control.site import Site
from bough.errors import Conflict, Forbidden, Invalid, NotFound
from bough.model.access import Action, Actor, Token
from bough.model.names import plain_name_fault
from bough.store import people as people_store
from bough.store import settings as setting_store

#: How long a token without an expiry date is valid.
DEFAULT_DAYS = 31


class NewToken(msgspec.Struct, frozen=True):
    """A token with its secret, which is shown once."""

    token: Token
    secret: str


def create_token(
    site: Site,
    actor: Actor,
    name: str,
    *,
    user: str | None = None,
    expires_ms: int | None = None,
    description: str = "",
    roles: Sequence[str] | None = None,
) -> NewToken:
    """Make a token for the actor, or for another user; `None`: with all roles of the user.

    A token never allows more than its maker has: a token with fewer roles cannot make one with
    more.
    """
    owner = _authorise(site, actor, Action.TOKEN_UPDATE, user)
    fault = plain_name_fault("Token", name)
    if fault is not None:
        raise Invalid(fault)
    now_ms = site.clock.now_ms()
    if expires_ms is not None and expires_ms <= now_ms:
        raise Invalid(f"Token {name} would have expired already; choose a later date.")
    with site.store.write() as connection:
        expires_ms = _expiry_ms(connection, name, now_ms, expires_ms)
        if people_store.find_user(connection, owner) is None:
            raise NotFound(f"User {owner} not found.")
        has = _given(site, connection, owner)
        if owner == actor.name:
            has = {name: stored for name, stored in has.items() if name in actor.roles}
        missing = [role for role in roles or () if role not in has]
        if missing:
            raise Forbidden(f"{owner} does not have the role {missing[0]}, so a token cannot.")
        if any(each.name == name for each in people_store.list_tokens(connection, owner)):
            raise Conflict(f"Token {name} already exists; delete it first.")
        kept = tuple(sorted({has[role] for role in (has if roles is None else roles)}))
        token = Token(owner, name, description, expires_ms, now_ms, kept, site.ids.uuid())
        secret = new_secret(site)
        people_store.insert_token(connection, token, hash_secret(secret))
        audit(connection, site, actor, "token:Create", f"token/{owner}/{name}", None, token)
        named = _named(PresentNames.of(site, connection, kept), token)
    return NewToken(named, secret)


def delete_token(site: Site, actor: Actor, name: str, *, user: str | None = None) -> None:
    """Revoke a token, unless it is the last one of an administrator."""
    owner = _authorise(site, actor, Action.TOKEN_UPDATE, user)
    with site.store.write() as connection:
        change_access(connection)
        with keeping_administrators(site, connection):
            if not people_store.delete_token(connection, owner, name):
                raise NotFound(f"Token {name} not found.")
        audit(connection, site, actor, "token:Delete", f"token/{owner}/{name}")


def list_tokens(site: Site, actor: Actor, *, user: str | None = None) -> list[Token]:
    """The tokens of a user, without what is secret."""
    owner = _authorise(site, actor, Action.TOKEN_READ, user)
    with site.store.read() as connection:
        return named_tokens(site, connection, owner)


def named_tokens(site: Site, connection: sa.Connection, user: str) -> list[Token]:
    """The tokens of a user, with their roles by the names that they have now."""
    found = people_store.list_tokens(connection, user)
    present = PresentNames.of(site, connection, [role for each in found for role in each.roles])
    return [_named(present, each) for each in found]


def get_token(site: Site, actor: Actor, name: str, *, user: str | None = None) -> Token:
    """One token, without what is secret."""
    for token in list_tokens(site, actor, user=user):
        if token.name == name:
            return token
    raise NotFound(f"Token {name} not found.")


def _expiry_ms(connection: sa.Connection, name: str, now_ms: int, wanted_ms: int | None) -> int:
    """When a new token expires; one that would be valid for longer than tokens may is refused."""
    longest_s = setting_store.service_settings(connection).max_token_duration_s
    if wanted_ms is None:
        default_ms = DEFAULT_DAYS * DAY_MS
        return now_ms + (default_ms if longest_s is None else min(default_ms, longest_s * 1_000))
    if longest_s is not None and wanted_ms > now_ms + longest_s * 1_000:
        raise Invalid(
            f"Token {name} would be valid for longer than {duration_text(longest_s)}, "
            "the most that is possible here; choose an earlier date."
        )
    return wanted_ms


def _named(present: PresentNames, token: Token) -> Token:
    return msgspec.structs.replace(token, roles=tuple(sorted(map(present.shown, token.roles))))


def _given(site: Site, connection: sa.Connection, user: str) -> dict[str, str]:
    """The roles of a user by name, as they are stored.

    Of one name, a bound role comes before others.
    """
    stored = sorted(each.role for each in people_store.assignments(connection, user))
    present = PresentNames.of(site, connection, stored)
    return {present.shown(each): each for each in stored}


def _authorise(site: Site, actor: Actor, action: Action, user: str | None) -> str:
    """Users change their own tokens; only administrators change those of others."""
    if user is None or user == actor.name:
        authorise(actor, action, names=site.role_names)
        return actor.name
    other = Action.USER_READ if action is Action.TOKEN_READ else Action.USER_UPDATE
    authorise(actor, other, names=site.role_names)
    if other is Action.USER_UPDATE:
        authorise_granting(site, actor)
    return user
