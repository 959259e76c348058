"""The user's own settings and secrets on a server, and its users."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bough.api.common import Json
from bough.api.people import (
    ChangeRoles,
    CreateUser,
    CredentialLine,
    CredentialList,
    ProfileAnswer,
    ProfileChoices,
    SetCredential,
    TokenLine,
    TokenRoles,
    UserAnswer,
    UserLine,
    UserList,
)
from bough.client.addresses import given, path_of
from bough.client.transport import Transport

#: Spelled out here, because a subject's own `list` hides the type of that name.
CredentialLines = list[CredentialLine]
TokenLines = list[TokenLine]
UserLines = list[UserLine]


class OwnProfile:
    """The user's settings and rights."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self) -> ProfileAnswer:
        """Settings, reachable pools, roles, and the token of this client."""
        return self._transport.get(ProfileAnswer, path_of("profile", "settings"))

    def set(self, changes: Mapping[str, Json]) -> ProfileChoices:
        """Change `pool`, `email_notification` or `slack_notification`."""
        self._transport.send(None, "POST", path_of("profile", "settings"), changes)
        return self.get().profile


class Credentials:
    """Secrets for the user's workflows; they are never shown again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> CredentialLines:
        """All of them, without what is secret."""
        return self._transport.get(CredentialList, path_of("credentials")).credentials

    def set(self, name: str, kind: str, payload: Mapping[str, str]) -> CredentialLine:
        """Keep a secret: REGISTRY, DATA or GENERIC, with its parts."""
        body = SetCredential(kind, dict(payload))
        return self._transport.send(CredentialLine, "POST", path_of("credentials", name), body)

    def delete(self, name: str) -> CredentialList:
        """Forget a secret."""
        return self._transport.send(CredentialList, "DELETE", path_of("credentials", name))


class Tokens:
    """Personal access tokens, one's own or, for administrators, another user's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, user: str | None = None) -> TokenLines:
        """All of a user, without what is secret."""
        return self._transport.get(TokenLines, _tokens(user))

    def create(
        self,
        name: str,
        *,
        user: str | None = None,
        expires_at: str | None = None,
        description: str | None = None,
        roles: Sequence[str] = (),
    ) -> str:
        """Create a token until a date (YYYY-MM-DD); the secret, which is never shown again."""
        query = given(expires_at=expires_at, description=description, roles=list(roles))
        path = f"{_tokens(user)}/{_segment(name)}"
        return self._transport.send(str, "POST", path, query=query)

    def delete(self, name: str, user: str | None = None) -> None:
        """Revoke a token."""
        self._transport.send(None, "DELETE", f"{_tokens(user)}/{_segment(name)}")

    def roles(self, name: str, user: str | None = None) -> TokenRoles:
        """The roles of a token."""
        return self._transport.get(TokenRoles, f"{_tokens(user)}/{_segment(name)}/roles")


class Users:
    """All users, for administrators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, prefix: str = "", roles: Sequence[str] = (), count: int | None = None
    ) -> UserLines:
        """Users by the beginning of their names, or by their roles."""
        query = given(id_prefix=prefix, roles=list(roles), count=count)
        return self._transport.get(UserList, path_of("auth", "user"), query).users

    def get(self, name: str) -> UserAnswer:
        """One user, with roles."""
        return self._transport.get(UserAnswer, path_of("auth", "user", name))

    def create(self, name: str, roles: Sequence[str] = ()) -> UserAnswer:
        """Add a user."""
        body = CreateUser(name, list(roles))
        return self._transport.send(UserAnswer, "POST", path_of("auth", "user"), body)

    def update(
        self, name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()
    ) -> UserAnswer:
        """Grant and revoke roles, also those of the user's tokens; all of it, or nothing."""
        body = ChangeRoles(list(add), list(remove))
        return self._transport.send(UserAnswer, "PATCH", path_of("auth", "user", name), body)

    def delete(self, name: str) -> None:
        """Remove a user with roles, tokens and credentials."""
        self._transport.send(None, "DELETE", path_of("auth", "user", name))


def _tokens(user: str | None) -> str:
    if user is None:
        return path_of("auth", "access_token")
    return path_of("auth", "user", user, "access_token")


def _segment(name: str) -> str:
    return path_of(name).removeprefix("/api/")
