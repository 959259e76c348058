"""The profile of one user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.change_recording import audit
from bough.control.people.access import allowed_pools, authorise, require_pool
from bough.control.people.credentials import read_secret
from bough.control.people.tokens import named_tokens
from bough.control.site import Site
from bough.errors import BoughError, Invalid
from bough.model.access import Action, Actor, Profile, Token
from bough.model.notification import CREDENTIALS, URL_PART, Channel
from bough.model.pool import Json
from bough.store import people as people_store
from bough.store.rows import convert

_NOTIFICATIONS = {f"{channel.value}_notification": channel for channel in Channel}
_CHOICES = ("pool", *_NOTIFICATIONS)


class ProfileView(msgspec.Struct, frozen=True):
    """What a user has chosen, and may do."""

    profile: Profile
    #: Pools and visible subpools that the user may submit to.
    pools: tuple[str, ...]
    roles: tuple[str, ...]
    token: Token | None


def get_profile(site: Site, actor: Actor) -> ProfileView:
    """The profile of the actor."""
    authorise(actor, Action.PROFILE_READ, names=site.role_names)
    with site.store.read() as connection:
        tokens = named_tokens(site, connection, actor.name)
        return ProfileView(
            people_store.find_profile(connection, actor.name),
            tuple(allowed_pools(site, actor, connection)),
            actor.roles,
            next((each for each in tokens if each.name == actor.token), None),
        )


def set_profile(site: Site, actor: Actor, changes: Json) -> Profile:
    """Change what was chosen: the default pool, notifications."""
    authorise(actor, Action.PROFILE_UPDATE, names=site.role_names)
    if not isinstance(changes, Mapping) or not set(changes) <= set(_CHOICES):
        raise Invalid(f"A profile has only the fields {', '.join(_CHOICES)}.")
    with site.store.write() as connection:
        before = people_store.find_profile(connection, actor.name)
        try:
            after = convert({**msgspec.to_builtins(before), **changes}, Profile)
        except msgspec.ValidationError as error:
            raise Invalid(f"Profile: {error}") from None
        if after.pool is not None and after.pool != before.pool:
            require_pool(connection, after.pool)
        for name, channel in _NOTIFICATIONS.items():
            if getattr(after, name) and not getattr(before, name):
                _check_target(site, connection, actor.name, channel)
        people_store.put_profile(connection, after)
        subject = f"profile/{actor.name}"
        audit(connection, site, actor, Action.PROFILE_UPDATE, subject, before, after)
    return after


def _check_target(site: Site, connection: sa.Connection, user: str, channel: Channel) -> None:
    """Refuse notifications that could not be sent."""
    target, fault = target_of(site, connection, user, channel)
    if target is not None:
        return
    if channel is Channel.EMAIL or not site.notifications.webhooks:
        hint = "an administrator decides that with: bough serve --notifications FILE"
    else:
        name = CREDENTIALS[channel]
        hint = f"set it with: bough credential set {name} --type GENERIC --payload {URL_PART}=URL"
    raise Invalid(f"Notifications by {channel} cannot be sent: {fault}.", hint=hint)


def target_of(
    site: Site, connection: sa.Connection, user: str, channel: Channel
) -> tuple[str | None, str]:
    """The address or URL for a user's notifications; or none, and why."""
    rules = site.notifications
    if channel is Channel.EMAIL:
        if rules.email is None:
            return None, "this server sends no e-mail"
        address = rules.address_of(user)
        domains = ", ".join(rules.email.domains)
        return address, "" if address else f"{user} is not an address at {domains}"
    if not rules.webhooks:
        return None, "this server sends nothing to webhooks"
    name = CREDENTIALS[channel]
    try:
        secret = read_secret(connection, site, user, name)
    except BoughError as error:
        return None, error.message.rstrip(".")
    url = (secret or {}).get(URL_PART)
    if url is None:
        return None, f"{user} has no credential {name} with a part {URL_PART}"
    fault = rules.url_fault(url)
    return (url, "") if fault is None else (None, fault)
