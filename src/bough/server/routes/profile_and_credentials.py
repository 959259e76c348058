"""The profile and the credentials of the user."""

from __future__ import annotations

from litestar.params import FromPath, JSONBody

from bough.api.common import Json
from bough.api.people import (
    CredentialLine,
    CredentialList,
    ProfileAnswer,
    ProfileChoices,
    ProfileToken,
    SetCredential,
)
from bough.control.people import credentials, profiles
from bough.errors import Invalid
from bough.model.access import Action, Credential, CredentialType, Profile
from bough.server.route_declaration import Visit, caller, route
from bough.server.values import expiry_text, time_text

_PROFILE = "/api/profile/settings"
_CREDENTIAL = "/api/credentials/{credential:str}"


@route("GET", _PROFILE, Action.PROFILE_READ)
def get_profile(request: Visit) -> ProfileAnswer:
    """The caller's settings, pools and roles."""
    site, actor = caller(request)
    view = profiles.get_profile(site, actor)
    token = view.token
    return ProfileAnswer(
        profile=_choices(view.profile),
        pools=list(view.pools),
        roles=list(view.roles),
        token=None if token is None else ProfileToken(token.name, expiry_text(token.expires_ms)),
    )


@route("POST", _PROFILE, Action.PROFILE_UPDATE)
def set_profile(request: Visit, data: JSONBody[dict[str, Json]]) -> None:
    """Set the caller's default pool or notifications."""
    site, actor = caller(request)
    profiles.set_profile(site, actor, data)


@route("GET", "/api/credentials", Action.CREDENTIAL_READ)
def list_credentials(request: Visit) -> CredentialList:
    """The caller's credentials, without their secrets."""
    site, actor = caller(request)
    return CredentialList([_line(each) for each in credentials.list_credentials(site, actor)])


@route("POST", _CREDENTIAL, Action.CREDENTIAL_UPDATE)
def set_credential(
    request: Visit, credential: FromPath[str], data: JSONBody[SetCredential]
) -> CredentialLine:
    """Store a credential for the caller's workflows; its secret is never shown again."""
    site, actor = caller(request)
    kind, payload = _sent(data)
    return _line(credentials.set_credential(site, actor, credential, kind, payload))


@route("DELETE", _CREDENTIAL, Action.CREDENTIAL_UPDATE)
def delete_credential(request: Visit, credential: FromPath[str]) -> CredentialList:
    """Delete a credential."""
    site, actor = caller(request)
    return CredentialList([_line(credentials.delete_credential(site, actor, credential))])


def _sent(data: SetCredential) -> tuple[CredentialType, dict[str, str]]:
    """The type and the parts of a secret, however it was sent."""
    generic, registry, address = (
        data.generic_credential,
        data.registry_credential,
        data.data_credential,
    )
    if [generic, registry, address, data.payload].count(None) != 3:
        raise Invalid(
            "Send one of generic_credential, registry_credential and data_credential, or a type "
            "with its payload."
        )
    if generic is not None:
        return CredentialType.GENERIC, generic.credential
    if registry is not None:
        return CredentialType.REGISTRY, registry
    if address is not None:
        parts = {key: value for key, value in address.items() if value is not None}
        return CredentialType.DATA, parts
    try:
        return CredentialType((data.type or "").upper()), data.payload or {}
    except ValueError:
        known, sent = ", ".join(CredentialType), (data.type or "")[:40]
        raise Invalid(f"A credential is one of {known}, not {sent!r}.") from None


def _choices(profile: Profile) -> ProfileChoices:
    return ProfileChoices(
        profile.user,
        profile.email_notification,
        profile.slack_notification,
        profile.pool,
        profile.webhook_notification,
    )


def _line(credential: Credential) -> CredentialLine:
    return CredentialLine(
        cred_name=credential.name,
        cred_type=credential.type.value,
        profile=credential.profile,
        keys=", ".join(credential.keys),
        created_at=time_text(credential.created_ms),
    )


HANDLERS = (get_profile, set_profile, list_credentials, set_credential, delete_credential)
