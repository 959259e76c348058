"""The user's own things, and users, on a server. Must not know HTTP."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bough.client.transport import Transport, given, path_of

if TYPE_CHECKING:
    from bough.client.types import JsonList


class Profile:
    """What the user has chosen, and may do."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def get(self) -> Any:
        """Choices, reachable pools, roles, and the token that asks."""
        return self._transport.get(path_of("profile", "settings"))

    def set(self, changes: Mapping[str, Any]) -> Any:
        """Change `pool`, `email_notification` or `slack_notification`."""
        return self._transport.send("POST", path_of("profile", "settings"), dict(changes))


class Credentials:
    """Secrets for the user's workflows; they are never shown again."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> JsonList:
        """All of them, without what is secret."""
        answer = self._transport.get(path_of("credentials"))
        return answer["credentials"] if isinstance(answer, dict) else answer

    def set(self, name: str, kind: str, payload: Mapping[str, str]) -> Any:
        """Keep a secret: REGISTRY, DATA or GENERIC, with its parts."""
        body = {"type": kind, "payload": dict(payload)}
        return self._transport.send("POST", path_of("credentials", name), body)

    def delete(self, name: str) -> Any:
        """Forget a secret."""
        return self._transport.send("DELETE", path_of("credentials", name))


class Tokens:
    """Personal access tokens, one's own or, for administrators, another user's."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self, user: str | None = None) -> JsonList:
        """All of a user, without what is secret."""
        return self._transport.get(_tokens(user))

    def create(
        self,
        name: str,
        *,
        user: str | None = None,
        expires_at: str | None = None,
        description: str | None = None,
        roles: Sequence[str] = (),
    ) -> str:
        """Make a token until a date (YYYY-MM-DD); the secret, which is never shown again."""
        query = given(expires_at=expires_at, description=description, roles=list(roles))
        return self._transport.send("POST", f"{_tokens(user)}/{_segment(name)}", None, query)

    def delete(self, name: str, user: str | None = None) -> Any:
        """Make a token worthless at once."""
        return self._transport.send("DELETE", f"{_tokens(user)}/{_segment(name)}")

    def roles(self, name: str, user: str | None = None) -> Any:
        """What a token may do."""
        return self._transport.get(f"{_tokens(user)}/{_segment(name)}/roles")


class Users:
    """Everybody, for administrators."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, prefix: str = "", roles: Sequence[str] = (), count: int | None = None
    ) -> JsonList:
        """Users whose names begin so, or who have one of some roles."""
        query = given(id_prefix=prefix, roles=list(roles), count=count)
        return self._transport.get(path_of("auth", "user"), query)["users"]

    def get(self, name: str) -> Any:
        """One user, with roles."""
        return self._transport.get(path_of("auth", "user", name))

    def create(self, name: str, roles: Sequence[str] = ()) -> Any:
        """Add a user."""
        body = {"id": name, "roles": list(roles)}
        return self._transport.send("POST", path_of("auth", "user"), body)

    def update(self, name: str, *, add: Sequence[str] = (), remove: Sequence[str] = ()) -> Any:
        """Give roles and take some away, from the user's tokens too; all of it, or nothing."""
        body = {"add": list(add), "remove": list(remove)}
        return self._transport.send("PATCH", path_of("auth", "user", name), body)

    def delete(self, name: str) -> Any:
        """Remove a user with roles, tokens and credentials."""
        return self._transport.send("DELETE", path_of("auth", "user", name))


def _tokens(user: str | None) -> str:
    if user is None:
        return path_of("auth", "access_token")
    return path_of("auth", "user", user, "access_token")


def _segment(name: str) -> str:
    return path_of(name).removeprefix("/api/")
