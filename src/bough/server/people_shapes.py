"""Bodies about people, records and the server itself. Must not know any rule."""

from __future__ import annotations

from typing import Any

import msgspec

Json = Any


# People


class ProfileChoices(msgspec.Struct, frozen=True):
    """What a user has chosen."""

    username: str
    email_notification: bool
    slack_notification: bool
    pool: str | None


class ProfileToken(msgspec.Struct, frozen=True):
    """The token that was used."""

    name: str
    expires_at: str


class ProfileBody(msgspec.Struct, frozen=True):
    """What a user has chosen, and may use."""

    profile: ProfileChoices
    pools: list[str]
    roles: list[str]
    token: ProfileToken | None


class UserLine(msgspec.Struct, frozen=True):
    """A user in a list."""

    id: str
    created_at: str | None
    created_by: str


class UserList(msgspec.Struct, frozen=True):
    """Users, and how many there are in all."""

    users: list[UserLine]
    total_results: int


class RoleAssignment(msgspec.Struct, frozen=True):
    """A role that a user was given."""

    role_name: str
    assigned_by: str
    assigned_at: str | None


class UserBody(msgspec.Struct, frozen=True):
    """A user with the roles that were given."""

    id: str
    created_at: str | None
    created_by: str
    roles: list[RoleAssignment]


class CreateUser(msgspec.Struct, frozen=True):
    """A user to add."""

    id: str
    roles: list[str] = []


class ChangeRoles(msgspec.Struct, frozen=True):
    """Roles to give and to take."""

    add: list[str] = []
    remove: list[str] = []


class RoleName(msgspec.Struct, frozen=True):
    """A role to give."""

    role_name: str


class RoleUsers(msgspec.Struct, frozen=True):
    """Who has a role."""

    role_name: str
    users: list[str]


class TokenLine(msgspec.Struct, frozen=True):
    """A personal access token, without its secret."""

    token_name: str
    user_name: str
    description: str
    expires_at: str
    created_at: str | None
    roles: list[str]


class TokenRoles(msgspec.Struct, frozen=True):
    """What a token may do."""

    token_name: str
    user_name: str
    roles: list[RoleAssignment]


class TokenSecret(msgspec.Struct, frozen=True):
    """The secret of a token."""

    token: str


class PassBody(msgspec.Struct, frozen=True):
    """A short-lived token made from a personal one."""

    token: str
    expires_at: int
    error: str | None = None


class LoginBody(msgspec.Struct, frozen=True):
    """How to log in: with a token alone, so every other way is absent."""

    methods: list[str]
    device_endpoint: str | None = None
    device_client_id: str | None = None
    browser_endpoint: str | None = None
    browser_client_id: str | None = None
    token_endpoint: str | None = None


class CredentialLine(msgspec.Struct, frozen=True):
    """A credential, without what is secret."""

    cred_name: str
    cred_type: str
    #: What it opens, where that is no secret: a registry, or an address of data.
    profile: str | None
    keys: list[str]
    created_at: str | None


class CredentialList(msgspec.Struct, frozen=True):
    """One's credentials."""

    credentials: list[CredentialLine]


class GenericCredential(msgspec.Struct, frozen=True):
    """A secret for anything, by the names of its parts."""

    credential: dict[str, str]


class SetCredential(msgspec.Struct, frozen=True):
    """A secret to keep: a type with its payload, or one of the three that existing clients send."""

    type: str | None = None
    payload: dict[str, str] | None = None
    generic_credential: GenericCredential | None = None
    registry_credential: dict[str, str] | None = None
    data_credential: dict[str, str | None] | None = None


# Records and the system


class AuditLine(msgspec.Struct, frozen=True):
    """Who changed what, when, from where, before and after."""

    number: int
    at: str | None
    actor: str
    action: str
    subject: str
    origin: str
    token: str | None
    before: Json
    after: Json


class AuditPage(msgspec.Struct, frozen=True):
    """Entries of the audit, the latest first."""

    entries: list[AuditLine]


class VersionBody(msgspec.Struct, frozen=True):
    """The version of the server."""

    major: str
    minor: str
    revision: str
    hash: str = ""


class HealthBody(msgspec.Struct, frozen=True):
    """Whether the server can answer."""

    status: str
    #: Whether this server decides; among several, one does.
    schedules: bool
