"""What belongs to the one who asks: the profile and the credentials."""

from __future__ import annotations

from typing import Any

from litestar.params import FromPath, JSONBody

from bough.control import personal
from bough.errors import Invalid
from bough.model.access import Action, Credential, CredentialType, Profile
from bough.server.people_shapes import (
    CredentialLine,
    CredentialList,
    ProfileBody,
    ProfileChoices,
    ProfileToken,
    SetCredential,
)
from bough.server.routes.declare import Visit, caller, route
from bough.server.wire import time_text

_PROFILE = "/api/profile/settings"
_CREDENTIAL = "/api/credentials/{credential:str}"


@route("GET", _PROFILE, Action.PROFILE_READ)
def get_profile(request: Visit) -> ProfileBody:
    """What one has chosen, and where one may submit."""
    site, actor = caller(request)
    view = personal.get_profile(site, actor)
    token = view.token
    return ProfileBody(
        profile=_choices(view.profile),
        pools=list(view.pools),
        roles=list(view.roles),
        token=None
        if token is None
        else ProfileToken(token.name, time_text(token.expires_ms) or ""),
    )


@route("POST", _PROFILE, Action.PROFILE_UPDATE)
def set_profile(request: Visit, data: JSONBody[dict[str, Any]]) -> ProfileChoices:
    """Choose a pool, or which notifications one wants."""
    site, actor = caller(request)
    return _choices(personal.set_profile(site, actor, data))


@route("GET", "/api/credentials", Action.CREDENTIAL_READ)
def list_credentials(request: Visit) -> CredentialList:
    """One's credentials, without what is secret."""
    site, actor = caller(request)
    return CredentialList([_line(each) for each in personal.list_credentials(site, actor)])


@route("POST", _CREDENTIAL, Action.CREDENTIAL_UPDATE)
def set_credential(
    request: Visit, credential: FromPath[str], data: JSONBody[SetCredential]
) -> CredentialLine:
    """Keep a secret for one's workflows. Nobody will see it again."""
    site, actor = caller(request)
    try:
        kind = CredentialType(data.type.upper())
    except ValueError:
        known = ", ".join(CredentialType)
        raise Invalid(f"A credential is one of {known}, not {data.type[:40]!r}.") from None
    return _line(personal.set_credential(site, actor, credential, kind, data.payload))


@route("DELETE", _CREDENTIAL, Action.CREDENTIAL_UPDATE)
def delete_credential(request: Visit, credential: FromPath[str]) -> None:
    """Forget a secret."""
    site, actor = caller(request)
    personal.delete_credential(site, actor, credential)


def _choices(profile: Profile) -> ProfileChoices:
    return ProfileChoices(
        profile.user, profile.email_notification, profile.slack_notification, profile.pool
    )


def _line(credential: Credential) -> CredentialLine:
    return CredentialLine(
        cred_name=credential.name,
        cred_type=credential.type.value,
        keys=list(credential.keys),
        created_at=time_text(credential.created_ms),
    )


HANDLERS = (get_profile, set_profile, list_credentials, set_credential, delete_credential)
