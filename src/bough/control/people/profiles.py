"""The profile and the credentials of one user."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import sqlalchemy as sa

from bough.control.people.access import allowed_pools, authorise, require_pool
from bough.control.recording import audit
from bough.control.site import Site
from bough.errors import Invalid, NotFound
from bough.model.access import Action, Actor, Credential, CredentialType, Profile, Token
from bough.model.names import plain_name_fault
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
        tokens = people_store.list_tokens(connection, actor.name)
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


def list_credentials(site: Site, actor: Actor) -> list[Credential]:
    """One's credentials, without what is secret."""
    authorise(actor, Action.CREDENTIAL_READ, names=site.role_names)
    with site.store.read() as connection:
        return people_store.list_credentials(connection, actor.name)


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
    now_ms = site.clock.now_ms()
    with site.store.write() as connection:
        made = Credential(actor.name, name, kind, created_ms=now_ms)
        people_store.put_credential(connection, made, secret)
        credential = _credential(connection, actor, name)
        subject = f"credential/{actor.name}/{name}"
        audit(connection, site, actor, Action.CREDENTIAL_UPDATE, subject, None, credential)
    return credential


def delete_credential(site: Site, actor: Actor, name: str) -> Credential:
    """Forget a secret; what it was, without what was secret."""
    authorise(actor, Action.CREDENTIAL_UPDATE, names=site.role_names)
    with site.store.write() as connection:
        before = _credential(connection, actor, name)
        people_store.delete_credentials(connection, actor.name, (name,))
        subject = f"credential/{actor.name}/{name}"
        audit(connection, site, actor, "credentials:Delete", subject, before, None)
    return before


def _credential(connection: sa.Connection, actor: Actor, name: str) -> Credential:
    for each in people_store.list_credentials(connection, actor.name):
        if each.name == name:
            return each
    raise NotFound(f"Credential {name} not found.")
