"""Users, roles, tokens, credentials, the profile, and logging in."""

from __future__ import annotations

import msgspec

from bough.api.common import Json

# The profile


class ProfileChoices(msgspec.Struct, frozen=True):
    """The settings of a user."""

    username: str
    email_notification: bool
    slack_notification: bool
    pool: str | None
    webhook_notification: bool = False


class ProfileToken(msgspec.Struct, frozen=True):
    """The token of the request."""

    name: str
    expires_at: str


class ProfileAnswer(msgspec.Struct, frozen=True):
    """The settings, pools and roles of a user."""

    profile: ProfileChoices
    pools: list[str]
    roles: list[str]
    token: ProfileToken | None


# Users and roles


class UserLine(msgspec.Struct, frozen=True):
    """A user in a list."""

    id: str
    created_at: str | None
    created_by: str


class UserList(msgspec.Struct, frozen=True):
    """Users, and how many there are in all."""

    users: list[UserLine]
    total_results: int
    #: The number of the first one, from 1, and how many are shown at most.
    start_index: int = 1
    items_per_page: int = 100


class AssignedRole(msgspec.Struct, frozen=True):
    """A role granted to a user."""

    role_name: str
    assigned_by: str
    assigned_at: str | None


class UserAnswer(msgspec.Struct, frozen=True):
    """A user with the granted roles."""

    id: str
    created_at: str | None
    created_by: str
    roles: list[AssignedRole]


class CreateUser(msgspec.Struct, frozen=True):
    """A user to add."""

    id: str
    roles: list[str] = []


class ChangeRoles(msgspec.Struct, frozen=True):
    """Roles to grant and to revoke."""

    add: list[str] = []
    remove: list[str] = []


class RoleName(msgspec.Struct, frozen=True):
    """A role to grant."""

    role_name: str


class RoleUser(msgspec.Struct, frozen=True):
    """A user that has a role."""

    user_id: str
    assigned_by: str
    assigned_at: str | None


class RoleUsers(msgspec.Struct, frozen=True):
    """The users that have a role."""

    role_name: str
    users: list[RoleUser]


class RoleAssigned(msgspec.Struct, frozen=True):
    """A role that was granted to a user."""

    user_id: str
    role_name: str
    assigned_by: str
    assigned_at: str | None


class GiveRole(msgspec.Struct, frozen=True):
    """Users to grant a role to."""

    user_ids: list[str]


class RoleGiven(msgspec.Struct, frozen=True):
    """The result of granting a role to several users."""

    role_name: str
    assigned: list[str]
    already_assigned: list[str]
    #: There are no such users.
    failed: list[str]


class UserRoles(msgspec.Struct, frozen=True):
    """The roles granted to a user."""

    user_id: str
    roles: list[AssignedRole]


class RolePolicy(msgspec.Struct, frozen=True):
    """One rule of a role: allows or denies actions on resources."""

    #: Allow or Deny.
    effect: str
    actions: list[str]
    resources: list[str]


class RoleAnswer(msgspec.Struct, frozen=True):
    """A custom role."""

    name: str
    description: str
    policies: list[RolePolicy]
    immutable: bool


class PutRole(msgspec.Struct, frozen=True):
    """A role to create or replace; existing clients send it in `configs`."""

    description: str = ""
    policies: list[Json] = []
    #: With it, the description above is about the change.
    configs: dict[str, Json] | None = None
    tags: list[str] = []


class PutRoles(msgspec.Struct, frozen=True):
    """Roles to create or replace; each has a name and the fields of a single role."""

    configs: list[dict[str, Json]]
    description: str = ""
    tags: list[str] = []


# Tokens and logging in


class TokenLine(msgspec.Struct, frozen=True):
    """A personal access token, without its secret."""

    token_name: str
    user_name: str
    description: str
    expires_at: str
    created_at: str | None
    roles: list[str]


class TokenRoles(msgspec.Struct, frozen=True):
    """The roles of a token."""

    token_name: str
    user_name: str
    roles: list[AssignedRole]


class TokenSecret(msgspec.Struct, frozen=True):
    """The secret of a token."""

    token: str


class PassAnswer(msgspec.Struct, frozen=True):
    """A short-lived token made from a personal one."""

    token: str
    expires_at: int
    error: str | None = None


class LoginMethods(msgspec.Struct, frozen=True):
    """How to log in: only with a token, so the fields of other methods are absent."""

    methods: list[str]
    device_endpoint: str | None = None
    device_client_id: str | None = None
    browser_endpoint: str | None = None
    browser_client_id: str | None = None
    token_endpoint: str | None = None


# Credentials


class CredentialLine(msgspec.Struct, frozen=True):
    """A credential, without its secret."""

    cred_name: str
    cred_type: str
    #: The registry or the address of data that it is for; `null` for others.
    profile: str | None
    #: The names of its parts, with commas.
    keys: str
    created_at: str | None


class CredentialList(msgspec.Struct, frozen=True):
    """The credentials of a user."""

    credentials: list[CredentialLine]


class GenericCredential(msgspec.Struct, frozen=True):
    """A generic secret: its parts by name."""

    credential: dict[str, str]


class SetCredential(msgspec.Struct, frozen=True, omit_defaults=True):
    """A secret to store: `type` and `payload`, or one of three fields for existing clients."""

    type: str | None = None
    payload: dict[str, str] | None = None
    generic_credential: GenericCredential | None = None
    registry_credential: dict[str, str] | None = None
    data_credential: dict[str, str | None] | None = None
