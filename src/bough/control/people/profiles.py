"""The profile of one user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bough.control.people.access import allowed_pools, authorise, require_pool
from bough.control.people.tokens import named_tokens
from bough.control.recording import audit
from bough.control.site import Site
from bough.errors import Invalid
from bough.model.access import Action, Actor, Profile, Token
from bough.model.pool import Json
from bough.store import people as people_store
from bough.store.rows import convert

_CHOICES = ("pool", "email_notification", "slack_notification")


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
        people_store.put_profile(connection, after)
        subject = f"profile/{actor.name}"
        audit(connection, site, actor, Action.PROFILE_UPDATE, subject, before, after)
    return after
